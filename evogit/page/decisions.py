"""What a person decides on the page: the plan first, then the decision; by the same code as the command line."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from evogit.core import Candidate, NotFoundError, RefusedError, UsageError
from evogit.events import Compared, Decision, Entry
from evogit.history import History
from evogit.history.standing import places
from evogit.page.payload import FollowedRun, Record
from evogit.repository import clean
from evogit.review.crossing import cross, propose_crossed
from evogit.review.decisions import consequences, decide, effect, follow_code
from evogit.review.judging import say
from evogit.review.landing import follow_undo, prepare
from evogit.text import number

LONGEST = 2_000  # characters of a reason
LONGEST_KEY = 100  # characters by which a decision is known when it is sent again
MOST_ANSWERED = 100  # decisions, the latest ones, that may be sent again

MARKING = ("promote", "prune", "note")

STRATEGY = "fitter"
"""How conflicts are settled when a person merges on the page."""


class StalePlanError(RefusedError):
    """The plan that a person agreed to is not what would happen now; `plan` is."""

    def __init__(self, plan: Record) -> None:
        super().__init__("something changed meanwhile")
        self.plan = plan


class Act(Struct, frozen=True):
    """What a person may do: in words what it changes, and doing it, which gives the entry if it is a decision."""

    words: list[str]
    do: Callable[[], Entry | None]
    command: str = ""

    @property
    def digest(self) -> str:
        """What tells this plan from another one."""
        return hashlib.sha256(json.dumps(self.words).encode()).hexdigest()[:16]

    def record(self, run: FollowedRun) -> Record:
        """The plan."""
        return {"words": self.words, "command": self.command, "digest": self.digest, "run": run.history.run}


def plan(run: FollowedRun, asked: Mapping[str, Any]) -> Record:
    """What a decision would change, in words. Raises EvoGitError: it cannot be made; the message says why."""
    return _act(run, asked).record(run)


def make(run: FollowedRun, asked: Mapping[str, Any]) -> Record:
    """Make a decision that a person agreed to, if it still is what they were shown; once, however often it is sent.

    Raises:
        StalePlanError: it is not.
        EvoGitError: it cannot be made; the message says why.
    """
    key = str(asked.get("key") or "")[:LONGEST_KEY]
    if not key:
        return _make(run, asked)
    if key not in run.answered:
        run.answered[key] = _make(run, asked)
        for old in list(run.answered)[:-MOST_ANSWERED]:
            del run.answered[old]
    return run.answered[key]


def _make(run: FollowedRun, asked: Mapping[str, Any]) -> Record:
    act = _act(run, asked)
    if asked.get("digest") != act.digest:
        raise StalePlanError(act.record(run))
    entry = act.do()
    words, taken_back = list(act.words), ""
    if entry and isinstance(entry.event, Decision):
        if entry.event.kind == "undo":
            words += filter(None, [follow_undo(run.repository, run.history, entry.event.undoes)])
        elif entry.event.kind != "stop":
            taken_back = entry.id
    undo = f"evogit undo {taken_back[:7]}" if taken_back else None
    return {"words": words, "decision": taken_back or None, "undo": undo}


def _act(run: FollowedRun, asked: Mapping[str, Any]) -> Act:
    run.run.journal.refresh()
    kind = asked.get("kind")
    if kind in MARKING:
        candidate = _candidate(run, asked, "index")
        subtree = kind == "prune" and asked.get("subtree") is True
        decision = _decision(run, kind, asked, candidates=(candidate.commit,), subtree=subtree)
        carriers = kind == "prune" and asked.get("carriers") is True
        decision, remarks = follow_code(run.repository, run.history, decision, carriers=carriers)
        return _deciding(run, decision, _told(run.history, candidate), remarks)
    if kind == "guide":
        return _deciding(run, _decision(run, kind, asked), "all agents")
    if kind == "undo":
        return _undo(run, asked)
    if kind == "stop":
        return _stop(run, asked)
    if kind in ("merge", "graft"):
        return _crossing(run, kind, asked)
    if kind == "judge":
        return _judging(run, asked)
    if kind == "land":
        return _landing(run, _candidate(run, asked, "index"))
    raise UsageError(f"expected a kind of decision, got {kind!r}")


def _reason(asked: Mapping[str, Any]) -> str:
    reason = asked.get("reason", "")
    if not isinstance(reason, str) or len(reason) > LONGEST:
        raise UsageError(f"expected a reason of at most {LONGEST:,} characters")
    return clean(reason)


def _candidate(run: FollowedRun, asked: Mapping[str, Any], name: str) -> Candidate:
    index = asked.get(name)
    found = run.candidate(index) if type(index) is int else None
    if found is None:
        raise NotFoundError(f"expected the number of a candidate as {name}, got {index!r}")
    return found


def _told(history: History, candidate: Candidate) -> str:
    value = history.fitness(candidate.commit)
    score = "" if value is None else f" ({number(value, places(history))})"
    return f"{candidate.commit[:7]}{score} {candidate.title}"


def _decision(run: FollowedRun, kind: Any, asked: Mapping[str, Any], **rest: Any) -> Decision:
    return Decision(kind=kind, by=run.repository.user, reason=_reason(asked), **rest)


def _deciding(run: FollowedRun, decision: Decision, about: str, remarks: Iterable[str] = ()) -> Act:
    change = effect(run.history, decision)
    words = [f"{decision.kind} {about}", *consequences(run.history, decision, change), *remarks]
    return Act(words, lambda: decide(run.run, decision))


def _undo(run: FollowedRun, asked: Mapping[str, Any]) -> Act:
    wanted = asked.get("decision") or ""
    known = [each for each in run.history.in_force() if cast(Decision, each.event).kind != "stop"]
    own = [entry for entry in known if cast(Decision, entry.event).kind != "refuse"]  # not a reviewer's refusal
    found = [each for each in known if each.id == wanted] if wanted else own[-1:]
    if not found:
        raise NotFoundError("there is no such decision in force; the list of decisions is on the page of the run")
    undone = cast(Decision, found[0].event)
    about = " ".join([undone.kind, *(each[:7] for each in undone.candidates)])
    decision = _decision(run, "undo", asked, undoes=found[0].id)
    return _deciding(run, decision, f"{about}: {undone.reason}")


def _stop(run: FollowedRun, asked: Mapping[str, Any]) -> Act:
    at_work = run.repository.engines(run.history.run).alive()
    if not at_work:
        raise RefusedError("no engine is at work on this run, so there is nothing to stop")
    words = [f"stop {len(at_work)} engine{'s' * (len(at_work) != 1)}", "`evogit run` resumes the run"]
    return Act(words, lambda: decide(run.run, _decision(run, "stop", asked)))


def _crossing(run: FollowedRun, how: Any, asked: Mapping[str, Any]) -> Act:
    one, other = _candidate(run, asked, "index"), _candidate(run, asked, "other")
    parents = (one, other) if how == "merge" else (other, one)
    crossed = asyncio.run(cross(run.repository, run.history, how, parents, STRATEGY, 0))

    def do() -> None:
        propose_crossed(run.run, crossed, _reason(asked))

    if crossed.known:
        raise RefusedError(f"that would be {crossed.known[:7]}, which is there already")
    first, second = (_told(run.history, each) for each in parents)
    conflicts = crossed.merged.conflicts
    settled = f", settled by the fitter one, {crossed.fitter.commit[:7]}" if conflicts else ""
    words = [
        f"{how}: {first} {'with' if how == 'merge' else 'gets the step to'} {second}",
        f"{conflicts} conflict{'s' * (conflicts != 1)}{settled}",
        "it awaits its evaluation by an engine",
    ]
    return Act(words, do)


def _judging(run: FollowedRun, asked: Mapping[str, Any]) -> Act:
    one, other = _candidate(run, asked, "index"), _candidate(run, asked, "other")
    verdict = asked.get("verdict")
    verdicts = {"a": "is better than", "b": "is worse than", "tie": "is as good as"}
    joint = verdicts.get(verdict if isinstance(verdict, str) else "", "is to be compared with")

    def do() -> None:
        if verdict not in verdicts:
            raise UsageError(f"expected one of {', '.join(verdicts)} as verdict, got {verdict!r}")
        who, winner = run.repository.user, cast(Literal["a", "b", "tie"], verdict)
        reason = _reason(asked)
        say(run.run, Compared(judge=who, by="person", a=one.commit, b=other.commit, winner=winner, reason=reason))

    return Act([f"{_told(run.history, one)} {joint} {_told(run.history, other)}"], do)


def _landing(run: FollowedRun, candidate: Candidate) -> Act:
    """Only the plan: landing evaluates, and asks the person at a terminal."""
    landing = asyncio.run(prepare(run.repository, run.history, candidate, None, squash=True))
    target = landing.target.removeprefix("refs/heads/")
    words = [
        f"land {_told(run.history, candidate)}",
        f"onto {target} ({landing.tip[:7]}), as one commit",
        f"{len(landing.paths)} file{'s' * (len(landing.paths) != 1)}: {', '.join(landing.paths[:5])}",
        "the command evaluates the result on exactly that tree, says what it found, and asks",
    ]

    def do() -> None:
        raise RefusedError("landing is done by the command, which asks at the terminal")

    return Act(words, do, command=f"evogit land {candidate.commit[:7]} --squash --name {run.history.run}")
