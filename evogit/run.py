"""A run as a caller asks for it."""

from __future__ import annotations

import asyncio
import os
import queue
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import count

from evogit.agents import Agent
from evogit.agents.population import Models, ProgramAgents, no_models, no_programs, populate
from evogit.breeding.breeder import Breeder
from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.core import StopReason, UsageError
from evogit.engine.desk import Desk, OpenQuestion
from evogit.engine.driver import Driver
from evogit.engine.engine import Engine, Observer
from evogit.engine.evaluations import EvaluationBackend
from evogit.engine.exchange import Exchange
from evogit.engine.move_order import AskingInOrder
from evogit.engine.run_key import begin_inputs
from evogit.engine.start import Start
from evogit.engine.stop_request import StopRequest
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import Inputs
from evogit.evaluation.workers.team import Team
from evogit.evaluation.workers.verification import WorkerVerification
from evogit.events import Event, Stopped
from evogit.history import History
from evogit.history.context import RunContext, StoredRun
from evogit.history.lessons import NO_LESSONS, lesson_sources
from evogit.llm.recording import MoveOrder
from evogit.repository import Journal, Repository
from evogit.selection import Selector
from evogit.selection.map_elites import traits_of
from evogit.selection.number_steps import NumberSteps
from evogit.selection.pareto import OVER_METRICS
from evogit.selection.registry import open_selector

__all__ = ["Observer", "Run", "Settings"]

LOOK_AGAIN = 0.05
"""Seconds between two looks whether a question that is waited for can still come."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a caller asks for: that `task` evolves in `repository`, as the run `name`, driven by `settings`.

    It is for one start of an engine: `await run.evolve()` to the end, or event by event with `for event in run` and
    `async for event in run`. Whoever leaves such a loop early has the run stop cleanly.

    Attributes:
        observer: what watches.
        models: finds the models that the settings' agents ask.
        programs: makes agents of coding programs.
        secrets: texts that are redacted from all that is written.
        agents: the population, instances or what names them; none: that of the settings.
        selector: what chooses parents and survivors; None: that of the settings.
        backend: what evaluates, ready for use; None: the task's evaluator in sandboxes on this machine.
        closing: what is awaited in the run's event loop at its end, such as the closing of models.
        desk: where agents and a backend that ask leave their questions, for `ask` and `tell`.
        order: the order of moves, of a recording that is made or repeated.
    """

    repository: Repository
    task: Task
    name: str
    settings: Settings
    observer: Observer | None = None
    _: KW_ONLY
    models: Models = no_models
    programs: ProgramAgents = no_programs
    secrets: Sequence[str] = ()
    agents: Sequence[Agent | AgentSpec] = ()
    selector: Selector | None = None
    backend: EvaluationBackend | None = None
    closing: Sequence[Callable[[], Awaitable[None]]] = ()
    desk: Desk | None = None
    order: MoveOrder | None = None

    @cached_property
    def context(self) -> RunContext:
        """The run as the journals tell it, which are read when this is looked at first, and followed by `evolve`."""
        return StoredRun.open(self.repository, self.name, self.secrets).about(self.task)

    @property
    def history(self) -> History:
        """What happened in the run so far."""
        return self.context.history

    @property
    def journal(self) -> Journal:
        """Where facts are appended."""
        return self.context.journal

    @cached_property
    def _starts(self) -> Iterator[int]:
        return count()

    @cached_property
    def _stopping(self) -> StopRequest:
        return StopRequest(deterministic=self.settings.deterministic)

    def stop(self, reason: StopReason = "interrupted", detail: str = "") -> None:
        """Ask for a clean stop: nothing new begins.

        Any thread may ask. Where a person does, replies of models are waited for 5 s more, evaluations 30 s; else to
        their end.
        """
        self._stopping.ask(reason, detail)

    async def evolve(self) -> Stopped:
        """Evolve until a limit is reached or `stop` was called.

        Raises:
            EvoGitError: when the world fails (the sandbox, the disk, the evaluator on different candidates in a row),
                when another engine is at work, or when the task is not the one that the run began with.
            UsageError: the second time.
        """
        if next(self._starts):
            raise UsageError("this run was begun before, and a Run is for one start: make another one, which goes on")
        self._stopping.begin()
        async with AsyncExitStack() as stack:
            stack.callback(self._stopping.close)
            for close in (*self.closing, *([self.desk.close] if self.desk else [])):
                stack.push_async_callback(close)
            if self.settings.minutes is not None:
                self._stopping.end_within(60 * self.settings.minutes, self.settings.kept)
            context, drawing = self._enter(stack)
            exchange = None
            if self.settings.remote:
                show = self.observer.activity if self.observer else lambda who, doing: None
                remote = context.repository.remote(self.name, self.settings.remote, context.secrets)
                exchange = Exchange(context, remote, every=self.settings.sync_every, show=show)
                await stack.enter_async_context(exchange)
            backend = self.backend or await self._backend(stack, context, drawing)
            if exchange:
                exchange.admit_migrants(backend.provider)
            asking, models = AskingInOrder(), self._stopping.heeded(self.models)
            asked = asking.of(models) if self.settings.deterministic else models
            agents = populate(stack, self.agents or self.settings.population, asked, self.programs)
            numbers = NumberSteps(self.repository)
            engine = Engine(
                context,
                self.settings,
                self._stopping,
                agents=agents,
                selector=self.selector or self._selector(numbers),
                breeder=self._breeder(numbers, len(agents)),
                backend=backend,
                models=models,
                observer=self.observer,
                asking=asking,
                order=self.order,
                elsewhere=exchange.busy if exchange else lambda engine: False,
            )
            before = context.entries
            stopped = await engine.evolve()
            context.keep(before)
            return stopped

    def evolve_here(self) -> Stopped:
        """The same in a thread while the caller waits, whether in an event loop or not; Ctrl-C is a clean stop.

        Raises:
            EvoGitError: as `evolve` does.
            KeyboardInterrupt: after a second Ctrl-C.
        """
        with Driver(self.evolve, self.stop) as driver:
            return driver.wait()

    def __iter__(self) -> Iterator[Event]:
        """Evolve, and tell each fact once it is journalled; the run waits until the next one is asked for.

        Raises:
            EvoGitError: as `evolve` does.
            KeyboardInterrupt: after a second Ctrl-C; the first one asks for a clean stop.
        """
        driver = Driver(self.evolve, self.stop, in_step=True)
        self.journal.subscribe(driver.hear)
        with driver:
            yield from driver.events()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The same in the caller's event loop; the run does not wait, so that it may be ahead of what is told.

        Raises:
            EvoGitError: as `evolve` does.
        """
        told = asyncio.Queue[Event | None]()
        self.journal.subscribe(lambda entry: told.put_nowait(entry.event))
        evolving = asyncio.create_task(self.evolve())
        evolving.add_done_callback(lambda _: told.put_nowait(None))
        try:
            while (event := await told.get()) is not None:
                yield event
            await evolving
        finally:
            if not evolving.done():
                self.stop()
                await asyncio.wait([evolving])

    @cached_property
    def _driver(self) -> Driver:
        return Driver(self.evolve, self.stop)

    def ask(self) -> OpenQuestion | None:
        """The next question, once there is one; the first time the run begins. None: the run has ended.

        Several may be open at a time, as many as there are agents; they may be answered in any order.

        Raises:
            EvoGitError: what ended the run.
            UsageError: the run asks nothing, or no question can come until one that is open is answered.
        """
        desk = self._asking
        self._driver.begin()
        while True:
            try:
                question = desk.take(LOOK_AGAIN)
            except queue.Empty:
                self._check_open(desk.unanswered)
                continue
            except KeyboardInterrupt:
                self._driver.stop()
                raise
            if question is None:
                self._driver.wait()
            return question

    def tell(self, question: OpenQuestion, answer: object) -> None:
        """Answer a question; each says what it expects.

        Raises:
            UsageError: it expects something else; the question stays open.
        """
        self._asking.tell(question, answer)

    @property
    def _asking(self) -> Desk:
        if self.desk is None:
            raise UsageError('this run asks nothing: expected evogit.prepare(..., evaluate="ask") or agents="ask"')
        return self.desk

    def _check_open(self, unanswered: int) -> None:
        """Refuse to wait for what cannot come. Raises UsageError: the engine waits, too."""
        counts, settings = self.history.counts, self.settings
        seed = self.history.seed
        full = settings.evaluations is not None and counts.evaluated + unanswered >= settings.evaluations
        full |= settings.proposals is not None and counts.charged + unanswered >= settings.proposals
        beginning = seed is None or not self.history.judged(seed)
        if unanswered and (beginning or full or self._stopping.asked or unanswered >= settings.agents):
            message = f"expected tell() first: {unanswered} questions are open, and no other comes until then"
            raise UsageError(message) from None

    def _enter(self, stack: AsyncExitStack) -> tuple[RunContext, Inputs]:
        """Become the engine of this run, or one of them, with the secret that inputs are drawn with."""
        engines = self.repository.engines(self.name)
        context = self.context.of(stack.enter_context(engines.enter(join=self.settings.join)))
        if not self.settings.join:
            self.repository.clear_locks(self.name)
        context.journal.refresh()
        drawing = begin_inputs(context, self.settings, os.environ)
        Start(context, self.settings).check(self.backend.digest if self.backend else self.task.evaluator_digest)
        return context, drawing

    async def _backend(self, stack: AsyncExitStack, context: RunContext, drawing: Inputs) -> EvaluationBackend:
        evaluator = Evaluator(
            self.task,
            provider=self.settings.sandbox,
            jobs=max(self.settings.jobs, 1),
            drawing=drawing,
            private=[self.repository.path, self.repository.common],
        )
        await stack.enter_async_context(evaluator)
        if not self.settings.workers:
            return evaluator
        asked, jobs = self.settings.sandbox, min(self.settings.jobs, evaluator.jobs)
        over = self.task.metrics if OVER_METRICS(self.settings.selector) else ()
        others = [metric for metric in over if not metric.primary]
        rng = random.SystemRandom()  # workers must not foresee it
        verifying = self.settings.trust == "verify"
        verify = WorkerVerification(self.task.primary, evaluator.jobs, rng, others) if verifying else None

        def show(worker: str, doing: str) -> None:
            if self.observer:
                self.observer.activity(worker, doing)
            self.repository.engines(self.name).note(context.engine, team.workers())

        team = Team(evaluator, self.settings.workers, asked=asked, jobs=jobs, verify=verify, show=show)
        return await stack.enter_async_context(team)

    def _selector(self, numbers: NumberSteps) -> Selector:
        return open_selector(self.settings.selector, traits_of(self.task, self.repository), numbers)

    def _breeder(self, numbers: NumberSteps, agents: int) -> Breeder:
        named = self.settings.lessons_from or (NO_LESSONS,) * self.settings.deterministic
        return Breeder(
            self.repository,
            self.context.task,
            self.history,
            numbers=numbers,
            secrets=self.secrets,
            deterministic_agents=agents if self.settings.deterministic else 0,
            lessons=lesson_sources(self.repository, named, but=self.name),
        )
