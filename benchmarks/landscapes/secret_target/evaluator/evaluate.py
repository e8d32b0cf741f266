"""Counts the dials that are set as the secret says."""

import random
from collections.abc import Iterator

from evogit import Case, Invalid

POSITIONS = 10
_RNG = random.Random("secret_target")
SECRET = {name: [_RNG.randrange(1, POSITIONS) for _ in range(4)] for name in ("north", "east", "south", "west")}
"""No dial is right in the seed, whose dials are all at 0."""


def evaluate(program, split: str) -> Iterator[Case]:
    found = program.call("lock:settings", returns=dict[str, list[int]]).value
    for name, secret in SECRET.items():
        dials = found.get(name, [])
        if len(dials) != len(secret):
            raise Invalid(f"expected {len(secret)} dials in {name}.py, got {len(dials)}")
        right = sum(dial % POSITIONS == target for dial, target in zip(dials, secret, strict=True))
        yield Case(name, feedback=f"{right} of {len(secret)} are right", right=right)
