"""What a function returns or raises, as an evaluation."""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from evogit.core import Status, UsageError
from evogit.evaluation.program import CandidateFailedError
from evogit.evaluation.told_failures import failure_in
from evogit.text import one_line

FEEDBACK = "feedback"
"""The key of a returned dict whose text is told to agents."""

LONGEST_REASON = 300
"""Characters of the reason why a candidate failed; the traceback is evidence."""


class Answer(Struct, frozen=True, kw_only=True):
    """What a function said of a candidate; where `status` is not `ok`, `reason` says why and `trace` where."""

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
    """What a function raised; paths below `place`, where the candidate lay, are told from there."""
    trace = "".join(traceback.format_exception(error)).replace(f"{place}/", "")
    if isinstance(error, CandidateFailedError):
        return Answer(status=error.status, reason=one_line(error.reason, LONGEST_REASON), trace=error.log)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(place)]
    last = next(reversed(inside or frames), None)
    where = f" ({Path(last.filename).name}, line {last.lineno})" if last else ""
    said = one_line(f"{type(error).__name__}: {error}".rstrip(": "), LONGEST_REASON)
    return Answer(status="crashed", reason=said + where, trace=trace)
