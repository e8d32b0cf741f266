"""Judges programs that design solvers: tries are counted here, and the solver that is chosen packs elsewhere."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from instances import Instance, triplets, uniform, weibull

from evogit import Case, Invalid
from evogit.evaluation.program import CandidateFailedError

LONGEST = 20_000
"""Characters of a solver's source."""


@dataclass(frozen=True)
class Job:
    """A class of instances that a solver is designed for: some to try it on, and others that it is judged by."""

    name: str
    seed: int
    tries: int
    known: list[Instance]
    unknown: list[Instance]


def job(make, seed: int, *, tries: int = 8, small: int = 60, large: int = 120) -> Job:
    known = [make(small, 1000 * seed + number) for number in (1, 2)]
    unknown = [make(large, 1000 * seed + number) for number in (11, 12)]
    return Job(f"{make.__name__}-{seed}", seed, tries, known, unknown)


SPLITS = {
    "smoke": [job(uniform, 1, tries=1, small=6, large=12)],
    "lite": [job(triplets, 1, tries=2)],
    "train": [job(make, seed) for seed in (1, 2) for make in (uniform, triplets)],
    "holdout": [job(make, 101, small=90, large=249) for make in (uniform, triplets, weibull)],
}


def evaluate(program, split: str) -> Iterator[Case]:
    for each in SPLITS[split]:
        tried = []
        for left in range(each.tries, 0, -1):
            source = text(program.call("designer:propose", [tried, left, each.seed], returns=str).value)
            tried.append((source, attempt(program, source, each.known)))
        chosen = text(program.call("designer:choose", [tried], returns=str).value)
        told = ", ".join("failed" if score is None else f"{score:.2f}" for _, score in tried)
        found = solved(program, chosen, each.unknown)
        yield Case(each.name, feedback=f"tries: {told}; the chosen one on other instances: {found:.2f}", excess=found)


def text(source: str) -> str:
    if len(source) > LONGEST:
        raise Invalid(f"expected a solver of at most {LONGEST} characters, got {len(source)}")
    return source


def attempt(program, source: str, instances: list[Instance]) -> float | None:
    """What a try is told: the mean excess, or nothing if the solver fails."""
    try:
        return solved(program, source, instances)
    except CandidateFailedError:
        return None


def solved(program, source: str, instances: list[Instance]) -> float:
    """The mean excess of a solver in a session of its own, where nothing of its designer or of other tries is."""
    with program.anew() as life:
        life.run(["true"], files={"solver.py": source.encode()})
        arguments = [{"items": each.items, "capacity": each.capacity} for each in instances]
        answers = [life.call("solver:pack", kwargs=each, returns=list[int]).value for each in arguments]
    return sum(map(excess, instances, answers)) / len(instances)


def excess(instance: Instance, bins: list[int]) -> float:
    """`bins` holds the bin of each item, in the order of the items."""
    count = len(instance.items)
    if len(bins) != count:
        raise Invalid(f"{instance.name}: expected a bin for each of the {count} items, got {len(bins)} bins")
    loads = Counter[int]()
    for i, (item, b) in enumerate(zip(instance.items, bins, strict=True)):
        if not 0 <= b < count:
            raise Invalid(f"{instance.name}: expected a bin from 0 to {count - 1} for item {i}, got {b}")
        loads[b] += item
    fullest = max(loads.values())
    if fullest > instance.capacity:
        raise Invalid(f"{instance.name}: a bin holds {fullest}; the capacity is {instance.capacity}")
    return 100 * (len(loads) - instance.bound) / instance.bound
