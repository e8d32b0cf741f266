"""Plans merges: which of the latest steps that helped where they were made should help the best candidate too."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from evogit.core import RepositoryError
from evogit.history import History
from evogit.history.per_candidate import Lessons
from evogit.history.phylogeny import MergeBases
from evogit.repository import Repository, Side, UnfitChangeError
from evogit.repository.changes import SHORTEST_LINE
from evogit.selection import MODEL, Merge
from evogit.selection.conflict_settlers import draft, drop_dead, fitter, refuse_repeats, settler
from evogit.selection.merge_strategies import (
    FITTER,
    FUNCTION,
    PIECES,
    RANDOM,
    Key,
    StrategyTally,
    Successes,
    available,
    outcome,
)

WINDOW = 100
"""Latest evaluated candidates among which steps are looked for; older ones that help have been tried."""

MEMORY = 300
"""Latest evaluated candidates whose merges decide how often there is another one, and by which strategy."""

OTHERS = 4
"""Other plans that are looked at if the most promising one makes nothing new; each look is a merge."""

MAX_TREES = 10_000
"""Merged trees that are remembered."""

INTERFERING = 0.5
"""The share of a gain that is expected in a case that the other side has changed as well."""

PRIOR = {FUNCTION: 1.0, RANDOM: 0.25, MODEL: 0.75}
"""The prior of a strategy before it was tried: of two merges so many helped."""

Values = Mapping[str, float]


class Plan(NamedTuple):
    """A merge of `parents` and its expected gain over the first one; `apart`: no case was changed by both sides."""

    gain: float
    parents: tuple[str, str]
    apart: bool


class Planner:
    """Merges as experiments: of two candidates that both improved since they parted, and expected to beat both.

    The expected gain of a merge is what the other side gained over the merge base, case by case, halved where both
    sides changed a case, as their changes interfere there. How often there is an experiment follows from how often the
    latest ones helped: probability matching (Thompson, 1933), separately for those whose sides changed other cases.
    A conflict is settled by whole definitions or files, or by a model. With a `repository` nothing is planned that
    would make what was proposed before, nor where both sides rewrote a file: the sum of two rewrites is neither.
    """

    def __init__(self, repository: Repository | None = None, strategies: Sequence[str] = (FUNCTION, MODEL)) -> None:
        self._repository = repository
        self._strategies = strategies
        self._trees = lru_cache(MAX_TREES)(self._merge)
        self._rewritten = lru_cache(MAX_TREES)(self._find_rewritten)
        self._outcomes = Lessons(outcome, pooled=True)
        self._improved = Lessons(improved, pooled=True)
        self._apart = Lessons(self._is_apart, self._merged_from, pooled=True)
        self._bases = MergeBases()
        self._merged: dict[str, str | None] = {}
        """Merge -> what its parents have in common."""

    def move(
        self,
        history: History,
        onto: str,
        agent: str,
        rng: random.Random,
        *,
        by_model: bool = True,
        at_once: bool = False,
    ) -> Merge | None:
        """Return the most promising merge onto a candidate; None without one, or if it is not its turn.

        Conflicts are put to a model only if `by_model` and the agent asks one. It is always its turn with `at_once`.
        """
        latest = self._successes(history)
        worthwhile = [apart for apart, prior in ((True, 2), (False, 1)) if at_once or latest.is_turn(apart, prior, rng)]
        if not worthwhile:
            return None
        usable = [each for each in available(history, agent) if each in self._strategies]
        strategies = [each for each in usable if by_model or each != MODEL]
        plans = [plan for plan in self._plans(history, onto) if plan.apart in worthwhile]
        plans = sorted((plan for plan in plans if is_for(history, agent, plan.parents[1])), reverse=True)
        others = rng.sample(plans[1:], min(OTHERS, len(plans[1:])))
        for plan in [*plans[:1], *sorted(others, reverse=True)]:
            if self._both_rewrote(history, plan.parents):
                continue
            for strategy in _drawn(strategies, latest, rng):
                if self._repository is None or self._is_new(history, plan.parents, strategy):
                    return Merge(parents=plan.parents, strategy=strategy)
        return None

    def tally(self, history: History) -> StrategyTally:
        """Return what came of the latest merges whose conflicts were put to a model."""
        known = self._outcomes.of(history, history.judgements[-MEMORY:]).values()
        return StrategyTally.of(each for each in known if each and each.key == ("merge", MODEL))

    def complements(self, history: History, onto: str, other: str) -> bool:
        """Return whether a candidate of another line has what this one lacks: it is better in some case of several."""
        if self._bases.of(history.phylogeny, onto, other) in (onto, other):
            return False
        mine, theirs = _values(history, onto, other)
        return len(mine) == 1 or any(history.metric.better(theirs[case], mine[case]) for case in mine)

    def _plans(self, history: History, onto: str) -> Iterator[Plan]:
        """Yield the merges of the latest steps onto a candidate that are worth an evaluation and were not tried."""
        for commit, has_improved in self._improved.of(history, history.judgements[-WINDOW:]).items():
            if not has_improved or commit == onto or commit in history.pruned or _is_tried(history, onto, commit):
                continue
            base = self._bases.of(history.phylogeny, onto, commit)
            if base is None or base in (commit, onto) or history.fitness(base) is None:
                continue
            values = _values(history, onto, commit, base)
            if (gain := _expected(history, *values)) > 0:
                yield Plan(gain, (onto, commit), _changed_apart(*values))

    def _is_new(self, history: History, parents: tuple[str, str], strategy: str) -> bool:
        """Return whether a merge makes what was not proposed yet.

        A coin or a model may settle a conflict as either side has it, so there must be news both ways.
        """
        sides: Sequence[Side] = (fitter(history, parents),) if strategy == FUNCTION else ("ours", "theirs")
        try:
            trees = [
                self._trees(history, parents, FUNCTION if strategy == FUNCTION else FITTER, side) for side in sides
            ]
        except RepositoryError:  # whoever makes it says what is missing
            return True
        return not any(not tree or is_known(history, tree) for tree in trees)

    def _both_rewrote(self, history: History, parents: tuple[str, str]) -> bool:
        """Return whether both sides changed most lines of one file since they parted, each in its own way."""
        origin = self._bases.of(history.phylogeny, *parents)
        if self._repository is None or origin is None:
            return False
        base, ours, theirs = (history.phylogeny[commit].tree for commit in (origin, *parents))
        common = self._rewritten(base, ours) & self._rewritten(base, theirs)
        return bool(common and common.intersection(self._repository.changed_paths(ours, theirs)))

    def _find_rewritten(self, old: str, new: str) -> frozenset[str]:
        """Return the paths of which a tree keeps less than half of the lines, files that it adds included."""
        assert self._repository
        changed = self._repository.lines(old, new, lambda path: True)
        removed, added = (Counter(path for path, _ in lines.elements()) for lines in (changed.removed, changed.added))
        before = self._repository.trees.files(old, {*removed, *added}.__contains__)
        sizes = {
            path: sum(len(line.strip()) >= SHORTEST_LINE for line in content.split(b"\n"))
            for path, content in before.items()
        }
        return frozenset(path for path in {*removed, *added} if path not in sizes or 2 * removed[path] > sizes[path])

    def _merge(self, history: History, parents: tuple[str, str], strategy: str, side: Side) -> str:
        """Return the merged tree; empty if there is none that could be a candidate."""
        repository = self._repository
        assert repository
        try:
            drafted = draft(repository, history, "merge", parents)
            if strategy == FUNCTION and not drafted.conflicts:
                return self._trees(history, parents, FITTER, side)
            settle = settler(repository.merger, strategy, side, random.Random(0))
            tree = drop_dead(repository.trees, drafted, repository.merger.merge(drafted, settle)).tree
            refuse_repeats(repository.trees, tree, *(history.phylogeny[parent].tree for parent in parents))
        except UnfitChangeError:
            return ""
        return tree

    def _successes(self, history: History) -> Successes:
        """Return what came of the latest merges and grafts."""
        known = self._outcomes.of(history, history.judgements[-MEMORY:])
        latest = {commit: each for commit, each in known.items() if each}
        return Successes.of([*latest.values()], [*self._apart.of(history, [*latest]).values()])

    def _is_apart(self, history: History, commit: str) -> bool | None:
        """Return whether the sides of a merge or graft had changed other cases; None of one by pieces."""
        if history.phylogeny[commit].strategy == PIECES:
            return None
        before = self._merged_from(history, commit)
        return bool(before) and _changed_apart(*_values(history, *history.phylogeny[commit].parents, *before))

    def _merged_from(self, history: History, commit: str) -> tuple[str, ...]:
        """Return the candidate from which the sides of a merge or graft had changed, if there is one."""
        if commit not in self._merged:
            graph, (onto, other) = history.phylogeny, history.phylogeny[commit].parents
            graft = graph[commit].operator == "graft"
            self._merged[commit] = graph[other].parents[0] if graft else graph.merge_base(onto, other)
        before = self._merged[commit]
        return (before,) if before else ()


def is_for(history: History, agent: str, commit: str) -> bool:
    """Return whether a plan that begins with a candidate is the agent's.

    Where no agent knows what the others just began, each has plans of its own, so that no two are alike.
    """
    agents = list(history.heads)
    if history.attempts.horizon is None or agent not in agents:
        return True
    return agents[int(commit[:8], 16) % len(agents)] == agent


def improved(history: History, commit: str) -> bool:
    """Return whether a candidate is fitter than its first parent, beyond noise."""
    parents = history.phylogeny[commit].parents
    if not parents or history.fitness(parents[0]) is None:
        return False
    return not history.no_worse(parents[0], commit) and history.earned(commit)


def expected(history: History, onto: str, commit: str, before: str) -> float:
    """Return what `onto` should gain by what `commit` gained over `before`, in the primary metric's unit."""
    return _expected(history, *_values(history, onto, commit, before))


def is_known(history: History, tree: str) -> bool:
    """Return whether a tree was proposed before, as far as a deterministic run may know."""
    first = history.trees.get(tree)
    return first is not None and history.attempts.is_known(history.phylogeny[first])


def _drawn(strategies: Sequence[str], latest: Successes, rng: random.Random) -> Iterator[str]:
    """Yield the strategies in the order in which they are drawn, by the square of the share that helped."""
    keys: dict[str, Key] = {strategy: ("merge", strategy) for strategy in strategies}
    shares = {
        strategy: ((latest.helped[key] + 2 * PRIOR[strategy]) / (latest.made[key] + 2)) ** 2
        for strategy, key in keys.items()
    }
    while shares:
        strategy = rng.choices([*shares], [*shares.values()])[0]
        del shares[strategy]
        yield strategy


def _is_tried(history: History, onto: str, commit: str) -> bool:
    crossed = history.attempts.crossed
    return crossed("merge", (onto, commit)) or crossed("merge", (commit, onto))


def _expected(history: History, mine: Values, theirs: Values, then: Values) -> float:
    gain_of = history.scores.metric.gain
    gains = [gain_of(theirs[case], then[case]) * (1.0 if mine[case] == then[case] else INTERFERING) for case in mine]
    return sum(gains) / len(gains)


def _changed_apart(mine: Values, theirs: Values, then: Values) -> bool:
    """Return whether no case was changed by both sides since `then`."""
    return all(then[case] in (mine[case], theirs[case]) for case in mine)


def _values(history: History, *commits: str) -> list[Values]:
    """Return case -> value of the primary metric for each; one case for all if theirs are not the same."""
    cases = [history.scores.cases(commit) for commit in commits]
    if cases[0] and all(each.keys() == cases[0].keys() for each in cases):
        return cases
    return [{"": history.fitness(commit) or 0.0} for commit in commits]
