"""The steps of sessions: candidates at once, merged with what other agents found meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from evogit.agents import Agent, NoUsableChangeError, SessionNotes
from evogit.breeding.breeder import Bred, Breeder
from evogit.breeding.candidate_writer import CandidateWriter
from evogit.credentials import tokens
from evogit.engine.drafts import Drafts
from evogit.engine.evaluations import Evaluations, Result
from evogit.engine.quota import Quota
from evogit.engine.start import generator
from evogit.events import SessionEnded
from evogit.history.context import RunContext
from evogit.selection import Move, Selector

MAX_WAITING_STEPS = 3
"""Steps of a session that may await their evaluations at a time."""


class Steps(Struct, frozen=True):
    """Takes in the steps that sessions keep; `settle` takes in the evaluation of a candidate by an agent."""

    context: RunContext
    seed: int
    selector: Selector
    breeder: Breeder
    evaluations: Evaluations
    quota: Quota
    writer: CandidateWriter
    settle: Callable[[str, str, Result | None], Awaitable[None]]

    def keeper(self, number: int, name: str, agent: Agent) -> Callable[[Drafts, Bred], str]:
        """Return the function that makes a draft of the move a candidate, and has it evaluated in the background."""

        async def judge(drafts: Drafts, child: str, earlier: Result | None) -> None:
            result = await self._evaluate(name, child, earlier)
            drafts.judged.append((child, result[0] if result else None))
            if result and result[0].ok:
                await self._merge(number, name, agent, child)

        def keep(drafts: Drafts, bred: Bred) -> str:
            if sum(not judging.done() for judging in drafts.judging) >= MAX_WAITING_STEPS:
                raise NoUsableChangeError(f"{MAX_WAITING_STEPS} steps still await evaluation; keep this one later")
            if why := self.writer.refusal(bred, counted=bool(drafts.kept)):
                raise NoUsableChangeError(why)
            earlier = drafts.evaluated(bred.tree)
            reserved = earlier is not None or drafts.left > 0
            if not self.quota.step(reserved=reserved):
                raise NoUsableChangeError("no evaluation of the run is left for another step")
            drafts.left -= reserved and earlier is None
            drafts.granted -= reserved
            child = self.writer.propose(number, name, bred)
            if child is None:
                self.quota.settled()
                raise NoUsableChangeError("an identical candidate appeared, or the parent was pruned")
            if not drafts.kept:  # the history counts the session from now on
                self.quota.proposed()
            drafts.judging.append(asyncio.create_task(judge(drafts, child, earlier)))
            return child

        return keep

    def end(self, number: int, name: str, move: Move, drafts: Drafts) -> None:
        """Journal the end of a session, with its notes."""
        notes = drafts.notes or SessionNotes(text="")
        text = "" if tokens(notes.text.encode(errors="replace")) else notes.text  # a credential goes to nobody
        self.context.journal.append(
            SessionEnded(
                engine=self.context.engine,
                move=number,
                agent=name,
                model=notes.model,
                candidate=drafts.kept[-1] if drafts.kept else move.parents[0],
                kept=len(drafts.kept),
                measured=drafts.measurements,
                text=text,
                evidence=self.context.journal.keep(notes.evidence) if notes.evidence else "",
            )
        )

    async def _evaluate(self, name: str, child: str, earlier: Result | None = None) -> Result | None:
        try:
            result = earlier or await self.evaluations.evaluate(child)
            await self.settle(name, child, result)
        finally:
            self.quota.settled()
        return result

    async def _merge(self, number: int, name: str, agent: Agent, child: str) -> None:
        """Merge what sessions kept on different lines, if the selector plans such a merge and an evaluation is left."""
        plan = getattr(self.selector, "crossing", None)  # selectors that plan no merges have none
        rng = generator(self.seed, number, f"{name} {child}")
        move = plan(self.context.history, name, rng) if plan else None
        if move is None or not self.quota.step(reserved=False):
            return
        merged = None
        with suppress(NoUsableChangeError):
            bred = await self.breeder.breed(agent, move, rng, number=number)
            merged = self.writer.propose(number, name, bred)
        if merged:
            await self._evaluate(name, merged)
        else:
            self.quota.settled()
