"""Evaluations by what a function returns or raises, and agents and evaluations by a program that asks and tells."""

from __future__ import annotations

import math
import random
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.core import Status, UsageError
from evogit.engine.desk import Desk, OpenQuestion
from evogit.evaluation.program import CandidateFailedError
from evogit.evaluation.told_failures import failure_in
from evogit.library.seed import contents
from evogit.text import one_line

FEEDBACK = "feedback"  # the key of a returned dict whose text is told to agents

LONGEST_REASON = 300  # characters of the reason why a candidate failed; the traceback is evidence

ASK = "ask"  # in place of a function or of agents: a program asks, and tells


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
        """The text of the only file that may change. Raises UsageError if there are several."""
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
        """Ask. Raises NoUsableChangeError if the program told an exception."""
        said = await self._desk.answer(ToPropose(brief=brief, reads=lambda said: _proposal(brief, said)))
        if isinstance(said, Proposal):
            return said
        raise NoUsableChangeError(one_line(f"{type(said).__name__}: {said}", 300))


def _proposal(brief: Brief, said: object) -> Proposal | BaseException:
    """Return a proposal or why there is none. Raises UsageError if it is neither."""
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


# --- what a function or a program says of a candidate ---------------------------------------------------------------


class Answer(Struct, frozen=True, kw_only=True):
    """The result of a function for a candidate; if `status` is not `ok`, `reason` and `trace` explain it."""

    status: Status = "ok"
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    trace: str = ""
    feedback: str = ""
    cpu: float = 0.0


def answer_of(told: object, primary: str) -> Answer:
    """Read what a function returned; what is no answer is `invalid`."""
    try:
        return read_answer(told, primary)
    except UsageError as odd:
        return Answer(status="invalid", reason=f"evaluate returned {odd}")


def read_answer(told: object, primary: str) -> Answer:
    """Read a number, or a dict with numbers by name, and `feedback` if there is any.

    Raises:
        UsageError: it is something else; said as what it is, and what was expected.
    """
    if isinstance(told, Answer):
        return told
    if not isinstance(told, Mapping):
        value = _number(told)
        if value is None:
            raise UsageError(f"{_shown(told)}; expected {_expected(primary)}")
        return _finite({primary: value}, primary, "")
    feedback = told.get(FEEDBACK, "")
    flags = {str(name): value for name, value in told.items() if isinstance(value, bool | str | list)}
    if failure := failure_in(flags, (), [primary]):
        return Answer(status="invalid", reason=f"a failure is told beside {primary}: {failure}")
    values = {str(name): (value, _number(value)) for name, value in told.items() if name != FEEDBACK}
    odd = [f"{name}: {_shown(value)}" for name, (value, number) in values.items() if number is None]
    if odd:
        raise UsageError(f"{', '.join(odd)}; expected numbers; {FEEDBACK} alone may be a text")
    metrics = {name: number for name, (_, number) in values.items() if number is not None}
    if primary not in metrics:
        raise UsageError(
            f"{', '.join(metrics) or 'nothing'} without {primary}, which ranks; name the metrics, the one that ranks "
            f'first, such as metrics={{"{next(iter(metrics), primary)}": "maximize"}}'
        )
    return _finite(metrics, primary, feedback if isinstance(feedback, str) else repr(feedback))


def _finite(metrics: Mapping[str, float], primary: str, feedback: str) -> Answer:
    if not math.isfinite(metrics[primary]):
        return Answer(status="invalid", reason=f"{primary} is {metrics[primary]}", feedback=feedback)
    return Answer(metrics={name: each for name, each in metrics.items() if math.isfinite(each)}, feedback=feedback)


def _expected(primary: str) -> str:
    return f'a number or a dict such as {{"{primary}": 0.5}} (is a `return` missing?)'


def _shown(told: object) -> str:
    return "None" if told is None else one_line(f"a {type(told).__name__}, {told!r}", 60)


def _number(told: Any) -> float | None:
    if isinstance(told, str | bytes | bytearray):
        return None
    try:
        return float(told)
    except (TypeError, ValueError, OverflowError):
        return None


def answer_to(error: BaseException, place: Path) -> Answer:
    """Return the result for an exception; paths below `place`, the candidate's folder, become relative."""
    trace = "".join(traceback.format_exception(error)).replace(f"{place}/", "")
    if isinstance(error, CandidateFailedError):
        return Answer(status=error.status, reason=one_line(error.reason, LONGEST_REASON), trace=error.log)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(place)]
    last = next(reversed(inside or frames), None)
    where = f" ({Path(last.filename).name}, line {last.lineno})" if last else ""
    said = one_line(f"{type(error).__name__}: {error}".rstrip(": "), LONGEST_REASON)
    return Answer(status="crashed", reason=said + where, trace=trace)
