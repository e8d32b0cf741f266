"""The brief that an agent would get about a candidate; no model is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evogit.agents import coder
from evogit.agents.briefs import briefing
from evogit.breeding.breeder import Breeder
from evogit.config import Task
from evogit.core import Candidate
from evogit.history import History
from evogit.history.context import screened
from evogit.repository import Repository

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
    donor: Candidate | None,
    *,
    reader: Reader,
    context: int,
) -> briefing.Written:
    """What an agent would be told to improve `parent`, in `context` tokens at most."""
    told = Breeder(repository, screened(task, repository, history), history).brief(parent, donor)
    assert told.background is not None  # the breeder always gives one
    return WRITERS[reader](told, told.background(), context)
