"""Evaluates candidates by a function in the caller's own process."""

from __future__ import annotations

import asyncio
import inspect
import io
import math
import tarfile
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from evogit.config.run_settings import is_above_zero
from evogit.core import Cost, Evaluation, Evidence, EvoGitError, Files, Judged, UsageError
from evogit.engine.evaluations import EvaluationBackend
from evogit.library.ask_and_tell import Answer, answer_of, answer_to
from evogit.library.calls import EndedError, GivenUpError, in_fork, in_thread
from evogit.library.function_task import FunctionTask

Evaluate = Callable[[Path], object] | Callable[[Path], Awaitable[object]]
"""Given where a candidate is, says what it is worth: a number, or a dict of numbers; or raises."""

SHORTEST_PATIENCE = 10.0  # seconds that a candidate has at least, where nobody says how long it may take

PATIENCE = 10.0  # how much longer than the slowest valid one so far a candidate may take, where nobody says how long


class _FunctionFailedError(EvoGitError):
    """A person's function raised an `error`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class FunctionBackend(EvaluationBackend):
    """An `EvaluationBackend` that calls a function, `jobs` at a time, with the path of the candidate's file or folder.

    A coroutine function is awaited in the engine's event loop, any other one is called in a thread of its own. Nothing
    protects the score, the files, or the process from what the candidate does: `judged` is `inside`.
    """

    provider = "none"
    image = ""

    def __init__(
        self,
        task: FunctionTask,
        evaluate: Evaluate,
        *,
        run: str,
        jobs: int = 1,
        timeout: float | None = None,
        isolated: bool = False,
        slowest: float = 0.0,
    ) -> None:
        """Get ready.

        Args:
            task: what is evolved.
            evaluate: the function.
            run: the name of the run; its evaluations are not those of other runs, as what else counts is not known.
            jobs: how many calls there are at a time.
            timeout: seconds that a call may take; None: ten times as long as the slowest, ten at least.
            isolated: whether each call is in a process of its own, which can crash and be ended whatever it does.
            slowest: seconds that the slowest valid candidate took so far; 0: there is none, and the first has time.
        """
        if timeout is not None and not is_above_zero(timeout):
            raise UsageError(f"expected timeout= above 0 seconds, got {timeout!r}")
        self.digest = task.evaluator_digest
        self.errors: list[BaseException] = []
        self._single = task.single
        self._primary = task.primary.name
        self._evaluate = evaluate
        self._awaits = _is_async(evaluate)
        self._isolated = isolated
        if isolated and self._awaits:
            raise UsageError("expected a plain function with isolated=True, got a coroutine function")
        self._run = run
        self._jobs = jobs
        self._free = asyncio.Semaphore(jobs)
        self._timeout = timeout
        self._slowest = slowest

    @property
    def judged(self) -> Judged:
        """Beside the candidate's code."""
        return "inside"

    @property
    def jobs(self) -> int:
        """How many calls there are at a time."""
        return self._jobs

    @property
    def looks_again(self) -> bool:
        """The function is called as often as was asked for, and no more."""
        return False

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Identifies an evaluation of this run."""
        return f"{self._run} {self.digest} {tree} {split} {repeat}"

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Lay the files out in a folder of their own, call the function, and remove the folder."""
        async with self._free:
            began = time.monotonic()
            answer = await self._in_time(files)
            cost = Cost(wall=time.monotonic() - began, cpu=answer.cpu)
        if answer.status == "ok":
            self._slowest = max(self._slowest, cost.wall)
        evaluation = Evaluation(
            status=answer.status,
            metrics=answer.metrics,
            reason=answer.reason,
            split=split,
            repeat=repeat,
            cost=cost,
            evaluator=self.digest,
            key=self.key(tree, split, repeat),
            judged=self.judged,
        )
        feedback = {"all": answer.feedback} if answer.feedback else {}
        return evaluation, Evidence(stderr=answer.trace.encode(errors="replace"), feedback=feedback)

    async def _in_time(self, files: Files) -> Answer:
        allowed = self._timeout
        if allowed is None and self._slowest:
            allowed = max(SHORTEST_PATIENCE, PATIENCE * self._slowest)
        with tempfile.TemporaryDirectory(prefix="evogit-", ignore_cleanup_errors=True) as name:
            place = Path(name).resolve()
            try:
                async with asyncio.timeout(allowed if allowed != math.inf else None):
                    return await self._answer(files, place)
            except TimeoutError:
                return Answer(status="timeout", reason=f"it took more than {allowed:.3g} s; timeout= allows more")

    async def _answer(self, files: Files, place: Path) -> Answer:
        laid_out(files, place)
        path = place / self._single
        if self._isolated:
            return await self._forked(path, place)
        answer = await self._awaited(path) if self._awaits else await in_thread(lambda: self._called(path))
        if isinstance(answer, BaseException):
            self.errors.append(answer)
        return _read(answer, place)

    async def _forked(self, path: Path, place: Path) -> Answer:
        try:
            return Answer(**await in_fork(lambda: asdict(_read(self._called(path), place))))
        except EndedError as error:
            return Answer(status="crashed", reason=str(error))

    def _called(self, path: Path) -> Answer | BaseException:
        began = time.thread_time()
        try:
            answer = self._call(path)
        except _FunctionFailedError as failed:
            return failed.error
        return replace(answer, cpu=time.thread_time() - began)

    def _call(self, path: Path) -> Answer:
        try:
            told: Any = self._evaluate(path)
            if inspect.iscoroutine(told):  # of what only calls a coroutine function, such as a lambda
                told = asyncio.run(told)
            return answer_of(told, self._primary)
        except GivenUpError:
            raise
        except BaseException as error:
            raise _FunctionFailedError(error) from error

    async def _awaited(self, path: Path) -> Answer | BaseException:
        try:
            return await self._await(path)
        except _FunctionFailedError as failed:
            return failed.error

    async def _await(self, path: Path) -> Answer:
        try:
            told: Any = self._evaluate(path)
            return answer_of(await told, self._primary)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise _FunctionFailedError(error) from error


def _read(answer: Answer | BaseException, place: Path) -> Answer:
    if not isinstance(answer, BaseException):
        return answer
    answer.__traceback__ = answer.__traceback__ and answer.__traceback__.tb_next  # our call of the function
    return answer_to(answer, place)


def _is_async(function: Any) -> bool:
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004


def laid_out(files: Files, folder: Path) -> None:
    """Write a candidate's files into a folder: those of the seed, without what was removed, with what changed."""
    if files.base:
        _extract(files.base.archive, folder)
    for path in files.removed:
        (folder / path).unlink(missing_ok=True)
    _extract(files.changed, folder)


def _extract(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
