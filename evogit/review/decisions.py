"""What people decide about the graph: what it would change, whether it is possible, and writing it down."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from evogit.core import RefusedError
from evogit.events import Decision, Entry
from evogit.history import History
from evogit.history.carriers import CarriedCode, Carriers
from evogit.history.context import StoredRun
from evogit.history.standing import places
from evogit.history.state import standing
from evogit.repository import Repository
from evogit.review.json_records import SCHEMA, Record
from evogit.review.runs import agents


class Effect(Struct, frozen=True, kw_only=True):
    """What a decision changes: candidates by id, and the individuals of agents as name -> (before, after)."""

    pruned: frozenset[str]
    restored: frozenset[str]
    promoted: frozenset[str]
    demoted: frozenset[str]
    best: tuple[str | None, str | None]
    moved: dict[str, tuple[str, str]]


def effect(history: History, decision: Decision) -> Effect:
    """Return the effects of `decision` if it were made now. Raises RefusedError: it cannot be made."""
    if obstacle := _obstacle(history, decision):
        raise RefusedError(obstacle)
    after = history.after(decision)
    heads = {agent: (history.head(agent), after.head(agent)) for agent in agents(history)} if history.seed else {}
    return Effect(
        pruned=frozenset(after.pruned - history.pruned),
        restored=frozenset(history.pruned - after.pruned),
        promoted=frozenset(after.promoted - history.promoted),
        demoted=frozenset(history.promoted - after.promoted),
        best=(history.best, after.best),
        moved={agent: pair for agent, pair in heads.items() if pair[0] != pair[1]},
    )


def decide(run: StoredRun, decision: Decision) -> Entry:
    """Append the decision to the run's journal; what came to carry the code since the plan was made is pruned, too.

    Raises:
        RefusedError: it cannot be made, or no longer.
    """
    planned = run.history.seq
    run.journal.refresh()
    if decision.carriers is not None and run.history.seq != planned:
        decision, _ = follow_code(run.repository, run.history, decision, carriers=True)
    entry = run.journal.append(decision, unless=lambda: bool(_obstacle(run.history, decision)))
    if entry is None:
        raise RefusedError(_obstacle(run.history, decision))
    return entry


# --- in words and records -----------------------------------------------------------------------------------------


def consequences(history: History, decision: Decision, change: Effect) -> Iterator[str]:
    """What a decision changes, a sentence each; foreign text in them is as it was written."""
    if decision.kind == "guide":
        yield "joins every later brief, beside what people said before"
    if decision.kind == "note":
        yield "people see it; nothing else changes"
    moves = [
        (change.pruned, "no longer a parent"),
        (change.restored, "may be parents again"),
        (change.promoted, "favoured as a parent"),
        (change.demoted, "no longer favoured"),
    ]
    for commits, what in moves:
        if commits:
            yield f"{len(commits):,} candidate{'s' * (len(commits) != 1)}: {what}"
    old, new = change.best
    if old != new:
        yield f"the best becomes {_named(history, new) if new else 'none'}"
    for agent, (_, after) in change.moved.items():
        yield f"{agent} goes on from {_named(history, after)}"


MAX_NAMED = 5
"""Candidates that a plan names, of those that have pruned code by themselves."""


def follow_code(
    repository: Repository, history: History, decision: Decision, *, carriers: bool
) -> tuple[Decision, list[str]]:
    """Return a `prune`, with `carriers` those of the code, and what it means for these, a sentence each."""
    if not decision.subtree and not carriers:
        return decision, []
    found = CarriedCode(repository, history).of(decision.candidates[0])
    if carriers:
        decision = replace(decision, carriers=found.copies)
    return decision, [*_carrier_words(history, decision, found)]


def _carrier_words(history: History, decision: Decision, found: Carriers) -> Iterator[str]:
    after = history.after(decision)
    if decision.carriers is not None:
        yield "what copies its code later is refused"
    elif left := [commit for commit in found.copies if commit not in after.pruned]:
        carry = "1 other candidate carries" if len(left) == 1 else f"{len(left):,} other candidates carry"
        best = ", the best among them" if after.best in left else ""
        yield f"{carry} its code{best}: prune these too, and refuse later copies, with --carriers"
    if alone := [commit for commit in found.independent if commit not in after.pruned]:
        names = ", ".join(commit[:7] for commit in alone[:MAX_NAMED]) + ", ..." * (len(alone) > MAX_NAMED)
        yield f"{len(alone):,} with the same code did not copy it and stay{'s' * (len(alone) == 1)}: {names}"


def said_of(history: History, commit: str) -> Iterator[str]:
    """What people decided about a candidate and the reviewer said of it, and why, a sentence each."""
    for entry in history.in_force():
        decision = entry.event
        if isinstance(decision, Decision) and commit in (*decision.candidates, *(decision.carriers or ())):
            reason = decision.reason.partition("\n")[0]
            origin = "" if commit in decision.candidates else f", as it carries code of {decision.candidates[0][:7]}"
            yield f"{decision.kind} by {decision.by}{origin}: {reason}"
    if (review := history.reviews.get(commit)) and review.verdict != "refused":
        yield f"{review.verdict} by {review.model}: {review.reason}".rstrip(": ")


def decision_record(entry: Entry, in_force: bool) -> Record:
    """A decision for machines."""
    assert isinstance(entry.event, Decision)
    return {**told_record(entry.event), "decision": entry.id, "time": entry.time, "in_force": in_force}


def told_record(decision: Decision) -> Record:
    """What a person says; `decision` is None as long as it is not made."""
    named: Record = {
        "candidates": list(decision.candidates),
        "subtree": decision.subtree,
        "undoes": decision.undoes or None,
    }
    named["carriers"] = None if decision.carriers is None else list(decision.carriers)
    said = {"kind": decision.kind, "by": decision.by, "reason": decision.reason, "time": None}
    return {"schema": SCHEMA, "decision": None, **said, **named, "in_force": False}


def changes_record(change: Effect) -> Record:
    """What a decision changes, for machines."""
    sets = {name: sorted(getattr(change, name)) for name in ("pruned", "restored", "promoted", "demoted")}
    moved = [{"agent": agent, "from": before, "to": after} for agent, (before, after) in change.moved.items()]
    return {"changes": {**sets, "best": dict(zip(("from", "to"), change.best, strict=True)), "moved": moved}}


def _named(history: History, commit: str) -> str:
    value = history.fitness(commit)
    score = "" if value is None else f"  {value:,.{places(history)}f}"
    return f"{commit[:7]}{score}  {history.phylogeny[commit].title}"


# --- what stands in the way -----------------------------------------------------------------------------------------


def _obstacle(history: History, decision: Decision) -> str:
    if decision.kind == "undo":
        undoes = decision.undoes
        found = next((entry for entry in standing(history.decisions) if entry.id == undoes), None)
        if found is not None:
            stop = isinstance(found.event, Decision) and found.event.kind == "stop"
            return "a stop cannot be undone; go on with `evogit run`" if stop else ""
        if any(entry.id == undoes for entry in history.decisions):
            return f"the decision {undoes[:7]} was undone already; see `evogit log --decisions`"
        return f"expected a decision of the run {history.run}, got {undoes[:7]!r}; see `evogit log --decisions`"
    if decision.kind == "guide":
        return "" if decision.reason else "expected a text that guides the agents, got only blanks"
    if decision.kind in ("stop", "land"):  # what they need is looked at by who makes them
        return ""
    commit = decision.candidates[0]
    short = commit[:7]
    if commit not in history.phylogeny:
        return f"expected a candidate of the run {history.run}, got {short}; see `evogit log`"
    if decision.kind == "note":
        return ""
    if decision.kind == "promote":
        if commit in history.promoted:
            return f"{short} is promoted already; see `evogit log --decisions`"
        if commit in history.pruned:
            return f"{short} is pruned; undo that first, see `evogit log --decisions`"
        if history.fitness(commit) is None:
            return f"{short} has no valid evaluation, so there is nothing to favour; see `evogit show {short}`"
        return ""
    if commit == history.seed:
        return f"{short} is the seed, which every candidate descends from; prune one of its children instead"
    everything = history.phylogeny.descendants(commit) if decision.subtree else {commit}
    is_followed = decision.carriers is None or commit in history.quarantined
    done = is_followed and everything.union(decision.carriers or ()) <= history.pruned
    return f"{short} is pruned already; see `evogit log --decisions`" if done else ""
