"""Online bin packing instances from seeds, with the distributions that FunSearch used."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Instance:
    """Items in the order of their arrival, as sizes in whole units of the capacity's."""

    name: str
    capacity: int
    items: list[int]

    @property
    def bound(self) -> int:
        """No packing has fewer bins: the total size in bins, rounded up (the L1 bound)."""
        return -(-sum(self.items) // self.capacity)


def uniform(n: int, seed: int) -> Instance:
    """Class U, as in the OR-Library: n sizes drawn uniformly from 20 to 100, bins of 150."""
    rng = random.Random(f"U{n} {seed}")
    return Instance(f"U{n}-{seed}", 150, [rng.randint(20, 100) for _ in range(n)])


def weibull(n: int, seed: int) -> Instance:
    """Class W: n sizes from the Weibull distribution of shape 3 and scale 45, rounded, from 1 to 100; bins of 100."""
    rng = random.Random(f"W{n} {seed}")
    return Instance(f"W{n}-{seed}", 100, [min(max(round(rng.weibullvariate(45, 3)), 1), 100) for _ in range(n)])
