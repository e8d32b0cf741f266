"""Makes what was bred a candidate: its commit, what shows how it came about, and the journal's entry."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from evogit.breeding.breeder import Bred
from evogit.events import Duplicate, FailedProposal, Proposed
from evogit.history.context import RunContext
from evogit.history.counts import UNASKED
from evogit.repository import clean_title
from evogit.text import family_key, one_line

MAX_IDEA_CHARS = 200
"""Characters of an author's reason, and of how a repeated idea differs, in the journal."""


class Full(Protocol):
    """Says whether a limit is used up."""

    def __call__(self, *, counted: bool) -> bool:
        """Return True if one is, but for that on proposals if this one is `counted` already."""
        ...


class CandidateWriter(Struct, frozen=True, kw_only=True):
    """The proposals of one engine. `full` says whether a limit is used up, the last time as a candidate is journalled.

    In a deterministic run the times of commits are made up. `fingerprint` gives what a tree does, so that candidates
    which do the same as an earlier one are refused; without it only the same tree is.
    """

    context: RunContext
    deterministic: bool
    full: Full
    fingerprint: Callable[[str], str] | None = None

    def propose(self, number: int, name: str, bred: Bred | FailedProposal) -> str | None:
        """Make a new tree a candidate and journal it; anything else is journalled as what it is, and gives None."""
        if isinstance(bred, FailedProposal):
            self.context.journal.append(bred)
            return None
        does = self.fingerprint(bred.tree) if self.fingerprint else ""
        history = self.context.history
        if not self._is_in_vain(bred, does) and self._commit(number, name, bred, does):
            return history.trees[bred.tree]
        if gone := self._pruned(bred):
            self.context.journal.append(self._too_late(number, name, bred, gone))
        elif first := history.duplicate_of(bred.tree, does):
            self.context.journal.append(
                Duplicate(
                    engine=self.context.engine,
                    move=number,
                    agent=name,
                    first=first,
                    parents=bred.parents,
                    operator=bred.operator,
                    strategy=bred.strategy,
                    likeness="same" if bred.tree in history.trees else "fingerprint",
                    title=clean_title(bred.title),
                    family=family_key(bred.family),
                    differs=one_line(bred.differs, MAX_IDEA_CHARS),
                )
            )
        return None

    def refusal(self, bred: Bred, *, counted: bool) -> str:
        """Return why a step cannot become a candidate now, before anything is written; "" if it can."""
        if self._pruned(bred):
            return "what it is built on was pruned meanwhile: FINISH"
        does = self.fingerprint(bred.tree) if self.fingerprint else ""
        if first := self.context.history.duplicate_of(bred.tree, does):
            return f"the candidate {first[:7]} is the same"
        return "a limit of the run is reached" if self.full(counted=counted) else ""

    def _pruned(self, bred: Bred) -> list[str]:
        return [parent for parent in bred.parents if parent in self.context.history.pruned]

    def _too_late(self, number: int, name: str, bred: Bred, gone: list[str]) -> FailedProposal:
        return FailedProposal(
            engine=self.context.engine,
            move=number,
            agent=name,
            parents=bred.parents,
            reason=f"its parent {gone[0][:7]} was pruned meanwhile",
            operator=bred.operator,
            strategy=bred.strategy,
            evidence=self.context.journal.keep(bred.evidence) if bred.evidence else "",
        )

    def _commit(self, number: int, name: str, bred: Bred, does: str) -> bool:
        """Commit a candidate and journal it, unless others were faster, used up the budget or pruned a parent."""
        commit = self.context.repository.commit(
            bred.tree,
            bred.parents,
            author=name,
            time=self._time(number),
            title=bred.title,
            reason=bred.reason,
            trailers={
                "Agent": name,
                "Operator": bred.operator,
                "Family": family_key(bred.family),
                "Strategy": bred.strategy,
                "Model": bred.model,
                "Shown": bred.shown,
                "Inspiration": bred.inspirations,
                "Rebased-From": bred.rebased_from,
            },
        )
        evidence = self.context.journal.keep(bred.evidence, commit)
        proposed = Proposed(
            engine=self.context.engine,
            move=number,
            candidate=commit,
            tree=bred.tree,
            parents=bred.parents,
            agent=name,
            operator=bred.operator,
            strategy=bred.strategy,
            title=clean_title(bred.title),
            conflicts=bred.conflicts,
            fingerprint=does,
            shown=bred.shown,
            inspirations=bred.inspirations,
            rebased_from=bred.rebased_from,
            tactic=bred.tactic,
            kept=bred.kept,
            measured=bred.measured,
            family=family_key(bred.family),
            differs=one_line(bred.differs, MAX_IDEA_CHARS),
            reason=one_line(bred.reason, MAX_IDEA_CHARS),
            evidence=evidence,
        )
        counted = bred.kept and (proposed.engine, number, name) in self.context.history.begun_sessions
        counted = counted or (bred.operator in ("merge", "graft") and bred.strategy in UNASKED)
        taken = self.context.journal.append(
            proposed, unless=lambda: self._is_in_vain(bred, does) or self.full(counted=counted)
        )
        return taken is not None

    def _is_in_vain(self, bred: Bred, does: str) -> bool:
        """Whether others made the same, or pruned a parent, up to this moment."""
        return self.context.history.duplicate_of(bred.tree, does) is not None or bool(self._pruned(bred))

    def _time(self, number: int) -> int:
        """Seconds since the epoch for a candidate's commit; deterministic runs count moves from the seed's time."""
        if not self.deterministic or self.context.history.seed is None:
            return int(time.time())
        return self.context.repository.commit_time(self.context.history.seed) + number
