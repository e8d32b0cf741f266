"""The engine's side of evaluating: a pool of warm evaluator processes, one per slot."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import asdict, replace

from evogit.config import Task
from evogit.core import (
    Cost,
    Evaluation,
    Evidence,
    Files,
    Judged,
    RefusedError,
    Status,
    UsageError,
)
from evogit.evaluation.evaluator_process import EvaluatorDiedError, EvaluatorProcess
from evogit.evaluation.evidence import thinned
from evogit.evaluation.frames import completed_of, evaluation_of, late_reason
from evogit.evaluation.inputs import Drawn, Inputs
from evogit.evaluation.machine import kind_of_machine, simultaneous
from evogit.sandbox import Completed
from evogit.sandbox.answers import NOTHING
from evogit.sandbox.cores import exclusive_cores, kept_free

LOOKS, EVERY = 10, 0.2
"""Number of looks at the load of the machine, and the seconds between two of them."""

LATER = (15.0, 60.0)
"""Seconds for which a calmer machine is waited for at most, before each further try of what had too little of it."""
WORTH_A_START = 0.25
"""Seconds in which evaluations wait before another process is started for them: about what that costs."""


class Door:
    """Lets any number in, or one alone, who waits until all are out while no other gets in."""

    def __init__(self) -> None:
        self._door = asyncio.Lock()
        self._inside = 0
        self._out = asyncio.Event()

    @contextlib.asynccontextmanager
    async def entered(self, *, alone: bool) -> AsyncIterator[None]:
        """The context of being inside."""
        async with self._door:
            while alone and self._inside:
                self._out.clear()
                await self._out.wait()
            if alone:
                yield
                return
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._out.set()


async def calm(patience: float) -> None:
    """Return once no more tasks are ready to run than the machine has cores, or after `patience` seconds."""
    if not patience:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            looks = [_running()]
            while len(looks) < LOOKS or sum(looks[-LOOKS:]) > LOOKS * (os.cpu_count() or 1):
                await asyncio.sleep(EVERY)
                looks.append(_running())


def _running() -> int:
    """Return how many tasks of this machine run or are ready to, this one left out; 0 where nothing tells."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1
    except (OSError, IndexError, ValueError):
        return 0


logger = logging.getLogger(__name__)


class EvaluationPlace(Struct, frozen=True):
    """Where something is evaluated, as far as scores depend on it; the `machine` counts where time is measured."""

    provider: str
    image: str
    machine: str = ""


class Evaluator:
    """Evaluates candidates of one task, up to `jobs` at a time; an async context manager.

    `digest` identifies the way of evaluation; `provider`, `image`, `timing` (how CPU is known) and `needs_seed`
    (whether `evaluate` must be given the seed, as the base of the candidate's files) are known once it is entered. A
    task with `exclusive` has one job, or one for each GPU that its evaluations need; from entering to leaving, this
    process and all that it starts keep off the cores that the candidates have.

    `rng` of evaluators draws from `drawing`; from a secret that nothing else shares unless it is given. No program can
    read the task's folder, the one where we are, their repositories, nor those that are `private`.
    """

    shares = True
    looks_again = True

    def __init__(
        self, task: Task, *, provider: str, jobs: int, drawing: Inputs | None = None, private: Sequence[Path] = ()
    ) -> None:
        self.task = task
        self.judged: Judged = task.judged
        self.runner = self
        self.doubted: dict[tuple[str, str, int], str] = {}
        self._drawing = drawing or Inputs.own()
        self.inputs = self._drawing.commitment
        """The hash of the secret that inputs are drawn with; empty where everybody can make them."""
        self._draws = False
        self._private = (task.folder, Path.cwd(), *private)
        self.digest = task.evaluator_digest
        self.provider = provider
        self.image = ""
        self.timing = ""
        self.needs_seed = False
        self._builds_on_seed = False
        self._idle: asyncio.LifoQueue[EvaluatorProcess | None] = asyncio.LifoQueue()
        self._jobs = simultaneous(task, jobs)
        self._at_work = 0
        self._door = Door()
        self._returned = asyncio.Event()
        self._patience = WORTH_A_START
        self._waited_until = 0.0
        self._cores: set[int] = set()
        self._reserved: list[int] = []
        self._told: set[str] = set()
        self._apart = contextlib.ExitStack()

    def drawn(self, split: str, repeat: int) -> Drawn:
        """The seeds of the inputs of one evaluation, all that another process or machine needs for it."""
        splits = (*self.task.stages(split), split)
        return self._drawing.drawn(self.task.name, splits, self.task.draw(repeat)) if self._draws else {}

    async def __aenter__(self) -> Self:
        """Start the first process, which finds what is wrong before any candidate is made.

        Raises:
            ConfigError: when the evaluator's file is not what this version expects.
            EvaluatorError: when it cannot be imported.
            SandboxError: when the provider does not work here.
            RefusedError: when it draws inputs with a secret that is not here.
            UntrustedError: when it would run a stranger's code outside a sandbox.
            UsageError: when there is no such provider.
        """
        self.task.check_trust(self.provider)
        with contextlib.ExitStack() as apart:
            if self.task.environment.exclusive:
                self._reserved = exclusive_cores(self._jobs)
                self._cores = os.sched_getaffinity(0) - set(self._reserved)
                apart.enter_context(kept_free(*self._reserved))
            process, hello = await self._new_process()
            if hello["draws"] and self._drawing.missing:
                await process.stop()
                raise RefusedError(self._drawing.missing)
            self._apart = apart.pop_all()
        self.provider = hello["provider"]
        self.image = hello["image"]
        self.timing = hello["timing"]
        self.needs_seed = hello["needs_seed"]
        self._builds_on_seed = hello["builds_on_seed"]
        self._draws = hello["draws"]
        for idle in [None] * (self._jobs - 1) + [process]:
            self._idle.put_nowait(idle)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End the processes; evaluations must be finished or cancelled by then."""
        with self._apart:
            processes = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
            await asyncio.gather(*(process.stop() for process in processes if process))

    @property
    def measures(self) -> bool:
        """True if `measure` can be used: a command of the task measures, and no pairs are judged."""
        return self.task.command is not None and self.judged != "pairs"

    @property
    def place(self) -> EvaluationPlace:
        """Where it evaluates."""
        kind = kind_of_machine(self.task) if self.task.environment.exclusive else ""
        return EvaluationPlace(self.provider, self.image, kind)

    @property
    def jobs(self) -> int:
        """How many candidates it evaluates at a time."""
        return self._jobs

    def key(
        self, tree: str, split: str, repeat: int = 0, *, base: str = "", place: EvaluationPlace | None = None
    ) -> str:
        """Identifies everything that an evaluation's result depends on (sha256, hex).

        `base` is the id of the seed's files, which count if the evaluator uses them; `place` is here by default.
        """
        task, environment, place = self.task, self.task.environment.described, place or self.place
        del environment["isolation"]  # how quickly a clean sandbox is at hand, not what is in it
        way = [task.name, self.digest, asdict(task.limits), task.preload, task.withheld, task.excluded, environment]
        parts = [tree, base if self._builds_on_seed else "", *way, place.image, place.provider, split, repeat]
        if place.machine:
            parts.append(place.machine)
        if self._draws and self.inputs:
            parts.append(self.inputs)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    async def evaluate(
        self,
        tree: str,
        files: bytes | Files,
        *,
        split: str,
        repeat: int = 0,
        drawn: Drawn | None = None,
    ) -> tuple[Evaluation, Evidence]:
        """Evaluate the candidate with this tree id and these files, those that `is_judged` (bytes: a whole archive).

        Waits for a free slot. A process that dies makes an `evaluator-error` and is replaced. `drawn` are the seeds of
        another machine's run, in place of our own.

        Raises:
            EvaluatorError: when a process cannot be replaced, because the evaluator changed or is broken.
            SandboxError: when the sandbox itself fails.
            UsageError: when the evaluator needs the seed and the files have no base.
        """
        files = files if isinstance(files, Files) else Files(files)
        self.check_base(files)
        hearing = _Hearing(self.task.limits.total)
        drawn = self.drawn(split, repeat) if drawn is None else drawn
        evaluation, evidence = await self._measured(hearing, files, split, self.task.draw(repeat), drawn)
        if self.judged == "pairs":  # all that is known is whether it is valid
            evaluation = replace(evaluation, metrics={}, cases={})
        return self.labelled(evaluation, tree, files, split, repeat, self.place), thinned(evidence)

    async def measure(self, files: Files, *, split: str, tests: bool) -> tuple[Evaluation, Evidence]:
        """Evaluate once for a measurement that is no score: without a key, and without the tests unless wanted.

        Raises what `evaluate` does.
        """
        self.check_base(files)
        async with self._slot() as process:
            hearing = _Hearing(self.task.limits.total)
            evaluation, evidence = await hearing.of(
                process, files, split, 0, self.drawn(split, 0), alone=False, skip_tests=not tests
            )
        return evaluation, thinned(evidence)

    async def _measured(
        self, hearing: _Hearing, files: Files, split: str, repeat: int, drawn: Drawn
    ) -> tuple[Evaluation, Evidence]:
        """Evaluate; if starved, repeat later and alone, and return `not-measured` if starved each time."""
        costs: list[Cost] = []
        for patience in (0.0, *LATER):
            await calm(patience)
            async with self._slot(alone=patience > 0) as process:
                evaluation, evidence = await hearing.of(process, files, split, repeat, drawn, alone=patience > 0)
            costs.append(evaluation.cost)
            if not evaluation.starved:
                total = reduce(add, costs)
                return replace(evaluation, cost=replace(evaluation.cost, wall=total.wall, cpu=total.cpu)), evidence
            self._tell(
                "the machine is busy: what runs out of time by waiting for a core is evaluated again, later and alone"
            )
            hearing.forget(f"{evaluation.reason}: the machine was busy, so it was tried again, later and alone")
        reason = f"the machine was too busy, {len(costs)} times: {evaluation.reason}"
        return Evaluation(status="not-measured", reason=reason, starved=True, cost=reduce(add, costs)), evidence

    def check_base(self, files: Files) -> None:
        """Raise UsageError if the evaluator needs the seed, and the files have no base."""
        if (self.needs_seed or self.task.command) and not files.base:
            raise UsageError("this evaluator needs the seed's files; pass Files whose base is the seed")

    def labelled(
        self, evaluation: Evaluation, tree: str, files: Files, split: str, repeat: int, place: EvaluationPlace
    ) -> Evaluation:
        """The same, saying what was evaluated, how and where."""
        return replace(
            evaluation,
            split=split,
            repeat=repeat,
            evaluator=self.digest,
            image=place.image,
            key=self.key(tree, split, repeat, base=files.base.id if files.base else "", place=place),
            judged=self.judged,
        )

    async def run(self, files: Files, command: Sequence[str], *, wall: float, laid: bool = False) -> Completed:
        """Run a command as candidates are run, for `wall` seconds. Raises SandboxError if the sandbox fails.

        `laid`: it has all files that evaluations have, those of the evaluator too, so its output may quote them.
        """
        request = {"run": list(command), "wall": wall, "laid": laid}
        request |= {"removed": files.removed, "based": files.base is not None}
        try:
            async with self._slot() as process:
                *_, (header, body) = [each async for each in process.ask(request, files.changed, files.base)]
        except EvaluatorDiedError as death:
            return Completed(
                code=None, signal=None, stdout=b"", stderr=b"", breach=None, usage=NOTHING, detail=str(death)
            )
        return completed_of(header, body)

    @contextlib.asynccontextmanager
    async def _slot(self, *, alone: bool = False) -> AsyncIterator[EvaluatorProcess]:
        """A process, once one is free, or once all are, and none begins meanwhile; what is left at work is killed."""
        async with self._door.entered(alone=alone):
            process = await self._free_process()
            self._at_work += 1
            try:
                if process and process.ended:
                    await self._end(process)
                    process = None
                if process is None:
                    process, _ = await self._new_process()
                yield process
            finally:
                if process and process.busy:
                    await self._end(process)
                self._at_work -= 1
                self._idle.put_nowait(process if process and not process.busy else None)
                self._returned.set()
                self._returned = asyncio.Event()

    async def _free_process(self) -> EvaluatorProcess | None:
        """One that has nothing to do, or None: one may be started, as all others are at work and waiting costs more."""
        while True:
            process = await self._idle.get()
            if process or not self._at_work or self._patience <= 0:
                return process
            self._idle.put_nowait(None)
            since = asyncio.get_running_loop().time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    await self._returned.wait()
            now = asyncio.get_running_loop().time()
            self._patience -= now - max(since, self._waited_until)  # once, however many wait
            self._waited_until = now

    async def _end(self, process: EvaluatorProcess) -> None:
        await process.kill()
        self._reserved += process.cores

    async def _new_process(self) -> tuple[EvaluatorProcess, Mapping[str, Any]]:
        own = [self._reserved.pop()] if self._reserved else []
        about = {
            "provider": self.provider,
            "worked": bool(self.image),
            "cores": sorted({*self._cores, *own}),
            "private": [str(folder) for folder in self._private],
        }
        try:
            process, hello = await EvaluatorProcess.start(self.task, about, self._tell)
        except BaseException:
            self._reserved += own
            raise
        process.cores = own
        return process, hello

    def _tell(self, warning: str) -> None:
        if warning not in self._told:
            self._told.add(warning)
            logger.warning("%s", warning)


@dataclass
class _Hearing:
    """What an evaluator process tells during one evaluation."""

    total: float
    cases: dict[str, Mapping[str, float]] = field(default_factory=dict)
    feedback: dict[str, str] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)

    async def of(
        self,
        process: EvaluatorProcess,
        files: Files,
        split: str,
        repeat: int,
        drawn: Drawn,
        *,
        alone: bool,
        skip_tests: bool = False,
    ) -> tuple[Evaluation, Evidence]:
        """Evaluate in a process, `alone` also among this user's other runs; its death is an evaluator error."""
        asked = {"split": split, "repeat": repeat, "drawn": drawn, "alone": alone, "skip_tests": skip_tests}
        request = {**asked, "removed": files.removed, "based": files.base is not None}
        try:
            async for header, body in process.ask(request, files.changed, files.base):
                if "case" in header:
                    self._case(header)
                elif "again" in header:
                    self.forget(f"the sandbox was lost, and the evaluation began again: {header['again']}")
                    process.printed()
                else:
                    evaluation, evidence = evaluation_of(header, body)
            log = "\n".join(filter(None, [*self.losses, evidence.log, process.printed()]))
        except EvaluatorDiedError as death:
            late = late_reason(death.signal, self.total)
            status: Status = "timeout" if late else "evaluator-error"
            evaluation, evidence = Evaluation(status=status, reason=late or str(death)), Evidence()
            log = death.log
        return replace(evaluation, cases=self.cases), replace(evidence, feedback=self.feedback, log=log)

    def forget(self, why: str) -> None:
        """The evaluation starts over: what was said of it so far must not count twice."""
        self.losses.append(why)
        self.cases.clear()
        self.feedback.clear()

    def _case(self, header: Mapping[str, Any]) -> None:
        name, metrics = header["case"], header["metrics"]
        if header["feedback"]:
            self.feedback[name] = header["feedback"]
        if metrics is not None:
            self.cases[name] = metrics
