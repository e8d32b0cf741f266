"""Whether what a run's journals say comes from who may write to it."""

from __future__ import annotations

from typing import Literal

from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.run_keys import commitment
from evogit.text import one_line

HOST = 60
"""Characters of a host's name that are shown, which may be a stranger's choice."""

REASON = 300
"""Characters of why something cannot be read, which quotes it."""

Key = Literal["here", "elsewhere", ""]


def key_place(repository: Repository, history: History) -> Key:
    """Return where the key of a run is; "" if it has none, because it began before there were keys."""
    if history.started is None or not history.started.inputs:
        return ""
    return "here" if commitment(repository.keys.find(history.run)) == history.started.inputs else "elsewhere"


def origin_notes(run: StoredRun) -> list[str]:
    """What a person must know before believing any score that is shown."""
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
