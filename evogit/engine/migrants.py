"""Candidates of hosts without the run's key: what they claim is heard, and evaluated here before it counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from evogit.core import Evaluated, Evaluation, RefusedError, RepositoryError
from evogit.engine.people_commits import Adding
from evogit.history.context import StoredRun
from evogit.repository.remote import Remote

AT_ONCE = 8
"""Candidates that are taken in after one exchange at most, of each host one: each costs an evaluation here."""


SHARE = 0.1
"""Of all evaluations those that strangers may take up, or they could use up a limit by claims alone."""

TRIED = 3
"""Claims of one host that are looked at after one exchange, the highest ones, until one is fit to be added."""


@dataclass(slots=True)
class Migrants:
    """Adds the best that each stranger claims to have, as `evogit add` adds a commit of a person's.

    A claim only says what to look at first; one that is no better than an earlier one of that host is not looked at.
    """

    run: StoredRun
    remote: Remote
    _added: int = 0
    _claimed: dict[str, float] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def look(self) -> list[str]:
        """Add what is new; ids of the candidates that came."""
        found, history = list[str](), self.run.history
        if history.seed is None or not self.run.journal.key or self._added > SHARE * history.counts.evaluated:
            return found
        for host, events in self.remote.strangers():
            told = [each for each in events if isinstance(each, Evaluated)]
            claims = [(value, each.candidate) for each in told if (value := self._claim(each)) is not None]
            best = sorted(set(claims), reverse=True)[:TRIED]
            if added := next((commit for worth, commit in best if self._add(host, worth, commit)), None):
                found.append(added)
            if len(found) == AT_ONCE:
                break
        self._added += len(found)
        return found

    def _claim(self, event: Evaluated) -> float | None:
        """What somebody says that a candidate is worth, the more the better; None where it cannot be one here."""
        history, told = self.run.history, event.evaluation
        if event.candidate in self._refused or event.candidate in history.phylogeny or not _ranks(told, history.split):
            return None
        value = told.metrics.get(history.metric.name, math.nan)
        if not math.isfinite(value) or self.run.repository.tree_if_there(event.candidate) is None:
            return None
        return value if history.metric.direction == "maximize" else -value

    def _add(self, host: str, worth: float, commit: str) -> bool:
        """Have a candidate evaluated, if it is said to be better than the last, and an agent could have proposed it."""
        adding = Adding(self.run)
        if worth <= self._claimed.get(host, -math.inf):
            return False
        try:
            value = worth if self.run.history.metric.direction == "maximize" else -worth
            reason = f"said to be {value:.10g} by {host}, whose journal does not count here"
            added = adding.known(commit) is None and adding.add(commit, reason) is not None
        except (RefusedError, RepositoryError):
            self._refused.add(commit)
            return False
        self._claimed[host] = worth
        return added


def _ranks(told: Evaluation, split: str) -> bool:
    return told.ok and told.split == split and told.repeat == 0
