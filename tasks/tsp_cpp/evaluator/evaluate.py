"""Judges a C++ program that plans tours: it is compiled in the sandbox, and its tours are measured by the judge."""

import math
from collections.abc import Iterator

from instances import City, Instance, clustered, length, uniform

from evogit import Case, Invalid

COMPILE = ["g++", "-std=c++17", "-O2", "-ffp-contract=off", "-o", "tour", "tour.cpp"]
"""Without fused operations, which machines round differently."""

KNOWN = {
    uniform: {
        (5, 1): 1.528341,
        (60, 1): 6.294185,
        (60, 2): 5.831619,
        (200, 1): 10.698672,
        (200, 2): 10.608064,
        (200, 101): 10.404171,
        (200, 102): 11.128923,
        (500, 1): 16.430724,
    },
    clustered: {(200, 1): 4.781875, (200, 2): 4.828604, (500, 1): 6.796215},
}
"""The length of the best tour that was found when the task `tsp` was written, by number of cities and seed."""

SPLITS = {
    "smoke": [(uniform, 5, 1)],
    "lite": [(uniform, 60, 1), (uniform, 60, 2)],
    "train": [(uniform, 200, 1), (uniform, 200, 2), (uniform, 500, 1)],
    "holdout": [
        *((make, 200, seed) for make, seed in [(uniform, 101), (uniform, 102), (clustered, 1), (clustered, 2)]),
        (clustered, 500, 1),
    ],
}


def evaluate(program, split: str) -> Iterator[Case]:
    built = program.run(COMPILE)
    if built.code or built.breach:
        raise Invalid("tour.cpp does not compile", log=built.detail or built.stderr)
    for make, n, seed in SPLITS[split]:
        instance = Instance(f"{make.__name__[0]}{n}-{seed}", make(n, seed), KNOWN[make][n, seed])
        yield judge(instance, visited(program, instance))


def visited(program, instance: Instance) -> list[int]:
    """The order of the cities that the program prints."""
    lines = [str(len(instance.cities)), *(f"{x} {y}" for x, y in instance.cities)]
    done = program.run(["./tour"], stdin="\n".join(lines).encode())
    if done.code or done.breach:
        raise Invalid(f"{instance.name}: {done.detail or f'exit code {done.code}'}", log=done.stderr)
    try:
        return [int(word) for word in done.stdout.split()]
    except ValueError:
        raise Invalid(f"{instance.name}: expected the numbers of cities, got {done.stdout[:60]!r}") from None


def judge(instance: Instance, order: list[int]) -> Case:
    """`order` holds the numbers of the cities as they are visited; the way home from the last one counts."""
    n = len(instance.cities)
    if sorted(order) != list(range(n)):
        raise Invalid(f"{instance.name}: expected each of the {n} cities once, got {order[:5]} and so on")
    total = length(instance.cities, order)
    excess = 100 * (total / instance.known - 1)
    return Case(instance.name, feedback=describe(instance.cities, order, total, excess), excess=excess)


def describe(cities: list[City], order: list[int], total: float, excess: float) -> str:
    a, b = max(zip(order, order[1:] + order[:1], strict=True), key=lambda ab: math.dist(cities[ab[0]], cities[ab[1]]))
    longest = math.dist(cities[a], cities[b])
    return (
        f"length {total:.4f}, {excess:.2f} % above the best known; the longest step is {longest:.3f}, from {a} to {b}"
    )
