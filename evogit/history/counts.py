"""What was done and what it cost, counted entry by entry."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

import msgspec
from msgspec import Struct

from evogit.core import HUMAN, MINIMIZE, PICO, Candidate, Cost, Evaluation, picodollars
from evogit.events import Duplicate, Entry, FailedProposal, Proposed, Reserved, Spent
from evogit.history.pages import Pages, fold

UNASKED = frozenset({"fitter", "random", "function", "pieces"})
"""Strategies by which merges and grafts are settled without asking a model."""

EXTENDED, MIRRORED = "extend_number", "mirror_number"
"""Strategies of mutations that go on with a number which an earlier one changed, without asking a model."""

TUNING = "tuning"
"""The family of changes of numbers alone, all of which are one idea."""

MAX_IDEAS, MAX_TRIES, MAX_COMPARED = 2_000, 500, 200
"""Ideas that are remembered, tries of each, and ideas that a title is compared with: the latest ones."""

CROSSING = frozenset({"fitter", "random", "function", "model"})
"""Strategies that settle conflicts of whole candidates."""


@dataclass(slots=True)
class Counts:
    """How much was done. `evaluated` counts candidates on the run's split, failed and cached ones included."""

    evaluated: int = 0
    failed: int = 0
    cached: int = 0
    duplicates: int = 0
    alike: int = 0
    """Of the duplicates those that are not the same, but differ in what does not matter."""
    failed_proposals: int = 0
    unasked: int = 0
    """Merges, grafts and steps of numbers that asked no model."""
    unanswered: int = 0
    """Failed proposals of moves in which no model said anything and none was paid, or whose question was dropped."""
    tactics: int = 0
    """How often a model was asked for a tactic."""
    steps: int = 0
    """Candidates that are steps of sessions; from its first step on a session is one proposal, in `sessions`."""
    sessions: int = 0
    proposed: int = 0
    repeated: int = 0
    """Evaluations of candidates that were evaluated before; `repeated_seconds` is what they took, wall clock."""
    repeated_seconds: float = 0.0
    references: int = 0
    """Evaluations of a reference, beside a candidate or to see how fast the machine is; `reference_seconds` is what
    they took, wall clock."""
    reference_seconds: float = 0.0

    @property
    def proposals(self) -> int:
        """The attempts of the agents, usable or not, but for the unanswered; the seed is not one."""
        return self.proposed + self.duplicates + self.failed_proposals - self.unanswered

    @property
    def charged(self) -> int:
        """The attempts that count against a limit on proposals: all but those that asked none.

        Questions for tactics count, too, and a session of several steps once.
        """
        return self.proposals - self.unasked + self.tactics - self.steps + self.sessions

    @property
    def unusable(self) -> int:
        """The failed proposals for which a model answered, or none was asked."""
        return self.failed_proposals - self.unanswered

    def attempt(self, event: Proposed | Duplicate | FailedProposal, *, unanswered: bool = False) -> None:
        """Count what an agent tried; people's candidates, and trials of `evogit minimize`, are not attempts."""
        self.unanswered += unanswered
        free = UNASKED if event.operator in ("merge", "graft") else (EXTENDED, MIRRORED)
        self.unasked += bool(event.engine) and event.strategy in free
        match event:
            case Proposed():
                self.steps += event.kept
                self.proposed += event.operator != "seed" and event.agent != HUMAN and not event.trial
            case Duplicate():
                self.duplicates += 1
                self.alike += event.likeness == "fingerprint"
            case FailedProposal():
                self.failed_proposals += bool(event.engine)

    def again(self, evaluation: Evaluation) -> None:
        """Count one more evaluation of a candidate that was evaluated before, and the reference beside it."""
        self.repeated += 1
        self.repeated_seconds += 0.0 if evaluation.cached else evaluation.cost.wall
        if evaluation.beside:
            self.refer(evaluation.beside.cost)

    def refer(self, cost: Cost) -> None:
        """Count one more evaluation of a reference."""
        self.references += 1
        self.reference_seconds += cost.wall


class CallCost(Struct, frozen=True):
    """Some calls of models and what they cost; `dollars` are those of calls with a known price."""

    calls: int
    tokens: int
    dollars: float

    def __add__(self, other: CallCost) -> CallCost:
        dollars = picodollars(self.dollars) + picodollars(other.dollars)
        return CallCost(self.calls + other.calls, self.tokens + other.tokens, dollars / PICO)

    def __sub__(self, other: CallCost) -> CallCost:
        dollars = picodollars(self.dollars) - picodollars(other.dollars)
        return CallCost(self.calls - other.calls, self.tokens - other.tokens, dollars / PICO)


@dataclass(slots=True)
class Spending:
    """What was asked of models: attempts (`failed` brought no reply), tokens, and dollars where prices are known.

    Money is summed in whole picodollars, as ten floats of $0.10 come to less than $1.00.
    """

    calls: int = 0
    charged: int = 0
    """Calls that count against a limit on calls: all but those that failed and cost nothing."""
    failed: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    picodollars: int = 0
    unpriced: int = 0
    """Calls of models whose price was unknown."""
    broken: int = 0
    """Calls whose cost is not known, as no reply came or the endpoint did not tell. They are charged all that was set
    aside for them, `broken_tokens` and `broken_picodollars` in all."""
    broken_picodollars: int = 0
    broken_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Of prompts and completions together."""
        return self.prompt + self.completion

    @property
    def dollars(self) -> float:
        """Of all calls whose price was known."""
        return self.picodollars / PICO

    @property
    def broken_dollars(self) -> float:
        """Of the calls that broke off, at most."""
        return self.broken_picodollars / PICO

    def hold(self, event: Reserved) -> None:
        """Count what is set aside for an attempt as if it were spent."""
        self.charged += 1
        self.prompt += event.prompt
        self.completion += event.completion
        self.picodollars += picodollars(event.dollars or 0.0)

    @property
    def answered(self) -> CallCost:
        """The calls of which the endpoint told the cost."""
        picodollars = self.picodollars - self.broken_picodollars
        return CallCost(self.charged - self.broken, self.tokens - self.broken_tokens, picodollars / PICO)

    @property
    def uncertain(self) -> CallCost:
        """The calls that may be billed, and what they cost at most."""
        return CallCost(self.broken, self.broken_tokens, self.broken_dollars)

    def add(self, event: Spent, held: Reserved | None = None) -> None:
        """Count one more attempt, for which `held` was set aside."""
        self.calls += 1
        self.charged += not event.failure or bool(event.prompt or event.completion)
        self.failed += bool(event.failure)
        self.prompt += event.prompt
        self.cached += event.cached
        self.completion += event.completion
        self.picodollars += picodollars(event.dollars or 0.0)
        self.unpriced += event.dollars is None
        whole = held is not None and event.prompt >= held.prompt and event.completion >= held.completion
        if event.estimated and (event.failure or whole) and (event.prompt or event.completion):
            self.broken += 1
            self.broken_picodollars += picodollars(event.dollars or 0.0)
            self.broken_tokens += event.prompt + event.completion


@dataclass(slots=True)
class Outage:
    """Attempts in a row of which none brought a reply: `since` when (seconds since the epoch), and `why` the last."""

    since: int
    attempts: int = 0
    why: str = ""


class Interruption(Struct, frozen=True, kw_only=True):
    """A time in which nothing went on, from `since` to `until` (seconds since the epoch; None: still).

    `what` is as in `Halted`, for the reason `why`, or `endpoint`: `model` did not answer, in `attempts`, for the reason
    `why`.
    """

    what: str
    since: int
    until: int | None
    model: str = ""
    attempts: int = 0
    why: str = ""


@dataclass(slots=True)
class Attempts:
    """Which moves were made; in a deterministic run `horizon` is the last one that selection may know of."""

    horizon: int | None = None
    _first: dict[tuple[str, str, tuple[str, ...]], int] = field(default_factory=dict)
    _crossed: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    _in_vain: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)

    def add(self, event: Proposed | Duplicate | FailedProposal) -> None:
        """Remember one more of those with two parents, and steps that came to nothing; nobody asks for others."""
        if event.strategy in (EXTENDED, MIRRORED) and not isinstance(event, Proposed):
            self._in_vain.setdefault((event.strategy, event.parents), event.move)
        if len(event.parents) != 2:
            return
        if event.strategy in CROSSING:
            self._crossed.setdefault((event.operator, event.parents), event.move)
        self._first.setdefault((event.operator, event.strategy, event.parents), event.move)

    def made(self, operator: str, strategy: str, parents: tuple[str, ...]) -> bool:
        """Whether this was tried before with these two parents, in this order."""
        return self._is_told(self._first.get((operator, strategy, parents)))

    def in_vain(self, strategy: str, parent: str) -> bool:
        """Whether a number of this candidate was to go on so, and no new candidate came of it."""
        return self._is_told(self._in_vain.get((strategy, (parent,))))

    def crossed(self, operator: str, parents: tuple[str, ...]) -> bool:
        """Whether this merge or graft was tried before with these parents, in this order, by any strategy."""
        return self._is_told(self._crossed.get((operator, parents)))

    def is_known(self, candidate: Candidate) -> bool:
        """Whether a candidate was proposed by now, evaluated or not."""
        return self._is_told(candidate.move)

    def _is_told(self, move: int | None) -> bool:
        return move is not None and (self.horizon is None or move <= self.horizon)


class Moment(Struct, frozen=True):
    """The state of a run when a candidate was first evaluated.

    `proposals` are those that count against a limit, `elapsed` is in milliseconds since the run's first entry;
    `dollars` is None where a price is not known.
    """

    evaluations: int
    proposals: int
    elapsed: int
    tokens: int
    dollars: float | None
    calls: int = 0


class Step(Struct, frozen=True):
    """From here on `best` is the best: the number of a candidate, None where there is none."""

    best: int | None
    evaluations: int
    elapsed: int
    dollars: float | None


class Moments(Pages[str, Moment]):
    """The moments of all candidates, by id, in the order of evaluation."""


class Course(Struct):
    """Facts that depend on the order and the time of entries.

    Attributes:
        began: when the first entry was written, in milliseconds since the epoch.
        elapsed: of the latest entry, in milliseconds since then; started: of the latest start of an engine.
        moments: of each candidate that was evaluated.
        steps: of the best, oldest first; none where each verdict shifts all strengths, as only the last ones count.
    """

    began: int | None = None
    elapsed: int = 0
    started: int = 0
    moments: Moments = msgspec.field(default_factory=Moments)
    steps: list[Step] = msgspec.field(default_factory=list)

    def tick(self, entry: Entry) -> None:
        """Take in when an entry was written."""
        now = 1000 * entry.time + entry.ms
        if self.began is None:
            self.began = now
        self.elapsed = now - self.began

    def evaluated(self, commit: str, counts: Counts, spent: Spending) -> None:
        """Note how the run stands, with a candidate evaluated for the first time."""
        known = (counts.evaluated, counts.charged, self.elapsed, spent.tokens)
        self.moments[commit] = Moment(*known, None if spent.unpriced else spent.dollars, spent.charged)
        fold(self.moments)

    @property
    def best(self) -> int | None:
        """The number of the best, as far as it is noted."""
        return self.steps[-1].best if self.steps else None

    def step(self, best: int | None, counts: Counts, spent: Spending) -> None:
        """Note that another one is the best."""
        dollars = None if spent.unpriced else spent.dollars
        self.steps.append(Step(best, counts.evaluated, self.elapsed, dollars))


Done = Proposed | Duplicate | FailedProposal
"""The result of a move."""


@dataclass(slots=True)
class Effort:
    """One move in which models were asked: what it spent on each, and what it came to, None while that is open."""

    move: int
    spent: dict[str, Spending] = field(default_factory=dict)
    done: Done | None = None
    made: list[str] = field(default_factory=list)
    """The candidates that it made, several where it was a session of several steps."""
    lost: bool = False
    """True if the last call brought no reply."""

    @property
    def model(self) -> str:
        """The model that was asked last: what came of the move is its."""
        return next(reversed(self.spent))


class Efforts(Pages[tuple[int, str, str], Effort]):
    """Efforts by number of the move, engine and agent."""


LATEST = 10_000
"""Efforts that came to something of which the order is known: who learns from them looks at far fewer."""


@dataclass(slots=True)
class Authors:
    """An index of the journals: which agent and model made what.

    Attributes:
        efforts: the moves in which models were asked.
        order: the latest of those that came to something, by number.
        wrote: candidate -> the model that wrote it; without those that no model wrote.
        barren: how many proposals made no candidate, by engine, agent, model, operator and strategy.
    """

    efforts: Efforts = field(default_factory=Efforts)
    order: list[tuple[int, str, str]] = field(default_factory=list)
    wrote: dict[str, str] = field(default_factory=dict)
    barren: Counter[tuple[str, str, str, str, str]] = field(default_factory=Counter)

    def pay(self, event: Spent) -> None:
        """A model was asked in some move."""
        key = (event.move, event.engine, event.agent)
        effort = self.efforts.get(key) or Effort(event.move)
        spending = effort.spent.pop(event.model, None) or Spending()
        spending.add(event)
        effort.lost = bool(event.failure)
        effort.spent[event.model] = spending
        self.efforts[key] = effort
        fold(self.efforts)

    def answered(self, event: Done) -> bool:
        """Return True if the result of a move is its author's: its last call reached the model."""
        effort = self.efforts.get((event.move, event.engine, event.agent))
        asked = isinstance(event, FailedProposal) and bool(event.evidence)
        return not effort.lost if effort else not asked

    def unanswered(self, event: Done) -> bool:
        """Return True if a move failed because no model answered, and none was paid, or the run ended meanwhile."""
        effort = self.efforts.get((event.move, event.engine, event.agent))
        if not isinstance(event, FailedProposal):
            return False
        if effort is None or (event.ended and effort.lost):
            return event.ended
        return all(each.calls == each.failed and not each.tokens for each in effort.spent.values())

    def take(self, event: Done) -> None:
        """Take in what a move came to; a merge that asked no model while a session went on is not its author's."""
        key = (event.move, event.engine, event.agent)
        effort = self.efforts.get(key)
        if effort and event.operator in ("merge", "graft") and event.strategy in UNASKED:
            effort = None
        if effort and (effort.done is None or isinstance(event, Proposed)):
            if effort.done is None:
                effort.done = event
                insort(self.order, key)
                del self.order[:-LATEST]
            if isinstance(event, Proposed):
                effort.made.append(event.candidate)
            self.efforts[key] = effort
        model = effort.model if effort else ""
        if not isinstance(event, Proposed):
            if not self.unanswered(event):
                self.barren[event.engine, event.agent, model, event.operator, event.strategy] += 1
        elif model:
            self.wrote[event.candidate] = model


def made_by(event: Done) -> str:
    """Return the candidate that a move made, or that was there already; "" if there is none."""
    match event:
        case Proposed():
            return event.candidate
        case Duplicate():
            return event.first
        case FailedProposal():
            return ""


def _words(title: str) -> set[str]:
    """Return the words and numbers of a title, without plurals, and without words that name nothing."""
    words = re.findall(r"[^\W_]+(?:\.\d+)?", title.lower())
    return {word.removesuffix("s") for word in words if len(word) > 2 or word.isdigit()} or set(words)


@dataclass(slots=True)
class IdeaLedger:
    """The proposals of models by idea, ideas in the order in which they came up.

    `ideas` has the tries of each, by the words of its first title; all tunings are under "". `mechanical` are the
    agents, by engine, that change code without a model, or in another system.
    """

    ideas: dict[str, list[Done]] = field(default_factory=dict)
    mechanical: set[tuple[str, str]] = field(default_factory=set)

    def take(self, event: Done) -> None:
        """Take in the result of a move, if it is an idea."""
        if event.operator != "mutation" or not event.engine or not event.title or event.agent in (HUMAN, MINIMIZE):
            return
        if event.strategy in (EXTENDED, MIRRORED) or (event.engine, event.agent) in self.mechanical:
            return  # no model was asked
        tries = self.ideas.setdefault("" if event.family == TUNING else self._key(event), [])
        tries.append(event)
        del tries[:-MAX_TRIES]
        if len(self.ideas) > MAX_IDEAS:
            del self.ideas[next(iter(self.ideas))]

    def _key(self, event: Done) -> str:
        """Return the key of the idea with the same words, or of a late one of its family with two thirds of them."""
        words = _words(event.title)
        if (key := " ".join(sorted(words))) in self.ideas or not event.family:
            return key
        for known in islice(reversed(self.ideas), MAX_COMPARED):
            its = set(known.split())
            if self.ideas[known][0].family == event.family and 3 * len(words & its) >= 2 * len(words | its):
                return known
        return key
