"""One remote worker as a run sees it: started, fed, watched, and started again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evogit.config import Task
from evogit.core import Evaluation, Evidence, Files
from evogit.evaluation.frames import described
from evogit.evaluation.inputs import Drawn
from evogit.evaluation.machine import Capacity
from evogit.evaluation.workers import (
    BEAT,
    GREETING,
    LONGEST_ANSWER,
    LONGEST_HEADER,
    SILENCE,
    WorkerConnection,
    WorkerLostError,
    WorkerRefusedError,
    answered,
    own_version,
)
from evogit.subprocesses import PIPE, let_go, start_beside
from evogit.text import plain

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds before a worker is started again; twice as long each time until it was ready to work."""

TRIES = 5
"""Starts of a worker that never spoke, after which it is left out."""

LONGEST_GREETING = 64 * 1024
"""Bytes that login shells and the like may say before a worker does."""

MOST_PLACES = 1024
MOST_BEATS = 100
"""Signs of life beyond those that are due."""

MAX_STDERR_BYTES = 2000
"""Bytes of a command's stderr that are kept, from its end."""

PIECE = 64 * 1024

PATIENCE = 5.0
"""Seconds for a worker to end by itself."""


def longest_evaluation(task: Task) -> float:
    """Seconds after which an evaluation that was not answered never will be; generous, as images may be made."""
    return 3600 + 15 * task.limits.total


@dataclass(slots=True)
class _Asked:
    """An evaluation that a worker has been asked for; its place is free again once it is answered."""

    files: Files
    until: float
    answer: asyncio.Future[tuple[Evaluation, Evidence]]
    late: bool = False
    """True if the engine gave up waiting."""


class Offer(Struct, frozen=True):
    """What a worker says of itself, which is checked against what the run asks for."""

    provider: str
    image: str
    machine: str
    jobs: int
    room: Capacity


@dataclass(slots=True, eq=False)
class Life:
    """One start of a worker, from its offer to its end."""

    wire: WorkerConnection
    offer: Offer
    asked: dict[int, _Asked] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    over: bool = False

    @property
    def is_late(self) -> bool:
        """Return whether it still owes an answer that was given up."""
        return any(asked.late for asked in self.asked.values())


class CommandLine:
    """The stdin and stdout of a command."""

    def __init__(self, process: Process) -> None:
        assert process.stdin  # they are pipes
        assert process.stdout
        self.reader = process.stdout
        self.writer = process.stdin
        self._process = process
        self._last = asyncio.create_task(_last_of(process))

    @classmethod
    async def open(cls, argv: Sequence[str]) -> CommandLine:
        """Start the command. Raises WorkerLostError if there is no such command."""
        try:
            return cls(await start_beside(argv, env=os.environ, cwd=None, stdin=PIPE, stdout=PIPE, stderr=PIPE))
        except OSError as error:
            raise WorkerLostError(f"{argv[0]}: {error.strerror}") from error

    async def said(self) -> str:
        """The end of what it said on stderr."""
        await asyncio.wait([self._last], timeout=1)
        return self._last.result() if self._last.done() else ""

    async def end(self, patience: float = PATIENCE) -> None:
        """See to the end of the command and of what it started, also when the run is given up meanwhile."""
        self.writer.close()
        ending = asyncio.ensure_future(_end(self._process, patience))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise
        self._last.cancel()


async def _last_of(process: Process) -> str:
    assert process.stderr  # it is a pipe
    kept = b""
    while piece := await process.stderr.read(PIECE):
        kept = (kept + piece)[-MAX_STDERR_BYTES:]
    return kept.decode(errors="replace")


async def _end(process: Process, patience: float) -> None:
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    let_go(process)  # asyncio waits until all is read, which may be endless
    await process.wait()


class RemoteWorker:
    """Keeps one worker alive and asks it for evaluations.

    `argv` starts it. `greeting` is what it is told first: the task, and the evaluator's files. `offered` takes each
    life once it is ready, and refuses it by an error; `freed` is told of each place that is free again; `tell` takes
    what a person should know, `show` what it does at the moment.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        task: Task,
        greeting: tuple[Mapping[str, Any], bytes],
        *,
        offered: Callable[[RemoteWorker, Life], None],
        freed: Callable[[RemoteWorker, Life], None],
        tell: Callable[[str], None],
        show: Callable[[str, str], None],
    ) -> None:
        self.name = name
        self.evaluated = 0
        self.lost = 0
        self.refused = ""
        self.doing = "starting"
        self._argv = argv
        self._task = task
        self._metrics = set() if task.pairwise else {metric.name for metric in task.metrics}
        self._greeting = greeting
        self._offered = offered
        self._freed = freed
        self._tell = tell
        self._watching = show
        self._numbers = count(1)
        self._spoke = False
        self._failures = 0
        self._life: Life | None = None
        self._wanted = asyncio.timeout(None)

    def _show(self, doing: str) -> None:
        self.doing = doing
        self._watching(self.name, doing)

    async def keep(self) -> None:
        """Have it at work until this is cancelled, or the worker is refused or left out."""
        with contextlib.suppress(TimeoutError):
            async with self._wanted:
                while not self.refused:
                    await self._live_once()
        self._show(f"left out: {self.refused}")
        self._tell(f"the worker {self.name} is left out: {self.refused}")

    async def _live_once(self) -> None:
        try:
            self._show("starting")
            await self._live()
        except WorkerRefusedError as error:
            self.refused = str(error)
        except WorkerLostError as error:
            self._failures += 1
            if not self._spoke and self._failures >= TRIES:
                self.refused = f"{error}, {TRIES} times in a row"
                return
            seconds = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 20), LONGEST_PAUSE)  # it may fail for days
            self.lost += self._spoke
            self._show(f"gone, started again in {seconds:g} s: {error}")
            self._tell(f"the worker {self.name} is gone, and is started again in {seconds:g} s: {error}")
            await asyncio.sleep(seconds)

    def leave_out(self, why: str) -> None:
        """End it, and do not start it again; what it is busy with is lost."""
        if self.refused:
            return
        self.refused = why
        self._bury(self._life)
        self._wanted.reschedule(asyncio.get_running_loop().time())

    async def evaluate(
        self, life: Life, tree: str, files: Files, split: str, repeat: int, drawn: Drawn, *, patience: float
    ) -> tuple[Evaluation, Evidence]:
        """Evaluate with the `drawn` seeds. Raises WorkerLostError if it is gone, or silent for `patience` seconds."""
        if life.over:
            raise WorkerLostError("it ended")
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        asked = _Asked(files, time.monotonic() + longest_evaluation(self._task), answer)
        life.asked[number] = asked
        self._show_work(life)
        request = {"evaluate": number, "tree": tree, "split": split, "repeat": repeat, "drawn": drawn}
        try:
            based = files.base.id if files.base else ""
            life.wire.say({**request, "removed": files.removed, "based": based}, files.changed)
            async with asyncio.timeout(patience):
                await life.wire.taken()
                await asyncio.wait([answer])
        except TimeoutError:
            asked.late = True
            self._tell(f"the worker {self.name} did not answer for {patience:.0f} s: its candidate goes elsewhere")
            raise WorkerLostError("it is late") from None
        except asyncio.CancelledError:
            answer.cancel()
            if not life.over:  # its place is free once the worker says that it is
                life.wire.say({"drop": number})
            raise
        found: tuple[Evaluation, Evidence] = answer.result()
        return found

    def _show_work(self, life: Life) -> None:
        busy = f"evaluating {len(life.asked)}" if life.asked else "waiting"
        self._show(f"{busy}, {self.evaluated} done")

    # --- one life -------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        line = await CommandLine.open(self._argv)
        self._life = None
        self._began, self._beats = time.monotonic(), 0
        try:
            wire = await self._greet(line)
            life = self._life = Life(wire, await self._offer(wire))
            self._offered(self, life)
            self._failures = 0
            offer = life.offer
            self._tell(f"the worker {self.name} is ready: {offer.jobs} at a time, {offer.provider}, {offer.machine}")
            self._show_work(life)
            while True:
                self._take(life, *await wire.hear())
        except WorkerLostError as error:
            self._bury(self._life)
            await line.end()
            raise WorkerLostError(f"{error}{_quoted(await line.said())}") from None
        except WorkerRefusedError:
            await line.end(patience=0)
            raise
        finally:
            self._bury(self._life)
            await line.end()

    def _bury(self, life: Life | None) -> None:
        if life is None:
            return
        life.over = True
        for asked in life.asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(WorkerLostError("it ended"))
                asked.answer.exception()  # who asked may be gone
        life.asked.clear()

    async def _greet(self, line: CommandLine) -> WorkerConnection:
        heard, last = 0, ""
        while True:
            try:
                said = await line.reader.readline()
            except ValueError:
                raise WorkerRefusedError("what it says is no greeting of `evogit worker`") from None
            except OSError as error:
                raise WorkerLostError("the connection broke") from error
            if said == GREETING.lstrip():
                return WorkerConnection(
                    line.reader, line.writer, header=LONGEST_HEADER, body=LONGEST_ANSWER, silence=SILENCE
                )
            heard += len(said)
            if not said:
                raise WorkerLostError(f"it ended before it spoke{_quoted(last)}")
            if heard > LONGEST_GREETING:
                raise WorkerRefusedError("what it says is no greeting of `evogit worker`")
            last = said.decode(errors="replace").strip() or last

    async def _offer(self, wire: WorkerConnection) -> Offer:
        hello, _ = await wire.hear()
        self._spoke = True
        version = hello.get("evogit")
        if version != own_version():
            raise WorkerRefusedError(f"it has EvoGit {_short(version)}, and this is {own_version()}; install the same")
        wire.say(*self._greeting)
        await wire.taken()
        while "alive" in (told := (await wire.hear())[0]):
            self._beat(wire)
        try:
            if "refused" in told:
                raise WorkerRefusedError(_short(told["refused"]["message"]))
            ready = told["ready"]
            provider, image, machine = (_short(ready[name]) for name in ("provider", "image", "machine"))
            room = Capacity(**{name: int(ready["room"][name]) for name in ("cpus", "memory", "gpus")})
            most = self._greeting[0]["jobs"] or MOST_PLACES
            return Offer(provider, image, machine, max(1, min(int(ready["jobs"]), most)), room)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise WorkerRefusedError("it does not say what it offers") from error

    def _take(self, life: Life, header: dict[str, Any], body: bytes) -> None:
        if "alive" in header:
            self._beat(life.wire)
        elif "need" in header:
            self._give(life, header["need"])
        else:
            self._answered(life, header, body)
        now = time.monotonic()
        if any(asked.until < now for asked in life.asked.values()):
            raise WorkerLostError(f"it did not answer for {longest_evaluation(self._task):g} s")

    def _beat(self, wire: WorkerConnection) -> None:
        """Answer a sign of life, unless there are far too many."""
        self._beats += 1
        if self._beats > MOST_BEATS + 2 * (time.monotonic() - self._began) / BEAT:
            raise WorkerRefusedError("it floods the run with messages")
        wire.say_alive()

    def _give(self, life: Life, name: object) -> None:
        bases = (asked.files.base for asked in life.asked.values())
        base = next((each for each in bases if each and each.id == name), None)
        if base is None or base.id in life.given:
            raise WorkerRefusedError("it asked for files that it was not to have, or again")
        life.given.add(base.id)
        life.wire.say({"base": base.id}, base.archive)

    def _answered(self, life: Life, header: dict[str, Any], body: bytes) -> None:
        number = next((header[kind] for kind in ("answer", "failed", "dropped") if kind in header), None)
        asked = life.asked.get(number) if type(number) is int else None
        if asked is None:
            raise WorkerRefusedError("it answered what it was not asked")
        if "failed" in header:
            raise WorkerLostError(f"it failed: {_short(header.get('error'))}")
        if "dropped" in header and not asked.answer.cancelled():
            raise WorkerRefusedError("it dropped what it was asked for")
        if "answer" in header:
            found = answered(header, body, self._metrics)
            self.evaluated += 1
            if not asked.answer.done():
                asked.answer.set_result(found)
        del life.asked[number]  # type: ignore[arg-type]  # it is there
        self._show_work(life)
        self._freed(self, life)


def _quoted(said: str) -> str:
    """The last two lines of what a command said, for a message: Docker's very last one only says where help is."""
    lines = [line.strip() for line in plain(said).splitlines() if line.strip()]
    last = "; ".join(line[-200:] for line in lines[-2:])
    return f" ({last})" if last else ""


def _short(value: object) -> str:
    """What a worker says, made harmless."""
    text = value if isinstance(value, str) else json.dumps(value)
    return plain(text)[:500]


def greeting(task: Task, *, provider: str, jobs: int | None) -> tuple[Mapping[str, Any], bytes]:
    """The first message to a worker: no secret, nor what evaluating does not need, as a worker may be anybody's."""
    files = task.evaluator_files()
    needed = replace(task, goal="", folder=Path("/"), evaluator=Path("/") / task.evaluator.name, seed=None)
    about = {"provider": provider, "jobs": jobs or 0, "digest": task.evaluator_digest}
    listing = [[path, mode, len(data)] for path, (data, mode) in files.items()]
    return {"task": described(needed), "files": listing, **about}, b"".join(data for data, _ in files.values())
