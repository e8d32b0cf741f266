"""One run of a bench: an ordinary run on a fresh repository, and the small record that is kept of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from evogit import __version__
from evogit.agents.population import Models, ProgramAgents, no_models, no_programs
from evogit.bench.methods import Method
from evogit.bench.outcome import BenchRun, Call, source_digest
from evogit.config import Task
from evogit.config.custom_classes import is_own
from evogit.config.run_settings import AgentSpec
from evogit.core import HOLDOUT
from evogit.engine.evaluations import EvaluationBackend, Evaluations
from evogit.events import Entry
from evogit.history import History
from evogit.history.context import RunContext
from evogit.repository import Repository
from evogit.run import Run, Settings

NAME = "bench"
"""Of the run in the repository of each."""

COUNTED = ("evaluated", "failed", "proposals", "duplicates", "failed_proposals", "repeated")
"""Counts of a run that its record keeps."""


class BenchTask(Struct, frozen=True, kw_only=True):
    """The part that all runs on one task share; `source` identifies EvoGit as it was when the bench began."""

    task: Task
    evaluations: int
    split: str = "train"
    agents: tuple[AgentSpec, ...] = Settings().population
    calls: int | None = None
    """What each run may ask models, beside the limits on all runs together."""
    sandbox: str = "auto"
    source: str = field(default_factory=source_digest)

    def settings(self, method: Method, seed: int) -> Settings:
        """Of the run of a method with this seed."""
        return Settings(
            population=method.population(self.agents),
            selector=method.selector,
            evaluations=self.evaluations,
            split=self.split,
            seed=seed,
            deterministic=not self.task.environment.exclusive,  # measured times never come twice
            sandbox=self.sandbox,
            count_repeats=True,
            beyond=True,
            jobs=1,
        )

    def depends(self, method: Method) -> dict[str, Any]:
        """What a run's outcome depends on, its seed aside.

        Runs that were paid for hold for all that calls itself this version; others for this very source.
        """
        agents = method.population(self.agents)
        return {
            "task": self.task.digest,
            "seed": "" if self.task.seed else Repository.discover(self.task.folder).head(),
            "evaluator": self.task.evaluator_digest,
            "evogit": __version__ if any(spec.asks for spec in agents) else self.source,
            "selector": [method.selector, _own_digest(method.selector)],
            "agents": [f"{spec} {_own_digest(spec.kind)}".rstrip() for spec in agents],
            "evaluations": self.evaluations,
            "split": self.split,
            "truth": "",  # records of runs name it
            "fingerprints": self.task.fingerprints,
            "repeats": self.task.repeats and [self.task.repeats, True],
            "sandbox": self.sandbox,
            **({"calls": self.calls} if self.calls else {}),
        }


def _own_digest(text: str) -> str:
    """Identifies a person's own file; empty for a selector or an agent that comes along."""
    file = Path(text.rpartition(":")[0])
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if is_own(text) and file.is_file() else ""


class BenchRunner:
    """Runs one run after the other on one executor, which stays warm."""

    def __init__(
        self,
        bench_task: BenchTask,
        backend: EvaluationBackend,
        *,
        models: Models = no_models,
        programs: ProgramAgents = no_programs,
        secrets: Sequence[str] = (),
    ) -> None:
        self._bench_task = bench_task
        self._models = models
        self._programs = programs
        self._secrets = secrets
        self._backend = backend
        self._run: Run | None = None
        self._stopping = False

    def stop(self) -> None:
        """Let the run at work end cleanly, what it began included."""
        self._stopping = True
        if self._run:
            self._run.stop("interrupted")

    async def run(self, method: Method, seed: int, folder: Path, **limits: Any) -> BenchRun:
        """Evolve in `folder` to the end, and sum it up; a run that is there goes on. `limits` are settings.

        Raises:
            EvoGitError: when the world fails.
        """
        began, depends = time.monotonic(), self._bench_task.depends(method)
        task = self._bench_task.task
        if folder.exists():
            repository = Repository.open(folder)
        elif task.seed is None:  # it stands on a person's commit
            repository = Repository.borrow(folder, Repository.discover(task.folder))
        else:
            repository = Repository.create(folder)
        settings = replace(self._bench_task.settings(method, seed), **limits)
        about: dict[str, Any] = {"models": self._models, "programs": self._programs, "secrets": self._secrets}
        self._run = run = Run(repository, task, NAME, settings, backend=self._backend, **about)
        if self._stopping:
            run.stop("interrupted")
        stopped = await run.evolve()
        self._run = None
        story = Story()
        repository.journal(NAME, story.take)
        held = await self._on_holdout(run.context, dict.fromkeys(call.best for call in story.calls))
        history, counts = story.history, story.history.counts
        return BenchRun(
            method=method.name,
            seed=seed,
            curve=tuple(value for _, value in story.best),
            paid=tuple(replace(call, holdout=held.get(call.best)) for call in story.calls),
            reason=stopped.reason,
            dollars=history.spent.dollars,
            tokens=history.spent.tokens,
            calls=history.spent.charged,
            seconds=time.monotonic() - began,
            depends=depends,
            **{name: getattr(counts, name) for name in COUNTED},
        )

    async def _on_holdout(self, context: RunContext, commits: Collection[str]) -> dict[str, float]:
        """The values of those that are valid on the holdout, once the run has ended and no agent can hear of it."""
        if HOLDOUT not in context.task.splits:
            return {}
        history, found = context.history, dict[str, float]()
        with context.repository.engines(NAME).enter(join=False) as engine:
            evaluations = Evaluations(context.of(engine), self._backend)
            for commit in commits:
                if not history.judged(commit, HOLDOUT):
                    await evaluations.finish(commit, HOLDOUT)
                if (known := history.evaluation(commit, HOLDOUT)) and known.ok:
                    found[commit] = known.metrics[history.metric.name]
        return found


class Story:
    """Follows a run's journal from its beginning; `best` is what was believed to be the best after each evaluation.

    `calls` are what was reached before the first call of a model that counts, and with each, before the next.
    """

    def __init__(self) -> None:
        self.history = History(NAME)
        self.best: list[tuple[str, float]] = []
        self.calls: list[Call] = []

    def take(self, entry: Entry) -> None:
        """Take in one more fact: another evaluation, a call, or news that change which is believed."""
        self.history.apply(entry)
        best = self.history.best
        value = self.history.fitness(best) if best else None
        if best is None or value is None:
            return
        if self.history.spent.charged >= len(self.calls) > 0:
            self.calls.append(Call(tokens=self.history.spent.tokens, best=best, value=value))
        elif self.calls:
            self.calls[-1] = replace(self.calls[-1], best=best, value=value)
        else:
            self.calls = [Call(tokens=0, best=best, value=value)]
        counts = self.history.counts
        fresh = counts.evaluated + counts.repeated - len(self.best)
        if fresh > 0:
            self.best += [(best, value)] * fresh
        else:
            self.best[-1] = best, value
