"""A run that begins where another one was at some moment: a position in the journals is a whole run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evogit.core import NotFoundError, RefusedError, UsageError
from evogit.events import Entry, Evaluated, Forked, RunStarted
from evogit.history import History
from evogit.repository import Repository, check_run_name
from evogit.review.runs import resolve

SHORTEST = 4
"""Digits of an abbreviated id, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """The run `run` as it would begin: with the `entries` of `origin`, from which `history` is made."""

    run: str
    origin: str
    entries: Sequence[Entry] = field(repr=False)
    history: History = field(repr=False)


def plan(repository: Repository, origin: str | None, at: str, run: str) -> Fork:
    """Return the fork `run` of the run `origin` (None: the only one) at one of its moments; nothing is written.

    `at` is an entry's id, `@N` (when N candidates were evaluated), or a candidate as anywhere else: the moment after it
    was evaluated. Ids may be abbreviated.

    Raises:
        NotFoundError: there is no such run or moment.
        RefusedError: the new run is there already, or Git has no room for it.
        UsageError: the origin is not named and there are several, or the name is not a run's.
    """
    if check_run_name(run) in repository.runs():
        raise RefusedError(
            f"the run {run!r} is there already: go on with it without --at, or choose another --name for the new one"
        )
    repository.check_room(run)
    runs = repository.runs()
    if origin is None and len(runs) > 1:
        raise UsageError(f"{repository.path} has several runs; name the one to begin from: --at {runs[0]}:ENTRY")
    if not runs or origin not in (None, *runs):
        raise NotFoundError(
            f"expected a run to begin from, got {origin or 'none'}; there is {', '.join(runs) or 'none'}"
        )
    return _until(repository, origin or runs[0], at, run)


def past(repository: Repository, run: str, at: str) -> History:
    """A run as it was at one of its moments. Raises NotFoundError, UsageError: `at` is none."""
    return _until(repository, run, at, run).history


def _until(repository: Repository, origin: str, at: str, run: str) -> Fork:
    entries = list[Entry]()
    repository.journal(origin, entries.append)
    end = _moment(History(origin), entries, at)
    shared = [entry for entry in entries if entry.seq <= end.seq]
    history = History(run)
    history.extend(shared)
    return Fork(run=run, origin=origin, entries=shared, history=history)


def make(repository: Repository, fork: Fork) -> None:
    """Let the new run begin, whole by itself. Raises RefusedError: one of that name was made meanwhile."""
    tips = {entry.host: entry.id for entry in fork.entries}
    last = fork.entries[-1]
    forked = Forked(run=fork.origin, entry=last.id, population=repository.population(fork.run))
    starts = (entry.event for entry in fork.entries)
    repository.keys.take_over(fork.origin, fork.run, (event for event in starts if isinstance(event, RunStarted)))
    if not repository.fork(fork.run, tips, forked, last.seq + 1):
        raise RefusedError(f"a run {fork.run!r} was begun just now; choose another --name")


def _moment(history: History, entries: Sequence[Entry], at: str) -> Entry:
    if at.startswith("@"):
        if not re.fullmatch("@[0-9]{1,9}", at) or at == "@0":
            raise UsageError(f"expected @N with a number of evaluations from 1 on, got {at!r}")
        for entry in entries:
            history.apply(entry)
            if history.counts.evaluated >= int(at[1:]):
                return entry
        amount = history.counts.evaluated
        raise NotFoundError(f"expected a moment of {history.run}, got {at}; it has {amount} evaluations")
    named = [entry for entry in entries if len(at) >= SHORTEST and entry.id.startswith(at.lower())]
    history.extend(entries)
    if not named:
        return _evaluated(history, entries, resolve(history, at).commit)
    candidates = history.phylogeny.starting_with(at) if re.fullmatch("[0-9a-fA-F]+", at) else []
    if len(named) > 1 or candidates:
        raise NotFoundError(f"{at!r} is the beginning of several ids; give more digits")
    return named[0]


def _evaluated(history: History, entries: Sequence[Entry], commit: str) -> Entry:
    for entry in entries:
        match entry.event:
            case Evaluated(candidate=judged, evaluation=found) if judged == commit and found.counts:
                if (found.split, found.repeat) == (history.split, 0):
                    return entry
    raise NotFoundError(f"{commit[:7]} is not evaluated yet, so there is no moment after it")
