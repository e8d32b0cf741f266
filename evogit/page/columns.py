"""The candidates of a run as columns of numbers, as docs/design/page.md describes them."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evogit.core import Candidate
from evogit.history import History
from evogit.history.course import Moment
from evogit.review.json_records import finite

PREFIX = 4
"""Bytes of an id that the browser knows before somebody asks for the candidate."""

EXACT = 20_000
"""Candidates up to which values have all their digits; of more than that they are most of what is sent."""

DIGITS = 11
"""Of the values of larger runs."""

BILLION = 10**9
"""Parts of a dollar in which money is told: whole numbers add up exactly."""

NAMES = ("agents", "operators", "strategies", "models", "statuses", "hosts")

WAITING = "waiting"
"""The status of what is not evaluated yet, the first of all."""


class Names:
    """Each text once, and its number; the browser is told the new ones only."""

    def __init__(self, first: Sequence[str] = ()) -> None:
        self._numbers = {text: number for number, text in enumerate(first)}
        self._told = 0

    def number(self, text: str) -> int:
        """The number of a text, a new one for a new text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """All texts by number."""
        return list(self._numbers)

    def new(self) -> list[str]:
        """Those that came since this was asked last."""
        new = list(self._numbers)[self._told :]
        self._told = len(self._numbers)
        return new


NEVER = Moment(evaluations=0, proposals=0, elapsed=-1, tokens=-1, dollars=None)


@dataclass(slots=True)
class Columns:
    """Writes candidates of a history as columns, and changed ones as rows."""

    history: History
    names: dict[str, Names] = field(default_factory=lambda: {name: Names() for name in NAMES})

    def __post_init__(self) -> None:
        self.names["statuses"].number(WAITING)

    def of(self, first: int = 0) -> dict[str, Any]:
        """The candidates from the index `first` on."""
        history = self.history
        known = list(history.phylogeny)[first:]
        began = list(history.phylogeny)[first - 1].time if first else history.span[0]
        times = [began, *(each.time for each in known)]
        moments = [self.history.course.moments.get(each.commit) or NEVER for each in known]
        return {
            "amount": len(known),
            "first": first,
            "id": base64.b64encode(b"".join(bytes.fromhex(each.commit[: 2 * PREFIX]) for each in known)).decode(),
            "time": [time - before for before, time in zip(times, times[1:], strict=False)],
            "parent": [each.number - self._index(each.parents[0]) if each.parents else 0 for each in known],
            "agent": self._numbers("agents", (each.agent for each in known)),
            "operator": self._numbers("operators", (each.operator for each in known)),
            "strategy": self._numbers("strategies", (each.strategy for each in known)),
            "model": self._numbers("models", (history.authors.wrote.get(each.commit, "") for each in known)),
            "status": self._numbers("statuses", (self._status(each.commit) for each in known)),
            "host": self._hosts(known),
            "value": [self._value(each.commit) for each in known],
            "margin": _sparse(known, self._margin),
            "holdout": _sparse(known, self._holdout),
            "evaluated": [
                each.evaluations - at if each.evaluations else None for at, each in enumerate(moments, first)
            ],
            "elapsed": _steps(_known(each.elapsed) for each in moments),
            "dollars": _steps(None if each.dollars is None else round(each.dollars * BILLION) for each in moments),
            "tokens": _steps(_known(each.tokens) for each in moments),
            "second": _sparse(known, lambda each: [self._index(parent) for parent in each.parents[1:]]),
            "inspiration": _sparse(known, self._inspirations),
        }

    def row(self, candidate: Candidate) -> dict[str, Any]:
        """What may have changed of a candidate since it was told."""
        commit, moment = candidate.commit, self.history.course.moments.get(candidate.commit) or NEVER
        return {
            "index": candidate.number,
            "status": self.names["statuses"].number(self._status(commit)),
            "value": finite(self.history.fitness(commit)),
            "margin": self._margin(candidate),
            "holdout": self._holdout(candidate),
            "evaluated": moment.evaluations,
            "elapsed": moment.elapsed,
            "dollars": None if moment.dollars is None else round(moment.dollars * BILLION) / BILLION,
            "tokens": max(moment.tokens, 0),
        }

    def _value(self, commit: str) -> float | None:
        value = finite(self.history.fitness(commit))
        many = len(self.history.phylogeny) > EXACT
        return float(f"{value:.{DIGITS}g}") if many and value is not None and abs(value) < 10**DIGITS else value

    def _index(self, commit: str) -> int:
        return self.history.phylogeny.numbers[commit]

    def _numbers(self, kind: str, texts: Iterable[str]) -> list[int]:
        number = self.names[kind].number
        return [number(text) for text in texts]

    def _hosts(self, known: Sequence[Candidate]) -> list[int]:
        """Nothing while all are of the first host, as of most runs."""
        numbers = self._numbers("hosts", (each.host for each in known))
        return numbers if any(numbers) else []

    def _status(self, commit: str) -> str:
        if self.history.fitness(commit) is not None:
            return "ok"
        evaluation = self.history.evaluation(commit) or self.history.former(commit)
        return evaluation.status if evaluation and evaluation.counts else WAITING

    def _margin(self, candidate: Candidate) -> float | str | None:
        margin = self.history.scores.margin(candidate.commit)
        if not margin:
            return None
        return margin if math.isfinite(margin) else "unknown"

    def _holdout(self, candidate: Candidate) -> list[float | None] | None:
        history, commit = self.history, candidate.commit
        held = commit in history.beside.get("holdout", ())
        found = history.evaluation(commit, "holdout") if held else None
        if found is None or not found.ok:
            return None
        low, high = history.interval(commit, "holdout") or (None, None)
        value = finite(found.metrics.get(history.metric.name))
        return [value, None, None] if low == high else [value, finite(low), finite(high)]

    def _inspirations(self, candidate: Candidate) -> list[int]:
        return [self._index(each) for each in self.history.inspirations.get(candidate.commit, ())]


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _steps(totals: Iterable[int | None]) -> list[int | None]:
    """Each total as the difference to the one before; None where there is none."""
    steps, last = list[int | None](), 0
    for total in totals:
        steps.append(None if total is None else total - last)
        last = last if total is None else total
    return steps


def _sparse(known: Sequence[Candidate], of: Any) -> dict[int, Any]:
    """Index -> value, of those that have one."""
    return {each.number: found for each in known if (found := of(each))}
