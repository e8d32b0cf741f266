"""Finds what a person names: a run of a repository, an agent, a candidate."""

from __future__ import annotations

import re
from typing import Literal

from evogit.config.custom_classes import is_own
from evogit.core import Candidate, NotFoundError, UsageError
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.run_keys import commitment
from evogit.text import one_line


def find_run(repository: Repository, name: str | None = None) -> str:
    """The run that is named, else the only one. Raises NotFoundError, UsageError: there is none, or several."""
    runs = repository.runs()
    if name is None and len(runs) > 1:
        raise UsageError(f"{repository.path} has several runs; name one with --name: {', '.join(runs)}")
    if not runs:
        raise NotFoundError(
            f"{repository.path} has no run yet; begin one with `evogit run TASK`, or `evogit run` with an evogit.toml"
        )
    if name is not None and name not in runs:
        raise NotFoundError(f"expected a run of {repository.path}, got {name!r}; there is {', '.join(runs)}")
    return name or runs[0]


def open_run(repository: Repository, name: str | None = None) -> StoredRun:
    """A run that was begun. Raises NotFoundError, UsageError: as `find_run` does."""
    return StoredRun.open(repository, find_run(repository, name))


def agents(history: History) -> list[str]:
    """The names of all agents that ever took part: `a2` before `a10`."""
    names = {agent for engine in history.engines.values() for agent in engine.agents} | history.heads.keys()
    return sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def kinds(history: History) -> dict[str, str]:
    """What each agent was when it was last at work: `mutator`, `editor@MODEL`, `FILE.py:Name`."""
    return {agent: kind for (_, agent), kind in history.past_kinds().items()}


def own_names(history: History) -> dict[str, str]:
    """The agents that are a person's own, and the names of their classes."""
    found = {agent: kind.rpartition(":") for agent, kind in kinds(history).items() if is_own(kind)}
    return {agent: name for agent, (_, _, name) in found.items()}


def resolve(history: History, revision: str) -> Candidate:
    """The candidate that `best`, `seed`, an agent or an id stands for. Raises NotFoundError: none, or several."""
    if revision in ("best", "seed"):
        commit = history.best if revision == "best" else history.seed
        if commit is None:
            lack = "no seed" if revision == "seed" else "no valid candidate"
            raise NotFoundError(f"the run has {lack} yet; see `evogit status`")
        return history.phylogeny[commit]
    known = agents(history)
    if revision in known:
        return history.phylogeny[history.head(revision)]
    if not re.fullmatch("[0-9a-fA-F]{4,}", revision):
        raise NotFoundError(
            f"expected best, seed, an agent ({', '.join(known)}) or the beginning of an id (4 digits or more), "
            f"got {revision!r}; see `evogit log`"
        )
    return history.phylogeny.find(revision)


HOST = 60  # characters of a host's name that are shown, which may be a stranger's choice
REASON = 300  # characters of why something cannot be read, which quotes it

Key = Literal["here", "elsewhere", ""]


def key_place(repository: Repository, history: History) -> Key:
    """Return where the key of a run is; "" if it has none, because it began before there were keys."""
    if history.started is None or not history.started.inputs:
        return ""
    return "here" if commitment(repository.keys.find(history.run)) == history.started.inputs else "elsewhere"


def origin_notes(run: StoredRun) -> list[str]:
    """Return warnings that the user must see before believing any score."""
    notes = [
        f"left out what {one_line(host, HOST)} wrote (entries: {number}), as it is not sealed with the key of the run "
        f"{run.history.run}: evogit/keys/{run.history.run} of this clone's Git folder"
        for host, number in run.journal.strangers.items()
    ]
    notes += [
        f"left out what {one_line(host, HOST)} wrote last in the run {run.history.run} (entries: {left.entries}), as "
        f"it cannot be read: {one_line(left.why, REASON)}"
        for host, left in run.journal.unreadable.items()
    ]
    claims = run.repository.keys.origin(run.history.run, run.history.first_start)
    run.repository.trust.offer(claims)
    notes += [f"not trusted here: {claim.effect}; if you trust it: evogit trust {claim.argument}" for claim in claims]
    if not claims and key_place(run.repository, run.history) == "elsewhere":
        others = ", ".join(one_line(host, HOST) for host in run.journal.hosts[1:]) or "elsewhere"
        notes.append(
            f"the run {run.history.run} was made by {others}, and this clone does not have its key: scores are as told "
            "there, and what is written here does not count there; `evogit verify` evaluates again"
        )
    return notes
