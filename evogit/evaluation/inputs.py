"""What evaluators' `rng` draws: inputs that are the same for all candidates of a run, and that none can foresee."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evogit.repository.run_keys import LENGTH, committed, kept
from evogit.trust import state_folder

BLOCK = 1024
"""Bytes that are drawn ahead."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The secret that inputs are drawn with, empty if they are public; `missing` says why it is not on this machine."""

    secret: bytes = field(default=b"", repr=False)
    missing: str = ""

    @classmethod
    def own(cls) -> Inputs:
        """A secret that nobody else has, nor ever will."""
        return cls(os.urandom(LENGTH))

    @property
    def commitment(self) -> str:
        """What may be known of the secret; empty without one."""
        return committed(self.secret)

    def drawn(self, task: str, splits: Iterable[str], repeat: int) -> Drawn:
        """Return the seeds of one evaluation, equal for all candidates, new per repeat; they hide the secret."""
        if not self.secret:
            return {}
        return {split: hashlib.sha256(_place(task, split, repeat) + self.secret).hexdigest() for split in splits}


Drawn = Mapping[str, str]
"""Split -> the seed of its generator, as hex digits; empty where everybody can make the same inputs."""

PUBLIC = Inputs()
"""Inputs that repeat everywhere: those of benches and of runs that began before there were secrets."""


def generator(drawn: Drawn, task: str, split: str, repeat: int) -> random.Random:
    """The generator that an evaluator gets for a split. Raises KeyError if seeds were drawn, but not for this split."""
    if drawn:
        return UnforeseeableRandom(bytes.fromhex(drawn[split]))
    return random.Random(hashlib.sha256(_place(task, split, repeat)).digest())


def _place(task: str, split: str, repeat: int) -> bytes:
    return f"{task}\0{split}\0{repeat}".encode()


def of_person(environ: Mapping[str, str], *about: object) -> bytes:
    """Derive a secret of this user on this machine. Raises RepositoryError if it can be neither read nor made."""
    own = kept(state_folder(environ) / "input-key")
    return hashlib.sha256(own + repr(about).encode()).digest()


class UnforeseeableRandom(random.Random):
    """A generator whose numbers tell nothing of those to come; Python's own can be foreseen after 624 of them."""

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Begin anew."""
        super().seed(0)
        self._key = hashlib.sha256(os.urandom(LENGTH) if a is None else repr(a).encode()).digest()
        self._blocks = self._pool = self._bits = 0

    def getrandbits(self, k: int) -> int:
        """An integer of `k` bits."""
        if k < 0:
            raise ValueError("expected a number of bits that is not negative")
        while self._bits < k:
            block = hashlib.shake_256(self._key + self._blocks.to_bytes(8)).digest(BLOCK)
            self._pool |= int.from_bytes(block) << self._bits
            self._blocks += 1
            self._bits += 8 * BLOCK
        number = self._pool & ((1 << k) - 1)
        self._pool >>= k
        self._bits -= k
        return number

    def random(self) -> float:
        """A number from 0 up to 1."""
        return self.getrandbits(53) * 2.0**-53

    def getstate(self) -> tuple[Any, ...]:
        """What `setstate` takes."""
        return self._key, self._blocks, self._pool, self._bits, self.gauss_next

    def setstate(self, state: Any) -> None:
        """Go on from where it was."""
        self._key, self._blocks, self._pool, self._bits, self.gauss_next = state
