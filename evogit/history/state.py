"""What is known of one run, as questions: the one thing that selection and review look at."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from evogit.core import HUMAN, Candidate, Evaluation, Metric, NotFoundError
from evogit.events import (
    Decision,
    Entry,
    FailedProposal,
    Forked,
    Lesson,
    Measured,
    Reserved,
    ReviewAsked,
    Reviewed,
    RunStarted,
    SessionEnded,
    StageBegun,
    Stopped,
    Tactic,
)
from evogit.history.counts import (
    CROSSING,
    Attempts,
    Authors,
    Counts,
    Course,
    IdeaLedger,
    Interruption,
    Outage,
    Spending,
    Step,
)
from evogit.history.paired_scores import PairedScores
from evogit.history.phylogeny import Phylogeny
from evogit.history.scores import Scores
from evogit.history.strengths import Strengths

ROUNDING = 1e-12  # relative difference of values up to which they are the same
TRIES = 3  # errors of the evaluator on one candidate after which it is set aside
FAILURES = 500  # failed proposals that are remembered with their reasons
HALTS = 200  # interruptions that are remembered
OUTAGE = 3  # attempts in a row without a reply that are worth telling
KIND_PARTS = {"kind": "", "model": "@", "role": "+"}  # what tells kinds of agents apart -> the sign before it
MERGE_SHARE = 0.01
"""The least gain of a merge, where scores are exact, as a share of what its lesser parent changed since they parted.

A merge is made to add that to the other side: all of it, or about half where the sides interfere. One of two unrelated
rewrites that only carried the lesser one along as dead code gained 0.00009 of it. This lies between, about as many
times above the one (a hundred) as below the other (fifty).
"""


@dataclass(eq=False)
class RunState:
    """What the journals of a run add up to.

    Attributes:
        phylogeny: the graph of candidates.
        started: the first `run-started` entry's event; None before.
        engines: every `run-started` event, by engine.
        heads: agent -> id of its current individual.
        human: ids of what people added, oldest first.
        pruned, promoted: ids under the decisions that are in force; those that the reviewer refused are pruned, too.
        refused: id -> the reviewer's reason, of refusals that are in force.
        reviews: id -> what the reviewer said of it last.
        reviewed_from: number of the first candidate that is reviewed before it can be the best; None: none need be.
        evidence: id -> evidence tree of its evaluation on the run's split.
        sessions: id -> evidence tree of how it was made, where there is one.
        shown: id -> candidates that its agent's brief showed; inspirations: those of them of which it has lines.
        decisions: all decision entries, oldest first.
        failures: the latest failed proposals, oldest first.
        rebased: id -> candidates whose agents changed it, put on later ones; written_on: the other
            way round.
        tactics: the tactics that models gave, by entry; advised: id -> the one that its agent's brief had.
        stages: the stages of the task that began, oldest first; review: the last time that the run waited for a person,
            paused: whether it does now.
        notes: the ends of sessions, oldest first; measured: id -> how the session that made it measured it.
        lessons: step -> what it taught, withdrawn or not.
        begun_sessions: (engine, move, agent) of the sessions that kept a step, each of which is one proposal.
        authors: whose moves came to what.
        ledger: the ideas of models.
        judgements: ids in the order in which they were first evaluated on the run's split, under whatever task; without
            trials of `evogit minimize`, which are nearly the same many times over.
        trees, fingerprints: tree, or what it does -> the first candidate that had it.
        forked: where this run was forked from another one, None where it was not.
        attempts: what the agents tried, whatever came of it.
        span: when the first and the latest entry were written, decisions left out, in seconds since the epoch.
        spent: what models cost in all; spent_by: the same by (agent, model); inherited: what of it the run that this
            one was forked from had spent until then.
        outages: model -> the attempts since its last reply, where there are any.
        halts: the latest times in which the engine or a model's endpoint did nothing, and went on.
        course: how it went, by the time of the entries.
        beside: split that does not rank -> ids of what was evaluated on it.
        faults: id -> errors of the evaluator on the run's split, repeats included, under the present task.
        unmeasured: those that the machine was too busy to measure since an engine last began; the next one tries again.
        reserved: what is set aside for attempts of which it is not known yet what they cost, by entry.
        seq: the highest clock seen.
        repeats: how often a would-be best is evaluated again before it is believed; 0 where scores are exact. It is
            `declared_repeats` of the task, until what is evaluated again shows that scores are exact, or are not.
    """

    run: str
    phylogeny: Phylogeny = field(default_factory=Phylogeny, init=False)
    counts: Counts = field(default_factory=Counts, init=False)
    started: RunStarted | None = field(default=None, init=False)
    stopped: Stopped | None = field(default=None, init=False)
    engines: dict[str, RunStarted] = field(default_factory=dict, init=False)
    heads: dict[str, str] = field(default_factory=dict, init=False)
    _waiting: dict[str, Candidate] = field(default_factory=dict, init=False)
    pruned: set[str] = field(default_factory=set, init=False)
    promoted: set[str] = field(default_factory=set, init=False)
    refused: dict[str, str] = field(default_factory=dict, init=False)
    reviews: dict[str, Reviewed] = field(default_factory=dict, init=False)
    reviewed_from: int | None = field(default=None, init=False)
    _rival: str | None = field(default=None, init=False)
    _records: list[str] = field(default_factory=list, init=False)
    human: list[str] = field(default_factory=list, init=False)
    evidence: dict[str, str] = field(default_factory=dict, init=False)
    sessions: dict[str, str] = field(default_factory=dict, init=False)
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    inspirations: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    decisions: list[Entry] = field(default_factory=list, init=False)
    failures: list[FailedProposal] = field(default_factory=list, init=False)
    rebased: dict[str, list[str]] = field(default_factory=dict, init=False)
    written_on: dict[str, str] = field(default_factory=dict, init=False)
    tactics: dict[str, Tactic] = field(default_factory=dict, init=False)
    stages: list[StageBegun] = field(default_factory=list, init=False)
    review: ReviewAsked | None = field(default=None, init=False)
    paused: bool = field(default=False, init=False)
    notes: list[SessionEnded] = field(default_factory=list, init=False)
    measured: dict[str, Measured] = field(default_factory=dict, init=False)
    lessons: dict[str, Lesson] = field(default_factory=dict, init=False)
    begun_sessions: set[tuple[str, int, str]] = field(default_factory=set, init=False)
    advised: dict[str, str] = field(default_factory=dict, init=False)
    authors: Authors = field(default_factory=Authors, init=False)
    ledger: IdeaLedger = field(default_factory=IdeaLedger, init=False)
    span: tuple[int, int] = field(default=(0, 0), init=False)
    spent: Spending = field(default_factory=Spending, init=False)
    spent_by: dict[tuple[str, str], Spending] = field(default_factory=dict, init=False)
    inherited: Spending = field(default_factory=Spending, init=False)
    outages: dict[str, Outage] = field(default_factory=dict, init=False)
    halts: list[Interruption] = field(default_factory=list, init=False)
    reserved: dict[str, Reserved] = field(default_factory=dict, init=False)
    trees: dict[str, str] = field(default_factory=dict, init=False)
    fingerprints: dict[str, str] = field(default_factory=dict, init=False)
    forked: Forked | None = field(default=None, init=False)
    seed: str | None = field(default=None, init=False)
    _best: str | None = field(default=None, init=False)
    _latest_best: str | None = field(default=None, init=False)
    _shifted: bool = field(default=False, init=False)
    seq: int = field(default=0, init=False)
    moves: int = field(default=0, init=False)
    repeats: int = field(default=0, init=False)
    declared_repeats: int = field(default=0, init=False)
    judgements: list[str] = field(default_factory=list, init=False)
    _record_at: int = field(default=0, init=False)
    attempts: Attempts = field(default_factory=Attempts, init=False)
    _scores: Scores | Strengths | PairedScores | None = field(default=None, init=False)
    _former: dict[str, Evaluation] = field(default_factory=dict, init=False)
    faults: dict[str, int] = field(default_factory=dict, init=False)
    unmeasured: set[str] = field(default_factory=set, init=False)
    course: Course = field(default_factory=Course, init=False)
    _best_noted: str | None = field(default=None, init=False)
    beside: dict[str, set[str]] = field(default_factory=dict, init=False)

    @classmethod
    def stored(cls, run: str, parts: Mapping[str, Callable[[], Any]]) -> Self:
        """The state whose fields these give; of those that can be large each is asked for when somebody needs it."""
        state = cls.__new__(cls)
        vars(state).update({name: part() for name, part in parts.items() if hasattr(cls, name)}, run=run, _parts=parts)
        return state

    def __getattr__(self, name: str) -> Any:
        part = vars(self).get("_parts", {}).get(name)
        if part is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        value = vars(self)[name] = part()
        return value

    @property
    def metric(self) -> Metric:
        """The primary metric of the run."""
        return next(metric for metric in self._first_start().metrics if metric.primary)

    @property
    def split(self) -> str:
        """The split that candidates of this run are evaluated on."""
        return self._first_start().split

    @property
    def scores(self) -> Scores:
        """The evaluations under the present task."""
        if self._scores is None:
            start = self._first_start()
            kind = Strengths if start.judged == "pairs" else PairedScores if start.paired else Scores
            self._scores = kind.of(start.metrics, self.split, self.repeats)
        return self._scores

    @property
    def strengths(self) -> Strengths | None:
        """The verdicts on pairs of candidates; None where values are measured."""
        return self.scores if isinstance(self.scores, Strengths) else None

    @property
    def best(self) -> str | None:
        """The fittest candidate that is known; None while there is none."""
        self._settle()
        return self._best

    @best.setter
    def best(self, commit: str | None) -> None:
        self._best = self._latest_best = commit

    @property
    def would_be_best(self) -> str | None:
        """The candidate that is better than the best, but was not reviewed yet; None if there is none."""
        rival, best = self._rival, self.best
        leads = rival is not None and rival not in self.pruned and (best is None or self.fitter(rival, best))
        return rival if leads else None

    def _awaits_review(self, commit: str) -> bool:
        """Whether the reviewer has to look at a candidate before it can be the best: not at seeds and people's."""
        if self.reviewed_from is None or commit in self.reviews:
            return False
        candidate = self.phylogeny[commit]
        return candidate.number >= self.reviewed_from and candidate.operator != "seed" and candidate.agent != HUMAN

    @property
    def latest_best(self) -> str | None:
        """The candidate that was evaluated last of those that equal the best, which is the first of them."""
        self._settle()
        return self._latest_best

    @property
    def records(self) -> list[str]:
        """Ids that were the best when they were evaluated, oldest first; by strengths of now where these shift."""
        self._settle()
        return self._records

    @records.setter
    def records(self, commits: list[str]) -> None:
        self._records = commits

    def _settle(self) -> None:
        """Where one verdict moves all values, look for the best when asked, not after each."""
        if not self._shifted:
            return
        self._shifted = False
        self.best = None
        self._records = []
        self._record_at = 0
        for commit in (each for each in self.phylogeny.ids if each not in self.pruned):
            if self.fitness(commit) is not None and (self._best is None or self.fitter(commit, self._best)):
                self.best = commit
                self._records.append(commit)
        if self._best in self.judgements:
            self._record_at = self.judgements.index(self._best) + 1

    @property
    def first_start(self) -> RunStarted | None:
        """The first `run-started` event as it was written, whatever forks and changes of the task replaced since."""
        return next(iter(self.engines.values()), None)

    def _first_start(self) -> RunStarted:
        if self.started is None:
            raise NotFoundError(f"the run {self.run!r} has not started; begin it with `evogit run`")
        return self.started

    @property
    def pending(self) -> dict[str, Candidate]:
        """The candidates that await an evaluation, by id; not those that are pruned, set aside or not measured.

        With no engine where any may do it.
        """
        out = self.pruned | self.set_aside | self.unmeasured
        return {commit: candidate for commit, candidate in self._waiting.items() if commit not in out}

    @property
    def set_aside(self) -> set[str]:
        """Those on which the evaluator failed again and again: never evaluated again, unless the task changes."""
        return {commit for commit, faults in self.faults.items() if faults >= TRIES and commit != self.seed}

    def origins(self, commit: str) -> tuple[str, ...]:
        """Where a candidate's code comes from: its parents, then the inspirations of which it has lines."""
        return self.phylogeny.parents(commit) + self.inspirations.get(commit, ())

    def duplicate_of(self, tree: str, does: str = "") -> str | None:
        """The candidate that has this tree, or one that does the same: its fingerprint is `does`."""
        return self.trees.get(tree) or self.fingerprints.get(does)

    def evaluation(self, commit: str, split: str | None = None, repeat: int | None = None) -> Evaluation | None:
        """A candidate's evaluation on `split` (default: the run's), repeats as one; None while there is nothing."""
        return self.scores.evaluation(commit, split, repeat)

    def former(self, commit: str) -> Evaluation | None:
        """The last evaluation of a candidate under an earlier task or evaluator, which ranks it no more."""
        return self._former.get(commit)

    def judged(self, commit: str, split: str | None = None, repeat: int | None = None) -> bool:
        """Whether a candidate has an evaluation on `split` (default: the run's) that counts."""
        if split is None and repeat is None and self.fitness(commit) is not None:
            return True
        evaluation = self.evaluation(commit, split, repeat)
        return evaluation is not None and evaluation.counts

    def fitness(self, commit: str) -> float | None:
        """The score: the primary metric on the run's split; None unless it was evaluated and is valid."""
        return self.scores.fitness(commit)

    def interval(self, commit: str, split: str | None = None) -> tuple[float, float] | None:
        """The 95 % interval of the primary metric, (v, v) where scores are exact; None unless it is valid."""
        return self.scores.interval(commit, split)

    def best_so_far(self) -> list[Step]:
        """Return the steps of the best without those of pruned candidates, and without falls that were undone."""
        kept, ids = list[Step](), self.phylogeny.ids
        for step in self.course.steps:
            if step.best is None or ids[step.best] in self.pruned or self.fitness(ids[step.best]) is None:
                continue
            before = ids[kept[-1].best or 0] if kept else None
            if before is None or self.repeats or self.fitter(ids[step.best], before):
                kept.append(step)
        return kept

    def fitter(self, a: str, b: str) -> bool:
        """Whether `a` is strictly better than `b`; a failed candidate is worse than any valid one."""
        mine, other = self.fitness(a), self.fitness(b)
        if mine is None or other is None:
            return mine is not None
        return self.scores.metric.better(mine, other)

    def gain(self, commit: str, over: str) -> float | None:
        """How much better a candidate is than another, in the primary metric's unit; None where either is not valid.

        Rounding is not a gain, as a part that does nothing may change the last digits.
        """
        mine, other = self.fitness(commit), self.fitness(over)
        if mine is None or other is None:
            return None
        return 0.0 if math.isclose(mine, other, rel_tol=ROUNDING) else self.scores.metric.gain(mine, other)

    def surely_fitter(self, a: str, b: str) -> bool:
        """Whether `a` is better than `b` beyond noise (95 %); where scores are exact the same as `fitter`."""
        return self.scores.surely_better(a, b)

    def beyond_noise(self, commit: str, over: str, least: float) -> bool:
        """Whether a candidate is better than another beyond noise; if noise is unknown or absent, by more than `least`.

        `least` is in the primary metric's unit.
        """
        if self.fitness(over) is None or (self.repeats > 1 and not self.scores.shifting):
            return self.surely_fitter(commit, over)
        return (self.gain(commit, over) or 0.0) > least

    def earned(self, commit: str, over: str | None = None) -> bool:
        """Whether a merge gained beyond noise over both parents, and over another candidate; True for all but merges.

        Merges are those of whole candidates by Git, also with conflicts settled by a model. Where pairs are compared
        none has to, as strengths are too uncertain at first.
        """
        candidate = self.phylogeny[commit]
        if candidate.operator != "merge" or candidate.strategy not in CROSSING or self.scores.shifting:
            return True
        first, second = candidate.parents
        lesser, base = second if self.fitter(first, second) else first, self.phylogeny.merge_base(first, second)
        least = MERGE_SHARE * abs(self.gain(lesser, base or self._seed()) or 0.0)
        return all(self.beyond_noise(commit, each, least) for each in (first, second, over) if each)

    def no_worse(self, child: str, head: str) -> bool:
        """Whether `child` is valid, and `head` not better than it beyond noise; by strengths just not stronger.

        A strength is known too badly at first for anything to be better beyond noise.
        """
        if self.scores.shifting:
            return self.fitness(child) is not None and not self.fitter(head, child)
        return self.fitness(child) is not None and not self.surely_fitter(head, child)

    def committed(self, but: str = "") -> Spending:
        """What models cost in all, with what is set aside for attempts in flight or of engines that died.

        What the entry `but` sets aside is left out.
        """
        spending = copy.copy(self.spent)
        for entry, event in self.reserved.items():
            if entry != but:
                spending.hold(event)
        return spending

    @property
    def origin(self) -> str | None:
        """The candidate from which a fresh start begins: the best when the present stage began, else the seed."""
        return (self.stages[-1].best if self.stages else "") or self.seed

    def stage_use(self) -> dict[str, float]:
        """Return what the present stage used of evaluations and calls, by these names."""
        now = self.stages[-1]
        calls = self.spent.charged - now.calls
        return {"evaluations": self.counts.evaluated - now.evaluations, "calls": calls}

    @property
    def interruptions(self) -> list[Interruption]:
        """The times in which nothing went on, by when they began, those that last included."""
        last = (
            Interruption(
                what="endpoint", since=each.since, until=None, model=model, attempts=each.attempts, why=each.why
            )
            for model, each in self.outages.items()
            if each.attempts >= OUTAGE
        )
        return sorted([*self.halts, *last], key=lambda each: each.since)

    @property
    def stagnant(self) -> int:
        """How many candidates were evaluated since the best one was, or the seed."""
        self._settle()
        return len(self.judgements) - self._record_at

    def head(self, agent: str) -> str:
        """The current individual of an agent: what it adopted last, the seed before.

        A pruned one does not breed, nor does one that a changed task has not found valid: its nearest first-parent
        ancestor that may breed stands in, at last the seed.
        """
        commit = self.heads.get(agent) or self._seed()
        while not self._breeds(commit) and (parents := self.phylogeny.parents(commit)):
            commit = parents[0]
        return commit

    def _breeds(self, commit: str) -> bool:
        told = self.evaluation(commit)
        if commit in self.pruned or (told and told.status == "flaky"):
            return False
        return commit not in self._former or self.fitness(commit) is not None

    def _seed(self) -> str:
        if self.seed is None:
            raise NotFoundError(f"the run {self.run!r} has no seed yet; begin it with `evogit run`")
        return self.seed

    def living(self) -> list[str]:
        """Ids of the agents' current individuals, in the order of the agents, without repeats."""
        return list(dict.fromkeys(self.head(agent) for agent in self.heads))

    def past_kinds(self) -> dict[tuple[str, str], str]:
        """Return the kind of each agent by (engine, agent): `mutator`, `editor@MODEL+ROLE`, `FILE.py:Name`.

        Engines come in their order; a fork may give the name of an agent to another kind.
        """
        kinds: dict[tuple[str, str], str] = {}
        for engine, started in self.engines.items():
            named = [
                "".join(f"{sign}{spec[key]}" for key, sign in KIND_PARTS.items() if spec.get(key))
                for spec in started.settings.get("population", ())
                for _ in range(spec.get("count", 1))
            ]
            kinds.update({(engine, agent): kind for agent, kind in zip(started.agents, named, strict=False)})
        return kinds


def standing(entries: Sequence[Entry]) -> list[Entry]:
    """The decisions that no later one takes back, those to undo included, oldest first."""
    undone: set[str] = set()
    found: list[Entry] = []
    for entry in reversed(entries):
        if entry.id not in undone:
            found.append(entry)
            undone.add(_decision(entry).undoes)
    return found[::-1]


def in_force(entries: Sequence[Entry]) -> list[Entry]:
    """Those that stand, undoing ones left out."""
    return [entry for entry in standing(entries) if _decision(entry).kind != "undo"]


def _decision(entry: Entry) -> Decision:
    assert isinstance(entry.event, Decision)
    return entry.event


def marked(entries: Iterable[Entry], phylogeny: Phylogeny) -> tuple[set[str], set[str]]:
    """Ids of the candidates that these decisions prune and promote."""
    pruned, promoted = set[str](), set[str]()
    for decision in map(_decision, entries):
        named = [commit for commit in decision.candidates if commit in phylogeny]
        if decision.kind == "promote":
            promoted.update(named)
        elif decision.kind in ("prune", "refuse"):
            pruned |= phylogeny.descendants(*named) if decision.subtree else set(named)
            pruned.update(commit for commit in decision.carriers or () if commit in phylogeny)
    return pruned, promoted


def restored(entries: Sequence[Entry], phylogeny: Phylogeny) -> set[str]:
    """Ids of the candidates that a decision pruned which another one took back."""
    kept = {entry.id for entry in in_force(entries)}
    return marked((entry for entry in entries if entry.id not in kept), phylogeny)[0]
