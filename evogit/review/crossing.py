"""A person's merges and grafts, tried first and then made candidates."""

from __future__ import annotations

import random
import time

from msgspec import Struct

from evogit.breeding.crossings import Crossings, title
from evogit.config.values import matches
from evogit.core import HUMAN, Candidate, Operator, RefusedError
from evogit.events import Proposed
from evogit.history import History
from evogit.history.carriers import CarriedCode
from evogit.history.context import StoredRun
from evogit.repository import Merged, Repository, UnfitChangeError, clean
from evogit.repository.evidence import why
from evogit.review.blaming import step_title
from evogit.selection.conflict_settlers import Crossing
from evogit.selection.conflict_settlers import fitter as better_of


class Crossed(Struct, frozen=True, kw_only=True):
    """What a merge or a graft of two candidates makes, before any commit of it exists.

    `known` is the candidate that has this tree already, None if there is none.
    """

    how: Crossing
    parents: tuple[Candidate, Candidate]
    strategy: str
    merged: Merged
    title: str
    known: str | None
    fitter: Candidate
    """The parent that wins where the fitter one does."""


async def cross(
    repository: Repository,
    history: History,
    how: Crossing,
    parents: tuple[Candidate, Candidate],
    strategy: str,
    seed: int,
) -> Crossed:
    """Merge two candidates, or put the second one's step on the first; nothing but objects is written.

    `strategy` settles conflicts; `seed` is that of its coin.

    Raises:
        RefusedError: they are one, one of them is pruned, or nothing that could be a candidate comes of it.
        UsageError: there is no such strategy.
    """
    first, second = parents
    if how == "merge" and first.commit == second.commit:
        raise RefusedError(f"expected two candidates, but both are {first.commit[:7]}")
    if pruned := [each.commit for each in parents if each.commit in history.pruned]:
        raise RefusedError(f"{pruned[0][:7]} is pruned; undo that first, see `evogit log --decisions`")
    ids = (first.commit, second.commit)
    try:
        merged = _crossings(repository, history).cross(how, ids, strategy, random.Random(f"{seed}/{how}"))
    except UnfitChangeError as error:
        raise RefusedError(f"{how} of {first.commit[:7]} and {second.commit[:7]}: {error}") from error
    if reason := CarriedCode(repository, history).refusal(merged.tree, ids):
        raise RefusedError(f"{how} of {first.commit[:7]} and {second.commit[:7]}: {reason}")
    return Crossed(
        how=how,
        parents=parents,
        strategy=strategy,
        merged=merged,
        title=title(history, how, ids, merged, strategy),
        known=history.trees.get(merged.tree),
        fitter=first if better_of(history, ids) == "ours" else second,
    )


def _crossings(repository: Repository, history: History) -> Crossings:
    started = history.started
    assert started is not None  # there are candidates
    return Crossings(
        repository, history, lambda path: matches(path, started.editable) and not matches(path, started.withheld)
    )


def propose_crossed(run: StoredRun, crossed: Crossed, reason: str) -> str | None:
    """Make the result a candidate, as `proposing.propose` does."""
    return propose(
        run,
        crossed.merged.tree,
        tuple(each.commit for each in crossed.parents),
        operator=crossed.how,
        strategy=crossed.strategy,
        title=crossed.title,
        reason=reason,
        conflicts=crossed.merged.conflicts,
    )


def propose(
    run: StoredRun,
    tree: str,
    parents: tuple[str, ...],
    *,
    operator: Operator,
    strategy: str,
    title: str,
    reason: str,
    conflicts: int = 0,
) -> str | None:
    """Journal a tree as a candidate; its id. None if the tree is there already, or a parent was pruned."""
    history = run.history
    commit = run.repository.commit(
        tree,
        parents,
        author=HUMAN,
        time=int(time.time()),
        title=title,
        reason=reason,
        trailers={"Agent": HUMAN, "Operator": operator, "Strategy": strategy},
    )
    proposed = Proposed(
        engine="",
        move=history.moves,
        candidate=commit,
        tree=tree,
        parents=parents,
        agent=HUMAN,
        operator=operator,
        strategy=strategy,
        title=title,
        conflicts=conflicts,
        evidence=run.journal.keep(why(clean(reason)), commit),
    )
    entry = run.journal.append(proposed, unless=lambda: tree in history.trees or bool(history.pruned & {*parents}))
    return commit if entry else None


DROP = "drop"
"""The strategy of such candidates."""


def without(repository: Repository, history: History, candidate: Candidate, step: Candidate) -> str:
    """The tree of a candidate without what `step` changed. Raises RefusedError: that cannot be taken out."""
    mine, its = candidate.commit[:7], step.commit[:7]
    if not step.parents:
        raise RefusedError(f"expected a step that an agent or a person made, but {its} is the seed")
    if candidate.commit in history.pruned:
        raise RefusedError(f"{mine} is pruned, so nothing may be bred from it; take that back with `evogit undo`")
    before = history.phylogeny[step.parents[0]].tree
    try:
        tree = _crossings(repository, history).rebased(step.commit, candidate.commit, before)
    except UnfitChangeError as error:
        raise RefusedError(
            f"{its} cannot be taken out of {mine} alone: {error}; what came after it was built on it"
        ) from error
    if tree == candidate.tree:
        raise RefusedError(f"nothing of {its} is left in {mine}, so there is nothing to take out")
    if reason := CarriedCode(repository, history).refusal(tree, (candidate.commit,)):
        raise RefusedError(f"{its} cannot be taken out of {mine}: {reason}")
    return tree


def put_on(repository: Repository, before: str, onto: str, after: str) -> str | None:
    """Return a tree with what leads from the tree `before` to `after`; None if both changed the same lines."""
    draft = repository.merger.draft(before, onto, after)
    return None if draft.unsettled else draft.tree


def propose_without(run: StoredRun, candidate: Candidate, step: Candidate, tree: str, reason: str) -> str | None:
    """Make that tree a candidate, as `proposing.propose` does."""
    title = f"without: {step_title(run.history, step)}"
    return propose(run, tree, (candidate.commit,), operator="mutation", strategy=DROP, title=title, reason=reason)
