"""The far end of `--workers`: evaluates for a run that is on the other side of stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evogit.config import Task
from evogit.core import EvaluatorError, EvoGitError
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import Inputs
from evogit.evaluation.machine import machine
from evogit.evaluation.task_json import task_of
from evogit.evaluation.version import own_version
from evogit.evaluation.wire import (
    BEAT,
    GREETING,
    SILENCE,
    Wire,
    WorkerLostError,
    answer,
    failure,
)
from evogit.sandbox import Base, Files
from evogit.sandbox.cache import cache_folder

KEPT_BASES = 8
"""Bases that stay in the cache of a worker's machine, those that were used last."""

ANYTHING = 1 << 40
"""Bytes that a run may send: a worker trusts whoever starts it."""

FOLDER = "evogit-worker-"

OLD = 60.0
"""Seconds after which a folder that nobody holds was left behind."""


def main() -> None:
    """Serve the run on stdin and stdout until it closes them, or says nothing for long."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what is printed here is no reply
    asyncio.run(_serve(requests, replies))


async def _serve(requests: int, replies: int) -> None:
    async with _wire(requests, replies) as wire, asyncio.TaskGroup() as group:
        wire.say({"evogit": own_version()})
        beating = group.create_task(_beat(wire))
        try:
            with _own_folder() as folder:
                await _work(wire, folder)
        except EvoGitError as error:
            wire.say({"refused": failure(error)})
            with contextlib.suppress(WorkerLostError):
                await wire.taken()
        finally:
            beating.cancel()


@contextlib.asynccontextmanager
async def _wire(requests: int, replies: int) -> AsyncIterator[Wire]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    taking, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(requests, "rb", buffering=0)
    )
    giving, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(replies, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(giving, protocol, None, loop)
    writer.write(GREETING)
    try:
        yield Wire(reader, writer, header=ANYTHING, body=ANYTHING, silence=2 * SILENCE)
    finally:
        taking.close()
        giving.close()


async def _beat(wire: Wire) -> None:
    while True:
        await asyncio.sleep(BEAT)
        wire.say_alive()


async def _next(wire: Wire) -> tuple[dict[str, Any], bytes] | None:
    """What the run says next, None when it is gone."""
    with contextlib.suppress(WorkerLostError):
        while True:
            header, body = await wire.hear()
            if "alive" not in header:
                return header, body
    return None


async def _work(wire: Wire, folder: Path) -> None:
    message = await _next(wire)
    if message is None:
        return
    header, body = message
    evaluator = Evaluator(
        unpacked(header, body, folder),
        provider=header["provider"],
        jobs=header["jobs"] or len(os.sched_getaffinity(0)),
        drawing=Inputs(bytes.fromhex(header["secret"])),
        private=[folder],
    )
    async with evaluator:
        offer = {"provider": evaluator.provider, "image": evaluator.image, "machine": machine(), "jobs": evaluator.jobs}
        wire.say({"ready": offer})
        await _Desk(wire, evaluator).attend()


def unpacked(header: Mapping[str, Any], body: bytes, folder: Path) -> Task:
    """The task that a run sent, with its evaluator's files in this folder.

    Raises:
        EvaluatorError: it is not evaluated here as there.
    """
    task, at = task_of(header["task"]), 0
    home = folder if task.command else folder / "evaluator"
    task = replace(task, folder=folder, evaluator=home / task.evaluator.name)
    for path, mode, size in header["files"]:
        file = task.evaluator_folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body[at : at + size])
        file.chmod(mode & 0o777)
        at += size
    if task.evaluator_digest != header["digest"]:
        raise EvaluatorError("its evaluator is another one than the run's: the digests of their files differ")
    return task


class _Desk:
    """Takes a run's evaluations, has them done, and answers each once."""

    def __init__(self, wire: Wire, evaluator: Evaluator) -> None:
        self._wire = wire
        self._evaluator = evaluator
        self._doing: dict[int, asyncio.Task[None]] = {}
        self._bases: dict[str, asyncio.Future[Base]] = {}

    async def attend(self) -> None:
        """Work until the run is gone."""
        async with asyncio.TaskGroup() as group:
            while message := await _next(self._wire):
                header, body = message
                if "base" in header:
                    self._keep(Base(header["base"], body))
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
            done = await self._evaluator.evaluate(header["tree"], files, split=header["split"], repeat=header["repeat"])
        except EvoGitError as error:
            self._wire.say({"failed": number, "error": failure(error)})
        else:
            self._wire.say(*answer(number, *done))

    async def _base(self, name: str) -> Base:
        """The base of that id: kept from before, or asked for, once."""
        if name not in self._bases:
            self._bases[name] = asyncio.get_running_loop().create_future()
            if (known := recalled(name)) is not None:
                self._bases[name].set_result(Base(name, known))
            else:
                self._wire.say({"need": name})
        return await asyncio.shield(self._bases[name])

    def _keep(self, base: Base) -> None:
        remember(base.id, base.archive)
        self._bases[base.id].set_result(base)


# --- what stays on a worker's machine -----------------------------------------------------------------------------


def recalled(name: str) -> bytes | None:
    """The archive with that digest, if it came to this machine before."""
    try:
        file = _cached(name)
        archive = file.read_bytes()
        os.utime(file)
    except (OSError, RuntimeError, ValueError):
        return None
    return archive if hashlib.sha256(archive).hexdigest() == name else None


def remember(name: str, archive: bytes) -> None:
    """Keep an archive for the next worker on this machine, where its name is its digest and there is room."""
    if hashlib.sha256(archive).hexdigest() != name:
        return
    with contextlib.suppress(OSError, RuntimeError):
        file = _cached(name)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
            new.write(archive)
        Path(new.name).replace(file)
        for old in sorted(file.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-KEPT_BASES]:
            old.unlink()


def _cached(name: str) -> Path:
    if "/" in name or "\0" in name:
        raise ValueError(name)
    return cache_folder() / "worker-bases" / name


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder for the evaluator's files, where we are meanwhile; those of workers that were killed are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER))
    before = Path.cwd()
    with _locked(folder):
        try:
            os.chdir(folder)
            yield folder
        finally:
            os.chdir(before)
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left(folder: Path) -> None:
    with contextlib.suppress(OSError), _locked(folder):
        if time.time() - folder.stat().st_mtime > OLD:  # else it may be about to be held
            shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder, which ends with this process however that ends.

    Raises:
        OSError: another process holds it, or it is another person's.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)
