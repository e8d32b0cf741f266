"""The mutator's way with named numbers: one of them, or about half of all, go on as earlier steps of theirs went."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from evogit.agents import FileContents, Proposal
from evogit.agents.mutation.operators import Edit, apply, titled
from evogit.source.marks import may_change
from evogit.source.numbers import Constant, Number, numbers_of, rounded
from evogit.text import TITLE_LENGTH, one_line

ONE, SEVERAL = "tune_number", "tune_numbers"

TUNING: Mapping[str, float] = {ONE: 0.4, SEVERAL: 0.3}
"""The ways, and their usual chances where a move may tune and there are named numbers."""

UNIT = 0.5  # a number nearer to zero is taken for as large as this
SHORTEST, LONGEST = 1e-4, 10.0  # bounds of a step, as shares of its number

JITTER = 0.3
"""Standard deviation of a single step's logarithm, so that agents with the same knowledge do not do the same."""


def numbers(files: FileContents) -> Mapping[Constant, Number]:
    """The named numbers of these files."""
    return {
        constant: number
        for path in sorted(files)
        for constant, number in numbers_of(path, files[path]).named.items()
        if may_change(files[path], number[0], number[1])
    }


def tune(
    files: FileContents, found: Mapping[Constant, Number], steps: Mapping[Constant, float], way: str, rng: random.Random
) -> Proposal | None:
    """Change one number by the step that was learned, or several by normal ones; None if none changes."""
    chosen = [each for each in found if rng.random() < 0.5] if way == SEVERAL else []
    edits: dict[str, list[Edit]] = {}
    for constant in chosen or [rng.choice(list(found))]:
        start, end, old = found[constant]
        step = _step(steps.get(constant), old, rng)
        by = rng.gauss(0, abs(step)) if len(chosen) > 1 else step * math.exp(rng.gauss(0, JITTER))
        new = rounded(old + by, abs(step))
        if new != old and math.isfinite(new):
            title = titled(f"tune {constant.name} {old!r} -> {new!r}")
            edits.setdefault(constant.path, []).append(Edit(start, end, repr(new).encode(), title, way))
    titles = [edit.title for made in edits.values() for edit in made]
    if not titles:
        return None
    more = f" (+{len(titles) - 1} more)" if len(titles) > 1 else ""
    changes = {path: apply(files[path], made) for path, made in edits.items()}
    return Proposal(changes=changes, title=one_line(titles[0], TITLE_LENGTH - len(more)) + more, strategy=way)


def _step(known: float | None, value: float, rng: random.Random) -> float:
    """Return the next step; an unknown one, or one grown too long, is a thirtieth to all of the number."""
    size = max(abs(value), UNIT)
    if known is None or abs(known) > LONGEST * size:
        return rng.choice((-1, 1)) * size * 10 ** rng.uniform(-1.5, 0.0)
    return math.copysign(max(abs(known), SHORTEST * size), known)
