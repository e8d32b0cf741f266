"""The events of the journal as plain records; journals are the truth, and formats are only ever added to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from evogit.core import (
    MINIMIZE,
    Candidate,
    Dollars,
    Evaluation,
    Finite,
    Id,
    Judged,
    Metric,
    Operator,
    Repeats,
    Seconds,
    StopReason,
    Tokens,
    Whole,
)


class RunStarted(Struct, frozen=True, kw_only=True):
    """An engine began or went on with a run. The first one of a run fixes its task and metrics."""

    event: Literal["run-started"] = "run-started"
    engine: str
    task: str
    task_digest: str
    metrics: tuple[Metric, ...]
    split: str
    evaluator: str
    provider: str
    image: str
    judged: Judged = "outside"
    agents: tuple[str, ...]
    population: str
    """Prefix of the agents' refs, ending in a slash."""
    editable: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    goal: str = ""
    """What agents were told to do; empty in old journals."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What `task_digest` covers, each with a digest of its own, to tell what changed; empty in old journals."""
    repeats: Repeats = 0
    """How often a would-be best is evaluated again before it is believed; 0: exact scores. The last start's holds."""
    paired: bool = False
    """Whether would-be bests are evaluated side by side with a reference, as the metric depends on the machine. The
    first start's holds."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: str = ""
    """Of the secret that evaluators' inputs are drawn with, a hash; empty: everybody can make them. The first holds."""

    @property
    def imported(self) -> bool:
        """True if the scores are those of another system, which is named as provider and evaluator alike."""
        return self.parts.get("evaluator") == self.provider


class Measured(Struct, frozen=True, kw_only=True):
    """A step as the session that made it measured it, alternating with its parent and the seed: never a score.

    Attributes:
        pairs: how often each was measured.
        parent: the primary metric as a ratio to the parent's, the geometric mean of the pairs.
        margin: half of the 95 % interval of the logarithm of that ratio (Student's t of the pairs).
        seed: the same ratio to the seed's.
        seconds: wall clock of the measurement.
    """

    pairs: Whole
    parent: Finite
    margin: Finite
    seed: Finite
    seconds: Finite = 0.0


class Proposed(Struct, frozen=True, kw_only=True):
    """A new candidate commit awaits its evaluation. `move` numbers the agents' attempts; the seed is move 0.

    A commit that a person adds has the agent `human` and no engine; the engines at work evaluate it. One that a person
    wrote has the operator `human`, too.
    """

    event: Literal["proposed"] = "proposed"
    engine: str
    move: Whole
    candidate: Id
    tree: Id
    parents: tuple[Id, ...]
    agent: str
    operator: Operator
    strategy: str = ""
    title: str = ""
    conflicts: Whole = 0
    """How many decisions the conflicts of a merge or a graft took: hunks, definitions or whole paths."""
    fingerprint: str = ""
    """What the tree does, as far as syntax tells; empty where it was not computed."""
    shown: tuple[Id, ...] = ()
    """Candidates, no ancestors, of which the agent's brief showed code or a diff."""
    inspirations: tuple[Id, ...] = ()
    """Those of them that brought lines which the tree has and no parent has."""
    rebased_from: Id = ""
    """The candidate that the agent changed, where the change was put on another one; empty where it was not."""
    tactic: Id = ""
    """The entry of the tactic that its agent's brief had; empty where it had none."""
    kept: bool = False
    """True for one of several steps of a session, which counts as one proposal."""
    measured: Measured | None = None
    """The measurement by the session that made it; None if it was not measured."""
    family: str = ""
    """A short key of the approach, which its author gives and uses again; empty if it gave none."""
    differs: str = ""
    """Why an idea that was tried before is different this time, in its author's words."""
    reason: str = ""
    """The reason for the change, a line of its author's words; all of it is in the commit's message."""
    evidence: Id = ""
    """Id of the evidence tree; empty where there is none."""

    @property
    def trial(self) -> bool:
        """True for a trial of `evogit minimize`, which is no agent's attempt and no parent."""
        return self.agent == MINIMIZE

    def as_candidate(self, *, time: int, number: int) -> Candidate:
        """The candidate that this entry of `time` tells of, `number` in the order of the journals."""
        return Candidate(
            commit=self.candidate,
            tree=self.tree,
            parents=self.parents,
            agent=self.agent,
            operator=self.operator,
            strategy=self.strategy,
            title=self.title,
            family=self.family,
            conflicts=self.conflicts,
            trial=self.trial,
            time=time,
            number=number,
            engine=self.engine,
            move=self.move,
        )


class Evaluated(Struct, frozen=True, kw_only=True):
    """A candidate was evaluated; `instead` is why an earlier result of the same repeat is not believed any more."""

    event: Literal["evaluated"] = "evaluated"
    candidate: Id
    evaluation: Evaluation
    evidence: Id = ""
    instead: str = ""


class Duplicate(Struct, frozen=True, kw_only=True):
    """A proposal had the tree of an earlier candidate, `first`, or nearly so (`likeness`), and made no commit."""

    event: Literal["duplicate"] = "duplicate"
    engine: str
    move: Whole
    agent: str
    first: Id
    parents: tuple[Id, ...] = ()
    operator: Operator = "mutation"
    strategy: str = ""
    likeness: Literal["same", "fingerprint"] = "same"
    """`fingerprint`: it differs from `first` in comments, names of locals or layout alone."""
    title: str = ""
    """What its author called it; empty in old journals."""
    family: str = ""
    differs: str = ""


class FailedProposal(Struct, frozen=True, kw_only=True):
    """An agent came back without a usable change."""

    event: Literal["failed-proposal"] = "failed-proposal"
    engine: str
    move: Whole
    agent: str
    parents: tuple[Id, ...]
    reason: str
    operator: Operator = "mutation"
    strategy: str = ""
    evidence: Id = ""
    ended: bool = False
    """Whether there is none because the run ended."""
    title: str = ""
    """The title of the reply that could not be used; empty if it had none."""
    family: str = ""
    differs: str = ""


class Adopted(Struct, frozen=True, kw_only=True):
    """An agent made a candidate its current individual."""

    event: Literal["adopted"] = "adopted"
    agent: str
    candidate: Id


class Reserved(Struct, frozen=True, kw_only=True):
    """The most that one call of a model may cost, set aside before it is sent, until a `Spent` settles it."""

    event: Literal["reserved"] = "reserved"
    engine: str
    move: Whole
    agent: str
    model: str
    prompt: Tokens = 0
    completion: Tokens = 0
    dollars: Dollars | None = None


class Spent(Struct, frozen=True, kw_only=True):
    """One attempt to ask a model: its tokens and, where the price is known, dollars; `failure` when no reply came.

    `estimated`: the endpoint did not tell the tokens, so that they are counted from the texts, or as what was set aside
    for them. `reserved` is the entry that set it aside, empty where no limit was in force. `seconds` passed since the
    question; 0 where that is not known.
    """

    event: Literal["spent"] = "spent"
    engine: str
    move: Whole
    agent: str
    model: str
    prompt: Tokens = 0
    cached: Tokens = 0
    completion: Tokens = 0
    dollars: Dollars | None = None
    estimated: bool = False
    failure: str = ""
    reserved: Id = ""
    seconds: Seconds = 0.0


class Tactic(Struct, frozen=True, kw_only=True):
    """A model looked back: `text` for later briefs, empty with the `failure` if no usable answer came."""

    event: Literal["tactic"] = "tactic"
    engine: str
    move: Whole
    agent: str
    model: str = ""
    best: Id
    """The candidate that was the best when it was asked."""
    text: str = ""
    failure: str = ""
    evidence: Id = ""


class SessionEnded(Struct, frozen=True, kw_only=True):
    """A session of several steps ended: what its agent notes for the next one, which may be another agent's.

    Attributes:
        candidate: the last step that it kept, or the candidate that it began from.
        kept: how many steps it kept.
        measured: how many drafts it measured.
        text: what was tried and what is left, in the agent's words.
        evidence: id of the evidence tree of the session.
    """

    event: Literal["session"] = "session"
    engine: str
    move: Whole
    agent: str
    model: str = ""
    candidate: Id
    kept: Whole = 0
    measured: Whole = 0
    text: str = ""
    evidence: Id = ""


class Compared(Struct, frozen=True, kw_only=True):
    """A model or a person said which of two candidates is better, `swapped` if `b` was shown first.

    For `calibration` the answer is known: `a` is the seed, and the other side was the seed with half of it cut off.
    """

    event: Literal["verdict"] = "verdict"
    judge: str
    by: Literal["model", "person"]
    a: Id
    b: Id = ""
    winner: Literal["a", "b", "tie"]
    reason: str = ""
    swapped: bool = False
    calibration: bool = False
    engine: str = ""
    evidence: Id = ""


ReviewVerdict = Literal["passed", "refused", "unreviewed"]
"""What a review of a would-be best comes to."""


class Reviewed(Struct, frozen=True, kw_only=True):
    """A model, the reviewer that the task names, looked at a would-be best.

    `refused`: it is not to be the best, for the `reason`. `unreviewed`: no usable answer came, for the `reason`, and it
    passes all the same.
    """

    event: Literal["reviewed"] = "reviewed"
    engine: str
    candidate: Id
    model: str
    verdict: ReviewVerdict
    reason: str = ""
    evidence: Id = ""


class TaskChanged(Struct, frozen=True, kw_only=True):
    """A person had the run go on with a changed task or evaluator: evaluations before this entry rank no candidate."""

    event: Literal["task-changed"] = "task-changed"
    by: str
    task_digest: str
    metrics: tuple[Metric, ...]
    split: str
    evaluator: str
    judged: Judged = "outside"
    editable: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)


class Decision(Struct, frozen=True, kw_only=True):
    """A person's act on the graph. `candidates` are those it names; `undoes` is the entry that it takes back.

    `guide`: `reason` is the guidance, which joins every later brief. `note`: it is for people alone.
    `stop`: the engines at work are asked to stop, with `after_calls` once models answered what they were asked.
    `land`: `branch` (a whole ref) was made to point to `commit`, which brings the candidate onto a target branch.
    `refuse`: no person's; it is how the history holds a refusal by the reviewer, so that people can take it back.
    `carriers` are candidates that a `prune` prunes too, as they have the code that its candidate brought; later copies
    of that are refused. None: the code is not followed.
    """

    event: Literal["decision"] = "decision"
    kind: Literal["promote", "prune", "guide", "note", "land", "stop", "undo", "refuse"]
    by: str
    reason: str = ""
    candidates: tuple[Id, ...] = ()
    subtree: bool = False
    carriers: tuple[Id, ...] | None = None
    undoes: Id = ""
    branch: str = ""
    commit: Id = ""
    after_calls: bool = False


class Lesson(Struct, frozen=True, kw_only=True):
    """A sentence that the change of the candidate `step` proved on several parents, for the briefs of later runs.

    The last entry about a step holds. `run` is the one that made the step, with this `goal` and primary `metric`;
    `files` are what the step changed. `gains` are those of the step by parent, negative if it harms. `withdrawn` says
    why the lesson is not offered any more.
    """

    event: Literal["lesson"] = "lesson"
    by: str
    step: Id
    run: str
    text: str
    goal: str = ""
    metric: str = ""
    files: tuple[str, ...] = ()
    gains: Mapping[Id, Finite] = field(default_factory=dict)
    withdrawn: str = ""


class Halted(Struct, frozen=True, kw_only=True):
    """An engine could do nothing for so many seconds, up to this entry, and went on.

    `asleep`: the machine slept, or the process was stopped. `no-room`: the disk of the repository was full.
    `remote`: it went on alone, as the Git server was away or refused what it pushed, for the reason in `detail`.
    `review`: it waited for a person to look at it, as a `review-asked` entry says.
    """

    event: Literal["halted"] = "halted"
    engine: str
    reason: Literal["asleep", "no-room", "remote", "review"]
    seconds: Seconds
    detail: str = ""


class StageBegun(Struct, frozen=True, kw_only=True):
    """The run works on the next stage of its task, `number` of `of`, from `best` on; `why` the one before is over.

    `evaluations` and `calls` that count were made before; `budget` is what it may use of them, and `minutes`.
    """

    event: Literal["stage-begun"] = "stage-begun"
    engine: str
    number: Whole
    of: Whole
    goal: str = ""
    until: str = ""
    budget: Mapping[str, Finite] = field(default_factory=dict)
    why: str = ""
    best: Id = ""
    evaluations: Whole = 0
    calls: Whole = 0


class ReviewAsked(Struct, frozen=True, kw_only=True):
    """A pause for a person, until a decision is made or, if `minutes` is above 0, that time is over."""

    event: Literal["review-asked"] = "review-asked"
    engine: str
    best: Id = ""
    stage: Whole = 0
    evaluations: Whole = 0
    minutes: Finite = 0.0


class Stopped(Struct, frozen=True, kw_only=True):
    """An engine stopped in good order."""

    event: Literal["stopped"] = "stopped"
    engine: str
    reason: StopReason
    detail: str = ""
    again: str = ""
    """What was otherwise when the best of an exact task was evaluated once more; empty where nothing was."""


class Forked(Struct, frozen=True, kw_only=True):
    """This run is another one, `run`, up to here, and goes its own way from here on."""

    event: Literal["forked"] = "forked"
    run: str
    """The other run's name; it may be gone by now."""
    entry: Id
    """The last entry that both have in common, of whatever host."""
    population: str
    """Prefix of this run's refs of agents, ending in a slash."""


Event = (
    RunStarted
    | Proposed
    | Evaluated
    | Duplicate
    | FailedProposal
    | Reserved
    | Spent
    | Adopted
    | Tactic
    | SessionEnded
    | Compared
    | Reviewed
    | TaskChanged
    | Decision
    | Lesson
    | Forked
    | Halted
    | StageBegun
    | ReviewAsked
    | Stopped
)


class Entry(Struct, frozen=True, kw_only=True):
    """One fact in a journal: `id` is its commit, `seq` a Lamport clock over all journals, ties broken by `host`."""

    id: str
    host: str
    seq: int
    time: int
    event: Event
    ms: int = 0
    """When in the second `time` it was written, in milliseconds; 0 in old journals."""
