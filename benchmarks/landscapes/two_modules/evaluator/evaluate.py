"""Two NK landscapes (Kauffman 1989) with N = 8 settings of 3 positions and K = 3, scaled to a maximum of 1."""

import random
from collections.abc import Iterator, Sequence
from itertools import product

from evogit import Case, Invalid

N, K, POSITIONS = 8, 3, 3


class Machine:
    """The output of a setting is worth a drawn number for each setting of it and of three others."""

    def __init__(self, name: str) -> None:
        rng = random.Random(f"two_modules {name}")
        self._others = [rng.sample([j for j in range(N) if j != i], K) for i in range(N)]
        self._worth = [{key: rng.random() for key in product(range(POSITIONS), repeat=K + 1)} for _ in range(N)]
        self.best = max(product(range(POSITIONS), repeat=N), key=self._sum)
        self._most = self._sum(self.best)

    def output(self, settings: Sequence[int]) -> float:
        return self._sum([setting % POSITIONS for setting in settings]) / self._most

    def _sum(self, at: Sequence[int]) -> float:
        return sum(
            worth[at[i], *(at[j] for j in others)]
            for i, (others, worth) in enumerate(zip(self._others, self._worth, strict=True))
        )


MACHINES = {name: Machine(name) for name in ("left", "right")}


def evaluate(program, split: str) -> Iterator[Case]:
    found = program.call("machine:settings", returns=dict[str, list[int]]).value
    for name, machine in MACHINES.items():
        settings = found.get(name, [])
        if len(settings) != N:
            raise Invalid(f"expected {N} settings in {name}.py, got {len(settings)}")
        output = machine.output(settings)
        yield Case(name, feedback=f"the output is {100 * output:.1f} % of the best", output=output)
