"""Judges packings of items into bins, in whole numbers."""

from collections import Counter
from collections.abc import Iterator

from instances import Instance, triplets, uniform

from evogit import Case, Invalid

SPLITS = {
    "smoke": [uniform(7, 1), triplets(6, 1)],
    "lite": [uniform(60, 1), triplets(60, 1)],
    "train": [*(uniform(250, seed) for seed in range(1, 6)), *(triplets(120, seed) for seed in range(1, 6))],
    "holdout": [
        *(make(n, seed) for make, n in [(uniform, 250), (triplets, 120)] for seed in range(101, 104)),
        *(make(n, seed) for make, n in [(uniform, 500), (triplets, 249)] for seed in range(1, 4)),
    ],
}


def evaluate(program, split: str) -> Iterator[Case]:
    for instance in SPLITS[split]:
        arguments = {"items": instance.items, "capacity": instance.capacity}
        reply = program.call("packing:pack", kwargs=arguments, returns=list[int])
        yield judge(instance, reply.value)


def judge(instance: Instance, bins: list[int]) -> Case:
    """`bins` holds the bin of each item, in the order of the items."""
    check_placed(instance, bins)
    loads = Counter[int]()
    for item, b in zip(instance.items, bins, strict=True):
        loads[b] += item
    check_loads(instance, loads)
    feedback = f"{len(loads)} bins; no packing has fewer than {instance.bound}"
    return Case(instance.name, feedback=feedback, excess=100 * (len(loads) - instance.bound) / instance.bound)


def check_placed(instance: Instance, bins: list[int]) -> None:
    count = len(instance.items)
    if len(bins) != count:
        raise Invalid(f"{instance.name}: expected a bin for each of the {count} items, got {len(bins)} bins")
    for i, b in enumerate(bins):
        if not 0 <= b < count:
            raise Invalid(f"{instance.name}: item {i} is in bin {b}; expected a bin from 0 to {count - 1}")


def check_loads(instance: Instance, loads: Counter[int]) -> None:
    for b, load in loads.items():
        if load > instance.capacity:
            raise Invalid(f"{instance.name}: bin {b} holds {load}; the capacity is {instance.capacity}")
