"""Agents and evaluations by a program that asks what is to be done and tells what came of it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.core import UsageError
from evogit.engine.desk import Desk, OpenQuestion
from evogit.library.answers import Answer, answer_to, read_answer
from evogit.library.seed import contents
from evogit.text import one_line

ASK = "ask"
"""In place of a function or of agents: a program asks, and tells."""


@dataclass(eq=False, kw_only=True)
class ToEvaluate(OpenQuestion):
    """What is this candidate worth? Tell a number, a dict of numbers, or the exception that it ended with.

    Attributes:
        path: its file, or its folder where the seed is a folder; it is there until this is answered.
    """

    path: Path

    @property
    def text(self) -> str:
        """The text of its file."""
        return self.path.read_text(errors="replace")


@dataclass(eq=False, kw_only=True)
class ToPropose(OpenQuestion):
    """How could this parent be better? Tell the new text of its only file, or path -> text, or an exception.

    Attributes:
        brief: what an agent is told: goal, parent, files, and `brief.background()` with the rest.
    """

    brief: Brief

    @property
    def files(self) -> dict[str, str]:
        """The parent's files that may change: path -> text."""
        return {path: content.decode(errors="replace") for path, content in self.brief.files.items()}

    @property
    def text(self) -> str:
        """The text of the only file that may change.

        Raises:
            UsageError: there are several.
        """
        return self.files[_only(self.brief)]


def _only(brief: Brief) -> str:
    if len(brief.files) != 1:
        raise UsageError(f"expected a parent with one file that may change, got {', '.join(brief.files) or 'none'}")
    return next(iter(brief.files))


class AskingAgent(Agent):
    """An `Agent` of which a program says what it proposes."""

    kind = ASK
    pauses = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Ask.

        Raises:
            NoUsableChangeError: the program told an exception.
        """
        said = await self._desk.answer(ToPropose(brief=brief, reads=lambda said: _proposal(brief, said)))
        if isinstance(said, Proposal):
            return said
        raise NoUsableChangeError(one_line(f"{type(said).__name__}: {said}", 300))


def _proposal(brief: Brief, said: object) -> Proposal | BaseException:
    """What a program told, as a proposal or why there is none.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(said, Proposal | BaseException):
        return said
    if isinstance(said, str):
        said = {_only(brief): said}
    if not isinstance(said, Mapping):
        raise UsageError(f"expected a text, a dict of path -> text, a Proposal or an exception, got {said!r:.100}")
    gone = {path: None for path, content in said.items() if content is None}
    return Proposal(changes={**contents({path: said[path] for path in said if path not in gone}), **gone}, title=ASK)


def asked_evaluation(desk: Desk, primary: str) -> Callable[[Path], Awaitable[Answer]]:
    """What evaluates by asking, in place of a function."""

    async def evaluate(path: Path) -> Answer:
        answer = await desk.answer(ToEvaluate(path=path, reads=lambda said: _evaluated(said, primary, path)))
        assert isinstance(answer, Answer)  # as `reads` makes one
        return answer

    return evaluate


def _evaluated(said: object, primary: str, path: Path) -> Answer:
    if isinstance(said, BaseException):
        return answer_to(said, path if path.is_dir() else path.parent)
    try:
        return read_answer(said, primary)
    except UsageError as odd:
        raise UsageError(f"you told {odd}, or the exception that it ended with") from None
