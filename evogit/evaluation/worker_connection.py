"""What a run and its remote workers say to each other: frames over the stdin and stdout of a command.

A worker begins with `GREETING`, so that what a login shell prints before does no harm, and says which EvoGit it is. The
run sends the task with the evaluator's files, the worker says what it offers, or refuses; then evaluations go there, at
most as many as it offers places, and each is answered once. A worker asks for a base that it has not. It
says that it is alive every few seconds, and the run answers. The run believes nothing of it: what breaks these rules,
or is larger than allowed, ends the worker.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from msgspec.structs import asdict

from evogit.core import Cost, Evaluation, Evidence, EvoGitError, Status
from evogit.evaluation.frames import PREFIX, frame

GREETING = b"\nevogit worker, protocol 1\n"
"""The first that a worker says; whoever does not know the number must refuse."""

END = b"\n"
"""After each frame: `srun` passes whole lines on, and holds the rest back."""

BEAT = 5.0
"""Seconds between two signs of life of a worker."""

SILENCE = 60.0
"""Seconds without anything from the other side, after which it counts as dead."""

LONGEST_HEADER = 16 << 20
LONGEST_ANSWER = 1 << 20
"""Bytes of what may come from a worker: the cases of an evaluation, and its output, which was thinned before."""

LONGEST_REASON = 1000
"""Characters."""

PIECE = 1 << 20
"""Bytes that are read at a time: a large base through a slow line is no silence."""


class WorkerLostError(Exception):
    """A worker, its transport or its machine is gone: what it evaluated is to be evaluated elsewhere."""


class WorkerRefusedError(Exception):
    """A worker cannot be used, or does not keep to the rules; another start would not help."""


class WorkerConnection:
    """One connection; what comes may not be larger than `header` and `body`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, header: int, body: int, silence: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._header = header
        self._body = body
        self._silence = silence

    def say(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a frame, without waiting until the other side takes it."""
        self._writer.write(frame(header, body) + END)

    def say_alive(self) -> None:
        """Say so, unless there is more to come anyway."""
        if not self._writer.transport.get_write_buffer_size():
            self.say({"alive": True})

    async def taken(self) -> None:
        """Wait until the other side has taken most of what was sent.

        Raises:
            WorkerLostError: it is gone.
        """
        try:
            await self._writer.drain()
        except OSError as error:
            raise WorkerLostError("the connection broke") from error

    async def hear(self) -> tuple[dict[str, Any], bytes]:
        """The next frame.

        Raises:
            WorkerLostError: the other side is gone, or silent.
            WorkerRefusedError: it is larger than allowed, or no frame.
        """
        header, body = PREFIX.unpack(await self._read(PREFIX.size))
        if header > self._header or body > self._body:
            raise WorkerRefusedError(f"it sent {header + body:,} bytes at once, more than is allowed")
        text = await self._read(header)
        try:
            told = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise WorkerRefusedError("it sent something that is no message") from error
        if not isinstance(told, dict):
            raise WorkerRefusedError("it sent something that is no message")
        content = await self._read(body)
        if await self._read(len(END)) != END:
            raise WorkerRefusedError("it sent something that is no message")
        return told, content

    async def _read(self, size: int) -> bytes:
        pieces = []
        try:
            while size:
                async with asyncio.timeout(self._silence):
                    pieces.append(await self._reader.readexactly(min(size, PIECE)))
                size -= len(pieces[-1])
        except TimeoutError:
            raise WorkerLostError(f"nothing was heard of it for {self._silence:g} s") from None
        except (asyncio.IncompleteReadError, OSError) as error:
            raise WorkerLostError("it ended") from error
        return b"".join(pieces)


# --- answers ------------------------------------------------------------------------------------------------------


def answer(number: int, evaluation: Evaluation, evidence: Evidence) -> tuple[dict[str, Any], bytes]:
    """How an evaluation ended, as a worker says it."""
    told = {
        "status": evaluation.status,
        "metrics": evaluation.metrics,
        "cases": evaluation.cases,
        "stages": evaluation.stages,
        "reason": evaluation.reason,
        "cost": asdict(evaluation.cost),
        "starved": evaluation.starved,
    }
    more = {"feedback": evidence.feedback, "log": evidence.log, "stdout": len(evidence.stdout)}
    return {"answer": number, "evaluation": told, **more}, evidence.stdout + evidence.stderr


def answered(header: Mapping[str, Any], body: bytes, metrics: Collection[str]) -> tuple[Evaluation, Evidence]:
    """What `answer` made this of, for a task with these metrics; nothing in it is believed to be well-formed.

    Raises:
        WorkerRefusedError: it is not.
    """
    try:
        told, cut = header["evaluation"], _checked(header["stdout"], int)
        cost = told["cost"]
        evaluation = Evaluation(
            status=_one_of(told["status"], get_args(Status)),
            metrics=_numbers(told["metrics"]),
            cases=_each(told["cases"], _numbers),
            stages=_each(told["stages"], _numbers),
            reason=_checked(told["reason"], str)[:LONGEST_REASON],
            cost=Cost(wall=_number(cost["wall"]), cpu=_number(cost["cpu"]), memory=_checked(cost["memory"], int)),
            starved=_checked(told["starved"], bool),
        )
        if evaluation.metrics.keys() != (set(metrics) if evaluation.ok else set()):
            raise ValueError(evaluation.metrics)
        feedback = _each(header["feedback"], lambda text: _checked(text, str))
        log = _checked(header["log"], str)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WorkerRefusedError("it sent something that is no evaluation") from error
    return evaluation, Evidence(stdout=body[:cut], stderr=body[cut:], feedback=feedback, log=log)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(value)
    return value


def _one_of(value: Any, names: tuple[str, ...]) -> Any:
    if value not in names:
        raise ValueError(value)
    return value


def _number(value: Any) -> float:
    number = float(value) if type(value) in (int, float) else math.nan
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _each(value: Any, checked: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: checked(each) for name, each in _checked(value, dict).items()}


def _numbers(value: Any) -> dict[str, float]:
    return _each(value, _number)


def failure(error: EvoGitError) -> dict[str, str]:
    """An error, as a worker says it."""
    return {"kind": type(error).__name__, "message": str(error)}
