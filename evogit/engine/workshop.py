"""What an agent tried in one move: every draft that was judged becomes a candidate of its own when the move ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from evogit.agents import Agent, NoUsableChangeError, Proposal, Trying
from evogit.breeding.breeder import Bred
from evogit.core import Evaluation, Evidence, FailedProposal
from evogit.engine.budget import Budget
from evogit.engine.evaluations import Evaluations, Result
from evogit.sandbox import Completed

Outcome = tuple[Bred | FailedProposal, Result | None]
"""What is to be journalled of a move, and its evaluation where that is known already."""


@dataclass(slots=True)
class Trials:
    """The `agents.Workshop` of one move; `evaluations` are left of those that were counted for it beforehand.

    Nothing is journalled before the move proposes, so that deterministic runs stay so, and an engine that is killed
    loses no more than what was in flight.
    """

    backend: Evaluations
    most: int
    evaluations: int = 0
    _make: Callable[[Proposal], Bred] | None = None
    _judged: dict[str, tuple[Bred, Evaluation, Evidence]] = field(default_factory=dict)

    @classmethod
    def of(cls, agent: Agent, evaluations: Evaluations, budget: Budget) -> Trials:
        """Those of the move that was reserved last, as many as the agent wants and every limit has room for."""
        most = budget.more(agent.trials) if isinstance(agent, Trying) else 0
        return cls(evaluations, most, most)

    def at(self, make: Callable[[Proposal], Bred]) -> Trials:
        """The same for drafts that `make` checks and makes trees of."""
        self._make = make
        return self

    @property
    def runs(self) -> bool:
        """Whether commands can be run."""
        return self.backend.runs

    def check(self, draft: Proposal) -> None:
        """Refuse what no candidate could be."""
        self._bred(draft)

    async def run(self, draft: Proposal, command: str, *, wall: float) -> Completed:
        """Run a shell command on what agents may see of the draft."""
        return await self.backend.run(self._bred(draft).tree, ["sh", "-c", command], wall=wall)

    async def evaluate(self, draft: Proposal) -> tuple[Evaluation, Evidence]:
        """Judge the draft; one that was judged in this move before is not judged again, and costs nothing."""
        bred = self._bred(draft)
        if known := self._judged.get(bred.tree):
            return known[1:]
        if self.evaluations < 1:
            raise NoUsableChangeError("no evaluation is left")
        self.evaluations -= 1
        evaluation, evidence = await self.backend.try_out(bred.tree)
        if evaluation.counts:
            self._judged[bred.tree] = bred, evaluation, evidence
        return evaluation, evidence

    def with_last(self, last: Bred | FailedProposal) -> list[Outcome]:
        """All that came of the move, in order; `last` is its end.

        Where that is a draft that was judged, or nothing usable after others were, it adds nothing.
        """
        if isinstance(last, Bred) and last.tree in self._judged:
            self._judged[last.tree] = last, *self._judged[last.tree][1:]
        tried: list[Outcome] = [(bred, (evaluation, evidence)) for bred, evaluation, evidence in self._judged.values()]
        if tried and (isinstance(last, FailedProposal) or last.tree in self._judged):
            return tried
        return [*tried, (last, None)]

    def _bred(self, draft: Proposal) -> Bred:
        assert self._make  # the breeder sets it before an agent sees this
        return self._make(draft)
