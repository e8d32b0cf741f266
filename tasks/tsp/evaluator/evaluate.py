"""Judges tours: a permutation of the cities, measured by the judge."""

import math
from collections.abc import Iterator

from instances import City, Instance, clustered, length, uniform

from evogit import Case, Invalid

KNOWN = {
    uniform: {
        (5, 1): 1.528341,
        (8, 1): 2.511373,
        (60, 1): 6.294185,
        (60, 2): 5.831619,
        (100, 1): 7.761936,
        (100, 2): 7.419302,
        (150, 1): 9.310550,
        (150, 2): 9.407786,
        (200, 1): 10.698672,
        (200, 2): 10.608064,
        (200, 101): 10.404171,
        (200, 102): 11.128923,
        (500, 1): 16.430724,
    },
    clustered: {(200, 1): 4.781875, (200, 2): 4.828604, (500, 1): 6.796215},
}
"""The length of the best tour that was found when the task was written, by number of cities and seed."""

SPLITS = {
    "smoke": [(uniform, 5, 1), (uniform, 8, 1)],
    "lite": [(uniform, 60, 1), (uniform, 60, 2)],
    "train": [(uniform, n, seed) for n in (100, 150, 200) for seed in (1, 2)],
    "holdout": [
        *((make, 200, seed) for make, seed in [(uniform, 101), (uniform, 102), (clustered, 1), (clustered, 2)]),
        *((make, 500, 1) for make in (uniform, clustered)),
    ],
}


def evaluate(program, split: str) -> Iterator[Case]:
    for make, n, seed in SPLITS[split]:
        instance = Instance(f"{make.__name__[0]}{n}-{seed}", make(n, seed), KNOWN[make][n, seed])
        reply = program.call("touring:tour", kwargs={"cities": instance.cities}, returns=list[int])
        yield judge(instance, reply.value)


def judge(instance: Instance, order: list[int]) -> Case:
    """`order` holds the numbers of the cities as they are visited; the way home from the last one counts."""
    check(instance, order)
    total = length(instance.cities, order)
    excess = 100 * (total / instance.known - 1)
    return Case(instance.name, feedback=describe(instance.cities, order, total, excess), excess=excess)


def check(instance: Instance, order: list[int]) -> None:
    n = len(instance.cities)
    if len(order) != n:
        raise Invalid(f"{instance.name}: expected each of the {n} cities once, got {len(order)}")
    seen = set[int]()
    for city in order:
        if not 0 <= city < n:
            raise Invalid(f"{instance.name}: expected cities from 0 to {n - 1}, got {city}")
        if city in seen:
            raise Invalid(f"{instance.name}: city {city} is visited twice")
        seen.add(city)


def describe(cities: list[City], order: list[int], total: float, excess: float) -> str:
    a, b = max(zip(order, order[1:] + order[:1], strict=True), key=lambda ab: math.dist(cities[ab[0]], cities[ab[1]]))
    longest = math.dist(cities[a], cities[b])
    return (
        f"length {total:.4f}, {excess:.2f} % above the best known; the longest step is {longest:.3f}, from {a} to {b}"
    )
