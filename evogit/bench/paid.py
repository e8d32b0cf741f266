"""Runs whose agents ask models: one after the other on one allowance, and none of them ever begun anew."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from evogit.agents.programs.registry import Programs
from evogit.bench.bench import Bench
from evogit.bench.outcome import BenchRun, write
from evogit.bench.worker_run import NAME, BenchRunner
from evogit.bench.workers import Order
from evogit.config.run_settings import Total
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.llm.registry import OpenModels
from evogit.repository import Repository

CUT_OFF = ("asked", "calls", "dollars", "interrupted", "proposals", "tokens")
"""Reasons for which a run stops that has more to do."""


class BenchLimits(Struct, frozen=True, kw_only=True):
    """What a bench may use of models in all; `limits` by the names of settings, as `RunLimits.ceilings`."""

    models: OpenModels
    programs: Programs
    limits: Mapping[Total, float | None]
    agreed: tuple[str, ...] = ()


class Paid:
    """Does the runs of a bench that are missing, until the allowance is used up or a stop is asked for.

    A run that is cut off stays in its repository and goes on there, so that no call is paid twice.
    """

    def __init__(self, bench: Bench, allowance: BenchLimits, *, jobs: int) -> None:
        self._bench = bench
        self._allowance = allowance
        self._jobs = jobs
        self._lane: BenchRunner | None = None
        self._stopped = False

    def stop(self) -> None:
        """Begin no other run, and let the one at work end cleanly."""
        self._stopped = True
        if self._lane:
            self._lane.stop()

    async def race(self) -> AsyncIterator[BenchRun]:
        """Do the runs, and give each that is done; its file is written by then.

        Raises:
            EvoGitError: when the world fails; what is done stays.
            OSError: when the folder cannot be made.
        """
        self._bench.folder.mkdir(parents=True, exist_ok=True)
        bench, done = self._bench, self._bench.done()
        bench_task, models = bench.bench_task, self._allowance.models
        async with AsyncExitStack() as stack:
            stack.push_async_callback(models.close)
            evaluating = Evaluator(bench_task.task, provider=bench_task.sandbox, jobs=self._jobs, drawing=PUBLIC)
            evaluator = await stack.enter_async_context(evaluating)
            self._lane = BenchRunner(
                bench_task,
                evaluator,
                models=models.get,
                programs=self._allowance.programs.make_agents,
                secrets=models.secrets,
            )
            for method, seed in bench.missing(done):
                left = self._left((method, seed), done) if bench.asks(method) else {}
                if self._stopped or any(limit is not None and limit <= 0 for limit in left.values()):
                    return
                folder = self.folder((method, seed))
                agreed = {"agreed": self._allowance.agreed} if bench.asks(method) else {}
                outcome = await self._lane.run(method, seed, folder, **left, **agreed)
                done_with_calls = outcome.reason == "calls" and outcome.calls >= (bench_task.calls or math.inf)
                if outcome.reason in CUT_OFF and not done_with_calls:
                    return
                done[method, seed] = outcome
                write(bench.file(method, seed), outcome)
                shutil.rmtree(folder)
                yield outcome

    def folder(self, order: Order) -> Path:
        """The repository of a run; another one as soon as the run would be another one."""
        method, seed = order
        depends = json.dumps(self._bench.bench_task.depends(method), sort_keys=True)
        digest = hashlib.sha256(depends.encode()).hexdigest()[:8]
        return self._bench.folder / "repositories" / f"{method.file_name}-{seed}-{digest}.git"

    def _left(self, order: Order, done: Mapping[Order, BenchRun]) -> dict[str, float | None]:
        """What a run may use, what it used before included: all that no other run has used."""
        used: dict[str, float] = dict.fromkeys(self._allowance.limits, 0)
        for (method, _), outcome in done.items():
            for name in used if self._bench.asks(method) else ():
                used[name] += getattr(outcome, name)
        for other in self._bench.missing(done):
            if other != order and self._bench.asks(other[0]):
                for name, value in self._spent(other).items():
                    used[name] += value
        limits = self._allowance.limits.items()
        left = {str(name): None if limit is None else limit - used[name] for name, limit in limits}
        each = [limit for limit in (left.get("calls"), self._bench.bench_task.calls) if limit is not None]
        return {**left, "calls": min(each, default=None)}

    def _spent(self, order: Order) -> dict[str, float]:
        """What a run that was cut off used so far."""
        folder = self.folder(order)
        history = StoredRun.open(Repository.open(folder), NAME).history if folder.exists() else History(NAME)
        spent, counts = history.committed(), history.counts
        used = {"dollars": spent.dollars, "tokens": spent.tokens, "calls": spent.charged}
        return {**used, "proposals": counts.proposals}
