"""Plans merges and grafts: which of the latest steps that helped where they were made should help the best one too."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from evogit.history import History
from evogit.history.phylogeny import Phylogeny
from evogit.history.scores import Scores
from evogit.selection import Move
from evogit.selection.partition import Partition
from evogit.selection.strategies import (
    FITTER,
    FUNCTION,
    MODEL,
    PIECES,
    RANDOM,
    STRATEGIES,
    MergeOutcome,
    Outcomes,
    available,
    tallies,
)

WINDOW = 100
"""Latest judged candidates among which steps are looked for: what helps and is older has been tried."""

MEMORY = 300
"""Latest judged candidates whose merges and grafts decide how often there is another one, and by which strategy."""

RARELY = 0.03
"""Chance of a worthwhile merge or graft where they never help."""

INTERFERING = 0.5
"""What is left of a gain in a case that the other side has changed as well."""

PRIOR = {FITTER: 1.0, FUNCTION: 0.5, RANDOM: 0.25, MODEL: 0.75}
"""How much a strategy is trusted before it was tried, as the share of two merges that helped."""


Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, order=True)
class Plan:
    """A merge or graft of `parents`, the one that gets the step first, and what it should gain over that one."""

    gain: float
    operator: Literal["merge", "graft"]
    parents: tuple[str, str]
    apart: bool
    """Whether no case was changed by both sides."""


class Bases:
    """Merge bases of many candidates with one: each candidate is looked at once, however long the lines are."""

    def __init__(self) -> None:
        self._graph: Phylogeny | None = None
        self._onto = ""
        self._ancestors: set[str] = set()
        self._known: dict[str, str | None] = {}

    def of(self, graph: Phylogeny, onto: str, commit: str) -> str | None:
        """The youngest common ancestor of both, one of them where it is the other's; None where there is none."""
        if graph is not self._graph or onto != self._onto:
            self._turn_to(graph, onto)
        open_ones = [commit]
        while open_ones:
            each = open_ones[-1]
            parents = () if each in self._ancestors else graph[each].parents
            if unknown := [parent for parent in parents if parent not in self._known]:
                open_ones += unknown
                continue
            bases = [base for parent in parents if (base := self._known[parent])]
            nearest = max(bases, key=lambda base: graph[base].number, default=None)
            self._known[each] = each if each in self._ancestors else nearest
            open_ones.pop()
        return self._known[commit]

    def _turn_to(self, graph: Phylogeny, onto: str) -> None:
        """Learn the ancestors of another candidate; of a descendant of the last one, as usual, those that are new."""
        before, known = (self._onto, self._ancestors) if graph is self._graph else ("", set())
        fresh, open_ones, met = {onto}, [onto], False
        while open_ones:
            parents = graph[open_ones.pop()].parents
            met = met or before in parents
            new = {parent for parent in parents if parent not in known} - fresh
            fresh |= new
            open_ones += new
        self._graph = graph
        self._onto = onto
        self._known = {}
        if met:
            self._ancestors |= fresh
        else:
            self._ancestors = graph.ancestors(onto)


class Plans:
    """The merges and grafts of the latest steps onto a candidate that are worth an evaluation and were not tried.

    Where scores are exact, what follows from evaluations is kept until one of these, or the candidate, is another.
    """

    def __init__(self) -> None:
        self._bases = Bases()
        self._known: dict[str, tuple[Plan, ...]] = {}
        self._helped: dict[str, bool] = {}
        self._about: set[str] = set()
        self._scores: Scores | None = None
        self._onto = ""
        self._seen = 0

    def of(self, history: History, onto: str) -> Iterator[Plan]:
        """The plans as they are now."""
        self._forget(history, onto)
        for commit in dict.fromkeys(history.judgements[-WINDOW:]):
            if commit == onto or commit in history.pruned:
                continue
            if commit not in self._known:
                self._known[commit] = tuple(self._anew(history, onto, commit))
            for plan in self._known[commit]:
                if not _tried(history, plan.operator, onto, commit):
                    yield plan

    def _anew(self, history: History, onto: str, commit: str) -> Iterator[Plan]:
        if commit not in self._helped:
            self._about |= {commit, *history.phylogeny[commit].parents}
            self._helped[commit] = _improved(history, commit)
        if not self._helped[commit]:
            return
        before, base = history.phylogeny[commit].parents[0], self._bases.of(history.phylogeny, onto, commit)
        if base is None or base in (commit, onto):
            return
        self._about |= {onto, base}
        if history.fitness(base) is not None:
            yield from _plan(history, "merge", onto, commit, base)
        if base != before:
            yield from _plan(history, "graft", onto, commit, before)

    def _forget(self, history: History, onto: str) -> None:
        scores, exact = history.scores, not (history.scores.repeats or history.scores.shifting)
        news, self._seen = scores.log[self._seen :], len(scores.log)
        if scores is not self._scores or not exact or not self._about.isdisjoint(news):
            self._helped.clear()
            self._about.clear()
            self._onto = ""
        if onto != self._onto:
            self._known.clear()
        self._scores = scores
        self._onto = onto


class Planner:
    """Merges as experiments: of two candidates that both improved since they parted, and expected to beat both.

    The expected gain of a merge is what the other side gained over the merge base, that of a graft what its last step
    gained; case by case, halved where both sides changed a case, as their changes interfere there. How often there is
    an experiment follows from how often the latest ones helped: probability matching (Thompson, 1933), for those whose
    sides changed other cases and for the rest by themselves.
    """

    def __init__(self, partition: Partition | None = None) -> None:
        self._partition = partition
        self._outcomes = Outcomes()
        self._bases = Bases()
        self._plans = Plans()
        self._parted: dict[str, str | None] = {}

    def move(self, history: History, onto: str, agent: str, rng: random.Random) -> Move | None:
        """The most promising merge or graft onto a candidate; None where there is none, or it is not its turn."""
        known = self._outcomes.of(history)
        made = [commit for commit in history.judgements[-MEMORY:] if commit in known]
        if planned := self._by_pieces(history, onto, agent, [known[commit] for commit in made], rng):
            return planned
        latest = [commit for commit in made if known[commit].key[1] != PIECES]
        alike = {commit: self._apart(history, commit) for commit in latest}
        worthwhile = []
        for apart, prior in ((True, 2), (False, 1)):
            gains = [known[commit].gain or 0.0 for commit in latest if alike[commit] == apart]
            share = (sum(gain > 0 for gain in gains) + prior) / (len(gains) + prior + 1)
            worthwhile += [apart] * (rng.random() < max(RARELY, share))
        own = self._mine(history, onto, agent) if worthwhile else ()
        best = max((plan for plan in own if plan.apart in worthwhile), default=None)
        if best is None:
            return None
        strategy = _drawn(best, available(history, agent), [known[each] for each in latest], rng)
        return Move(operator=best.operator, parents=best.parents, strategy=strategy)

    def complements(self, history: History, onto: str, other: str) -> bool:
        """Whether a candidate of another line has what this one lacks: it is better in some case of several."""
        if self._bases.of(history.phylogeny, onto, other) in (onto, other):
            return False
        mine, theirs = _values(history, onto, other)
        return len(mine) == 1 or any(history.metric.better(theirs[case], mine[case]) for case in mine)

    def _apart(self, history: History, commit: str) -> bool:
        """Whether the sides of a merge or graft that was made had changed other cases."""
        graph, (onto, other) = history.phylogeny, history.phylogeny[commit].parents
        if commit not in self._parted:
            graft = graph[commit].operator == "graft"
            self._parted[commit] = graph[other].parents[0] if graft else graph.merge_base(onto, other)
        before = self._parted[commit]
        return before is not None and _changed_apart(*_values(history, onto, other, before))

    def _by_pieces(
        self, history: History, onto: str, agent: str, made: Sequence[MergeOutcome], rng: random.Random
    ) -> Move | None:
        """A merge by pieces, as often as the latest of these were better than both parents."""
        if self._partition is None:
            return None
        gains = [each.gain or 0.0 for each in made if each.key[1] == PIECES]
        share = (sum(gain > 0 for gain in gains) + 2) / (len(gains) + 3)
        if rng.random() >= max(RARELY, share):
            return None
        return self._partition.move(history, onto, partial(_is_for, history, agent))

    def _mine(self, history: History, onto: str, agent: str) -> Iterator[Plan]:
        for plan in self._plans.of(history, onto):
            if _is_for(history, agent, plan.parents[1]):
                yield plan


def _is_for(history: History, agent: str, commit: str) -> bool:
    """Where nobody knows what the others just began, each agent has plans of its own, so that no two are alike."""
    agents = list(history.heads)
    if history.attempts.horizon is None or agent not in agents:
        return True
    return agents[int(commit[:8], 16) % len(agents)] == agent


def _drawn(plan: Plan, strategies: Sequence[str], latest: Sequence[MergeOutcome], rng: random.Random) -> str:
    """One of the strategies, more often one that helped, by the square of its share."""
    known = tallies(latest)
    shares = []
    for strategy in strategies:
        tally = known.get((plan.operator, strategy))
        better, made = (tally.better, tally.made) if tally else (0, 0)
        shares.append((better + 2 * PRIOR[strategy]) / (made + 2))
    return rng.choices(strategies, [share**2 for share in shares])[0]


def _plan(history: History, operator: Literal["merge", "graft"], onto: str, commit: str, before: str) -> Iterator[Plan]:
    gain = expected(history, onto, commit, before)
    if gain > 0:
        yield Plan(gain, operator, (onto, commit), _changed_apart(*_values(history, onto, commit, before)))


def _improved(history: History, commit: str) -> bool:
    """Whether it is fitter than its first parent, beyond noise."""
    parents = history.phylogeny[commit].parents
    return bool(parents) and history.fitness(parents[0]) is not None and not history.no_worse(parents[0], commit)


def _tried(history: History, operator: str, onto: str, commit: str) -> bool:
    pairs = [(onto, commit), (commit, onto)] if operator == "merge" else [(onto, commit)]
    return any(history.attempts.made(operator, strategy, pair) for strategy in STRATEGIES for pair in pairs)


def expected(history: History, onto: str, commit: str, before: str) -> float:
    """What `onto` should gain by what `commit` gained over `before`, in the primary metric's unit, mean over cases."""
    metric = history.metric
    mine, theirs, then = _values(history, onto, commit, before)
    gains = [
        metric.gain(theirs[case], then[case]) * (1.0 if mine[case] == then[case] else INTERFERING) for case in mine
    ]
    return sum(gains) / len(gains)


def _changed_apart(mine: Values, theirs: Values, then: Values) -> bool:
    """Whether no case was changed by both sides since `then`."""
    return all(then[case] in (mine[case], theirs[case]) for case in mine)


def _values(history: History, *commits: str) -> list[Values]:
    """Case -> value of the primary metric, for each; one case for all where theirs are not the same."""
    found = [history.scores.cases(commit) for commit in commits]
    if found[0] and all(each.keys() == found[0].keys() for each in found):
        return found
    return [{"": history.fitness(commit) or 0.0} for commit in commits]
