"""The nouns of EvoGit as plain records, and its errors.

Nothing here does I/O: every other module speaks in these words.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

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
    "replayed",
    "stages",
    "asked",
    "interrupted",
    "error",
]
"""Why an engine stopped; `patience`: too long without a better candidate; `replayed`: its recording is over;
`stages`: the last one is over; `asked`: by a person's `evogit stop`."""

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


def host_of(engine: str) -> str:
    """The clone that an engine works in: `<host>-<six hex digits>`."""
    return engine.rpartition("-")[0]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return an event of the journal; `evogit.events` has them, and this old place works for one release."""
        if name.startswith("_") or not hasattr(events := import_module("evogit.events"), name):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(events, name)
