"""The ideas that models had in a run: one record each, with how often it was tried and its outcome.

A view over the journal, in which proposals have the title, family, reason and difference that their authors gave.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from evogit.events import Duplicate, FailedProposal, Proposed
from evogit.history.counts import TUNING, Done, made_by
from evogit.history.history import History
from evogit.history.standing import Standing, standing

NO_CHANGE = "no change"
"""The outcome of a proposal that does the same as its parent, or an ancestor of it."""


class Idea(Struct, frozen=True, kw_only=True):
    """One idea; title, agent, parent, candidate, standing and reason are those of the try that gained most.

    Attributes:
        family: the key of the approach; empty if its author gave none.
        parent: the candidate that was changed.
        candidate: the result, which may be one that was there already; empty if there is none.
        candidates: the results of all tries, oldest first.
        standing: of the candidate; None if there is none.
        reason: the reason that its author gives, one line.
        outcome: `better`, `tied`, `within noise`, `worse`, `valid` (nothing to compare with), `failed: WHY`,
            `unusable: WHY`, `NO_CHANGE`, or the status of what was not measured.
        tries: the number of proposals, `repeats` of them again without a reason why it is different.
        moves: the numbers of its moves, oldest first.
    """

    title: str
    family: str
    agent: str
    parent: str
    candidate: str
    candidates: tuple[str, ...]
    standing: Standing | None
    reason: str
    outcome: str
    tries: int
    repeats: int
    moves: tuple[int, ...]

    @property
    def score(self) -> float | None:
        """The score of its best try; None if no try is valid."""
        return self.standing.score if self.standing else None

    @property
    def gain(self) -> float | None:
        """Its best gain over the fittest of the candidates that it comes from; None if unknown."""
        return self.standing.gain if self.standing else None

    @property
    def certain(self) -> bool:
        """Return whether its outcome is beyond noise: further evaluations would hardly change it."""
        compared = self.standing.comparison if self.standing else None
        if compared is None:
            return self.outcome.startswith(("failed", "unusable", NO_CHANGE))
        return not compared.apart and abs(compared.gain) >= compared.margin


def ideas(history: History, until: int | None = None) -> tuple[Idea, ...]:
    """Return the ideas of a run, oldest first, of moves up to `until`; those of pruned candidates are withdrawn."""
    kept = (
        [each for each in tries if made_by(each) not in history.pruned and (until is None or each.move <= until)]
        for tries in history.ledger.ideas.values()
    )
    return tuple(_idea(history, tries) for tries in kept if tries)


def by_family(ideas: Iterable[Idea]) -> dict[str, list[Idea]]:
    """Return ideas by family, in the order in which they came up; those without one under ""."""
    groups = dict[str, list[Idea]]()
    for idea in ideas:
        groups.setdefault(idea.family, []).append(idea)
    return groups


def _idea(history: History, tries: Sequence[Done]) -> Idea:
    results = [_result(history, each) for each in tries]
    stands = [standing(history, result) if result else None for result in results]
    number = max(range(len(tries)), key=lambda at: (*_rank(stands[at]), at))
    best, known = tries[number], stands[number]
    return Idea(
        title=best.title,
        family=next((each.family for each in tries if each.family), ""),
        agent=best.agent,
        parent=next(iter(best.parents), ""),
        candidate=results[number],
        candidates=tuple(filter(None, results)),
        standing=known,
        reason=best.reason if isinstance(best, Proposed) else "",
        outcome=_outcome(history, best, known),
        tries=len(tries),
        repeats=0 if best.family == TUNING else sum(not each.differs for each in tries[1:]),
        moves=tuple(each.move for each in tries),
    )


def _result(history: History, event: Done) -> str:
    """Return the candidate of a try; "" if its reply was not usable, or did what its parent or an ancestor does."""
    if isinstance(event, Duplicate) and event.first in history.phylogeny.ancestors(*event.parents):
        return ""
    return made_by(event)


def _rank(known: Standing | None) -> tuple[int, float]:
    """Return the key by which tries are ordered: a valid one with the largest gain is the best."""
    if known is None or known.score is None:
        return int(known is not None), -math.inf
    return 2, -math.inf if known.gain is None else known.gain


def _outcome(history: History, event: Done, known: Standing | None) -> str:
    if isinstance(event, FailedProposal):
        return f"unusable: {event.reason}"
    if known is None:
        return NO_CHANGE
    if known.failed:
        evaluation = history.evaluation(known.commit)
        return f"failed: {known.status}{f', {evaluation.reason}' if evaluation and evaluation.reason else ''}"
    return known.status if known.score is None else known.verdict or "valid"
