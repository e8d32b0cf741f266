"""Candidates of hosts without the run's key: what they claim is heard, and evaluated here before it counts."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from itertools import islice

from evogit.core import HUMAN, Evaluated, Evaluation, RefusedError, RepositoryError
from evogit.engine.people_commits import Adding
from evogit.history.context import StoredRun
from evogit.repository.remote import Remote, Stranger

AT_ONCE = 8
"""Hosts whose claims are looked at after one exchange at most; each may cost an evaluation here."""

SHARE = 0.1
"""Of all evaluations those that strangers may take up, or they could use up a limit by claims alone."""

TRIED = 3
"""Claims of one host that are looked at after one exchange, the highest ones, until one is fit to be added."""

MAX_BYTES = 256 << 10
"""Bytes of the files that a claimed candidate changes: they are searched for credentials while the engine waits."""

TITLE = "migrant from "
"""The beginning of the titles of such candidates, by which they are counted."""


@dataclass(slots=True)
class Migrants:
    """Adds the best that each stranger claims to have: its files, as a commit of ours, as `evogit add` would.

    A claim only says what to look at first; one that is no better than an earlier one of that host is not looked at.
    """

    run: StoredRun
    remote: Remote
    _claimed: dict[str, float] = field(default_factory=dict)
    _looked: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)

    async def look(self) -> None:
        """Add what is new, with a turn for everything else before each claim."""
        if self.run.history.seed is None or not self.run.journal.key or not self._has_room():
            return
        for stranger in islice(self.remote.strangers(self._looked), AT_ONCE):
            if not self._has_room():
                break
            self._looked.add(stranger.tip)
            claims = {claim for event in stranger.events if (claim := self._claim(stranger, event))}
            for worth, commit in sorted(claims, reverse=True)[:TRIED]:
                await asyncio.sleep(0)
                if self._add(stranger.host, worth, commit):
                    break

    def _has_room(self) -> bool:
        """Return whether one more stays within the strangers' share, now or in earlier engines of the run."""
        history = self.run.history
        migrants = sum(history.phylogeny[each].title.startswith(TITLE) for each in history.human)
        return migrants < SHARE * history.counts.evaluated - 1

    def _claim(self, stranger: Stranger, event: object) -> tuple[float, str] | None:
        """Return the claimed fitness of a candidate, larger is better; None if it cannot be a candidate here.

        A commit that its host does not keep may be any of this clone's, and a secret.
        """
        history = self.run.history
        if not isinstance(event, Evaluated) or event.candidate in self._refused or event.candidate in history.phylogeny:
            return None
        value = event.evaluation.metrics.get(history.metric.name, math.nan)
        ranks = math.isfinite(value) and _ranks(event.evaluation, history.split) and event.candidate in stranger.held
        if not ranks or self.run.repository.tree_if_there(event.candidate) is None:
            return None
        return (value if history.metric.direction == "maximize" else -value), event.candidate

    def _add(self, host: str, worth: float, commit: str) -> bool:
        """Have a candidate evaluated, if it is said to be better than the last, and an agent could have proposed it."""
        adding = Adding(self.run, MAX_BYTES)
        if worth <= self._claimed.get(host, -math.inf):
            return False
        try:
            value = worth if self.run.history.metric.direction == "maximize" else -worth
            reason = f"said to be {value:.10g} by {host}, whose journal does not count here"
            adding.check(commit)
            if self.run.repository.is_own(commit):
                raise RefusedError("a branch, tag or stash of this clone has it, so it may be private")
            own = None if adding.known(commit) else self._copied(commit, f"{TITLE}{host}, said to be {value:.10g}")
            entry = adding.add(own, reason) if own else None
        except (RefusedError, RepositoryError):
            self._refused.add(commit)
            return False
        if own is None or entry is None:
            return False
        self._claimed[host] = worth
        return True

    def _copied(self, commit: str, title: str) -> str:
        """Return a commit with the same files on the candidates before it, without the rest of its past."""
        history, repository = self.run.history, self.run.repository
        parents = tuple(each for each in repository.branches.parents(commit) if each in history.phylogeny)[:2]
        return repository.commit(
            repository.tree_of(commit),
            parents or (history.seed or "",),
            author=HUMAN,
            time=int(time.time()),
            title=title,
            trailers={"Agent": HUMAN, "Operator": "human"},
        )


def _ranks(told: Evaluation, split: str) -> bool:
    return told.ok and told.split == split and told.repeat == 0
