"""Bin packing instances from seeds: classes u and t of the task bin_packing, and a third one with small items."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Instance:
    """Items to pack, as sizes in whole units of the capacity's."""

    name: str
    capacity: int
    items: list[int]

    @property
    def bound(self) -> int:
        """No packing has fewer bins: the total size in bins, rounded up (the L1 bound)."""
        return -(-sum(self.items) // self.capacity)


def uniform(n: int, seed: int) -> Instance:
    """Class u: n sizes drawn uniformly from 20 to 100, bins of 150."""
    rng = random.Random(f"u{n} {seed}")
    return Instance(f"u{n}-{seed}", 150, [rng.randint(20, 100) for _ in range(n)])


def triplets(n: int, seed: int) -> Instance:
    """Class t: n / 3 triplets that each fill a bin of 1000 exactly, in random order, so n / 3 bins are optimal.

    The first of a triplet is drawn from 380 to 490, the second from 250 to half of what is left.
    """
    rng = random.Random(f"t{n} {seed}")
    items = [item for _ in range(n // 3) for item in triplet(rng)]
    rng.shuffle(items)
    return Instance(f"t{n}-{seed}", 1000, items)


def triplet(rng: random.Random) -> tuple[int, int, int]:
    first = rng.randint(380, 490)
    second = rng.randint(250, (1000 - first) // 2)
    return first, second, 1000 - first - second


def weibull(n: int, seed: int) -> Instance:
    """Class w: n sizes from the Weibull distribution of shape 3 and scale 45, rounded, from 1 to 100; bins of 100."""
    rng = random.Random(f"w{n} {seed}")
    return Instance(f"w{n}-{seed}", 100, [min(max(round(rng.weibullvariate(45, 3)), 1), 100) for _ in range(n)])
