"""Plans merges and grafts: which of the latest steps that helped where they were made should help the best one too."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evogit.history import History
from evogit.phylogeny import Phylogeny
from evogit.selection import Move
from evogit.selection.strategies import FITTER, FUNCTION, RANDOM, SETTLED_HERE, STRATEGIES, Crossings, Outcome, tallies

WINDOW = 100
"""Latest judged candidates among which steps are looked for: what helps and is older has been tried."""

MEMORY = 300
"""Latest judged candidates whose merges and grafts decide how often there is another one, and by which strategy."""

RARELY = 0.03
"""Chance of a worthwhile merge or graft where they never help."""

INTERFERING = 0.5
"""What is left of a gain in a case that the other side has changed as well."""

PRIOR = {FITTER: 1.0, FUNCTION: 0.5, RANDOM: 0.25}
"""How much a strategy is trusted before it was tried, as the share of two merges that helped."""


@dataclass(frozen=True, slots=True, order=True)
class Plan:
    """A merge or graft of `parents`, the one that gets the step first, and what it should gain over that one."""

    gain: float
    operator: Literal["merge", "graft"]
    parents: tuple[str, str]


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
            self._graph, self._onto = graph, onto
            self._ancestors = graph.ancestors(onto)
            self._known = {}
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


class Planner:
    """Merges as experiments: of two candidates that both improved since they parted, and expected to beat both.

    The expected gain of a merge is what the other side gained over the merge base, that of a graft what its last step
    gained; case by case, halved where both sides changed a case, as their changes interfere there. How often there is
    an experiment follows from how often the latest ones helped: probability matching (Thompson, 1933).
    """

    def __init__(self) -> None:
        self._crossings = Crossings()
        self._bases = Bases()

    def move(self, history: History, onto: str, agent: str, rng: random.Random) -> Move | None:
        """The most promising merge or graft onto a candidate; None where there is none, or it is not its turn."""
        known = self._crossings.of(history)
        latest = [known[commit] for commit in history.judgements[-MEMORY:] if commit in known]
        helped = sum(each.gain is not None and each.gain > 0 for each in latest)
        if rng.random() > max(RARELY, (helped + 2) / (len(latest) + 3)):
            return None
        best = max(self._mine(history, onto, agent), default=None)
        if best is None:
            return None
        return Move(operator=best.operator, parents=best.parents, strategy=_drawn(best, latest, rng))

    def _mine(self, history: History, onto: str, agent: str) -> Iterator[Plan]:
        """Where nobody knows what the others just began, each agent has plans of its own, so that no two are alike."""
        agents = list(history.heads)
        for plan in plans(history, onto, self._bases):
            turn = int(plan.parents[1][:8], 16) % len(agents) if agents else 0
            if history.attempts.horizon is None or agent not in agents or agents[turn] == agent:
                yield plan


def _drawn(plan: Plan, latest: Sequence[Outcome], rng: random.Random) -> str:
    """A strategy, more often one that helped, by the square of its share."""
    known = tallies(latest)
    shares = []
    for strategy in SETTLED_HERE:
        tally = known.get((plan.operator, strategy))
        better, made = (tally.better, tally.made) if tally else (0, 0)
        shares.append((better + 2 * PRIOR[strategy]) / (made + 2))
    return rng.choices(SETTLED_HERE, [share**2 for share in shares])[0]


def plans(history: History, onto: str, bases: Bases) -> Iterator[Plan]:
    """The merges and grafts of the latest steps onto a candidate that are worth an evaluation and were not tried."""
    for commit in dict.fromkeys(history.judgements[-WINDOW:]):
        if commit == onto or commit in history.pruned or not _improved(history, commit):
            continue
        before = history.phylogeny[commit].parents[0]
        base = bases.of(history.phylogeny, onto, commit)
        if base is None or base in (commit, onto):
            continue
        found: list[Plan] = []
        if history.fitness(base) is not None and not _tried(history, "merge", onto, commit):
            found.append(Plan(expected(history, onto, commit, base), "merge", (onto, commit)))
        if base != before and not _tried(history, "graft", onto, commit):
            found.append(Plan(expected(history, onto, commit, before), "graft", (onto, commit)))
        yield from (plan for plan in found if plan.gain > 0)


def _improved(history: History, commit: str) -> bool:
    parents = history.phylogeny[commit].parents
    valid = parents and history.fitness(parents[0]) is not None
    return bool(valid) and history.fitter(commit, parents[0])


def _tried(history: History, operator: str, onto: str, commit: str) -> bool:
    pairs = [(onto, commit), (commit, onto)] if operator == "merge" else [(onto, commit)]
    return any(history.attempts.made(operator, strategy, pair) for strategy in STRATEGIES for pair in pairs)


def expected(history: History, onto: str, commit: str, before: str) -> float:
    """What `onto` should gain by what `commit` gained over `before`, in the primary metric's unit, mean over cases."""
    metric = history.metric
    mine, theirs, then = (_cases(history, each) for each in (onto, commit, before))
    if not mine or not (mine.keys() == theirs.keys() == then.keys()):
        mine, theirs, then = ({"": _value(history, each)} for each in (onto, commit, before))
    gains = [
        metric.gain(theirs[case], then[case]) * (1.0 if mine[case] == then[case] else INTERFERING) for case in mine
    ]
    return sum(gains) / len(gains)


def _cases(history: History, commit: str) -> Mapping[str, float]:
    """Case -> value of the primary metric."""
    evaluation, name = history.evaluation(commit), history.metric.name
    return {case: values[name] for case, values in evaluation.cases.items() if name in values} if evaluation else {}


def _value(history: History, commit: str) -> float:
    value = history.fitness(commit)
    return 0.0 if value is None else value
