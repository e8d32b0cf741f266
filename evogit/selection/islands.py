"""Islands: several populations that breed apart and send each other their best now and then."""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Sequence

from evogit.history import History
from evogit.history.scores import PartialScores, Scores
from evogit.selection import Move, Selector
from evogit.selection.index import Ranked, breeds, ranked


class Islands:
    """Any selector on each of `count` islands, which sees only what was bred there and what migrated.

    Each time `every` candidates of an island were evaluated, its `migrants` fittest become known on the next one, in a
    ring, and stay known at home: Tanese (1989, "Distributed genetic algorithms"); ring and best migrants as Cantú-Paz
    (2000, "Efficient and Accurate Parallel Genetic Algorithms"). Agents are dealt to islands in the order in which they
    came; what they bred belongs there, and what has no such agent (the seed, what people add) to all.
    """

    def __init__(self, of: Callable[[], Selector], count: int = 4, every: int = 20, migrants: int = 1) -> None:
        self._make = of
        self._count = count
        self._every = every
        self._migrants = migrants
        self._sea: _Sea | None = None
        self._selectors: list[Selector] = []

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """What the selector of the agent's island does with what is known there."""
        selector, view = self._at_home(history, agent)
        return selector.next_move(view, agent, rng)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """What the selector of the agent's island says."""
        selector, view = self._at_home(history, agent)
        return selector.adopts(view, agent, child)

    def _at_home(self, history: History, agent: str) -> tuple[Selector, History]:
        sea = self._sea
        if sea is None or not sea.follow(history):
            sea = _Sea(history, self._count, self._every, self._migrants)
            sea.follow(history)
            self._sea = sea
            self._selectors = [self._make() for _ in sea.islands]
        number = sea.dealt.get(agent, 0)
        return self._selectors[number], sea.islands[number].view(history)


class _Sea:
    """The islands of one history, followed evaluation by evaluation; good until something of the past changes."""

    def __init__(self, history: History, count: int, every: int, migrants: int) -> None:
        self._every = every
        self._migrants = migrants
        self._scores = history.scores
        self._pruned = history.pruned
        self._engines = len(history.engines)
        self._position = 0
        self._fitness: dict[str, float | None] = {}
        names = list(dict.fromkeys(name for started in history.engines.values() for name in started.agents))
        count = max(1, min(count, len(names)))
        self.dealt = {name: number % count for number, name in enumerate(names)}
        self.islands = [_Island(history.scores, names[number::count]) for number in range(count)]

    def follow(self, history: History) -> bool:
        """Take in what is new; False when the past changed (a prune, a changed task, a mean over repeats)."""
        known = (self._scores, self._pruned, self._engines)
        if not all(map(_same, known, (history.scores, history.pruned, len(history.engines)))):
            return False
        if history.scores.shifting and len(history.scores.log) > self._position > 0:
            return False
        new, self._position = self._scores.log[self._position :], len(self._scores.log)
        return all([self._look(history, commit) for commit in new])

    def _look(self, history: History, commit: str) -> bool:
        fitness, first = history.fitness(commit), commit not in self._fitness
        if not first and self._fitness[commit] != fitness:
            return False
        self._fitness[commit] = fitness
        if history.phylogeny.is_trial(commit):
            return True
        if first:
            self._land(history, commit)
        else:
            for island in self.islands:
                island.scores.log += [commit] * (commit in island.scores.members)
        return True

    def _land(self, history: History, commit: str) -> None:
        """Let a candidate be known where it was bred, and now and then the best from there on the next island."""
        home = self.dealt.get(history.phylogeny[commit].agent)
        for island in self.islands if home is None else [self.islands[home]]:
            island.join(history, commit)
        if home is None:
            return
        island, following = self.islands[home], self.islands[(home + 1) % len(self.islands)]
        island.bred += 1
        if island.bred % self._every == 0:
            for _, _, migrant in island.ranked[: self._migrants]:
                following.join(history, migrant)


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, int) and one == other)


class _Island:
    """What is known on one island."""

    def __init__(self, scores: Scores, agents: Sequence[str]) -> None:
        self.agents = agents
        self.scores = PartialScores(scores)
        self.judgements: list[str] = []
        self.ranked: list[Ranked] = []
        self.records: list[str] = []
        self.record_at = 0
        self.bred = 0

    def join(self, history: History, commit: str) -> None:
        """Let a candidate be known here."""
        if commit in self.scores.members:
            return
        self.scores.members.add(commit)
        self.scores.log.append(commit)
        self.judgements.append(commit)
        if breeds(history, commit):
            insort(self.ranked, ranked(history, commit))
            if self.ranked[0][2] == commit:
                self.records.append(commit)
                self.record_at = len(self.judgements)

    def view(self, history: History) -> History:
        """The history as this island knows it."""
        heads = {agent: history.heads[agent] for agent in self.agents if agent in history.heads}
        return history.narrowed(self.scores, self.judgements, heads, self.records, self.record_at)
