"""Judges online packings: hands out one item at a time and keeps the bins itself, in whole numbers."""

from collections.abc import Iterator

from instances import Instance, uniform, weibull

from evogit import Case, Invalid

SPLITS = {
    "smoke": [uniform(5, 1), weibull(5, 1)],
    "lite": [uniform(200, 1), weibull(200, 1)],
    "train": [uniform(500, 1), uniform(500, 2), weibull(1000, 1)],
    "holdout": [uniform(500, 101), uniform(500, 102), weibull(1000, 101), weibull(5000, 1)],
}


def evaluate(program, split: str) -> Iterator[Case]:
    for instance in SPLITS[split]:
        program.call("packing:start", kwargs={"capacity": instance.capacity})
        yield judge(instance, program.stream("packing:place", instance.items, returns=int))


def judge(instance: Instance, replies: Iterator) -> Case:
    """`replies` gives the bin of the next item, and learns of the item only then."""
    rooms: list[int] = []
    for i, (item, reply) in enumerate(zip(instance.items, replies, strict=True)):
        put(rooms, instance, i, item, reply.value)
    feedback = f"{len(rooms)} bins; no packing has fewer than {instance.bound}"
    return Case(instance.name, feedback=feedback, excess=100 * (len(rooms) - instance.bound) / instance.bound)


def put(rooms: list[int], instance: Instance, i: int, item: int, b: int) -> None:
    if not 0 <= b <= len(rooms):
        raise Invalid(
            f"{instance.name}: item {i} goes into bin {b}; expected an open bin, 0 to {len(rooms) - 1}, or {len(rooms)}"
        )
    if b == len(rooms):
        rooms.append(instance.capacity)
    if item > rooms[b]:
        raise Invalid(f"{instance.name}: item {i} of size {item} goes into bin {b}, which has room for {rooms[b]}")
    rooms[b] -= item
