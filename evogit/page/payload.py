"""A run as a page has it: all of it once, and then what came since."""

from __future__ import annotations

import base64
import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import astuple

from evogit.core import HOLDOUT, Candidate
from evogit.events import Compared, Decision, Entry, Evaluated, Reviewed, RunStarted, TaskChanged
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.counts import Moment
from evogit.history.standing import WAITING, Standing, Verdict, places, standing
from evogit.repository import Repository
from evogit.review.forecast import doing
from evogit.review.json_records import SCHEMA, finite

KEPT = 400
"""Deltas that are kept for who lost the connection for a moment."""

Record = dict[str, Any]

Stood = tuple[float | None, str, float | None, Verdict | None]
"""Score, interval, gain and verdict of a candidate."""


PREFIX = 4  # bytes of an id that the browser knows before somebody asks for the candidate
EXACT = 20_000  # candidates up to which values have all their digits; of more than that they are most of what is sent
DIGITS = 11  # of the values of larger runs

BILLION = 10**9
"""Parts of a dollar in which money is told: whole numbers add up exactly."""

GAIN_DIGITS = 8
"""Of the gains of larger runs."""

NAMES = ("agents", "operators", "strategies", "models", "families", "statuses", "verdicts", "hosts")


class Names:
    """Each text once, and its number; the browser is told the new ones only."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
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
        hosts = self._numbers("hosts", (each.host for each in known))
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
            "family": self._numbers("families", (each.family for each in known)),
            "status": self._numbers("statuses", (each.status for each in stands)),
            "host": hosts if any(hosts) else [],
            "value": [self._value(each) for each in stands],
            "margin": {each.number: told for each, at in zip(known, stands, strict=True) if (told := _margin(at))},
            "gain": [self._gain(each) for each in stands],
            "verdict": self._numbers("verdicts", (each.mark + (each.verdict or "") for each in stands)),
            "holdout": _sparse(known, self._holdout),
            "evaluated": [
                each.evaluations - at if each.evaluations else None for at, each in enumerate(moments, first)
            ],
            "elapsed": _differences(_known(each.elapsed) for each in moments),
            "dollars": _differences(
                None if each.dollars is None else round(each.dollars * BILLION) for each in moments
            ),
            "tokens": _differences(_known(each.tokens) for each in moments),
            "second": _sparse(known, lambda each: [self._index(parent) for parent in each.parents[1:]]),
            "inspiration": _sparse(
                known, lambda each: [self._index(other) for other in history.inspirations.get(each.commit, ())]
            ),
        }

    def row(self, candidate: Candidate) -> dict[str, Any]:
        """Return the columns of a candidate that may have changed since it was sent."""
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

    def _holdout(self, candidate: Candidate) -> list[float | None] | None:
        history, commit = self.history, candidate.commit
        held = commit in history.beside.get("holdout", ())
        found = history.evaluation(commit, "holdout") if held else None
        if found is None or not found.ok:
            return None
        low, high = history.interval(commit, "holdout") or (None, None)
        value = finite(found.metrics.get(history.metric.name))
        return [value, None, None] if low == high else [value, finite(low), finite(high)]


def _margin(known: Standing) -> float | str | None:
    if not known.margin:
        return None
    return known.margin if math.isfinite(known.margin) else "unknown"


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _differences(totals: Iterable[int | None]) -> list[int | None]:
    steps, last = list[int | None](), 0
    for total in totals:
        steps.append(None if total is None else total - last)
        last = last if total is None else total
    return steps


def _sparse(known: Sequence[Candidate], of: Any) -> dict[int, Any]:
    return {each.number: found for each in known if (found := of(each))}


class FollowedRun:
    """A run that another process may be writing, of which a browser is told, and what it was told.

    What `payload` tells is always where a delta of `advance` begins. Not for two threads at once.

    Attributes:
        paths: what candidates changed, by id, of those of which it was asked.
        answered: what was told of decisions, by the key that the page sent with each.
    """

    def __init__(self, repository: Repository, name: str) -> None:
        """Read all of the run.

        Raises:
            RepositoryError: a journal is damaged.
            RefusedError: a record was written by a newer version.
        """
        self.run = StoredRun.open(repository, name)
        self.run.journal.subscribe(self._take)
        self.repository = repository
        self.history = self.run.history
        self.entries = self.run.entries
        self.paths: dict[str, tuple[str, ...]] = {}
        self.answered: dict[str, Record] = {}
        self._columns = Columns(self.history)
        self._changed: dict[str, None] = {}
        self._all_changed = False
        self._stood: list[Stood] = []
        self._deltas: deque[Record] = deque(maxlen=KEPT)
        self._untold: deque[Record] = deque(maxlen=KEPT)
        self._amount = 0
        self._remember({**self._state(), "marks": self._marks(), "best_course": self._best_course()})

    def candidate(self, index: int) -> Candidate | None:
        """The candidate of that number; None where there is none."""
        known = list(self.history.phylogeny)
        return known[index] if 0 <= index < len(known) else None

    # --- reading --------------------------------------------------------------------------------------------------

    def _take(self, entry: Entry) -> None:
        self.entries += 1
        if isinstance(entry.event, Evaluated | Reviewed):
            self._changed[entry.event.candidate] = None
        lifts = isinstance(entry.event, Decision) and entry.event.kind == "undo"  # a refusal, perhaps
        self._all_changed |= lifts or isinstance(entry.event, Compared | TaskChanged | RunStarted)

    # --- telling --------------------------------------------------------------------------------------------------

    def payload(self, *, read_only: bool) -> Record:
        """All of the run, as docs/design/page.md describes it."""
        history = self.history
        self.advance()
        columns = self._columns.of() if history.started else {"amount": 0}
        metric = history.metric if history.started else None
        return {
            "schema": SCHEMA,
            "run": history.run,
            "task": history.started.task if history.started else "",
            "goal": history.started.goal if history.started else "",
            "judged": history.started.judged if history.started else "outside",
            "split": history.split if history.started else "",
            "metric": {
                "name": metric.name if metric else "",
                "direction": metric.direction if metric else "maximize",
                "baseline": finite(metric.baseline) if metric else None,
                "best_known": finite(metric.best_known) if metric else None,
                "bound": metric is not None and metric.bound,
            },
            "places": places(history) if history.started else 4,
            "began": history.span[0],
            "read_only": read_only,
            "names": {kind: names.all() for kind, names in self._columns.names.items()},
            "candidates": columns,
            **self._told,
            "now": time.time(),
        }

    def advance(self) -> Record | None:
        """Read what came since, and tell it; None where nothing did."""
        self.run.journal.refresh()
        before, known, state = self._told, self._amount, self._state()
        if all(state[key] == before[key] for key in state):
            return None
        history = self.history
        now = {**state, "marks": self._marks(), "best_course": self._best_course()}
        delta: Record = {"after": before["position"], **now, "now": time.time()}
        if history.started:
            delta["added"] = self._columns.of(known)
            delta["titles"] = [each.title for each in list(history.phylogeny)[known:]]
            delta["changed"] = [self._columns.row(each) for each in self._rows(known)]
            delta["places"] = places(history)
        for name in ("marks", "best_course"):
            if delta[name] == before[name]:
                del delta[name]
        delta["names"] = {kind: names.new() for kind, names in self._columns.names.items()}
        self._remember(now)
        self._deltas.append(delta)
        self._untold.append(delta)
        return delta

    def news(self) -> list[Record]:
        """What those who follow were not told yet: what came since, and what somebody's `payload` had before them."""
        self.advance()
        told = list(self._untold)
        self._untold.clear()
        return told

    def since(self, position: int) -> list[Record] | None:
        """The deltas that lead on from a position, or tell what changed there; None: they are not known any more."""
        found = [delta for delta in self._deltas if delta["after"] >= position]
        if not found and position == self._told["position"]:
            return []
        return found if found and found[0]["after"] == position else None

    def _remember(self, told: Record) -> None:
        """What is told by now: never looked at again, as an engine may have ended since."""
        if self.history.started:
            self._columns.of(self._amount)  # which numbers the names
            self._stood = self._standings()
        for names in self._columns.names.values():
            names.new()
        self._amount = len(self.history.phylogeny)
        self._told = told
        self._changed.clear()
        self._all_changed = False

    def _rows(self, known: int) -> list[Candidate]:
        """The candidates told before of which something may be otherwise now."""
        phylogeny, history = self.history.phylogeny, self.history
        if self._all_changed:
            return list(phylogeny)[:known]
        touched = {commit: None for commit in self._changed if commit in phylogeny}
        for commit in list(touched) if touched else ():
            touched |= dict.fromkeys(phylogeny.children(commit))
        taken = {child for child, shown in history.inspirations.items() if not touched.keys().isdisjoint(shown)}
        now = zip(phylogeny.ids, self._stood, self._standings(), strict=False) if touched else ()
        touched |= dict.fromkeys(taken) | {commit: None for commit, before, after in now if before != after}
        if history.scores.repeats and touched:
            touched |= dict.fromkeys(history.beside.get(HOLDOUT, ()))
        return [each for commit in touched if (each := phylogeny[commit]).number < known]

    def _standings(self) -> list[Stood]:
        """Return how all stand, as far as it is seen, where a repeat may move all; nothing where scores are exact."""
        history, digits = self.history, places(self.history)
        known = (standing(history, commit) for commit in history.phylogeny.ids) if history.scores.repeats else ()
        return [(each.score, f"{each.margin:.{digits}f}", each.gain, each.verdict) for each in known]

    def _state(self) -> Record:
        """What differs when something is to be told; all that is looked at many times a second."""
        agents = doing(self.repository, self.history)
        return {"position": self.entries, "alive": agents is not None, "agents": agents or {}}

    def _best_course(self) -> list[tuple[Any, ...]]:
        return list(map(astuple, self.history.best_so_far()))

    def _marks(self) -> Record:
        history = self.history

        def index(commit: str | None) -> int | None:
            return history.phylogeny.numbers.get(commit) if commit else None

        def indices(commits: Any) -> list[int]:
            return sorted(history.phylogeny.numbers[commit] for commit in commits if commit in history.phylogeny)

        started = history.started is not None
        named = [each for entry in history.in_force() for each in getattr(entry.event, "candidates", ())]
        return {
            "seed": index(history.seed),
            "best": index(history.best) if started else None,
            "records": [history.phylogeny.numbers[each] for each in history.records] if started else [],
            "living": {agent: index(history.head(agent)) for agent in history.heads} if history.seed else {},
            "promoted": indices(history.promoted),
            "pruned": indices(history.pruned),
            "decided": indices(named),
        }
