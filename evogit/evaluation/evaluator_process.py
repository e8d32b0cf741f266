"""One evaluator process as the engine sees it: started with a task, asked in frames, ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, BinaryIO, Self

from evogit.config import Task
from evogit.core import BaseFiles, ConfigError, EvaluatorError, EvoGitError
from evogit.evaluation.fork_server import Forked
from evogit.evaluation.frames import KINDS, PREFIX, described, frame
from evogit.sandbox.gpus import GIVEN

LONGEST_LOG = 64 * 1024
"""Bytes of the evaluator's own output that are kept, from its end."""

PLACES = ("PATH", "LANG", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
DOCKER = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
"""Environment variables that evaluator processes get, with the one that names GPUs: where to find things, no secret."""

PATIENCE = 10.0
"""Seconds for a process to end by itself, and its sandbox's workers with it."""


class EvaluatorDiedError(Exception):
    """The process ended in the middle of its work, by `signal` if it is not 0; `log` is what it wrote last."""

    def __init__(self, code: int, log: str) -> None:
        last = log.strip().rpartition("\n")[2]
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {last or f'exit code {code}'}"
        super().__init__(f"the evaluator {how}")
        self.log = log
        self.signal = max(0, -code)


class EvaluatorProcess:
    """One evaluator process, in a session of its own so that Ctrl-C at the terminal does not reach it."""

    def __init__(self, process: Forked, prints: BinaryIO, tell: Callable[[str], None]) -> None:
        self._process = process
        self._prints = prints
        self._tell = tell
        self._to = process.writer
        self._from = process.reader
        self._held = ""
        self.busy = False
        self.cores: list[int] = []

    @property
    def ended(self) -> bool:
        """Whether it is no more: somebody killed it, or what it was forked from."""
        return self._process.ended

    @classmethod
    async def start(
        cls, task: Task, about: Mapping[str, Any], tell: Callable[[str], None]
    ) -> tuple[Self, Mapping[str, Any]]:
        """Start a process and return its first frame; `tell` takes warnings.

        `about` has the sandbox's `provider`, the `cores` that an exclusive task may use, and `private` folders.
        """
        request = {"task": described(task), "digest": task.evaluator_digest, **about}
        spawning = asyncio.ensure_future(cls._spawn(_environment(task), tell))
        hello: list[Mapping[str, Any]] = []
        try:
            worker = await asyncio.shield(spawning)  # asyncio waits forever for a process given up while it starts
            hello = [header async for header, _ in worker.ask(request)]
        except EvaluatorDiedError as death:
            frames = max(death.log.find(f'File "{task.evaluator_folder}'), 0)  # without those of our own
            why = missing_variable(death.log) or death.log[frames:]
            raise EvaluatorError(f"{task.evaluator}: {death}\n{why}") from None
        finally:
            if not hello:
                await (await spawning).kill()
        return worker, hello[0]

    @classmethod
    async def _spawn(cls, environment: Mapping[str, str], tell: Callable[[str], None]) -> Self:
        prints = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed with the process
        fcntl.fcntl(prints, fcntl.F_SETFL, os.O_APPEND)  # `printed` moves where both of us are, and empties it
        try:
            process = await Forked.start(environment, prints)
        except ChildProcessError as error:
            raise EvaluatorError(f"an evaluator does not start: {error}\n{_last(prints)}") from error
        return cls(process, prints, tell)

    async def ask(
        self, header: Mapping[str, Any], body: bytes = b"", base: BaseFiles | None = None
    ) -> AsyncIterator[tuple[dict[str, Any], bytes]]:
        """Send one request, after its base if that is new, and yield the replies; `busy` until the last one."""
        self.busy = True
        try:
            if base and base.id != self._held:
                self._to.write(frame({"base": base.id}, base.archive))
                self._held = base.id
            self._to.write(frame(header, body))
            await self._to.drain()
            while self.busy:
                header_size, body_size = PREFIX.unpack(await self._from.readexactly(PREFIX.size))
                reply = json.loads(await self._from.readexactly(header_size))
                output = await self._from.readexactly(body_size)
                self.busy = not reply.keys().isdisjoint({"case", "again", "warning"})
                if "error" in reply:
                    kinds = {kind.__name__: kind for kind in KINDS}
                    raise kinds.get(reply["error"], EvoGitError)(reply["message"])
                if "warning" in reply:
                    self._tell(reply["warning"])
                else:
                    yield reply, output
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await self._process.wait()
            raise EvaluatorDiedError(code, self.printed()) from None

    def printed(self) -> str:
        """What the evaluator printed since the last time, at most the end of it."""
        text = _last(self._prints)
        self._prints.truncate(0)
        return text

    async def stop(self) -> None:
        """Let an idle process end by itself."""
        with contextlib.suppress(OSError):
            self._to.write_eof()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), timeout=PATIENCE)
        await self.kill()

    async def kill(self) -> None:
        """End it and everything it started at once."""
        self._process.kill()
        await self._process.wait()
        self._process.close()
        self._prints.close()


VARIABLE = re.compile(
    r"KeyError: '([A-Z][A-Z0-9_]{3,})'|\b([A-Z][A-Z0-9_]*_(?:KEY|TOKEN))\b.{0,40}(?:not set|missing|must be)"
)
"""What is said where an environment variable is missing."""


def missing_variable(output: str) -> str:
    """Return a sentence on the environment variable that an evaluator misses; empty if it misses none."""
    if not (found := VARIABLE.search(output)):
        return ""
    return (
        "Evaluators get no variables of your environment but those that the task names: environment = "
        f'["{found[1] or found[2]}"] in [evaluator]. What their calls cost is not counted by --dollars.'
    )


def _last(prints: BinaryIO) -> str:
    end = prints.seek(0, os.SEEK_END)
    prints.seek(max(0, end - LONGEST_LOG))
    return prints.read().decode(errors="replace")


def _environment(task: Task) -> dict[str, str]:
    if missing := [name for name in task.variables if not os.environ.get(name)]:
        raise ConfigError(
            f"{task.name}: its evaluator needs {', '.join(missing)} of your environment ([evaluator] environment); "
            f"set it, such as `export {missing[0]}=...`"
        )
    known = {name: os.environ[name] for name in (*PLACES, *DOCKER, GIVEN, *task.variables) if name in os.environ}
    return {**known, "PYTHONHASHSEED": "0"}
