"""The steps of a landing: the tree after each of them, the size of its diff, and its gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import asdict, replace

from evogit.core import Candidate, RefusedError
from evogit.history import History
from evogit.history.standing import Comparison, compare, standing
from evogit.repository import Repository
from evogit.review.blaming import ContainedStep, contained_steps
from evogit.review.crossing import put_on, without
from evogit.review.landing import Landing
from evogit.stats.scales import LOG

DROPPED = "dropped"
"""The remark of a step that `minimize` left out, because the rest is as good."""


class DiffSize(Struct, frozen=True):
    """The size of a diff: files, and lines added and removed."""

    files: int
    added: int
    removed: int

    @classmethod
    def of(cls, repository: Repository, before: str, after: str) -> DiffSize:
        """Return the size of the diff of two trees."""
        changes = repository.line_changes(before, after)
        return cls(len(changes), sum(added for _, added, _ in changes), sum(removed for *_, removed in changes))

    def __str__(self) -> str:
        return f"{self.files} file{'s' * (self.files != 1)}, +{self.added:,} -{self.removed:,}"


class LandedStep(ContainedStep, frozen=True, kw_only=True):
    """A step of a landing, and the `tree` after it; empty, without a size, if it applies only with the next one.

    Of an ablation it is the tree without the step. A `remark` says that `minimize` dropped it, or why it cannot be left
    out, or not alone.
    """

    tree: str = ""
    size: DiffSize | None = None
    remark: str = ""


def step_gain(repository: Repository, history: History, candidate: Candidate, step: Candidate) -> Comparison | None:
    """Return what a step gains in a candidate that contains it; None if nothing tells.

    That is over the candidate without the step, if `minimize` measured that; else over what the step was made of, as
    evaluated side by side or as the session measured that made it.
    """
    with suppress(RefusedError):
        rest = history.trees.get(without(repository, history, candidate, step))
        compared = compare(history.scores, candidate.commit, rest) if rest else None
        if compared and not compared.apart:
            return compared
    evaluated = standing(history, step.commit).comparison
    measured = _measured(history, step.commit) if evaluated is None or evaluated.apart else None
    return measured or evaluated


def _measured(history: History, commit: str) -> Comparison | None:
    """Return what a step gained over its parent in its session; None if it was not measured there."""
    measured, seed = history.measured.get(commit), history.fitness(history.seed or "")
    if measured is None or seed is None or min(seed, measured.parent, measured.seed) <= 0:
        return None
    over, sign, above = seed * measured.seed / measured.parent, history.metric.sign, math.log(measured.parent)
    low, gain, high = sorted(sign * LOG.step(over, above + side) for side in (-measured.margin, 0.0, measured.margin))
    margin = gain - low if gain > 0 else high - gain
    return Comparison(over * measured.parent, over, gain, margin, ends=(low, high))


def landed_steps(repository: Repository, history: History, landing: Landing) -> list[LandedStep]:
    """Return the steps of a landing in the order in which they apply to its target; the last one completes it."""
    found, before, waiting = list[LandedStep](), landing.tip_tree, list[Candidate]()
    steps = contained_steps(repository, history, landing.candidate, landing.known)
    for step in steps:
        waiting.append(step.candidate)
        after = landing.tree if step is steps[-1] else _applied(repository, history, before, waiting)
        gain = step_gain(repository, history, landing.candidate, step.candidate)
        landed = LandedStep(**{**asdict(step), "compared": gain})
        if after and after != before:
            landed = replace(landed, tree=after, size=DiffSize.of(repository, before, after))
            before, waiting = after, []
        found.append(landed)
    return found


def _applied(repository: Repository, history: History, tree: str, steps: Sequence[Candidate]) -> str | None:
    """Return a tree with the change of steps, the last of which descends from the others; None if that conflicts."""
    graph, first, last = history.phylogeny, steps[0], steps[-1]
    if not first.parents or not {each.commit for each in steps} <= graph.ancestors(last.commit):
        return None
    return put_on(repository, graph[first.parents[0]].tree, tree, last.tree)
