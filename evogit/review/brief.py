"""The brief that an agent would get about a candidate; no model is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evogit.agents import coder
from evogit.agents.briefs import briefing
from evogit.breeding.breeder import Breeder
from evogit.config import Task
from evogit.core import Candidate, RefusedError
from evogit.engine.profiles import kept_profile
from evogit.events import Entry, Event, Proposed, RunStarted
from evogit.history import History
from evogit.history.context import screened
from evogit.history.lessons import lesson_sources
from evogit.repository import Repository

MAX_BRIEF_TOKENS = 100_000

Reader = Literal["editor", "coder", "program"]

WRITERS: dict[Reader, Callable[..., briefing.Written]] = {
    "editor": briefing.write,
    "coder": coder.write,
    "program": briefing.write_file,
}
"""The kind of agent that reads it -> what words it for that kind."""


def written_brief(
    repository: Repository,
    task: Task,
    history: History,
    parent: Candidate,
    *,
    reader: Reader,
) -> briefing.Written:
    """Return the brief for improving `parent`. Raises RefusedError: the task has other metrics."""
    if (
        history.started
        and not task.pairwise
        and task.primary.name not in {metric.name for metric in history.started.metrics}
    ):
        raise RefusedError(
            f"expected the run {history.run} to measure {task.primary.name} as the task {task.name} does, but it does "
            "not; name the run's own task with --task"
        )
    lessons = lesson_sources(repository, but=history.run)
    breeder = Breeder(repository, screened(task, repository, history), history, lessons=lessons)
    breeder.profiles[parent.tree] = kept_profile(task, parent.tree)
    told = breeder.brief(parent, None)
    assert told.background is not None  # the breeder always gives one
    return WRITERS[reader](told, told.background(), MAX_BRIEF_TOKENS)


def beginning(repository: Repository, task: Task, run: str) -> History:
    """A run with HEAD as its seed, not evaluated nor journalled. Raises NotFoundError: there is no commit."""
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
