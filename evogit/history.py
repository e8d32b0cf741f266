"""What the journals say so far: a fold over their entries, and the one thing that selection and review look at."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatchmethod

from evogit.core import (
    Adopted,
    Candidate,
    Decision,
    Duplicate,
    Entry,
    Evaluated,
    Evaluation,
    Event,
    FailedProposal,
    Metric,
    NotFoundError,
    Proposed,
    RunStarted,
    Spent,
    Stopped,
    TaskChanged,
)
from evogit.counts import Attempts, Counts, Spending
from evogit.phylogeny import Phylogeny
from evogit.scores import Scores
from evogit.standing import in_force, marked

__all__ = ["Counts", "History", "Spending"]


CHANGEABLE = ("task_digest", "metrics", "split", "evaluator", "judged", "editable", "withheld", "parts")
"""What a `task-changed` entry replaces of the first `run-started` one."""

FAILURES = 500
"""Failed proposals that are remembered with their reasons."""


class History:
    """The state of one run, rebuilt from its journals by `apply`, entry by entry, in the order of `seq`.

    Attributes:
        phylogeny: the graph of candidates.
        started: the first `run-started` entry's event; None before.
        engines: every `run-started` event, by engine.
        heads: agent -> id of its current individual.
        human: ids of what people added, oldest first.
        pruned, promoted: ids under the decisions that are in force.
        records: ids that were the best when they were evaluated, oldest first.
        evidence: id -> evidence tree of its evaluation on the run's split.
        decisions: all decision entries, oldest first.
        failures: the latest failed proposals, oldest first.
        barren: agent -> how many of its proposals made no candidate.
        judgements: ids in the order in which they were first judged on the run's split, under whatever task.
        attempts: what the agents tried, whatever came of it.
        span: when the first and the latest entry were written, in seconds since the epoch.
        spent: what models cost in all; spent_by: the same by (agent, model).
        seq: the highest clock seen.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.phylogeny = Phylogeny()
        self.counts = Counts()
        self.started: RunStarted | None = None
        self.stopped: Stopped | None = None
        self.engines: dict[str, RunStarted] = {}
        self.heads: dict[str, str] = {}
        self._unjudged: dict[str, Proposed] = {}
        self.pruned: set[str] = set()
        self.promoted: set[str] = set()
        self.records: list[str] = []
        self.human: list[str] = []
        self.evidence: dict[str, str] = {}
        self.decisions: list[Entry] = []
        self.failures: deque[FailedProposal] = deque(maxlen=FAILURES)
        self.barren: Counter[str] = Counter()
        self.span = (0, 0)
        self.spent = Spending()
        self.spent_by: dict[tuple[str, str], Spending] = {}
        self.trees: dict[str, str] = {}
        self.seed: str | None = None
        self.best: str | None = None
        self.seq = 0
        self.moves = 0
        self.judgements: list[str] = []
        self._record_at = 0
        self.attempts = Attempts()
        self._scores: Scores | None = None
        self._former: dict[str, Evaluation] = {}

    # --- questions ----------------------------------------------------------------------------------------------

    @property
    def metric(self) -> Metric:
        """The primary metric of the run."""
        return next(metric for metric in self._first_start().metrics if metric.primary)

    @property
    def split(self) -> str:
        """The split that candidates of this run are judged on."""
        return self._first_start().split

    @property
    def scores(self) -> Scores:
        """The evaluations under the present task."""
        if self._scores is None:
            self._scores = Scores(self.metric, self.split)
        return self._scores

    def _first_start(self) -> RunStarted:
        if self.started is None:
            raise NotFoundError(f"the run {self.run!r} has not started; begin it with `evogit run`")
        return self.started

    @property
    def pending(self) -> dict[str, Proposed]:
        """Id -> its `proposed` event, for candidates that await an evaluation; pruned ones do not."""
        return {commit: event for commit, event in self._unjudged.items() if commit not in self.pruned}

    def evaluation(self, commit: str, split: str | None = None, repeat: int = 0) -> Evaluation | None:
        """The latest evaluation of a candidate on `split` (default: the run's), None while there is none."""
        return self.scores.evaluation(commit, split, repeat)

    def former(self, commit: str) -> Evaluation | None:
        """The last evaluation of a candidate under an earlier task or evaluator, which ranks it no more."""
        return self._former.get(commit)

    def judged(self, commit: str, split: str | None = None, repeat: int = 0) -> bool:
        """Whether a candidate has an evaluation on `split` (default: the run's) that counts."""
        evaluation = self.evaluation(commit, split, repeat)
        return evaluation is not None and evaluation.counts

    def fitness(self, commit: str) -> float | None:
        """The primary metric's value on the run's split, None unless the candidate was judged and is valid."""
        return self.scores.fitness(commit)

    def fitter(self, a: str, b: str) -> bool:
        """Whether `a` is strictly better than `b`; a failed candidate is worse than any valid one."""
        mine, other = self.fitness(a), self.fitness(b)
        if mine is None or other is None:
            return mine is not None
        return self.metric.better(mine, other)

    @property
    def stagnant(self) -> int:
        """How many candidates were judged since the best one was, or the seed."""
        return len(self.judgements) - self._record_at

    def head(self, agent: str) -> str:
        """The current individual of an agent: what it adopted last, the seed before.

        A pruned one is no parent, nor is one that a changed task has not found valid: the nearest first-parent ancestor
        that may be one stands in, at last the seed.
        """
        commit = self.heads.get(agent) or self._seed()
        while not self._breeds(commit) and self.phylogeny[commit].parents:
            commit = self.phylogeny[commit].parents[0]
        return commit

    def _breeds(self, commit: str) -> bool:
        return commit not in self.pruned and (commit not in self._former or self.fitness(commit) is not None)

    def _seed(self) -> str:
        if self.seed is None:
            raise NotFoundError(f"the run {self.run!r} has no seed yet; begin it with `evogit run`")
        return self.seed

    def living(self) -> list[str]:
        """Ids of the agents' current individuals, in the order of the agents, without repeats."""
        return list(dict.fromkeys(self.head(agent) for agent in self.heads))

    # --- the fold -----------------------------------------------------------------------------------------------

    def extend(self, entries: Iterable[Entry]) -> None:
        """Apply entries in the given order."""
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Take in one more fact."""
        self.seq = max(self.seq, entry.seq)
        self.span = (self.span[0] or entry.time, max(self.span[1], entry.time))
        self._apply(entry.event, entry)

    @singledispatchmethod
    def _apply(self, event: Event, entry: Entry) -> None:
        raise TypeError(f"no rule for {event!r}")

    @_apply.register
    def _(self, event: RunStarted, entry: Entry) -> None:
        self.started = self.started or event
        self.engines[event.engine] = event
        self.stopped = None

    @_apply.register
    def _(self, event: Stopped, entry: Entry) -> None:
        self.stopped = event

    @_apply.register
    def _(self, event: Proposed, entry: Entry) -> None:
        if event.candidate in self.phylogeny:
            return
        self.phylogeny.add(
            Candidate(
                commit=event.candidate,
                tree=event.tree,
                parents=event.parents,
                agent=event.agent,
                operator=event.operator,
                strategy=event.strategy,
                title=event.title,
                time=entry.time,
                number=len(self.phylogeny),
            )
        )
        self.trees.setdefault(event.tree, event.candidate)
        self._unjudged[event.candidate] = event
        if event.operator == "seed":
            self.seed = self.seed or event.candidate
        elif event.operator == "human":
            self.human.append(event.candidate)
        else:
            self.counts.proposed += 1
        self._moved(event)
        if any(parent in self.pruned for parent in event.parents):
            self._apply_decisions()

    def _moved(self, event: Proposed | Duplicate | FailedProposal) -> None:
        self.moves = max(self.moves, event.move + 1)
        self.attempts.add(event)

    @_apply.register
    def _(self, event: Duplicate, entry: Entry) -> None:
        self.counts.duplicates += 1
        self.barren[event.agent] += 1
        self._moved(event)

    @_apply.register
    def _(self, event: FailedProposal, entry: Entry) -> None:
        self.counts.failed_proposals += bool(event.engine)  # what a person's branch brings in vain is no attempt
        self.failures.append(event)
        self.barren[event.agent] += 1
        self._moved(event)

    @_apply.register
    def _(self, event: Spent, entry: Entry) -> None:
        self.spent.add(event)
        self.spent_by.setdefault((event.agent, event.model), Spending()).add(event)

    @_apply.register
    def _(self, event: TaskChanged, entry: Entry) -> None:
        again = {self._seed(), *self.heads.values(), *self.living(), *self.records, *self.promoted}
        judged = {commit: self.evaluation(commit) for commit in self.scores.commits() if self.judged(commit)}
        self._former = self._former | {commit: found for commit, found in judged.items() if found}
        changes = {name: getattr(event, name) for name in CHANGEABLE}
        self.started = replace(self._first_start(), **changes)
        self._scores, self.evidence = None, {}
        self.best, self.records = None, []
        waiting = {each.commit: _again(each) for each in self.phylogeny if each.commit in again}
        self._unjudged = waiting | self._unjudged

    @_apply.register
    def _(self, event: Adopted, entry: Entry) -> None:
        self.heads[event.agent] = event.candidate

    @_apply.register
    def _(self, event: Evaluated, entry: Entry) -> None:
        evaluation, commit = event.evaluation, event.candidate
        if self._former and evaluation.evaluator != self._first_start().evaluator:
            return  # of an engine elsewhere that does not know of the change yet
        first = not self.judged(commit, evaluation.split, evaluation.repeat)
        if not first and not evaluation.counts:
            return
        self.scores.record(commit, evaluation)
        if (evaluation.split, evaluation.repeat) != (self.split, 0):
            return
        self.evidence[commit] = event.evidence
        if not evaluation.counts:
            return
        self._unjudged.pop(commit, None)
        if commit in self._former:  # judged again, in any order
            self.counts.failed += first * (self._former[commit].ok - evaluation.ok)
            self.records = []
            self._find_best()
            return
        if first:
            self.judgements.append(commit)
            self.counts.evaluated += 1
            self.counts.failed += not evaluation.ok
            self.counts.cached += evaluation.cached
        self._consider(commit)

    def _consider(self, commit: str) -> None:
        """Make `commit` the best if it is; of equals the earlier one stays."""
        if commit in self.pruned or self.fitness(commit) is None:
            return
        if self.best is None or self.fitter(commit, self.best):
            self.best = commit
            self.records.append(commit)
            self._record_at = len(self.judgements)

    @_apply.register
    def _(self, event: Decision, entry: Entry) -> None:
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

    def _apply_decisions(self) -> None:
        pruned, promoted = marked(self.in_force(), self.phylogeny)
        changed = pruned != self.pruned
        self.pruned, self.promoted = pruned, promoted
        if changed:
            self._find_best()

    def _find_best(self) -> None:
        records = self.records
        self.best, self.records = None, []
        for candidate in self.phylogeny:
            if candidate.commit in self.scores:
                self._consider(candidate.commit)
        self.records = list(dict.fromkeys([*records, *self.records]))


def _again(candidate: Candidate) -> Proposed:
    """What lets any engine judge a candidate again that one of long ago had proposed."""
    return Proposed(
        engine="",
        move=0,
        candidate=candidate.commit,
        tree=candidate.tree,
        parents=candidate.parents,
        agent=candidate.agent,
        operator=candidate.operator,
        strategy=candidate.strategy,
        title=candidate.title,
    )
