"""What a run and its remote workers say to each other: frames over the stdin and stdout of a command.

A worker begins with `GREETING`, so that what a login shell prints before does no harm, and says which EvoGit it is. The
run sends the task with the evaluator's files, the worker says what it offers, or refuses; then evaluations go there, at
most as many as it offers places, and each is answered once. A worker asks for a base that it has not. It
says that it is alive every few seconds, and the run answers. The run believes nothing of it: what breaks these rules,
or is larger than allowed, ends the worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msgspec.structs import asdict, replace

from evogit.content import PACKAGE, content
from evogit.core import Evaluation, Evidence, EvoGitError, RepositoryError
from evogit.evaluation.frames import PREFIX, frame
from evogit.repository.journal_records import evaluation_of
from evogit.text import whole

GREETING = b"\nevogit worker, protocol 1\n"
"""The first that a worker says; whoever does not know the number must refuse."""

END = b"\n"
"""After each frame: `srun` passes whole lines on, and holds the rest back."""

BEAT = 5.0
"""Seconds between two signs of life of a worker."""

SILENCE = 60.0
"""Seconds without anything from the other side, after which it counts as dead."""

LONGEST_HEADER = 8 << 20
LONGEST_ANSWER = 1 << 20
"""Bytes of what may come from a worker: the cases of an evaluation, and its output, which was thinned before."""

MOST_NUMBERS = 100_000
"""Cases of one evaluation that are taken from a worker, and their numbers, together."""

LONGEST_REASON = 1000
"""Characters."""

TOLD = ("status", "metrics", "cases", "stages", "reason", "cost", "starved")
"""Fields of an evaluation that a worker says; the others are for the run to say."""

PIECE = 1 << 20
"""Bytes that are read at a time: a large base through a slow line is no silence."""


class WorkerLostError(Exception):
    """A worker, its transport or its machine is gone: what it evaluated is to be evaluated elsewhere."""


class WorkerRefusedError(Exception):
    """A worker cannot be used, or does not keep to the rules; another start would not help."""


@cache
def own_version() -> str:
    """The version of the installed package, and a short digest of the code that evaluates and isolates."""
    files = [PACKAGE / "core.py"]
    for folder in (PACKAGE / "evaluation", PACKAGE / "sandbox", content("sandbox")):
        files += sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    try:
        number = version("evogit")
    except PackageNotFoundError:  # it runs from a checkout
        number = "checkout"
    return f"{number}+{digest.hexdigest()[:10]}"


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
        """Wait until the other side has taken most of what was sent. Raises WorkerLostError if it is gone."""
        try:
            await self._writer.drain()
        except OSError as error:
            raise WorkerLostError("the connection broke") from error

    async def hear(self) -> tuple[dict[str, Any], bytes]:
        """Receive a frame. Raises WorkerLostError on silence, WorkerRefusedError if it is too large or no frame."""
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
    told = {**{name: getattr(evaluation, name) for name in TOLD}, "cost": asdict(evaluation.cost)}
    more = {"feedback": evidence.feedback, "log": evidence.log, "stdout": len(evidence.stdout)}
    return {"answer": number, "evaluation": told, **more}, evidence.stdout + evidence.stderr


def answered(header: Mapping[str, Any], body: bytes, metrics: Collection[str]) -> tuple[Evaluation, Evidence]:
    """Decode what `answer` encoded, checked by the journal's rules. Raises WorkerRefusedError if it does not fit."""
    try:
        told, cut = header["evaluation"], _checked(header["stdout"], int)
        size = sum(len(part) + sum(map(len, part.values())) for part in (told["cases"], told["stages"]))
        if size > MOST_NUMBERS or len(header["feedback"]) > MOST_NUMBERS:
            raise ValueError("more cases than are kept")
        evaluation = evaluation_of({name: told[name] for name in TOLD})
        if evaluation.metrics.keys() != (set(metrics) if evaluation.ok else set()):
            raise ValueError(evaluation.metrics)
        feedback = {whole(case): whole(_checked(text, str)) for case, text in header["feedback"].items()}
        log = whole(_checked(header["log"], str))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, RepositoryError) as error:
        raise WorkerRefusedError("it sent something that is no evaluation") from error
    evaluation = replace(evaluation, reason=evaluation.reason[:LONGEST_REASON])
    return evaluation, Evidence(stdout=body[:cut], stderr=body[cut:], feedback=feedback, log=log)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(value)
    return value


def failure(error: EvoGitError) -> dict[str, str]:
    """An error, as a worker says it."""
    return {"kind": type(error).__name__, "message": str(error)}
