"""Whether scores of now and of then may stand side by side, and what to do where they may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evogit.config import Task
from evogit.core import RefusedError
from evogit.history import History

TOLD = {"goal"}
"""Parts of a task that agents are told and that change no score; a run goes on when they change."""


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names of the parts of a task that differ; none where an old journal does not tell its parts."""
    if not before:
        return []
    return [name for name in dict.fromkeys([*now, *before]) if before.get(name) != now.get(name)]


def changed_judge(history: History, task: Task, evaluator: str = "") -> tuple[str, ...] | None:
    """The parts of a task that changed since a run's candidates were evaluated; None if scores stay comparable.

    Scores of two evaluators must not stand side by side. No part is named where an old journal does not tell its parts.
    `evaluator` is the digest of what evaluates, where that is not the task's own.
    """
    began, evaluator = history.started, evaluator or task.evaluator_digest
    if began is None or (began.evaluator, began.task_digest) == (evaluator, task.digest):
        return None
    changed = changes(began.parts, task.parts)
    harmless = changed and set(changed) <= TOLD and began.evaluator == evaluator
    return None if harmless else tuple(changed)


def check_comparable(history: History, task: Task, split: str, evaluator: str = "") -> None:
    """Refuse to mix scores of different tasks, evaluators or splits in one run.

    Raises:
        RefusedError: naming what changed, and the way on.
    """
    began = history.started
    if began is None:
        return
    if (changed := changed_judge(history, task, evaluator)) is not None:
        what = "task" if began.evaluator == (evaluator or task.evaluator_digest) else "evaluator"
        named = f" ({', '.join(changed)})" if changed else ""
        raise RefusedError(
            f"the {what} changed since the run {history.run!r} began{named}, and scores must not mix; "
            f"{ways_on(task, changed)}, or put it back as it was"
        )
    if began.split != split:
        raise RefusedError(
            f"this run evaluates on the split {began.split!r}, not {split!r}; "
            "go on with a new run (--name NAME), or name that split"
        )


def judged_anew(changed: Sequence[str]) -> str:
    """What a person who evaluates by a changed task should know, in a sentence."""
    named = f" ({', '.join(changed)})" if changed else ""
    return f"the task changed since candidates of this run were evaluated{named}: this is evaluated as it is now"


def ways_on(task: Task, changed: Sequence[str]) -> str:
    """What a person can do about a changed task: candidates of another seed cannot be evaluated as of this one."""
    anew = "begin a new run (--name NAME)"
    rescore = "`evogit rescore TASK`" if task.seed else "`evogit rescore`"
    return anew if "seed" in changed else f"evaluate the candidates in use again under it ({rescore}), {anew}"
