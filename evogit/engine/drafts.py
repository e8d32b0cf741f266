"""What an agent tries in one move: every draft that was evaluated becomes a candidate of its own when the move ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct

from evogit.agents import Agent, NoUsableChangeError, Proposal
from evogit.breeding.breeder import Bred
from evogit.core import Evaluation, Evidence, FailedProposal
from evogit.engine.evaluations import Evaluations, Result
from evogit.engine.quota import Quota
from evogit.sandbox import Completed

Outcome = tuple[Bred | FailedProposal, Result | None]
"""What is to be journalled of a move, and its evaluation where that is known already."""


@dataclass(slots=True)
class Drafts:
    """The drafts of one move; `left` of the `granted` evaluations that were counted for it beforehand.

    Nothing is journalled before the move proposes, so that deterministic runs stay so, and an engine that is killed
    loses no more than what was in flight.
    """

    evaluations: Evaluations
    granted: int
    left: int
    _evaluated: dict[str, tuple[Bred, Evaluation, Evidence]] = field(default_factory=dict)

    @classmethod
    def of(cls, agent: Agent, evaluations: Evaluations, quota: Quota) -> Drafts:
        """Those of the move that was reserved last, as many as the agent wants and every limit has room for."""
        granted = quota.more(agent.trials) if agent.trials else 0
        return cls(evaluations, granted, granted)

    def workshop(self, make: Callable[[Proposal], Bred]) -> MoveWorkshop:
        """Where the agent tries drafts, of which `make` makes trees if they could be candidates."""
        return MoveWorkshop(self, make)

    async def evaluate(self, bred: Bred) -> tuple[Evaluation, Evidence]:
        """Have a draft evaluated; one that was evaluated in this move before is not again, and costs nothing.

        Raises:
            NoUsableChangeError: no evaluation is left.
        """
        if known := self._evaluated.get(bred.tree):
            return known[1:]
        if self.left < 1:
            raise NoUsableChangeError("no evaluation is left")
        self.left -= 1
        evaluation, evidence = await self.evaluations.try_out(bred.tree)
        if evaluation.counts:
            self._evaluated[bred.tree] = bred, evaluation, evidence
        return evaluation, evidence

    def with_last(self, last: Bred | FailedProposal) -> list[Outcome]:
        """All that came of the move, in order; `last` is its end.

        Where that is a draft that was evaluated, or nothing usable after others were, it adds nothing.
        """
        if isinstance(last, Bred) and last.tree in self._evaluated:
            self._evaluated[last.tree] = last, *self._evaluated[last.tree][1:]
        tried: list[Outcome] = [(bred, (said, seen)) for bred, said, seen in self._evaluated.values()]
        if tried and (isinstance(last, FailedProposal) or last.tree in self._evaluated):
            return tried
        return [*tried, (last, None)]


class MoveWorkshop(Struct, frozen=True):
    """The `agents.Workshop` of one brief."""

    drafts: Drafts
    make: Callable[[Proposal], Bred]

    @property
    def evaluations(self) -> int:
        """How many evaluations are left for this move."""
        return self.drafts.left

    @property
    def runs(self) -> bool:
        """Whether commands can be run."""
        return self.drafts.evaluations.runs

    def check(self, draft: Proposal) -> None:
        """Refuse what no candidate could be."""
        self.make(draft)

    async def run(self, draft: Proposal, command: str, *, wall: float) -> Completed:
        """Run a shell command on what agents may see of the draft."""
        return await self.drafts.evaluations.run(self.make(draft).tree, ["sh", "-c", command], wall=wall)

    async def evaluate(self, draft: Proposal) -> tuple[Evaluation, Evidence]:
        """Have the draft evaluated."""
        return await self.drafts.evaluate(self.make(draft))
