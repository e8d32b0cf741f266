"""Whose moves came to what: by agent, model and operator, with what models were asked for each."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field

from evogit.core import Duplicate, FailedProposal, Proposed, Spent
from evogit.history.counts import Spending
from evogit.history.pages import Pages, fold

Done = Proposed | Duplicate | FailedProposal
"""What a move came to."""


@dataclass(slots=True)
class Effort:
    """One move in which models were asked: what it spent on each, and what it came to, None while that is open."""

    move: int
    spent: dict[str, Spending] = field(default_factory=dict)
    done: Done | None = None
    lost: bool = False
    """Whether the last call brought no reply."""

    @property
    def model(self) -> str:
        """The model that was asked last: what came of the move is its."""
        return next(reversed(self.spent))


class Efforts(Pages[tuple[int, str, str], Effort]):
    """Efforts by number of the move, engine and agent."""


LATEST = 10_000
"""Efforts that came to something of which the order is known: who learns from them looks at far fewer."""


@dataclass(slots=True)
class Authors:
    """An index of the journals: which agent and model made what.

    Attributes:
        efforts: the moves in which models were asked.
        order: the latest of those that came to something, by number.
        wrote: candidate -> the model that wrote it; without those that no model wrote.
        barren: how many proposals made no candidate, by engine, agent, model, operator and strategy.
    """

    efforts: Efforts = field(default_factory=Efforts)
    order: list[tuple[int, str, str]] = field(default_factory=list)
    wrote: dict[str, str] = field(default_factory=dict)
    barren: Counter[tuple[str, str, str, str, str]] = field(default_factory=Counter)

    def pay(self, event: Spent) -> None:
        """A model was asked in some move."""
        key = (event.move, event.engine, event.agent)
        effort = self.efforts.get(key) or Effort(event.move)
        spending = effort.spent.pop(event.model, None) or Spending()
        spending.add(event)
        effort.lost = bool(event.failure)
        effort.spent[event.model] = spending
        self.efforts[key] = effort
        fold(self.efforts)

    def answered(self, event: Done) -> bool:
        """Whether what a move came to is what its author said: not that of one whose model was not reached at last."""
        effort = self.efforts.get((event.move, event.engine, event.agent))
        asked = isinstance(event, FailedProposal) and bool(event.evidence)
        return not effort.lost if effort else not asked

    def unanswered(self, event: Done) -> bool:
        """Whether a move came to nothing since no model said anything in it, and none was paid."""
        effort = self.efforts.get((event.move, event.engine, event.agent))
        if not isinstance(event, FailedProposal):
            return False
        if effort is None:
            return event.ended
        return all(each.calls == each.failed and not each.tokens for each in effort.spent.values())

    def take(self, event: Done) -> None:
        """A move came to something."""
        key = (event.move, event.engine, event.agent)
        effort = self.efforts.get(key)
        if effort and effort.done is None:
            effort.done = event
            self.efforts[key] = effort
            insort(self.order, key)
            del self.order[:-LATEST]
        model = effort.model if effort else ""
        if not isinstance(event, Proposed):
            self.barren[event.engine, event.agent, model, event.operator, event.strategy] += 1
        elif model:
            self.wrote[event.candidate] = model
