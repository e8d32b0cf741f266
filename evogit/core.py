"""The nouns of EvoGit as plain records, and its errors.

Nothing here does I/O: every other module speaks in these words.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

Status = Literal[
    "ok",
    "invalid",
    "gated",
    "crashed",
    "timeout",
    "out-of-memory",
    "output-limit",
    "process-limit",
    "disk-limit",
    "flaky",
    "evaluator-error",
    "not-measured",
]
"""How an evaluation ended. All but `ok` are failures of the candidate, except two that do not count: `evaluator-error`,
the evaluator's own fault, after which it is tried again, and `not-measured`: the machine gave the candidate too little
of its cores, time and again, and the next engine may try."""

Operator = Literal["seed", "mutation", "merge", "graft", "human"]
"""How a candidate came to be: one parent is a `mutation`, two are a `merge`, or a `graft` of what the second
parent changed against its own first parent onto the first parent."""

HUMAN = "human"
"""The agent of people's candidates; EvoGit moves no branch of it, and it makes no attempts."""

MINIMIZE = "minimize"
"""The agent and the strategy of candidates that are trials of `evogit minimize`; whoever wants to know asks `trial`."""

StopReason = Literal[
    "evaluations",
    "proposals",
    "minutes",
    "dollars",
    "tokens",
    "calls",
    "target",
    "best-known",
    "patience",
    "exhausted",
    "stages",
    "asked",
    "interrupted",
    "error",
]
"""Why an engine stopped; `patience`: too long without a better candidate; `stages`: the last one is over; `asked`: by a
person's `evogit stop`."""

Direction = Literal["maximize", "minimize"]

Measure = Literal["", "none", "time", "rate", "memory"]
"""The part of a machine that a metric measures; values of the last three cannot be compared across hours."""

Judged = Literal["outside", "inside", "pairs"]
"""Where scores come from: computed out of the candidate's reach, or beside its code, or from comparisons of pairs."""

HOLDOUT = "holdout"
"""The split that the search never sees: the best are evaluated on it at the end."""

MAX_INT = 1 << 53
"""Whole numbers beyond this are not exact for every reader of JSON; none of ours is negative."""

Whole = Annotated[int, Meta(ge=0, le=MAX_INT)]
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Seconds = Annotated[float, Meta(ge=-86_400, le=1e10)]
"""The numbers that journals may hold, checked when they are read; durations may be negative after a clock was put back.
"""

Repeats = Annotated[int, Meta(ge=0, le=1_000)]
"""As in a task's settings."""

Tokens = Annotated[int, Meta(ge=0, le=10**12)]
Dollars = Annotated[float, Meta(ge=0, le=1e9)]
"""Amounts of one attempt to ask a model."""

Id = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{40})?\Z")]
"""The id of a Git object; empty where there is none."""

PICO = 10**12
"""Picodollars of a dollar; a token costs thousands of them."""


def picodollars(dollars: float) -> int:
    """An amount as a whole number, the same for every way to write it with up to twelve digits."""
    return round(dollars * PICO)


# --- errors -----------------------------------------------------------------------------------------------------


class EvoGitError(Exception):
    """Root of every error that a user can meet; its message says what was expected, what came and what to do.

    EvoGitError
    ├── UsageError        the request itself makes no sense
    ├── ConfigError       a task or settings file is wrong
    ├── NotFoundError     no such run, candidate, task
    ├── RefusedError      possible, but not now or not like this (stale, locked, newer version)
    ├── RepositoryError   Git refuses or is unsuited
    ├── SandboxError      the sandbox itself failed, never the program inside it
    │   └── SandboxLostError  it went away under a program (a daemon restarted): what ran there must start over
    └── EvaluatorError    the task's trusted evaluator failed, never the candidate
    """

    exit_code: ClassVar[int] = 1


class UsageError(EvoGitError):
    """The request itself makes no sense."""

    exit_code = 2


class ConfigError(EvoGitError):
    """A task or settings file is wrong."""

    exit_code = 2


class NotFoundError(EvoGitError):
    """There is no such run, candidate or task."""

    exit_code = 3


class RefusedError(EvoGitError):
    """Possible, but not now or not like this: stale, locked, or written by a newer version."""

    exit_code = 4


class RepositoryError(EvoGitError):
    """Git refuses, or the repository is unsuited."""


class SandboxError(EvoGitError):
    """The sandbox itself failed, never the program inside it."""


class SandboxLostError(SandboxError):
    """The sandbox went away under a program through no fault of it: what ran there must start over."""


class EvaluatorError(EvoGitError):
    """The task's trusted evaluator failed, never the candidate."""


# --- fitness ----------------------------------------------------------------------------------------------------


class Metric(Struct, frozen=True, kw_only=True):
    """One number that an evaluation yields, and which way is better."""

    name: str
    direction: Direction
    primary: bool = False
    aggregate: Literal["mean", "sum", "min", "max", "geometric"] = "mean"
    baseline: Finite | None = None
    best_known: Finite | None = None
    scale: Literal["", "linear", "log"] = ""
    """The growth of noise: alike for all values, or in proportion to them; empty if the task does not say."""
    bound: bool = False
    """Whether no value can be better than `best_known`, so that a run which reaches it is over."""

    def __repr__(self) -> str:
        return shown(self, but=("scale", "bound"))  # what digests of tasks in journals are made of

    @property
    def noise(self) -> Literal["", "linear", "log"]:
        """The scale on which noise is alike for all values; empty where measurements decide. That of ratios is log."""
        return self.scale or ("log" if self.aggregate == "geometric" else "")

    @property
    def sign(self) -> int:
        """What makes more better when values are multiplied with it."""
        return 1 if self.direction == "maximize" else -1

    def better(self, a: float, b: float) -> bool:
        """Whether value `a` is strictly better than value `b`."""
        return a > b if self.direction == "maximize" else a < b

    def gain(self, value: float, over: float) -> float:
        """How much better `value` is than `over`, in the metric's unit; positive is better."""
        return value - over if self.direction == "maximize" else over - value

    def gap_closed(self, value: float, seed: float) -> float | None:
        """Return the share of the way from the seed's value to the best known one; None if there is none."""
        if self.best_known is None or math.isclose(self.best_known, seed):
            return None
        return (value - seed) / (self.best_known - seed)


class Cost(Struct, frozen=True, kw_only=True):
    """What an evaluation used: seconds of wall clock and CPU, and the peak memory in bytes (0 where unknown).

    `waited` are seconds in which the candidate was ready to run and other processes of the machine had the cores.
    `call_wall` and `call_cpu` are those of the one call that came nearest to a limit of its own, `call_share` is the
    share of that limit: limits are on calls, and sums say nothing of them.
    """

    wall: Seconds = 0.0
    cpu: Seconds = 0.0
    memory: Whole = 0
    waited: Finite = 0.0
    call_wall: Finite = 0.0
    call_cpu: Finite = 0.0
    call_share: Finite = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        nearest = max(self, other, key=lambda each: each.call_share)
        return Cost(
            wall=self.wall + other.wall,
            cpu=self.cpu + other.cpu,
            memory=max(self.memory, other.memory),
            waited=self.waited + other.waited,
            call_wall=nearest.call_wall,
            call_cpu=nearest.call_cpu,
            call_share=nearest.call_share,
        )


class Beside(Struct, frozen=True, kw_only=True):
    """The reference, another candidate, that was evaluated in the same minutes: its metrics, and what that used."""

    candidate: str
    metrics: Mapping[str, Finite] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)


class Evaluation(Struct, frozen=True, kw_only=True):
    """The evidence about a candidate on one split.

    `metrics` are aggregated over `cases` (case name -> metric -> value); both are empty unless `status` is `ok`,
    except that cases seen before a failure stay, and where pairs are compared nothing is measured. `reason` is one
    sentence for the next brief. `stages` holds the metrics of the gating splits that ran before. `key` identifies
    everything that the result depends on, so that equal keys may share an evaluation; `cached` says that this one was
    shared.
    """

    status: Status
    metrics: Mapping[str, Finite] = field(default_factory=dict)
    cases: Mapping[str, Mapping[str, Finite]] = field(default_factory=dict)
    stages: Mapping[str, Mapping[str, Finite]] = field(default_factory=dict)
    reason: str = ""
    split: str = "train"
    repeat: Whole = 0
    cost: Cost = field(default_factory=Cost)
    evaluator: str = ""
    image: str = ""
    key: str = ""
    judged: Judged = "outside"
    cached: bool = False
    starved: bool = False
    """Whether the wall clock ended something of it that had to wait for a core. Until 2026 it stood for a timeout with
    most of its CPU unused."""
    beside: Beside | None = None
    """The reference of a pair; None where it was evaluated alone."""

    @property
    def ok(self) -> bool:
        """Whether the candidate was evaluated and is valid."""
        return self.status == "ok"

    @property
    def counts(self) -> bool:
        """Return whether it counts against the budget: everything but a fault of the evaluator or the machine does."""
        return self.status not in ("evaluator-error", "not-measured")


class Evidence(Struct, frozen=True, kw_only=True):
    """What was seen during an evaluation, too large for the journal: kept as files of an evidence tree."""

    stdout: bytes = b""
    stderr: bytes = b""
    feedback: Mapping[str, str] = field(default_factory=dict)
    """Case name -> text that the evaluator addressed to the next brief."""
    log: str = ""
    unshown: bool = False
    """Whether agents are shown the feedback alone, as a holdout may speak through the rest."""


def shown(record: Struct, *, but: Collection[str]) -> str:
    """`repr` of a record, without some of its fields."""
    told = (f"{name}={getattr(record, name)!r}" for name in record.__struct_fields__ if name not in but)
    return f"{type(record).__name__}({', '.join(told)})"


# --- candidates -------------------------------------------------------------------------------------------------


class BaseFiles(Struct, frozen=True):
    """Files that most candidates share, kept by warm workers: `id` names this content, `archive` is a tar of it.

    `readonly` are files and folders of it that programs can read, but neither change, remove, move nor add to. A folder
    above one of them stays where it is; between it and others, files are copied, not renamed or linked. The provider
    `none` cannot hold this.
    """

    id: str
    archive: bytes
    readonly: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return shown(self, but=("archive",))


class Files(Struct, frozen=True):
    """A candidate's files: those of `base`, without `removed`, with those of the tar archive `changed`."""

    changed: bytes
    removed: tuple[str, ...] = ()
    base: BaseFiles | None = None

    def __repr__(self) -> str:
        return shown(self, but=("changed",))


class Candidate(Struct, frozen=True, kw_only=True):
    """One commit of the population. Ids are 40 hex digits; `parents` are candidates, the fitter or first one first.

    `time` is in seconds since the epoch, `number` the order in which the journals learned of it (0 is the seed).
    `engine` made it in the attempt `move`; empty where any engine may evaluate it, as what people add.
    """

    commit: str
    tree: str
    parents: tuple[str, ...]
    agent: str
    operator: Operator
    strategy: str = ""
    title: str = ""
    family: str = ""
    conflicts: int = 0
    """Decisions that its conflicts took, of a merge or a graft."""
    trial: bool = False
    """Whether it was only tried by `evogit minimize`: it counts as no agent's attempt, and is no parent."""
    time: int = 0
    number: int = 0
    engine: str = ""
    move: int = 0

    @property
    def host(self) -> str:
        """The clone whose engine made it; empty for what people added."""
        return host_of(self.engine)

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways in which it was made, without their steps: `a` and `b` where the strategy is `a@0.03+b`."""
        return tuple(dict.fromkeys(way.partition("@")[0] for way in self.strategy.split("+") if way))


# --- the journal ------------------------------------------------------------------------------------------------


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
        """Whether the scores are those of another system, the provider: that is named as what evaluated, too."""
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

    What a person brings has the agent `human` and no engine: whoever is at work evaluates it. A commit of their own has
    the operator `human`, too.
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
        """Whether it was only tried by `evogit minimize`: it counts as no agent's attempt, and is no parent."""
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
    """What one attempt to ask a model may cost at most, set aside before it is sent, until a `Spent` settles it."""

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
    `stop`: the engines at work are asked to stop.
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


def host_of(engine: str) -> str:
    """The clone that an engine works in: `<host>-<six hex digits>`."""
    return engine.rpartition("-")[0]


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
    """The run waits for a person; it goes on when one decides anything, and by itself after `minutes` above 0."""

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
