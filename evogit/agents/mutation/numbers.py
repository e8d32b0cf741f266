"""Numbers as they are written in a program, and other ones near them."""

from __future__ import annotations

import math
import random
import re

from evogit.agents.mutation.mix import Mix
from evogit.source.numbers import rounded


def nudged(text: str, rng: random.Random, mix: Mix) -> tuple[str, str] | None:
    """A number near the one that is written in `text`, an integer for an integer, and what that is called.

    None where there is no number, or it stayed the same.
    """
    if len(text) > 30:
        return None
    bare = re.sub(r"[\s\\]", "", text)
    try:
        value: float = int(bare, 0)
    except ValueError:  # also leading zeros, in languages that allow them
        value = float(bare)
    way, step = mix.step(rng)
    if isinstance(value, int):
        new: float = _nudged_int(value, rng, mix)
        way = "perturb_number"
    else:
        new = _nudged_float(value, step, rng)
    return (repr(new), way) if new != value and math.isfinite(new) else None


def _nudged_float(value: float, step: float, rng: random.Random) -> float:
    """By a log-normal factor or a normal term; now and then rounded or negated."""
    way = rng.random()
    if way < 0.6 and value:
        return rounded(value * math.exp(rng.gauss(0, step)), step * abs(value))
    if way < 0.93:
        return rounded(value + rng.gauss(0, step), step)
    if way < 0.97 and value:
        return float(f"{value:.{rng.randint(1, 3)}g}")
    return -value


def _nudged_int(value: int, rng: random.Random, mix: Mix) -> int:
    """By one, by a few, by a factor; boldly by more."""
    way = rng.random() ** (1 / mix.size)
    if way < 0.5:
        return value + rng.choice((-1, 1))
    if way < 0.8:
        return value + rng.choice((-1, 1)) * rng.randint(2, 9)
    if way < 0.9 and abs(value) > 10:
        return round(value * math.exp(rng.gauss(0, 0.3)))
    return rng.choice((value * 2, value // 2, value * 2, value // 2, -value))
