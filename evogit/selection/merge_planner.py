"""Plans merges and grafts: which of the latest steps that helped where they were made should help the best one too."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from evogit.history import History
from evogit.history.phylogeny import MergeBases
from evogit.history.scores import Scores
from evogit.selection import Move
from evogit.selection.conflict_settlers import Crossing, fitter
from evogit.selection.merge_by_pieces import Partition
from evogit.selection.merge_strategies import (
    FITTER,
    FUNCTION,
    MODEL,
    PIECES,
    RANDOM,
    Key,
    Outcomes,
    StrategyTally,
    Successes,
    available,
)
from evogit.selection.previews import Previews

WINDOW = 100
"""Latest evaluated candidates among which steps are looked for: what helps and is older has been tried."""

MEMORY = 300
"""Latest evaluated candidates whose merges and grafts decide how often there is another one, and by which strategy."""

INTERFERING = 0.5
"""What is left of a gain in a case that the other side has changed as well."""

PRIOR = {FITTER: 1.0, FUNCTION: 0.5, RANDOM: 0.25, MODEL: 0.75}
"""How much a strategy is trusted before it was tried, as the share of two merges that helped."""


CROSSINGS: tuple[Crossing, ...] = ("merge", "graft")

Values = Mapping[str, float]


class Plan(NamedTuple):
    """A merge or graft of `parents`, the one that gets the step first, and what it should gain over that one."""

    gain: float
    operator: Crossing
    parents: tuple[str, str]
    apart: bool
    """Whether no case was changed by both sides."""
    before: str
    """What both began with, of a graft what its step began with."""


class Premises:
    """The candidates from whose evaluations something follows that is remembered.

    Where scores are exact, it holds until one of these is evaluated again.
    """

    def __init__(self) -> None:
        self._scores: Scores | None = None
        self._position = 0
        self._commits: set[str] = set()

    def add(self, *commits: str) -> None:
        """What is remembered follows from these, too."""
        self._commits.update(commits)

    def hold(self, history: History) -> bool:
        """Whether all is as it was; where not, there are no premises any more."""
        scores = history.scores
        exact = not (scores.repeats or scores.shifting)
        news = scores.log[self._position :]
        same = scores is self._scores and exact and self._commits.isdisjoint(news)
        self._scores = scores
        self._position = len(scores.log)
        if not same:
            self._commits.clear()
        return same


class Plans:
    """The merges and grafts of the latest steps onto a candidate that are worth an evaluation and were not tried."""

    def __init__(self, previews: Previews | None = None, operators: Sequence[Crossing] = CROSSINGS) -> None:
        self._previews = previews
        self._operators = operators
        self._bases = MergeBases()
        self._premises = Premises()
        self._known: dict[str, tuple[Plan, ...]] = {}
        self._helped: dict[str, bool] = {}
        self._promising: dict[Plan, bool] = {}
        self._onto = ""

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
            self._premises.add(commit, *history.phylogeny[commit].parents)
            self._helped[commit] = improved(history, commit)
        if not self._helped[commit]:
            return
        before, base = history.phylogeny[commit].parents[0], self._bases.of(history.phylogeny, onto, commit)
        if base is None or base in (commit, onto):
            return
        self._premises.add(onto, base)
        if "merge" in self._operators and history.fitness(base) is not None:
            yield from self._plan(history, "merge", onto, commit, base)
        if "graft" in self._operators and base != before:
            yield from self._plan(history, "graft", onto, commit, before)

    def is_promising(self, history: History, plan: Plan) -> bool:
        """Whether each side of a plan that was just given has something that the other has not, by their lines."""
        if self._previews is None:
            return True
        if plan not in self._promising:
            (onto, commit), before = plan.parents, plan.before
            wins = fitter(history, plan.parents) == "theirs"
            self._promising[plan] = self._previews.brings(history, onto, commit, before, wins=wins) and (
                plan.operator == "graft" or self._previews.brings(history, commit, onto, before, wins=not wins)
            )
        return self._promising[plan]

    def _plan(self, history: History, operator: Crossing, onto: str, commit: str, before: str) -> Iterator[Plan]:
        values = _values(history, onto, commit, before)
        gain = _expected(history, *values)
        if gain > 0:
            yield Plan(gain, operator, (onto, commit), _changed_apart(*values), before)

    def _forget(self, history: History, onto: str) -> None:
        if not self._premises.hold(history):
            self._helped.clear()
            self._onto = ""
        if onto != self._onto:
            self._known.clear()
            self._promising.clear()
        self._onto = onto


class Planner:
    """Merges as experiments: of two candidates that both improved since they parted, and expected to beat both.

    The expected gain of a merge is what the other side gained over the merge base, that of a graft what its last step
    gained; case by case, halved where both sides changed a case, as their changes interfere there. How often there is
    an experiment follows from how often the latest ones helped: probability matching (Thompson, 1933), for those whose
    sides changed other cases and for the rest by themselves. With `previews` nothing is planned that is known to make
    what was proposed before.
    """

    def __init__(
        self,
        partition: Partition | None = None,
        previews: Previews | None = None,
        operators: Sequence[Crossing] = ("merge",),
        strategies: Sequence[str] = (FITTER, FUNCTION, MODEL),
    ) -> None:
        self._partition = partition
        self._previews = previews
        self._strategies = strategies
        self._outcomes = Outcomes()
        self._bases = MergeBases()
        self._plans = Plans(previews, operators)
        self._premises = Premises()
        self._alike: dict[str, bool | None] = {}

    def move(
        self, history: History, onto: str, agent: str, rng: random.Random, *, by_model: bool = True
    ) -> Move | None:
        """The most promising merge or graft onto a candidate; None where there is none, or it is not its turn.

        Conflicts are put to a model only if `by_model` and the agent asks one.
        """
        latest = self._latest(history)
        if planned := self._by_pieces(history, onto, agent, latest, rng):
            return planned
        worthwhile = [apart for apart, prior in ((True, 2), (False, 1)) if latest.is_turn(apart, prior, rng)]
        if not worthwhile:
            return None
        usable = [each for each in available(history, agent) if each in self._strategies]
        strategies = [each for each in usable if by_model or each != MODEL]
        plans = [plan for plan in self._plans.of(history, onto) if plan.apart in worthwhile]
        for plan in sorted(plans, key=_rank, reverse=True):
            if not is_for(history, agent, plan.parents[1]) or not self._is_open(history, plan):
                continue
            for strategy in _drawn(plan, strategies, latest, rng):
                if self._previews is None or self._previews.is_new(history, plan.operator, plan.parents, strategy):
                    return Move(operator=plan.operator, parents=plan.parents, strategy=strategy)
        return None

    def tally(self, history: History) -> StrategyTally:
        """What came of the latest merges whose conflicts were put to a model."""
        known = self._outcomes.of(history)
        made = (known[commit] for commit in history.judgements[-MEMORY:] if commit in known)
        return StrategyTally.of(each for each in made if each.key == ("merge", MODEL))

    def complements(self, history: History, onto: str, other: str) -> bool:
        """Whether a candidate of another line has what this one lacks: it is better in some case of several."""
        if self._bases.of(history.phylogeny, onto, other) in (onto, other):
            return False
        mine, theirs = _values(history, onto, other)
        return len(mine) == 1 or any(history.metric.better(theirs[case], mine[case]) for case in mine)

    def _latest(self, history: History) -> Successes:
        """What came of the latest merges and grafts."""
        if not self._premises.hold(history):
            self._alike.clear()
        known = self._outcomes.of(history)
        latest = {commit: known[commit] for commit in history.judgements[-MEMORY:] if commit in known}
        for commit in latest.keys() - self._alike.keys():
            self._alike[commit] = self._is_apart(history, commit)
        return Successes.of([*latest.values()], [self._alike[commit] for commit in latest])

    def _is_apart(self, history: History, commit: str) -> bool | None:
        """Whether the sides of a merge or graft that was made had changed other cases; None of one by pieces."""
        graph, (onto, other) = history.phylogeny, history.phylogeny[commit].parents
        if graph[commit].strategy == PIECES:
            return None
        graft = graph[commit].operator == "graft"
        before = graph[other].parents[0] if graft else graph.merge_base(onto, other)
        self._premises.add(onto, other, *([before] if before else []))
        return before is not None and _changed_apart(*_values(history, onto, other, before))

    def _by_pieces(self, history: History, onto: str, agent: str, latest: Successes, rng: random.Random) -> Move | None:
        """A merge by pieces, as often as the latest of these were better than both parents."""
        if self._partition is None or not latest.is_turn(("merge", PIECES), 2, rng):
            return None
        return self._partition.move(history, onto, partial(is_for, history, agent))

    def _is_open(self, history: History, plan: Plan) -> bool:
        """Whether a plan may make something new, by the lines of its candidates and of all others."""
        if self._previews is None:
            return True
        if not self._plans.is_promising(history, plan):
            return False
        return not self._previews.is_told(history, *plan.parents, plan.before)


def _rank(plan: Plan) -> tuple[float, str, tuple[str, str]]:
    return plan.gain, plan.operator, plan.parents


def is_for(history: History, agent: str, commit: str) -> bool:
    """Where no agent knows what the others just began, each has plans of its own, so that no two are alike."""
    agents = list(history.heads)
    if history.attempts.horizon is None or agent not in agents:
        return True
    return agents[int(commit[:8], 16) % len(agents)] == agent


def _drawn(plan: Plan, strategies: Sequence[str], latest: Successes, rng: random.Random) -> Iterator[str]:
    """The strategies in the order in which they are drawn, one that helped earlier, by the square of its share."""
    keys: dict[str, Key] = {strategy: (plan.operator, strategy) for strategy in strategies}
    shares = {
        strategy: ((latest.helped[key] + 2 * PRIOR[strategy]) / (latest.made[key] + 2)) ** 2
        for strategy, key in keys.items()
    }
    while shares:
        strategy = rng.choices([*shares], [*shares.values()])[0]
        del shares[strategy]
        yield strategy


def improved(history: History, commit: str) -> bool:
    """Whether it is fitter than its first parent, beyond noise."""
    parents = history.phylogeny[commit].parents
    return bool(parents) and history.fitness(parents[0]) is not None and not history.no_worse(parents[0], commit)


def _tried(history: History, operator: str, onto: str, commit: str) -> bool:
    crossed = history.attempts.crossed
    return crossed(operator, (onto, commit)) or (operator == "merge" and crossed(operator, (commit, onto)))


def expected(history: History, onto: str, commit: str, before: str) -> float:
    """What `onto` should gain by what `commit` gained over `before`, in the primary metric's unit, mean over cases."""
    return _expected(history, *_values(history, onto, commit, before))


def _expected(history: History, mine: Values, theirs: Values, then: Values) -> float:
    gain_of = history.scores.metric.gain
    gains = [gain_of(theirs[case], then[case]) * (1.0 if mine[case] == then[case] else INTERFERING) for case in mine]
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
