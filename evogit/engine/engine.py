"""The steady-state loop: agents that never wait for each other, one quota, one journal."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from evogit.agents import Advice, Agent, NoUsableChangeError
from evogit.agents.population import Models, no_models
from evogit.breeding.breeder import Bred, Breeder
from evogit.breeding.candidate_writer import MAX_IDEA_CHARS, CandidateWriter
from evogit.config.run_settings import Settings
from evogit.core import EvoGitError, StopReason
from evogit.engine.account import MoveAccount, RunAccount
from evogit.engine.confirmation import UNCONFIRMED, Confirmation, evaluate_on_holdout
from evogit.engine.drafts import Drafts
from evogit.engine.evaluations import EvaluationBackend, Evaluations, Result
from evogit.engine.halts import Halts
from evogit.engine.move_order import (
    LOOK_AGAIN,
    AskingInOrder,
    FollowedTurns,
    FreeTurns,
    NotedTurns,
    OrderedTurns,
    Turns,
    together,
)
from evogit.engine.people_commits import Adding, People
from evogit.engine.profiles import Profiles
from evogit.engine.projections import Projections
from evogit.engine.quota import Quota
from evogit.engine.stages import Stages
from evogit.engine.start import Start, generator
from evogit.engine.steps import Steps
from evogit.engine.stop_request import HURRIED, LEFT, StopRequest
from evogit.engine.waiting import AskingAhead, KindShares
from evogit.events import Adopted, Decision, Entry, FailedProposal, Stopped, Tactic
from evogit.history.context import RunContext
from evogit.llm import ModelError, RunEndsError, SpendingLimitError
from evogit.llm.recording import MoveOrder
from evogit.panel import NAME, Panel
from evogit.panel.reviewer import NAME as REVIEWER
from evogit.panel.reviewer import Reviewer
from evogit.repository import Packer
from evogit.repository.evidence import failure
from evogit.selection import Change, LookBack, Move, Mutation, Selector
from evogit.text import family_key, one_line

LONGEST_PAUSE = 5.0
"""Seconds that an agent which keeps failing pauses at most between two moves; one that asks no model does not."""

STAGGER = 0.01
"""Seconds between the first moves of two agents: hundreds that ask in step would wait for each other ever after."""


CLOCKS_DIFFER = 60.0
"""Seconds by which the clocks of two machines may differ."""

LOOK_EVERY = 0.3
"""Seconds between two looks at what people decide, commit and wish."""

Made = TypeVar("Made", Advice, Bred)


class _Failure(NamedTuple):
    """Why a move came to nothing, and the name of the evidence of it; `ended`: the run did."""

    reason: str = ""
    evidence: str = ""
    ended: bool = False
    idea: Mapping[str, str] = {}


def _for_the_end(error: BaseException | None) -> bool:
    """Return True if an agent came back without a change because the run ended."""
    while error and not isinstance(error, RunEndsError):
        error = error.__cause__
    return error is not None


class Observer(Protocol):
    """What watches a run; called in the engine's event loop, so it must be quick."""

    def entry(self, entry: Entry) -> None:
        """A fact was journalled and is part of the history now."""
        ...

    def activity(self, agent: str, doing: str) -> None:
        """An agent turned to something else: `thinking`, `evaluating 9f2c1ab`, `pausing ...`, empty when done."""
        ...


class Engine:
    """One engine at work on a run, with all its parts; nothing is journalled before `evolve`.

    The agents, the backend and the models live longer than it. Whoever wants it to end asks `stopping`.
    """

    _again = ""  # what was otherwise when the best was evaluated once more

    def __init__(
        self,
        context: RunContext,
        settings: Settings,
        stopping: StopRequest,
        *,
        agents: Sequence[Agent],
        selector: Selector,
        breeder: Breeder,
        backend: EvaluationBackend,
        models: Models = no_models,
        observer: Observer | None = None,
        asking: AskingInOrder | None = None,
        order: MoveOrder | None = None,
        elsewhere: Callable[[str], bool] = lambda engine: False,
    ) -> None:
        self._context = context
        self._journal, self._history = context.journal, context.history
        self._settings = settings
        self._stopping = stopping
        self._agents = agents
        self._selector = selector
        self._breeder = breeder
        self._observer = observer
        self._start = Start(context, settings, any(agent.kind == "mutator" for agent in agents))
        self._projections = Projections(context.repository, context.history)
        self._people = People(Adding(context), self._adopt)
        self._packer = Packer(context.repository.pack, len(context.history.phylogeny))
        self._account = RunAccount(context, *settings.asking, stopping.silent, self._show)
        self._evaluations = Evaluations(context, backend, settings.evaluations, self._panel(models), elsewhere)
        self._reviewer = Reviewer(context, models, self._account_of_review, self._show)
        self._profiles = Profiles(context.task, context.repository, self._evaluations, breeder.profiles)
        self._quota = Quota(context.history, context.engine, len(agents), settings)
        self._shares = KindShares(context, settings)
        self._ahead = AskingAhead(self._evaluations, self._quota, settings)
        limit, room = settings.confirmations, self._quota.has_room_to_repeat
        self._confirmation = Confirmation(
            context, self._evaluations, hurry=stopping.hurry, limit=limit, room=room, show=self._show
        )
        self._stages = Stages(context, settings, stopping, self._show)
        self._halts = Halts(context.journal, context.engine, context.repository.common)
        exact, full = settings.deterministic, self._quota.full
        self._writer = CandidateWriter(context=context, deterministic=exact, full=full, fingerprint=breeder.fingerprint)
        parts = selector, breeder, self._evaluations, self._quota, self._writer
        self._steps = Steps(context, settings.seed, *parts, self._settle)
        self._began = context.history.seq, time.time()
        self._turns = self._begin_turns(asking, order)

    def _panel(self, models: Models) -> Panel | None:
        """Return the panel of models that compares, if the task names one.

        Raises:
            CredentialError: the key of a model cannot be had.
            UsageError: there is no such model.
        """
        pairwise = self._context.task.pairwise
        if pairwise is None or not pairwise.panel:
            return None
        judges = [models(name) for name in dict.fromkeys(pairwise.panel)]
        return Panel(self._context, pairwise, judges, lambda move: self._account.of_move(NAME, move))

    def _account_of_review(self, move: int) -> MoveAccount:
        """Return what a review is charged to, which may be asked for also once a limit ended the run."""
        return MoveAccount(replace(self._account, silent=self._stopping.hurry), REVIEWER, move, patient=False)

    def _begin_turns(self, asking: AskingInOrder | None, order: MoveOrder | None) -> Turns:
        first = max(self._history.moves, 1)  # the seed is move 0
        if not self._settings.deterministic:
            turns = order.begin(self._context.task.digest, len(self._agents), first) if order else []
            if turns:
                return FollowedTurns(turns, self._stopping.over, self._end_of_recording)
            return NotedTurns(first, order) if order else FreeTurns(first)
        ordered = OrderedTurns(first, len(self._agents))
        if asking:
            asking.follow(ordered)
        return ordered

    async def evolve(self) -> Stopped:
        """Evolve until a limit is reached or a stop is asked for.

        Raises:
            EvoGitError: when the world fails (the sandbox, the disk, the evaluator on different candidates in a row).
        """
        self._journal.subscribe(self._hear)
        names = self._start.begin(self._evaluations.backend, len(self._agents))
        with self._halts.waiting():
            try:
                in_time = await self._stopping.done(self._work(names))
            except EvoGitError as error:
                with suppress(EvoGitError):  # what failed may fail here too, and the first failure says more
                    await self._conclude("error", str(error))
                raise
            assert self._stopping.asked  # that is what ended the agents' lives
            reason, detail = self._stopping.asked
            return await self._conclude(reason, detail if in_time else "; ".join(filter(None, [detail, LEFT])))

    async def _work(self, names: Sequence[str]) -> None:
        """All that an engine does between its first entry and its last."""
        await self._finish_what_was_left(names)
        agents = enumerate(zip(names, self._agents, strict=True))
        await together([self._attend(), *(self._live(place, name, agent) for place, (name, agent) in agents)])
        assert self._stopping.asked  # that is what ended the agents' lives
        reason, _ = self._stopping.asked
        if reason not in HURRIED:
            self._people.look()
            await self._evaluations.take_over()
            self._people.consider()
        await self._reviewer.settle()
        self._again = await self._look_again(reason)
        if not await self._confirmation.confirm(reason):
            reason = "interrupted"
            self._stopping.asked = reason, ""
        await self._reviewer.settle()
        await evaluate_on_holdout(self._context, self._evaluations, self._stopping.hurry)
        await self._evaluations.take_over()  # a worker may have lied until now

    # --- beginning and end --------------------------------------------------------------------------------------

    async def _finish_what_was_left(self, names: Sequence[str]) -> None:
        """Charge and evaluate what dead engines left, have their agents adopt what they had not, rebuild the refs."""
        history = self._history
        self._account.settle_lost()
        await self._evaluations.take_over()
        while history.seed in history.pending and not self._stopping.asked:  # another engine is busy with it
            await asyncio.sleep(LOOK_AGAIN)
            self._journal.refresh()
            await self._evaluations.take_over()
        await self._confirmation.settle()
        await self._reviewer.settle()
        self._start.settle(names, self._evaluations)
        latest = {candidate.agent: candidate.commit for candidate in history.phylogeny}
        for name in names:
            if name in latest and history.judged(latest[name]):
                self._adopt(name, latest[name])
        self._projections.follow()

    async def _look_again(self, reason: StopReason) -> str:
        """Whether scores that count as exact are: the best that was found now, once more, unless somebody waits."""
        history, best = self._history, self._history.best
        if history.repeats or history.strengths or best is None or history.fitness(best) is None:
            return ""
        if not self._evaluations.backend.looks_again or not self._quota.has_room_to_repeat():
            return ""
        new = history.phylogeny[best].engine == self._context.engine and not history.scores.repeated(best)
        if not new or reason in UNCONFIRMED or self._stopping.hurry.is_set():
            return ""
        return await self._evaluations.differs_again(best)

    async def _conclude(self, reason: StopReason, detail: str) -> Stopped:
        """Journal why it stopped, and show the run to plain Git."""
        stopped = Stopped(engine=self._context.engine, reason=reason, detail=detail, again=self._again)
        self._journal.append(stopped)
        self._projections.follow()
        self._projections.notes()
        await self._packer.finish(len(self._history.phylogeny))
        return stopped

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _live(self, place: int, name: str, agent: Agent) -> None:
        """The life of one agent: move after move, with a pause after failures, until the run is over."""
        failures = 0
        await asyncio.sleep(place * STAGGER)
        while True:
            number = await self._turns.plan(place)
            self._journal.refresh()
            self._stages.look()
            await self._stages.wait()
            if self._over():
                self._show(name, "")
                return await self._turns.leave(number)
            self._history.attempts.horizon = number - self._quota.agents if self._settings.deterministic else None
            if waits := "" if isinstance(self._turns, FollowedTurns) else self._holds_back(name, agent):
                self._show(name, f"waiting, as {waits}")
                self._quota.stand_back(name)
                await self._turns.skip(number)
            elif self._quota.reserve(name):
                failed = await self._move(number, name, agent)
                failures = failures + 1 if failed and agent.pauses else 0
                if failures:
                    self._show(name, f"pausing, as it failed {failures} in a row: {failed}")
                    pause = min(0.005 * 2 ** min(failures, 20), LONGEST_PAUSE)
                    await self._account.of_move(name, number).pause(pause)
            else:
                self._show(name, "waiting")
                await self._evaluations.take_over()
                await self._turns.skip(number)

    def _holds_back(self, name: str, agent: Agent) -> str:
        """Return why an agent does not begin a move now, though there is something to do; "" if it does."""
        if not self._shares.allow(name):
            return "others gain more for what they cost"
        if not self._ahead.allow():
            return "it would be early: others' candidates are evaluated first"
        asks = agent.pauses and not self._settings.deterministic
        return "calls in flight use up the limit" if asks and not self._account.may_ask() else ""

    def _end_of_recording(self) -> None:
        """End the run that a replay repeats, unless a limit of it is reached."""
        if not self._over():
            self._stopping.ask("replayed")

    def _over(self) -> bool:
        """Whether the run is over. What ends it for one agent ends it for all, even if a result changes the reason."""
        if reached := self._quota.over() or self._account.empty():
            self._stopping.ask(reached)
        return self._stopping.asked is not None

    async def _attend(self) -> None:
        """Take in what people journal and commit until the run is over, and evaluate what waits for any engine."""
        async with asyncio.TaskGroup() as group:
            while not self._stopping.over.is_set():
                self._halts.look()
                self._journal.refresh()
                self._people.look()
                self._people.consider()
                self._projections.follow()
                self._evaluations.give_up_pruned()
                if not self._settings.deterministic:  # there what has begun goes on, and nobody joins
                    self._stages.look()
                    self._over()  # others may have reached a limit while all agents here wait for an endpoint
                group.create_task(self._evaluations.take_over())  # which may take long, and people must not wait for it
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY):
                        await self._stopping.over.wait()

    async def _move(self, number: int, name: str, agent: Agent) -> str:
        """Choose parents, breed, propose, evaluate, and take the child if it is worth it; says why none came of it."""
        history = self._history
        rng = generator(self._settings.seed, number, name)
        move = self._selector.next_move(history, name, rng)
        if isinstance(move, LookBack):
            return await self._advise(number, name, agent, move, rng)
        keep = None if self._settings.deterministic else self._steps.keeper(number, name, agent)
        before = self._evaluations.ended
        drafts = Drafts.of(agent, self._evaluations, history, self._profiles, self._quota, keep)
        try:
            made = drafts.with_last(await self._breed(number, name, agent, move, rng, drafts))
            slots = drafts.granted + (not drafts.kept)  # a session was counted with its first step
            proposed = min(len(made), slots)
            async with self._turns.proposing(number):
                children = [self._writer.propose(number, name, bred) for bred, _ in made]
                self._quota.proposed(proposed)
                if drafts.kept or drafts.notes:
                    self._steps.end(number, name, move, drafts)
            await asyncio.gather(*drafts.judging)
        finally:
            for judging in drafts.judging:
                judging.cancel()
        if move.asks:
            self._ahead.learn(max(self._evaluations.ended - before - len(drafts.kept), 0))
        results = [known or await self._evaluate(name, child) for child, (_, known) in zip(children, made, strict=True)]
        async with self._turns.applying(number):
            for child, result in zip(children, results, strict=True):
                await self._settle(name, child, result)
            self._packer.grown(len(history.phylogeny))
            self._quota.release(
                name,
                new_tree=any(children) or bool(drafts.kept),
                more=drafts.granted,
                unused=slots - proposed,
            )
        return made[-1][0].reason if made and isinstance(made[-1][0], FailedProposal) else ""

    async def _settle(self, name: str, child: str | None, result: Result | None) -> None:
        """Take in a child's evaluation, and adopt it if it is worth it."""
        if child and result:
            await self._evaluations.settle(child, result)
            if await self._confirmation.settle():
                await self._reviewer.settle()
                self._adopt(name, child)

    async def _advise(self, number: int, name: str, agent: Agent, move: LookBack, rng: random.Random) -> str:
        """Have an agent say what to try, and journal it; says why where it did not."""
        self._show(name, "looking back")
        account = self._account.of_move(name, number)
        found = await self._tried(self._breeder.advise(agent, move, rng, number=number, account=account))
        advice, failed = (Advice(text=""), found) if isinstance(found, _Failure) else (found, _Failure())
        async with self._turns.proposing(number):
            if not failed.ended:  # a question that was dropped is no proposal
                self._journal.append(
                    Tactic(
                        engine=self._context.engine,
                        move=number,
                        agent=name,
                        model=advice.model,
                        best=move.parent,
                        text=advice.text,
                        failure=failed.reason,
                        evidence=self._journal.keep(advice.evidence) if advice.evidence else failed.evidence,
                    )
                )
            self._quota.proposed()
        async with self._turns.applying(number):
            self._quota.release(name, new_tree=False)
        return failed.reason

    async def _breed(
        self, number: int, name: str, agent: Agent, move: Move, rng: random.Random, drafts: Drafts
    ) -> Bred | FailedProposal:
        thinks = isinstance(move, Mutation)
        calls_none = isinstance(move, Change)
        self._show(name, "thinking" if thinks else "going on with a number" if calls_none else "merging")
        account = self._account.of_move(name, number)
        if thinks and not agent.prolific and not self._settings.deterministic:
            await self._profiles.take(self._context.history.phylogeny[move.parents[0]])
        made = await self._tried(
            self._breeder.breed(agent, move, rng, number=number, account=account, workshop=drafts.workshop)
        )
        if isinstance(made, Bred):
            return made
        return FailedProposal(
            engine=self._context.engine,
            move=number,
            agent=name,
            parents=move.parents,
            reason=made.reason,
            operator=move.operator,
            strategy=move.strategy,
            evidence=made.evidence,
            ended=made.ended,
            title=one_line(made.idea.get("title", "")),
            family=family_key(made.idea.get("family", "")),
            differs=one_line(made.idea.get("differs", ""), MAX_IDEA_CHARS),
        )

    async def _tried(self, work: Awaitable[Made]) -> Made | _Failure:
        """What an agent makes, or why nothing.

        Raises:
            EvoGitError: the world failed, and not the agent.
        """
        try:
            return await work
        except NoUsableChangeError as error:
            kept = self._journal.keep(error.evidence) if error.evidence else ""
            return _Failure(str(error), kept, ended=_for_the_end(error), idea=error.idea)
        except (ModelError, RunEndsError, SpendingLimitError) as error:
            return _Failure(str(error), ended=isinstance(error, RunEndsError))
        except EvoGitError:
            raise
        except Exception as error:  # noqa: BLE001  the agent boundary: one agent's fault must not end the others
            return _Failure(f"the agent itself failed: {error!r}", self._journal.keep(failure(error)))

    async def _evaluate(self, name: str, child: str | None) -> Result | None:
        if child is None:
            return None
        self._show(name, f"evaluating {child[:7]}")
        return await self._evaluations.evaluate(child)

    def _adopt(self, name: str, child: str) -> None:
        """Make the child its agent's individual if selection says so."""
        if self._history.heads.get(name) != child and self._selector.adopts(self._history, name, child):
            self._journal.append(Adopted(agent=name, candidate=child))

    # --- watching -----------------------------------------------------------------------------------------------

    def _hear(self, entry: Entry) -> None:
        seq, when = self._began
        is_new = entry.seq > seq or entry.time >= when - CLOCKS_DIFFER  # by the run's clock, or by any machine's
        if is_new and isinstance(entry.event, Decision) and entry.event.kind == "stop":
            self._stopping.ask("asked", f"by {entry.event.by}", after_calls=entry.event.after_calls)
        if self._observer is not None:
            self._observer.entry(entry)

    def _show(self, agent: str, doing: str) -> None:
        if self._observer is not None:
            self._observer.activity(agent, doing)
