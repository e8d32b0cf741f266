"""The candidates of a run as columns of numbers, as docs/design/page.md describes them."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evogit.core import Candidate
from evogit.history import History
from evogit.history.counts import Moment
from evogit.history.standing import WAITING, Standing, standing
from evogit.review.json_records import finite

PREFIX = 4
"""Bytes of an id that the browser knows before somebody asks for the candidate."""

EXACT = 20_000
"""Candidates up to which values have all their digits; of more than that they are most of what is sent."""

DIGITS = 11
"""Of the values of larger runs."""

BILLION = 10**9
"""Parts of a dollar in which money is told: whole numbers add up exactly."""

GAIN_DIGITS = 8
"""Of the gains of larger runs."""

NAMES = ("agents", "operators", "strategies", "models", "statuses", "verdicts", "hosts")


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
        self.names["statuses"].number(WAITING)  # these are 0
        self.names["verdicts"].number("")

    def of(self, first: int = 0) -> dict[str, Any]:
        """The candidates from the index `first` on."""
        history = self.history
        known = list(history.phylogeny)[first:]
        began = list(history.phylogeny)[first - 1].time if first else history.span[0]
        times = [began, *(each.time for each in known)]
        moments = [self.history.course.moments.get(each.commit) or NEVER for each in known]
        stands = [standing(history, each.commit) for each in known]
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
            "status": self._numbers("statuses", (each.status for each in stands)),
            "host": self._hosts(known),
            "value": [self._value(each) for each in stands],
            "margin": {each.number: told for each, at in zip(known, stands, strict=True) if (told := _margin(at))},
            "gain": [self._gain(each) for each in stands],
            "verdict": self._numbers("verdicts", (each.mark + (each.verdict or "") for each in stands)),
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
        history, commit = self.history, candidate.commit
        moment, known = history.course.moments.get(commit) or NEVER, standing(history, commit)
        return {
            "index": candidate.number,
            "status": self.names["statuses"].number(known.status),
            "value": finite(known.score),
            "margin": _margin(known),
            "gain": self._gain(known),
            "verdict": self.names["verdicts"].number(known.mark + (known.verdict or "")),
            "holdout": self._holdout(candidate),
            "evaluated": moment.evaluations,
            "elapsed": moment.elapsed,
            "dollars": None if moment.dollars is None else round(moment.dollars * BILLION) / BILLION,
            "tokens": max(moment.tokens, 0),
        }

    @property
    def _many(self) -> bool:
        return len(self.history.phylogeny) > EXACT

    def _value(self, known: Standing) -> float | None:
        value = finite(known.score)
        return float(f"{value:.{DIGITS}g}") if self._many and value is not None and abs(value) < 10**DIGITS else value

    def _gain(self, known: Standing) -> float | None:
        gain = finite(known.gain)
        return float(f"{gain:.{GAIN_DIGITS}g}") if self._many and gain is not None else gain

    def _index(self, commit: str) -> int:
        return self.history.phylogeny.numbers[commit]

    def _numbers(self, kind: str, texts: Iterable[str]) -> list[int]:
        number = self.names[kind].number
        return [number(text) for text in texts]

    def _hosts(self, known: Sequence[Candidate]) -> list[int]:
        """Nothing while all are of the first host, as of most runs."""
        numbers = self._numbers("hosts", (each.host for each in known))
        return numbers if any(numbers) else []

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


def _margin(known: Standing) -> float | str | None:
    if not known.margin:
        return None
    return known.margin if math.isfinite(known.margin) else "unknown"


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
