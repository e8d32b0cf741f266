"""A candidate without one of the steps that are in it: what that step changed is taken back, all else stays."""

from __future__ import annotations

from evogit.breeding.crossings import Crossings
from evogit.config.values import matches
from evogit.core import Candidate, RefusedError
from evogit.history.context import StoredRun
from evogit.repository import UnfitChangeError
from evogit.review.contained_steps import step_title
from evogit.review.new_candidate import propose

DROP = "drop"
"""The strategy of such candidates."""


def without(run: StoredRun, candidate: Candidate, step: Candidate) -> str:
    """The tree of a candidate in which what `step` changed against its first parent is taken back.

    Raises:
        RefusedError: the step is the seed, nothing of it is left, it is pruned, or later steps changed the same lines.
    """
    history, started = run.history, run.history.started
    assert started is not None  # there are candidates
    mine, its = candidate.commit[:7], step.commit[:7]
    if not step.parents:
        raise RefusedError(f"expected a step that an agent or a person made, but {its} is the seed")
    if candidate.commit in history.pruned:
        raise RefusedError(f"{mine} is pruned, so nothing may be bred from it; take that back with `evogit undo`")
    before = history.phylogeny[step.parents[0]].tree
    crossings = Crossings(
        run.repository, history, lambda path: matches(path, started.editable) and not matches(path, started.withheld)
    )
    try:
        tree = crossings.rebased(step.commit, candidate.commit, before)
    except UnfitChangeError as error:
        raise RefusedError(
            f"{its} cannot be taken out of {mine} alone: {error}; what came after it was built on it"
        ) from error
    if tree == candidate.tree:
        raise RefusedError(f"nothing of {its} is left in {mine}, so there is nothing to take out")
    return tree


def propose_without(run: StoredRun, candidate: Candidate, step: Candidate, tree: str, reason: str) -> str | None:
    """Make that tree a candidate, as `proposing.propose` does."""
    title = f"without: {step_title(run.history, step)}"
    return propose(run, tree, (candidate.commit,), operator="mutation", strategy=DROP, title=title, reason=reason)
