"""What the journals say so far: a fold over their entries."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from evogit.config.values import REPEATS
from evogit.core import HUMAN, Evaluation
from evogit.events import (
    Adopted,
    Compared,
    Decision,
    Duplicate,
    Entry,
    Evaluated,
    Event,
    FailedProposal,
    Forked,
    Halted,
    Lesson,
    Proposed,
    Reserved,
    ReviewAsked,
    Reviewed,
    RunStarted,
    SessionEnded,
    Spent,
    StageBegun,
    Stopped,
    Tactic,
    TaskChanged,
)
from evogit.history.counts import Counts, Interruption, Outage, Spending
from evogit.history.state import FAILURES, HALTS, OUTAGE, ROUNDING, RunState, in_force, marked

__all__ = ["Counts", "History", "Spending"]


CHANGEABLE = ("task_digest", "metrics", "split", "evaluator", "judged", "editable", "withheld", "parts")
"""What a `task-changed` entry replaces of the first `run-started` one."""


class History(RunState):
    """The state of one run, rebuilt from its journals by `apply`, entry by entry, in the order of `seq`."""

    def extend(self, entries: Iterable[Entry]) -> None:
        """Apply entries in the given order."""
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Take in one more fact."""
        self.seq = max(self.seq, entry.seq)
        if not isinstance(entry.event, Decision | Lesson):  # people decide when it is over, too
            self.span = (self.span[0] or entry.time, max(self.span[1], entry.time))
        self.course.tick(entry)
        RULES[type(entry.event)](self, entry.event, entry)
        if self._best != self._best_noted and self.strengths is None:
            self._best_noted = self._best
            best = self.phylogeny.numbers[self._best] if self._best else None
            self.course.step(best, self.counts, self.spent)

    def after(self, event: Event) -> History:
        """The state if this happened now; this one stays as it is."""
        after = copy.copy(self)
        after.decisions = list(self.decisions)
        after.records = list(self.records)
        after.course = replace(self.course, steps=list(self.course.steps))
        after.apply(Entry(id="", host="", seq=self.seq + 1, time=self.span[1], event=event))
        return after

    def _run_started(self, event: RunStarted, entry: Entry) -> None:
        self.started = self.started or event
        self.engines[event.engine] = event
        kinds = self.past_kinds()
        self.ledger.mechanical = {key for key, kind in kinds.items() if kind == "mutator"} | {
            (engine, agent) for engine, start in self.engines.items() if start.imported for agent in start.agents
        }
        self.course.started = self.course.elapsed
        self.stopped = None
        self.paused = self.paused and bool(event.settings.get("join"))
        self.declared_repeats = event.repeats
        self.unmeasured = set()
        self._weigh_noise()
        reviewing = bool(event.settings.get("reviewer"))
        if reviewing != (self.reviewed_from is not None):
            self.reviewed_from = len(self.phylogeny) if reviewing else None
            self._find_best()
        if [each.scale for each in event.metrics] != [each.scale for each in self._first_start().metrics]:
            self._rescale(event)

    def _weigh_noise(self) -> None:
        """Count scores as exact or as noisy: as the task says, until what was evaluated again shows otherwise.

        They are exact while the seed and all others came out alike to the last digit, and noisy once one did not. Of
        what another system measured nothing can be evaluated again.
        """
        repeats, scores = self.declared_repeats, self.scores
        if scores.differing and not self._first_start().imported:
            repeats = repeats or REPEATS
        elif self._seems_exact:
            repeats = 0
        if repeats != self.repeats:
            self.repeats = scores.repeats = repeats
            self._find_best()

    @property
    def _seems_exact(self) -> bool:
        """Whether the seed came out alike as often as the task says, so that only other candidates can differ."""
        seed, scores = self.seed or "", self.scores
        alike = seed not in scores.differing and scores.repeated(seed) >= self.declared_repeats
        return alike and not scores.paired

    def _rescale(self, event: RunStarted) -> None:
        scales = {each.name: each.scale for each in event.metrics}
        metrics = tuple(replace(each, scale=scales.get(each.name, "")) for each in self._first_start().metrics)
        self.started = replace(self._first_start(), metrics=metrics)
        self.scores.declare(metrics)
        self._find_best()

    def _forked(self, event: Forked, entry: Entry) -> None:
        self.forked = event
        self.reserved = {}  # the other run counts what becomes of it
        self.inherited = copy.copy(self.spent)
        self.started = replace(self._first_start(), population=event.population)

    def _stopped(self, event: Stopped, entry: Entry) -> None:
        self.stopped = event

    def _proposed(self, event: Proposed, entry: Entry) -> None:
        if event.candidate in self.phylogeny:
            return
        candidate = event.as_candidate(time=entry.time, number=len(self.phylogeny))
        self.phylogeny.add(candidate)
        self.trees.setdefault(event.tree, event.candidate)
        if event.fingerprint:
            self.fingerprints.setdefault(event.fingerprint, event.candidate)
        self._waiting[event.candidate] = candidate
        if event.kept and (session := (event.engine, event.move, event.agent)) not in self.begun_sessions:
            self.begun_sessions.add(session)
            self.counts.sessions += 1
        if event.measured:
            self.measured[event.candidate] = event.measured
        if event.evidence:
            self.sessions[event.candidate] = event.evidence
        if event.shown:
            self._showed(event)
        if event.rebased_from:
            self.rebased.setdefault(event.rebased_from, []).append(event.candidate)
            self.written_on[event.candidate] = event.rebased_from
        if event.tactic:
            self.advised[event.candidate] = event.tactic
        if event.operator == "seed":
            self.seed = self.seed or event.candidate
        elif event.agent == HUMAN:
            self.human.append(event.candidate)
        self._moved(event)
        if any(parent in self.pruned for parent in event.parents):
            self._apply_decisions()

    def _showed(self, event: Proposed) -> None:
        """Candidates that no journal proposes before this one, as where one is missing, are left out."""
        known = tuple(each for each in event.shown if each in self.phylogeny and each != event.candidate)
        self.shown[event.candidate] = known
        if brought := tuple(each for each in event.inspirations if each in known):
            self.inspirations[event.candidate] = brought

    def _moved(self, event: Proposed | Duplicate | FailedProposal) -> None:
        self.moves = max(self.moves, event.move + 1)
        self.attempts.add(event)
        self.authors.take(event)
        self.ledger.take(event)
        self.counts.attempt(event, unanswered=self.authors.unanswered(event))

    def _duplicate(self, event: Duplicate, entry: Entry) -> None:
        self._moved(event)

    def _failed_proposal(self, event: FailedProposal, entry: Entry) -> None:
        self.failures.append(event)
        del self.failures[:-FAILURES]
        self._moved(event)

    def _reserved(self, event: Reserved, entry: Entry) -> None:
        self.reserved[entry.id] = event

    def _tactic(self, event: Tactic, entry: Entry) -> None:
        self.tactics[entry.id] = event
        self.moves = max(self.moves, event.move + 1)
        self.counts.tactics += 1

    def _session(self, event: SessionEnded, entry: Entry) -> None:
        self.notes.append(event)
        if event.evidence and event.kept:
            self.sessions[event.candidate] = event.evidence
        self.moves = max(self.moves, event.move + 1)

    def _lesson(self, event: Lesson, entry: Entry) -> None:
        self.lessons[event.step] = event

    def _spent(self, event: Spent, entry: Entry) -> None:
        held = self.reserved.pop(event.reserved, None)
        self.spent.add(event, held)
        self.authors.pay(event)
        self._answered(event, entry)
        self.spent_by.setdefault((event.agent, event.model), Spending()).add(event, held)

    def _answered(self, event: Spent, entry: Entry) -> None:
        """Note a failure, or the end of an outage: a reply to what was asked before it began is not its end."""
        past = self.outages.get(event.model)
        if not event.failure:
            if past is None or entry.time + entry.ms / 1000 - event.seconds < past.since:
                return
            del self.outages[event.model]
            if past.attempts >= OUTAGE:
                self._halt(
                    Interruption(
                        what="endpoint",
                        since=past.since,
                        until=entry.time,
                        model=event.model,
                        attempts=past.attempts,
                        why=past.why,
                    )
                )
            return
        outage = self.outages.setdefault(event.model, Outage(entry.time))
        outage.attempts += 1
        outage.why = event.failure

    def _stage_begun(self, event: StageBegun, entry: Entry) -> None:
        self.stages.append(event)

    def _review_asked(self, event: ReviewAsked, entry: Entry) -> None:
        self.review, self.paused = event, True

    def _halted(self, event: Halted, entry: Entry) -> None:
        self.paused = self.paused and event.reason != "review"
        since = round(entry.time - event.seconds)
        self._halt(Interruption(what=event.reason, since=since, until=entry.time, why=event.detail))

    def _halt(self, over: Interruption) -> None:
        self.halts.append(over)
        del self.halts[:-HALTS]

    def _compared(self, event: Compared, entry: Entry) -> None:
        pair = {event.a} if event.calibration else {event.a, event.b}
        if self.strengths and all(commit in self.phylogeny for commit in pair) and event.a != event.b:
            self.strengths.compare(event)
            self._shifted = True

    def _reviewed(self, event: Reviewed, entry: Entry) -> None:
        if event.candidate not in self.phylogeny:
            return
        self.reviews[event.candidate] = event
        if event.verdict == "refused":  # from here on like a decision, which a person can take back
            refusal = Decision(kind="refuse", by=event.model, reason=event.reason, candidates=(event.candidate,))
            self._decision(refusal, replace(entry, event=refusal))
        elif self.repeats:
            self._lead()
        else:
            self._consider(event.candidate)

    def _task_changed(self, event: TaskChanged, entry: Entry) -> None:
        anew = {self._seed(), *self.heads.values(), *self.living(), *self.records, *self.promoted}
        judged = {commit: self.evaluation(commit) for commit in self.scores.commits() if self.judged(commit)}
        self._former = self._former | {commit: found for commit, found in judged.items() if found}
        changes = {name: getattr(event, name) for name in CHANGEABLE}
        self.started = replace(self._first_start(), **changes)
        self._scores = None
        self.repeats = self.declared_repeats
        self.evidence = {}
        self.faults = {}
        self.unmeasured = set()
        self.best = None
        self.records = []
        ranked = (self.phylogeny[commit] for commit in self.phylogeny.ids if commit in anew)
        again = {each.commit: replace(each, engine="", move=0) for each in ranked}
        self._waiting = again | self._waiting

    def _adopted(self, event: Adopted, entry: Entry) -> None:
        self.heads[event.agent] = event.candidate

    def _evaluated(self, event: Evaluated, entry: Entry) -> None:
        evaluation, commit = event.evaluation, event.candidate
        if self._former and evaluation.evaluator != self._first_start().evaluator:
            return  # of an engine elsewhere that does not know of the change yet
        first = not self.judged(commit, evaluation.split, evaluation.repeat)
        if not first and not evaluation.counts:
            return
        if event.instead and not first:
            self._corrected(event)
            return
        was_valid = evaluation.repeat > 0 and self.fitness(commit) is not None
        self.scores.record(commit, evaluation)
        if evaluation.split != self.scores.split:
            self.beside.setdefault(evaluation.split, set()).add(commit)
            return
        if evaluation.status == "evaluator-error":
            self.faults[commit] = self.faults.get(commit, 0) + 1
        if evaluation.repeat:
            self._repeated(commit, event, first, was_valid)
            return
        self.evidence[commit] = event.evidence
        if not evaluation.counts:
            if evaluation.status == "not-measured" and commit != self.seed:
                self.unmeasured = self.unmeasured | {commit}
            return
        self._waiting.pop(commit, None)
        self.unmeasured = self.unmeasured - {commit}
        if commit in self._former:
            if first:
                self.counts.failed += _change(failed=not evaluation.ok, failed_before=not self._former[commit].ok)
            self.records = []
            self._find_best()  # as candidates are evaluated again in any order
            return
        if first:
            self._count(commit, evaluation)
        self._consider(commit)

    def _corrected(self, event: Evaluated) -> None:
        commit, split = event.candidate, event.evaluation.split
        before = self.evaluation(commit, split)
        self.scores.record(commit, event.evaluation)
        now = self.evaluation(commit, split)
        if split != self.scores.split or before is None or now is None:
            return
        self._former = self._former | {commit: before}
        self.counts.failed += _change(failed=not now.ok, failed_before=not before.ok)
        self.evidence[commit] = event.evidence
        self.records = []
        self._find_best()

    def _count(self, commit: str, evaluation: Evaluation) -> None:
        if not self.phylogeny.is_trial(commit):
            self.judgements.append(commit)
        self.counts.evaluated += 1
        if not evaluation.ok:
            self.counts.failed += 1
        if evaluation.cached:
            self.counts.cached += 1
        self.course.evaluated(commit, self.counts, self.spent)

    def _repeated(self, commit: str, event: Evaluated, first: bool, was_valid: bool) -> None:
        """Take in that a candidate, valid until now or not, was evaluated again; what went wrong is its evidence."""
        if first and event.evaluation.counts:
            if self.scores.paired and event.evaluation.beside is None and len(self.judgements) > 1:
                self.counts.refer(event.evaluation.cost)
            else:
                self.counts.again(event.evaluation)
            if was_valid and self.fitness(commit) is None:
                self.counts.failed += 1
        if not event.evaluation.ok and event.evidence:
            self.evidence[commit] = event.evidence
        self.scores.distinguish(commit, self.best)
        self._weigh_noise()
        self._find_best()

    def _consider(self, commit: str) -> None:
        """Make `commit` the best if it is; of equals, up to rounding, the earlier one stays."""
        if self.scores.shifting:
            self._shifted = True
            return
        if self.repeats:
            if commit == self.seed:
                self._lead()
            return
        value = self.fitness(commit)
        if commit in self.pruned or value is None:
            return
        best = self.fitness(self.best) if self.best else None
        equal = best is not None and math.isclose(value, best, rel_tol=ROUNDING)
        better = best is None or (
            self.scores.metric.better(value, best) and not equal and self.earned(commit, self.best)
        )
        if better and self._awaits_review(commit):
            self._rival = commit if self._rival is None or self.fitter(commit, self._rival) else self._rival
        elif better:
            self.best = commit
            self.records.append(commit)
            self._record_at = len(self.judgements)
        elif equal and not self.phylogeny.is_trial(commit) and self.earned(commit):
            self._latest_best = commit

    def _decision(self, event: Decision, entry: Entry) -> None:
        self.decisions.append(entry)
        self._apply_decisions()

    def in_force(self) -> list[Entry]:
        """The decisions that no other one takes back, undoing ones left out, oldest first."""
        return in_force(self.decisions)

    @property
    def guidance(self) -> list[str]:
        """What people said to all agents and did not take back, oldest first."""
        said = [entry.event for entry in self.in_force()]
        return [event.reason for event in said if isinstance(event, Decision) and event.kind == "guide"]

    @property
    def quarantined(self) -> list[str]:
        """The pruned candidates whose code no later one may copy."""
        events = [entry.event for entry in self.in_force()]
        pruned = [event for event in events if isinstance(event, Decision) and event.carriers is not None]
        return [commit for event in pruned for commit in event.candidates if commit in self.phylogeny]

    def _apply_decisions(self) -> None:
        decisions = self.in_force()
        events = [entry.event for entry in decisions if isinstance(entry.event, Decision)]
        refusals = [event for event in events if event.kind == "refuse"]
        self.refused = {event.candidates[0]: event.reason for event in refusals if event.candidates}
        pruned, promoted = marked(decisions, self.phylogeny)
        changed = pruned != self.pruned
        self.pruned = pruned
        self.promoted = promoted
        if changed:
            records = list(self._records)
            self._find_best()
            self._records = records  # as a decision does not change what was the best when it was evaluated

    def _lead(self) -> None:
        """Make the fittest of those that can be believed the best of a noisy run, or the seed.

        Where they were thought to be exact, one more evaluation is enough for that.
        """
        believed = self.scores.again() if self._seems_exact else self.scores.known()
        known = {self.seed or "", *believed} - self.pruned - self.set_aside
        ranked = sorted((each for each in known if each in self.scores), key=self.phylogeny.numbers.__getitem__)
        best: str | None = None
        self._rival = None
        for commit in (commit for commit in ranked if self.fitness(commit) is not None):
            if (self._rival is None or self.fitter(commit, self._rival)) and self.earned(commit, self._rival):
                self._rival = commit
            fitter = (best is None or self.fitter(commit, best)) and self.earned(commit, best)
            if fitter and not self._awaits_review(commit):
                best = commit
        before, self.best = self._best, best
        is_new = best != before or not self.records  # else a decision alone made it the best
        if self.best and self.best not in self.records and is_new:
            self.records.append(self.best)
            self._record_at = len(self.judgements)

    def _find_best(self) -> None:
        if self.scores.shifting:
            self._shifted = True
            return
        if self.repeats:
            self._lead()
            return
        records, best, record_at = self.records, self._best, self._record_at
        self.best = None
        self._rival = None
        self.records = []
        for commit in self.phylogeny.ids:
            if commit in self.scores:
                self._consider(commit)
        self.records = list(dict.fromkeys([*records, *self.records]))
        if self._best == best:
            self._record_at = record_at


RULES: dict[type, Callable[[History, Any, Entry], None]] = {
    RunStarted: History._run_started,
    Forked: History._forked,
    Halted: History._halted,
    StageBegun: History._stage_begun,
    ReviewAsked: History._review_asked,
    Stopped: History._stopped,
    Proposed: History._proposed,
    Duplicate: History._duplicate,
    FailedProposal: History._failed_proposal,
    Reserved: History._reserved,
    Spent: History._spent,
    Tactic: History._tactic,
    SessionEnded: History._session,
    Compared: History._compared,
    Reviewed: History._reviewed,
    TaskChanged: History._task_changed,
    Adopted: History._adopted,
    Evaluated: History._evaluated,
    Decision: History._decision,
    Lesson: History._lesson,
}
"""What each event changes; a table, as looking a method up by type took longer than most of them."""


def _change(*, failed: bool, failed_before: bool) -> int:
    """What a candidate that is evaluated under a changed task adds to the count of those that failed."""
    if failed == failed_before:
        return 0
    return 1 if failed else -1
