"""The far end of `--workers`: evaluates for a run that is on the other side of stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from evogit.config import Task
from evogit.core import BaseFiles, EvaluatorError, EvoGitError, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.frames import task_of
from evogit.evaluation.inputs import PUBLIC
from evogit.evaluation.machine import Capacity, kind_of_machine
from evogit.evaluation.workers import (
    BEAT,
    GREETING,
    SILENCE,
    WorkerConnection,
    WorkerLostError,
    answer,
    failure,
    own_version,
)
from evogit.repository.git import held_folder

ANYTHING = 1 << 40
"""Bytes that a run may send: a worker trusts whoever starts it."""

FOLDER = "evogit-worker-"


def main() -> None:
    """Serve the run on stdin and stdout until it closes them, or says nothing for long."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what is printed here is no reply
    asyncio.run(_serve(requests, replies))


async def _serve(requests: int, replies: int) -> None:
    async with _wire(requests, replies) as wire, asyncio.TaskGroup() as group:
        wire.say({"evogit": own_version()})

        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT)
                wire.say_alive()

        beating = group.create_task(beat())
        try:
            with held_folder(Path(tempfile.gettempdir()), FOLDER) as folder, contextlib.chdir(folder):
                await _work(wire, folder)
        except EvoGitError as error:
            wire.say({"refused": failure(error)})
            with contextlib.suppress(WorkerLostError):
                await wire.taken()
        finally:
            beating.cancel()


@contextlib.asynccontextmanager
async def _wire(requests: int, replies: int) -> AsyncIterator[WorkerConnection]:
    reader, writer, taking = await _streams(requests, replies)
    writer.write(GREETING)
    try:
        yield WorkerConnection(reader, writer, header=ANYTHING, body=ANYTHING, silence=2 * SILENCE)
    finally:
        taking.close()
        writer.close()


async def _streams(
    requests: int, replies: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.BaseTransport]:
    if os.path.samestat(os.fstat(requests), os.fstat(replies)):  # one socket, whose input a pipe takes for its end
        os.close(replies)
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=requests))
        return reader, writer, writer.transport
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    taking, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(requests, "rb", buffering=0)
    )
    giving, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(replies, "wb", buffering=0)
    )
    return reader, asyncio.StreamWriter(giving, protocol, None, loop), taking


async def _next(wire: WorkerConnection) -> tuple[dict[str, Any], bytes] | None:
    with contextlib.suppress(WorkerLostError):
        while True:
            header, body = await wire.hear()
            if "alive" not in header:
                return header, body
    return None


async def _work(wire: WorkerConnection, folder: Path) -> None:
    message = await _next(wire)
    if message is None:
        return
    header, body = message
    task = unpacked(header, body, folder)
    evaluator = Evaluator(
        task,
        provider=header["provider"],
        jobs=header["jobs"] or len(os.sched_getaffinity(0)),
        drawing=PUBLIC,  # each evaluation comes with the seeds that the run drew for it
        private=[folder],
    )
    async with evaluator:
        about = {"provider": evaluator.provider, "image": evaluator.image, "machine": kind_of_machine(task)}
        wire.say({"ready": {**about, "jobs": evaluator.jobs, "room": asdict(Capacity.here())}})
        await _Desk(wire, evaluator).attend()


def unpacked(header: Mapping[str, Any], body: bytes, folder: Path) -> Task:
    """Write the evaluator's files and return the run's task. Raises EvaluatorError if its digest differs."""
    task, at = task_of(header["task"]), 0
    home = folder if task.command else folder / "evaluator"
    task = replace(task, folder=folder, evaluator=home / task.evaluator.name)
    for path, mode, size in header["files"]:
        file = task.evaluator_folder / path
        if ".." in file.parts or not file.is_relative_to(folder):
            raise EvaluatorError(f"expected files below the evaluator's folder, got {path!r}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body[at : at + size])
        file.chmod(mode & 0o777)
        at += size
    if task.evaluator_digest != header["digest"]:
        raise EvaluatorError("its evaluator is another one than the run's: the digests of their files differ")
    return task


class _Desk:
    """Takes a run's evaluations, has them done, and answers each once."""

    def __init__(self, wire: WorkerConnection, evaluator: Evaluator) -> None:
        self._wire = wire
        self._evaluator = evaluator
        self._doing: dict[int, asyncio.Task[None]] = {}
        self._bases: dict[str, asyncio.Future[BaseFiles]] = {}

    async def attend(self) -> None:
        """Work until the run is gone."""
        async with asyncio.TaskGroup() as group:
            while message := await _next(self._wire):
                header, body = message
                if "base" in header:
                    self._bases[header["base"]].set_result(BaseFiles(header["base"], body))
                elif "drop" in header:
                    if doing := self._doing.get(header["drop"]):
                        doing.cancel()
                else:
                    self._begin(group, header, body)
            for doing in self._doing.values():
                doing.cancel()

    def _begin(self, group: asyncio.TaskGroup, header: Mapping[str, Any], body: bytes) -> None:
        number = header["evaluate"]

        def ended(doing: asyncio.Task[None]) -> None:
            del self._doing[number]
            if doing.cancelled():
                self._wire.say({"dropped": number})

        self._doing[number] = group.create_task(self._answer(number, header, body))
        self._doing[number].add_done_callback(ended)

    async def _answer(self, number: int, header: Mapping[str, Any], body: bytes) -> None:
        try:
            base = await self._base(header["based"]) if header["based"] else None
            files = Files(body, tuple(header["removed"]), base)
            asked = {name: header[name] for name in ("split", "repeat", "drawn")}
            done = await self._evaluator.evaluate(header["tree"], files, **asked)
        except EvoGitError as error:
            self._wire.say({"failed": number, "error": failure(error)})
        else:
            self._wire.say(*answer(number, *done))

    async def _base(self, name: str) -> BaseFiles:
        if name not in self._bases:
            self._bases[name] = asyncio.get_running_loop().create_future()
            self._wire.say({"need": name})
        return await asyncio.shield(self._bases[name])
