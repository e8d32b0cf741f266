"""The engine's side of judging: a pool of warm judge processes, one per slot."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, Self

from evogit.config import Task
from evogit.core import (
    Cost,
    Evaluation,
    EvaluatorError,
    Evidence,
    EvoGitError,
    Judged,
    UsageError,
)
from evogit.handed import described
from evogit.judge_process import KINDS, PREFIX, frame
from evogit.sandbox import Base, Files
from evogit.sandbox.cores import exclusive_core, kept_free

LONGEST_LOG = 64 * 1024
"""Bytes of the evaluator's own output that are kept, from its end."""

OnCase = Callable[[str, Mapping[str, float]], None]
"""Told the name and the metrics of each case of the judged split as soon as it is known; from the first one again when
the evaluation starts over because the sandbox was lost."""

logger = logging.getLogger(__name__)
PLACES = ("PATH", "LANG", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
DOCKER = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
"""Environment variables that judges get."""

PATIENCE = 10.0
"""Seconds for a judge to end by itself, and its sandbox's workers with it."""


class Evaluator:
    """Judges candidates of one task, up to `jobs` at a time; an async context manager.

    `digest` identifies the way of judging; `provider`, `image` and `needs_seed` (whether `evaluate` must be given
    the seed, as the base of the candidate's files) are known once it is entered. A task with `exclusive` has one job;
    from entering to leaving, this process and all that it starts keep off the core that the candidates have.
    """

    def __init__(self, task: Task, *, provider: str, jobs: int) -> None:
        self.task = task
        self.digest = task.evaluator_digest
        self.provider = provider
        self.image = ""
        self.needs_seed = self._builds_on_seed = False
        self._idle: asyncio.LifoQueue[_Judge | None] = asyncio.LifoQueue()
        self._jobs = 1 if task.environment.exclusive else jobs
        self._cores: list[int] = []
        self._told: set[str] = set()
        self._apart = contextlib.ExitStack()

    @property
    def judged(self) -> Judged:
        """Where scores come from."""
        return self.task.judged

    async def __aenter__(self) -> Self:
        """Start the first judge, which finds what is wrong before any candidate is made.

        Raises:
            ConfigError: when the evaluator's file is not what this version expects.
            EvaluatorError: when it cannot be imported.
            SandboxError: when the provider does not work here.
            UsageError: when there is no such provider.
        """
        with contextlib.ExitStack() as apart:
            if self.task.environment.exclusive:
                core, self._cores = exclusive_core(), sorted(os.sched_getaffinity(0))
                apart.enter_context(kept_free(core))
            judge, hello = await self._judge()
            self._apart = apart.pop_all()
        self.provider, self.image = hello["provider"], hello["image"]
        self.needs_seed, self._builds_on_seed = hello["needs_seed"], hello["builds_on_seed"]
        for idle in [None] * (self._jobs - 1) + [judge]:
            self._idle.put_nowait(idle)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End the judges; evaluations must be finished or cancelled by then."""
        with self._apart:
            judges = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
            await asyncio.gather(*(judge.stop() for judge in judges if judge))

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Identifies everything that an evaluation's result depends on (sha256, hex).

        `base` is the id of the seed's files; it counts where these are compared with, prepared, or judge by a command.
        """
        task, environment = self.task, asdict(self.task.environment)
        del environment["isolation"]  # how quickly a clean sandbox is at hand, not what is in it
        way = [task.name, self.digest, asdict(task.limits), task.preload, task.withheld, task.excluded, environment]
        parts = [tree, base if self._builds_on_seed else "", *way, self.image, self.provider, split, repeat]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    async def evaluate(
        self, tree: str, files: bytes | Files, *, split: str, repeat: int = 0, on_case: OnCase | None = None
    ) -> tuple[Evaluation, Evidence]:
        """Judge the candidate with this tree id and these files, those that `is_judged` (bytes: a whole tar archive).

        Waits for a free slot. A judge that dies makes an `evaluator-error` and is replaced.

        Raises:
            EvaluatorError: when a judge cannot be replaced, because the evaluator changed or is broken.
            SandboxError: when the sandbox itself fails.
            UsageError: when the evaluator needs the seed and the files have no base.
        """
        files = files if isinstance(files, Files) else Files(files)
        if (self.needs_seed or self.task.command) and not files.base:
            raise UsageError("this evaluator needs the seed's files; pass Files whose base is the seed")
        record = _Record(on_case)
        judge = await self._idle.get()
        try:
            if judge is None:
                judge, _ = await self._judge()
            await record.fill(judge, files, split, repeat)
        finally:
            if judge and judge.busy:
                await judge.kill()
            self._idle.put_nowait(judge if judge and not judge.busy else None)
        base = files.base.id if files.base else ""
        return self._evaluation(record, self.key(tree, split, repeat, base=base), split, repeat), record.evidence()

    async def _judge(self) -> tuple[_Judge, Mapping[str, Any]]:
        return await _Judge.start(self.task, self.provider, self._cores, self._tell)

    def _tell(self, warning: str) -> None:
        """Warn once of what every judge warns of."""
        if warning not in self._told:
            self._told.add(warning)
            logger.warning("%s", warning)

    def _evaluation(self, record: _Record, key: str, split: str, repeat: int) -> Evaluation:
        verdict, measured = record.verdict, self.judged != "pairs"  # else all that is known is that it is valid
        return Evaluation(
            status=verdict["status"],
            metrics=verdict["metrics"] if measured else {},
            cases=record.cases if measured else {},
            stages=verdict["stages"],
            reason=verdict["reason"],
            split=split,
            repeat=repeat,
            cost=Cost(**verdict["cost"]),
            evaluator=self.digest,
            image=self.image,
            key=key,
            judged=self.judged,
        )


@dataclass
class _Record:
    """What comes in during one evaluation."""

    on_case: OnCase | None
    cases: dict[str, Mapping[str, float]] = field(default_factory=dict)
    feedback: dict[str, str] = field(default_factory=dict)
    verdict: Mapping[str, Any] = field(default_factory=dict)
    stdout: bytes = b""
    stderr: bytes = b""
    log: str = ""
    losses: list[str] = field(default_factory=list)

    async def fill(self, judge: _Judge, files: Files, split: str, repeat: int) -> None:
        request = {"split": split, "repeat": repeat, "removed": files.removed, "based": files.base is not None}
        try:
            async for header, output in judge.ask(request, files.changed, files.base):
                if "case" in header:
                    self._case(header)
                elif "again" in header:
                    self._forget(judge, header["again"])
                else:
                    self.verdict = header["verdict"]
                    self.stdout, self.stderr = output[: header["stdout"]], output[header["stdout"] :]
            self.log = "\n".join(filter(None, [*self.losses, self.verdict["log"], judge.printed()]))
        except _JudgeDiedError as death:
            reason = str(death)
            self.verdict = {"status": "evaluator-error", "reason": reason, "metrics": {}, "stages": {}, "cost": {}}
            self.log = death.log

    def evidence(self) -> Evidence:
        return Evidence(stdout=self.stdout, stderr=self.stderr, feedback=self.feedback, log=self.log)

    def _forget(self, judge: _Judge, loss: str) -> None:
        """The evaluation starts over: what was said of it so far must not count twice."""
        self.losses.append(f"the sandbox was lost, and the evaluation began again: {loss}")
        self.cases.clear()
        self.feedback.clear()
        judge.printed()

    def _case(self, header: Mapping[str, Any]) -> None:
        name, metrics = header["case"], header["metrics"]
        if header["feedback"]:
            self.feedback[name] = header["feedback"]
        if metrics is not None:
            self.cases[name] = metrics
            if self.on_case:
                self.on_case(name, metrics)


class _JudgeDiedError(Exception):
    """The process ended in the middle of its work; `log` is what it wrote last."""

    def __init__(self, code: int, log: str) -> None:
        last = log.strip().rpartition("\n")[2]
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {last or f'exit code {code}'}"
        super().__init__(f"the evaluator {how}")
        self.log = log


class _Judge:
    """One judge process, in a session of its own so that Ctrl-C at the terminal does not reach it."""

    def __init__(self, process: asyncio.subprocess.Process, prints: BinaryIO, tell: Callable[[str], None]) -> None:
        assert process.stdin  # both are pipes
        assert process.stdout
        self._process, self._prints, self._tell = process, prints, tell
        self._to, self._from = process.stdin, process.stdout
        self._held = ""
        self.busy = False

    @classmethod
    async def start(
        cls, task: Task, provider: str, cores: list[int], tell: Callable[[str], None]
    ) -> tuple[Self, Mapping[str, Any]]:
        """Start one and hear what it has to say of itself.

        Args:
            task: whose evaluator it runs.
            provider: of its sandbox.
            cores: those that an exclusive task may use; the one for the candidate is among them.
            tell: takes warnings.
        """
        spawning = asyncio.ensure_future(cls._spawn(tell))
        request = {"task": described(task), "digest": task.evaluator_digest, "provider": provider, "cores": cores}
        hello: list[Mapping[str, Any]] = []
        try:
            judge = await asyncio.shield(spawning)  # asyncio waits forever for a process given up while it starts
            hello = [header async for header, _ in judge.ask(request)]
        except _JudgeDiedError as death:
            raise EvaluatorError(f"{task.evaluator}: {death}\n{death.log}") from None
        finally:
            if not hello:
                await (await spawning).kill()
        return judge, hello[0]

    @classmethod
    async def _spawn(cls, tell: Callable[[str], None]) -> Self:
        prints = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed with the process
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-u", "-m", "evogit.judge_process", str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=prints,
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
        return cls(process, prints, tell)

    async def ask(
        self, header: Mapping[str, Any], body: bytes = b"", base: Base | None = None
    ) -> AsyncIterator[tuple[dict[str, Any], bytes]]:
        """Send one request, after its base if that is a new one; gives the frames that come back, cases first.

        `busy` until the last frame is here.
        """
        self.busy = True
        try:
            if base and base.id != self._held:
                self._to.write(frame({"base": base.id}, base.archive))
                self._held = base.id
            self._to.write(frame(header, body))
            await self._to.drain()
            while self.busy:
                reply, output = await self._receive()
                self.busy = not reply.keys().isdisjoint({"case", "again", "warning"})
                _raise_error(reply)
                if "warning" in reply:
                    self._tell(reply["warning"])
                else:
                    yield reply, output
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await self._process.wait()
            raise _JudgeDiedError(code, self.printed()) from None

    async def _receive(self) -> tuple[dict[str, Any], bytes]:
        header, body = PREFIX.unpack(await self._from.readexactly(PREFIX.size))
        return json.loads(await self._from.readexactly(header)), await self._from.readexactly(body)

    def printed(self) -> str:
        """What the evaluator printed since the last time, at most the end of it."""
        end = self._prints.seek(0, os.SEEK_END)
        self._prints.seek(max(0, end - LONGEST_LOG))
        text = self._prints.read().decode(errors="replace")
        self._prints.truncate(0)
        return text

    async def stop(self) -> None:
        """Let an idle judge end by itself."""
        self._to.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), timeout=PATIENCE)
        await self.kill()

    async def kill(self) -> None:
        """End it and everything it started at once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._prints.close()


def _raise_error(reply: Mapping[str, Any]) -> None:
    if "error" in reply:
        kinds = {kind.__name__: kind for kind in KINDS}
        raise kinds.get(reply["error"], EvoGitError)(reply["message"])


def _environment() -> dict[str, str]:
    """What the evaluator may know of ours: where to find programs, folders and the Docker daemon, but no secret."""
    kept = {name: os.environ[name] for name in PLACES + DOCKER if name in os.environ}
    return {**kept, "PYTHONHASHSEED": "0"}
