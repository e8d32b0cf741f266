"""A candidate that a person made of others by a command: journalled, so that the next engine evaluates it."""

from __future__ import annotations

import time

from evogit.core import HUMAN, Operator, Proposed
from evogit.history.context import StoredRun
from evogit.repository import clean
from evogit.repository.evidence import why


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
    """Journal a tree as a candidate that awaits its evaluation; its id.

    None if the tree came first from somebody else, or a parent was pruned.
    """
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
