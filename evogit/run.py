"""The steady-state loop: agents that never wait for each other, one budget, one journal."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from typing import Any, Protocol

from evogit.agents import Agent, NoUsableChangeError
from evogit.agents.mutation.mutator import Mutator
from evogit.agents.population import Employ, Models, no_models, no_programs, populate
from evogit.breeding.breeder import Bred, Breeder
from evogit.breeding.candidates import CandidateWriter
from evogit.breeding.fingerprints import Fingerprints
from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.core import Adopted, Decision, Entry, EvoGitError, FailedProposal, Stopped, StopReason
from evogit.engine.account import RunAccount
from evogit.engine.budget import Budget
from evogit.engine.confirmation import Confirmation
from evogit.engine.evaluations import EvaluationBackend, Evaluations, Verdict
from evogit.engine.panel import open_panel
from evogit.engine.people import Adding, People
from evogit.engine.projections import Projections
from evogit.engine.start import Start, generator
from evogit.engine.steering import Steering
from evogit.engine.turns import LOOK_AGAIN, FreeTurns, OrderedTurns, Turns, together
from evogit.engine.workshop import Trials
from evogit.evaluation.evaluator import Evaluator
from evogit.history import History
from evogit.llm import ModelError, RunEndsError, SpendingLimitError
from evogit.repository import Packer, Repository
from evogit.selection import Move, Selector
from evogit.selection.anatomy import Anatomy
from evogit.selection.registry import open_selector
from evogit.selection.traits import traits_of

__all__ = ["Observer", "Run", "Settings"]

LIMITS = ("evaluations", "proposals", "target", "patience", "count_repeats")
"""Settings that the budget goes by."""

LONGEST_PAUSE = 5.0
"""Seconds that an agent which fails again and again pauses at most between two moves; one that asks nobody does not."""

HURRIED = ("interrupted", "asked", "minutes")
"""Reasons for which a run ends without judging what people added at the last moment."""

STAGGER = 0.01
"""Seconds between the first moves of two agents: hundreds that ask in step would wait for each other ever after."""


class Observer(Protocol):
    """Who watches a run; called in the engine's event loop, so it must be quick."""

    def entry(self, entry: Entry) -> None:
        """A fact was journalled and is part of the history now."""
        ...

    def activity(self, agent: str, doing: str) -> None:
        """An agent turned to something else: `thinking`, `judging 9f2c1ab`, `pausing ...`, empty when done."""
        ...


class Run:
    """One engine at work on a run. `evolve` returns when a limit is reached or `stop` was called.

    `models` finds the models that the settings' agents ask, `employ` makes agents of coding programs, and `secrets` are
    redacted from all that is written.
    Library users can give `agents` and a `selector` (default: those of the settings), and an
    `executor` that is ready (default: the task's evaluator in sandboxes on this machine).
    """

    def __init__(
        self,
        repository: Repository,
        task: Task,
        name: str,
        settings: Settings,
        observer: Observer | None = None,
        *,
        models: Models = no_models,
        employ: Employ = no_programs,
        secrets: Sequence[str] = (),
        agents: Sequence[Agent] = (),
        selector: Selector | None = None,
        executor: EvaluationBackend | None = None,
    ) -> None:
        self.repository = repository
        self.task = task
        self.settings = settings
        self.history = History(name)
        self._engine = ""
        self._observer: Observer | None = None  # what happened before is no news
        self.journal = repository.journal(name, self._take, secrets)
        self._observer = observer
        self._agents = agents
        self._models = models
        self._employing = employ
        anatomy = Anatomy(repository)
        self._selector = selector or open_selector(settings.selector, traits_of(task, repository), anatomy)
        self._executor = executor
        self._projections = Projections(repository, self.history)
        lanes = (len(agents) or settings.agents) if settings.deterministic else 0
        self._breeder = Breeder(repository, task, self.history, anatomy=anatomy, secrets=secrets, lanes=lanes)
        self._asked: tuple[StopReason, str] | None = None
        self._stopping = asyncio.Event()
        self._silent = asyncio.Event()
        self._hurry = asyncio.Event()
        self._people = People(Adding(repository, self.journal, self.history), self._adopt)
        self._packer = Packer(repository.pack, len(self.history.phylogeny))
        self._proposals: CandidateWriter
        self._purse: RunAccount
        self._judge: Evaluations
        self._budget: Budget
        self._believing: Confirmation
        self._turns: Turns

    def stop(self, reason: StopReason = "interrupted", detail: str = "") -> None:
        """Ask for a clean stop: what is being thought and judged is finished, nothing new begins.

        No model is asked again after a lost attempt; only where a limit ends a deterministic run what began goes on.
        """
        self._asked = self._asked or (reason, detail)
        self._stopping.set()
        if reason in ("interrupted", "asked"):
            self._hurry.set()
        if reason in HURRIED or not self.settings.deterministic:
            self._silent.set()

    async def evolve(self) -> Stopped:
        """Evolve until a limit is reached.

        Raises:
            EvoGitError: when the world fails (the sandbox, the disk, the evaluator three times in a row), when
                another engine is at work, or when the task is not the one that the run began with.
        """
        async with AsyncExitStack() as stack:
            start = self._enter(stack)
            executor = self._executor or await self._evaluator(stack)
            agents = self._agents or populate(stack, self.settings.population, self._models, self._employing)
            self._employ(executor, len(agents))
            names = start.begin(executor, len(agents), joined=self.settings.join)
            try:
                await self._finish_what_was_left(start, names)
                await self._live_together(names, agents)
                await self._judge_people()
                assert self._asked  # that is what ended the agents' lives
                if not await self._believing.confirm(self._asked[0]):
                    self._asked = ("interrupted", "")
                await self._judge.judge_finalists(self.history.repeats, self._hurry)
            except EvoGitError as error:
                with suppress(EvoGitError):  # what failed may fail here too, and the first failure says more
                    await self._conclude("error", str(error))
                raise
            return await self._conclude(*self._asked)

    # --- beginning and end --------------------------------------------------------------------------------------

    def _enter(self, stack: AsyncExitStack) -> Start:
        """Become the engine of this run, or one of them."""
        settings = self.settings
        engines = self.repository.engines(self.history.run)
        self._engine = stack.enter_context(engines.enter(join=settings.join))
        if not settings.join:
            self.repository.clear_locks(self.history.run)
        start = Start(
            repository=self.repository,
            journal=self.journal,
            history=self.history,
            task=self.task,
            engine=self._engine,
            settings={**asdict(settings), "agents": settings.agents},
            split=settings.split,
            deterministic=settings.deterministic,
        )
        self.journal.refresh()
        start.check(self._executor.digest if self._executor else self.task.evaluator_digest)
        return start

    def _employ(self, executor: EvaluationBackend, agents: int) -> None:
        """Have somebody who judges, who counts what is used up, and who judges again what may be luck."""
        journal, history, settings, engine = self.journal, self.history, self.settings, self._engine
        limits: Any = {"dollars": settings.dollars, "tokens": settings.tokens}
        self._purse = RunAccount(journal=journal, history=history, engine=engine, silent=self._silent, **limits)
        panel = open_panel(self.repository, journal, history, self.task, engine, self._models, self._purse)
        most = settings.evaluations
        self._judge = Evaluations(self.repository, journal, history, self.task, executor, engine, most, panel)
        self._budget = Budget(history, engine, agents, **{name: getattr(settings, name) for name in LIMITS})
        limit, room, hurry = settings.confirmations, self._budget.has_room_to_repeat, self._hurry
        self._believing = Confirmation(
            journal, history, self._judge, limit=limit, room=room, hurry=hurry, show=self._show
        )

    async def _evaluator(self, stack: AsyncExitStack) -> EvaluationBackend:
        evaluator = Evaluator(self.task, provider=self.settings.sandbox, jobs=self.settings.jobs)
        return await stack.enter_async_context(evaluator)

    async def _finish_what_was_left(self, start: Start, names: Sequence[str]) -> None:
        """Judge what dead engines left, let their agents adopt what they had not come to, and rebuild the refs."""
        await self._judge.take_over()
        while self.history.seed in self.history.pending and not self._asked:  # another engine is busy with it
            await asyncio.sleep(LOOK_AGAIN)
            self.journal.refresh()
            await self._judge.take_over()
        await self._believing.settle()
        start.settle(list(names))
        latest = {candidate.agent: candidate.commit for candidate in self.history.phylogeny}
        for name in names:
            if name in latest and self.history.judged(latest[name]):
                self._adopt(name, latest[name])
        self._projections.follow()

    async def _live_together(self, names: Sequence[str], agents: Sequence[Agent]) -> None:
        settings, first = self.settings, self.history.moves
        self._turns = OrderedTurns(first, len(agents)) if settings.deterministic else FreeTurns(first)
        self._proposals = CandidateWriter(
            repository=self.repository,
            journal=self.journal,
            history=self.history,
            engine=self._engine,
            deterministic=settings.deterministic,
            full=self._budget.full,
            fingerprint=Fingerprints(self.repository, self.history).fingerprint if self.task.fingerprints else None,
        )
        attention = Steering(self.journal, self._projections, self._judge, self._people, self._stopping)
        alarm = asyncio.get_running_loop().call_later((settings.minutes or 0) * 60, self.stop, "minutes")
        if settings.minutes is None:
            alarm.cancel()
        try:
            lives = [self._live(lane, *pair) for lane, pair in enumerate(zip(names, agents, strict=True))]
            await together([attention.attend(), *lives])
        finally:
            alarm.cancel()

    async def _judge_people(self) -> None:
        """Judge what people added until now, unless somebody or the clock wants the run to end at once."""
        if self._asked and self._asked[0] not in HURRIED:
            self._people.look()
            await self._judge.take_over()
            self._people.consider()

    async def _conclude(self, reason: StopReason, detail: str) -> Stopped:
        """Journal why it stopped, and show the run to plain Git."""
        stopped = Stopped(engine=self._engine, reason=reason, detail=detail)
        self.journal.append(stopped)
        self._projections.follow()
        self._projections.notes()
        await self._packer.finish(len(self.history.phylogeny))
        return stopped

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _live(self, lane: int, name: str, agent: Agent) -> None:
        """The life of one agent: move after move, with a pause after failures, until the run is over."""
        failures = 0
        await asyncio.sleep(lane * STAGGER)
        while True:
            number = await self._turns.plan(lane)
            self.journal.refresh()
            if self._over():
                self._show(name, "")
                return await self._turns.leave(number)
            if self._budget.reserve(name):
                failed = await self._move(number, name, agent)
                failures = failures + 1 if failed and agent.kind != Mutator.kind else 0
                if failures:
                    self._show(name, f"pausing, as it failed {failures} in a row: {failed}")
                    pause = min(0.005 * 2 ** min(failures, 20), LONGEST_PAUSE)
                    await self._purse.account(name, number).pause(pause)
            else:
                self._show(name, "waiting")
                await self._judge.take_over()
                await self._turns.skip(number)

    def _over(self) -> bool:
        """Whether the run is over. What ends it for one agent ends it for all, even if a result changes the reason."""
        if reached := self._budget.over() or self._purse.empty():
            self.stop(reached)
        return self._asked is not None

    async def _move(self, number: int, name: str, agent: Agent) -> str:
        """Choose parents, breed, propose, judge, and take the child if it is worth it; says why no tree came of it."""
        rng = generator(self.settings.seed, number, name)
        self.history.attempts.horizon = number - self._budget.agents if self.settings.deterministic else None
        move = self._selector.next_move(self.history, name, rng)
        trials = Trials.of(agent, self._judge, self._budget)
        made = trials.with_last(await self._breed(number, name, agent, move, rng, trials))
        async with self._turns.proposing(number):
            children = [self._proposals.propose(number, name, bred) for bred, _ in made]
            self._budget.proposed(len(made))
        verdicts = [known or await self._judged(name, child) for child, (_, known) in zip(children, made, strict=True)]
        async with self._turns.applying(number):
            for child, verdict in zip(children, verdicts, strict=True):
                if child and verdict:
                    await self._judge.settle(child, verdict)
                    if await self._believing.settle():
                        self._adopt(name, child)
            self._packer.grown(len(self.history.phylogeny))
            self._budget.release(name, new_tree=any(children), more=trials.most, unused=trials.most + 1 - len(made))
        return made[-1][0].reason if isinstance(made[-1][0], FailedProposal) else ""

    async def _breed(
        self, number: int, name: str, agent: Agent, move: Move, rng: random.Random, trials: Trials
    ) -> Bred | FailedProposal:
        self._show(name, "thinking" if move.operator == "mutation" else "merging")
        reason, evidence = "", ""
        account = self._purse.account(name, number)
        try:
            return await self._breeder.breed(agent, move, rng, number=number, account=account, trials=trials)
        except NoUsableChangeError as error:
            reason = str(error)
            evidence = self.journal.keep(error.evidence) if error.evidence else ""
        except (ModelError, RunEndsError, SpendingLimitError) as error:
            reason = str(error)
        except EvoGitError:
            raise
        except Exception as error:  # noqa: BLE001  the agent boundary: one agent's fault must not end the others
            reason = f"the agent itself failed: {error!r}"
            evidence = self.journal.keep({"traceback": traceback.format_exc().encode(errors="replace")})
        return FailedProposal(
            engine=self._engine,
            move=number,
            agent=name,
            parents=move.parents,
            reason=reason,
            operator=move.operator,
            strategy=move.strategy,
            evidence=evidence,
        )

    async def _judged(self, name: str, child: str | None) -> Verdict | None:
        if child is None:
            return None
        self._show(name, f"judging {child[:7]}")
        return await self._judge.judge(child)

    def _adopt(self, name: str, child: str) -> None:
        """Make the child its agent's individual if selection says so."""
        if self.history.heads.get(name) != child and self._selector.adopts(self.history, name, child):
            self.journal.append(Adopted(agent=name, candidate=child))

    # --- watching -----------------------------------------------------------------------------------------------

    def _take(self, entry: Entry) -> None:
        self.history.apply(entry)
        if self._engine and isinstance(entry.event, Decision) and entry.event.kind == "stop":
            self.stop("asked", f"by {entry.event.by}")
        if self._observer is not None:
            self._observer.entry(entry)

    def _show(self, agent: str, doing: str) -> None:
        if self._observer is not None:
            self._observer.activity(agent, doing)
