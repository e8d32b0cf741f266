"""The history that a first run of a repository would begin with, for questions that are asked before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evogit.core import Entry, Event, Proposed, RunStarted
from evogit.history import History
from evogit.repository import Repository

if TYPE_CHECKING:
    from evogit.config import Task


def beginning(repository: Repository, task: Task, run: str) -> History:
    """A run with the commit at HEAD as its seed, not evaluated yet; nothing is journalled.

    Raises:
        NotFoundError: there is no commit yet.
    """
    seed = repository.head()
    started = RunStarted(
        engine="",
        task=task.name,
        task_digest=task.digest,
        metrics=task.metrics,
        split="train",
        evaluator=task.evaluator_digest,
        provider="",
        image="",
        judged=task.judged,
        agents=(),
        population=repository.population(run),
        editable=task.editable,
        withheld=task.unseen,
    )
    proposed = Proposed(
        engine="",
        move=0,
        candidate=seed,
        tree=repository.tree_of(seed),
        parents=(),
        agent="seed",
        operator="seed",
        title=f"seed of {task.name}",
    )
    history, events = History(run), list[Event]([started, proposed])
    for seq, event in enumerate(events, 1):
        history.apply(Entry(id="", host="", seq=seq, time=repository.commit_time(seed), event=event))
    return history
