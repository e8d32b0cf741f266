"""Islands: several populations that breed apart and send each other their best now and then."""

from __future__ import annotations

import random
from bisect import insort

from msgspec import Struct

from evogit.history import History
from evogit.selection.pool import Drawing, Offspring, Ranked, Ranking
from evogit.selection.weighted import weights


class IslandsOptions(Struct, frozen=True, kw_only=True):
    """How many islands there are, and after how many evaluations how many candidates migrate."""

    count: int = 4
    every: int = 20
    migrants: int = 1


class Islands(Drawing):
    """Draws, as `Weighted` does, from what was bred on the agent's island and what migrated there.

    Each time `every` candidates of an island were evaluated, its `migrants` fittest become known on the next one, in a
    ring, and stay known at home: Tanese (1989, "Distributed genetic algorithms"); ring and best migrants as Cantú-Paz
    (2000, "Efficient and Accurate Parallel Genetic Algorithms"). Agents are dealt to islands in the order in which they
    came; what they bred belongs there, and candidates of others (the seed, people) to all islands.
    """

    name = "islands"
    help = "populations that breed apart and send each other their best"
    Options = IslandsOptions
    removed_options = frozenset({"of"})

    def __init__(self, options: IslandsOptions = IslandsOptions()) -> None:  # noqa: B008 - it is frozen
        super().__init__()
        self._count = options.count
        self._every = options.every
        self._migrants = options.migrants
        self._ranking = Ranking()
        self._offspring = Offspring()

    def draw(self, history: History, agent: str, rng: random.Random) -> str | None:
        """Return one of those that are known on the agent's island."""
        known = self.known(history, agent)
        return rng.choices(known, weights(known, self._offspring.of(history)))[0][2] if known else None

    def known(self, history: History, agent: str) -> list[Ranked]:
        """Return the candidates that are known on the agent's island, the fittest first."""
        names = list(dict.fromkeys(name for started in history.engines.values() for name in started.agents))
        count = max(1, min(self._count, len(names)))
        homes = {name: number % count for number, name in enumerate(names)}
        return self._populations(history, homes, count)[homes.get(agent, 0)]

    def _populations(self, history: History, homes: dict[str, int], count: int) -> list[list[Ranked]]:
        """Return what is known on each island, the fittest first."""
        ranks = {rank[2]: rank for rank in self._ranking.of(history)}
        islands: list[list[Ranked]] = [[] for _ in range(count)]
        bred = [0] * count
        for commit in history.judgements:
            home = homes.get(history.phylogeny[commit].agent)
            if rank := ranks.get(commit):
                for island in islands if home is None else [islands[home]]:
                    insort(island, rank)
            if home is None:
                continue
            bred[home] += 1
            if bred[home] % self._every == 0:
                neighbour = islands[(home + 1) % count]
                for migrant in islands[home][: self._migrants]:
                    if migrant not in neighbour:
                        insort(neighbour, migrant)
        return islands
