"""Judges by time: the candidate and the seed on the same new points, each time in a session of its own."""

import random
from collections.abc import Iterator

from inputs import Point, clustered, counted, line, uniform
from measuring import FEWEST, MOST, decided, speedup

from evogit import Case, Invalid

RADIUS = 30_000

SPLITS = {
    "smoke": [(uniform, 3), (line, 40), (clustered, 60)],
    "lite": [(uniform, 80)],
    "train": [(uniform, 250)],
    "holdout": [(uniform, 600), (clustered, 300), (line, 300)],
}


def evaluate(program, split: str, seed, rng: random.Random) -> Iterator[Case]:
    for make, size in SPLITS[split]:
        name = f"{make.__name__}-{size}"
        if split == "smoke":
            measure([program], name, make(size, rng))
            yield Case(name, speedup=1.0)
        else:
            yield compare(program, seed, name, lambda make=make, size=size: make(size, rng))


def compare(program, seed, name: str, points) -> Case:
    """Pairs of measurements until it is clear which one is faster; who goes first changes."""
    cpu: list[float] = []
    wall: list[float] = []
    while len(cpu) < FEWEST or (len(cpu) < MOST and not decided(cpu)):
        order = (program, seed) if len(cpu) % 2 else (seed, program)
        took = measure(order, name, points())
        cpu.append(took[seed].cpu / took[program].cpu)
        wall.append(took[seed].wall / took[program].wall)
    feedback = (
        f"{speedup(cpu, wall):.2f} times as fast as the seed by {len(cpu)} pairs: {min(cpu):.2f} to {max(cpu):.2f}"
    )
    return Case(name, feedback=feedback, speedup=speedup(cpu, wall))


def measure(order, name: str, points: list[Point]) -> dict:
    """What each program takes for these points; both must find what is right."""
    right = counted(points, RADIUS)
    took = {}
    for each in order:
        took[each] = each.measure("neighbours:neighbours", [points, RADIUS], returns=list[int])
        if took[each].value != right:
            raise Invalid(f"{name}: {wrong(took[each].value, right)}")
    return took


def wrong(found: list[int], right: list[int]) -> str:
    if len(found) != len(right):
        return f"expected a number for each of the {len(right)} points, got {len(found)}"
    differ = sum(a != b for a, b in zip(found, right, strict=True))
    return f"{differ} of the {len(right)} numbers are wrong"
