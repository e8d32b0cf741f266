"""The shape of task.toml and evogit.toml: every key, and what is wrong with a file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from evogit.config.fields import Duration, Glob, Module, Package, Place, Size, Word
from evogit.config.names import SYSTEM
from evogit.config.values import (
    STRENGTH,
    Gate,
    MetricReader,
    failure_signs,
    is_safe_path,
    nearest,
    problem,
    without_fixed,
)
from evogit.contained import MAX_TEXT_BYTES, file_at, has_file, toml_of
from evogit.core import ConfigError, Direction, Measure

SAME = ("same_inputs", "same_output")
COMMANDS = ("command", "directory", "folder", "prepare", "tests", "retry", "profile", "decimal", *SAME)
JUDGE_ONLY = ("criteria", "panel")
OUTSIDE_ONLY = ("file", "environment", "public")
BUDGETS = "^(evaluations|calls|minutes)$"


class _TaskTable(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _beside(info: ValidationInfo, name: str) -> Path:
    context: Mapping[str, Path] = info.context or {}
    return context["folder"] / name


class MetricTable(_TaskTable):
    """`[metrics.NAME]`: one number that the evaluator yields for every case."""

    direction: Direction  # which way is better
    # whether this is the metric that candidates are ranked by; a single metric is primary by itself
    primary: bool = False
    aggregate: Literal["mean", "sum", "min", "max", "geometric"] = "mean"  # how the values of the cases become one
    baseline: FiniteFloat | None = None  # the seed's value, as published with the task
    best_known: FiniteFloat | None = None  # the best value known from elsewhere, shown beside the results
    # the growth of noise: "linear", alike for all values; "log", in proportion to them, as times, rates and ratios
    # do; default: "log" for aggregate = "geometric" and for what is measured of the machine, else as measured
    scale: Literal["", "linear", "log"] = ""
    # the part of the machine that it measures: "time", "rate", "memory", or "none". With repeats, would-be bests are
    # then measured in turns with a reference. Default: "time" if read from cpu or wall, or with sandbox.exclusive
    measures: Measure = ""
    bound: bool = False  # whether nothing can be better than `best_known`, so that a run which reaches it ends

    @field_validator("bound")
    @classmethod
    def _of_a_value(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("best_known") is None:
            raise ValueError("expected best_known = VALUE beside bound = true, the value that nothing can beat")
        return value


class EvaluatorTable(_TaskTable):
    """`[evaluator]`: who judges; for kind = "python" trusted code, for kind = "command" the candidate's own folder."""

    # a Python file that drives the candidate from outside, a shell command inside its sandbox, or models and people
    # who compare candidates
    kind: Literal["python", "command", "judge"]
    # the Python file that defines `evaluate`, in a folder of its own, relative to the task's folder
    file: str = Field(default="", validate_default=True)
    # the shell command that evaluates; for kind = "judge" the one that fails where a candidate is not valid
    command: str = Field(default="", validate_default=True)
    directory: str = ""  # where it runs, below the root of the candidate's files
    # the evaluator's own files, which lie over the candidate's at the same path, read-only; it may be absent
    folder: str = ".evogit"
    prepare: str = ""  # a shell command that is run once, on the seed; every candidate starts from what it leaves
    tests: str = ""  # a shell command that runs before and is not measured; where it fails, a candidate is not valid
    retry: int = Field(default=0, ge=0, le=10)  # how often all of it is run again where it fails, for flaky tests
    # a shell command that says where the time goes; it is run once on each parent of agents that ask models
    profile: str = ""
    # globs of the seed's files from which inputs for `same_output` are made, by mutating them
    same_inputs: list[Glob] = []
    # a shell command that prints, for an input on stdin, what a candidate must print as the seed does
    same_output: str = Field(default="", validate_default=True)
    # names of your environment variables that the evaluator gets, such as an API key; candidates never get them
    environment: list[Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]] = []
    # metric -> how it is read from what the command did
    read: dict[str, str] = Field(default={}, validate_default=True)
    # the decimal point of the numbers that the command prints, if they do not tell: `12,750`
    decimal: Literal["", ".", ","] = ""
    # signs of failure beside a number that do not count: names of fields, "traceback", "seed", or "all"
    ignored_failures: list[str] = []
    # cases whose answers agents may be told: true for all of "train" and of the stages before it, or their names
    public: bool | list[str] = False
    # what makes one candidate better than another, for the models and people who compare them
    criteria: str = Field(default="", validate_default=True)
    # names of the models that compare candidates, in turn; without any, people do: `evogit judge`
    panel: list[str] = []
    # the sets of cases in order; those before "train" are stages that run first
    splits: list[Word] = Field(default=["train"], min_length=1)
    gate: dict[str, str] = {}  # stage -> "METRIC OP NUMBER" that must hold before the next split is evaluated
    # what is not evaluated again: files that do the same ("fingerprint": but for comments, layout and names of locals
    # in Python; the default for kind = "python"), or only files that are the same ("tree"; the default for others)
    novelty: Literal["", "fingerprint", "tree"] = ""
    # noisy scores: how often a would-be best is evaluated again before it is believed; 0: scores are exact
    repeats: int = Field(default=0, ge=0, le=1000)

    @field_validator(*COMMANDS, "read", "repeats", "ignored_failures", *OUTSIDE_ONLY, *JUDGE_ONLY)
    @classmethod
    def _of_this_kind(cls, value: Any, info: ValidationInfo) -> Any:
        kind, name = str(info.data.get("kind")), str(info.field_name)
        if value != cls.model_fields[name].default and (kind, name) in _FOREIGN:
            raise ValueError(f'kind = "{kind}" has no such key; remove it')
        if not value and (kind, name) in _NEEDED:
            raise ValueError(f'missing; kind = "{kind}" needs {_NEEDED[kind, name]}')
        return value

    @field_validator("same_output")
    @classmethod
    def _has_inputs(cls, value: str, info: ValidationInfo) -> str:
        if bool(value) != bool(info.data.get("same_inputs", value)):
            raise ValueError('expected same_output = "COMMAND" with same_inputs = [GLOB, ...], files to make inputs of')
        return value

    @field_validator("directory", "folder")
    @classmethod
    def _below_the_root(cls, value: str, info: ValidationInfo) -> str:
        plain = value.removesuffix("/")
        if not is_safe_path(plain) and (plain or info.field_name == "folder"):
            raise ValueError(f'expected a relative path without "..", such as "services/api", got {value!r}')
        return plain

    @field_validator("file")
    @classmethod
    def _in_own_folder(cls, value: str, info: ValidationInfo) -> str:
        if not value:
            return value
        if not is_safe_path(value) or "/" not in value:
            raise ValueError(f'expected a file in a folder of its own, such as "evaluator/evaluate.py", got "{value}"')
        if not _beside(info, value).is_file():
            raise ValueError(f'there is no file "{value}" in the folder of this file; create it')
        if not has_file(_beside(info, ""), value):
            raise ValueError(f'"{value}" is a link that leads out of the folder of this file; put a copy in its place')
        return value

    @field_validator("read")
    @classmethod
    def _readable(cls, value: dict[str, str]) -> dict[str, str]:
        for metric, text in value.items():
            try:
                MetricReader.parse(text)
            except ValueError as error:
                raise ValueError(f"{metric}: {error}") from None
        return value

    @field_validator("ignored_failures")
    @classmethod
    def _known_signs(cls, value: list[str]) -> list[str]:
        return list(failure_signs(value))

    @field_validator("splits")
    @classmethod
    def _has_train(cls, value: list[str]) -> list[str]:
        if "train" not in value or len(set(value)) < len(value):
            raise ValueError(f'expected different names, "train" among them, got {value}')
        return value

    @field_validator("gate")
    @classmethod
    def _gates_of_stages(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        splits = info.data.get("splits", [*value, "train"])
        stages = splits[: splits.index("train")]
        for split, text in value.items():
            Gate.parse(text)
            if split not in stages:
                raise ValueError(f'"{split}" is not a split before "train" in splits; {nearest(split, stages)}')
        return value


_STRENGTHS = {STRENGTH: MetricTable(direction="maximize")}
_FOREIGN = {
    *(("python", name) for name in (*COMMANDS, "read", *JUDGE_ONLY)),
    *(("command", name) for name in (*OUTSIDE_ONLY, *JUDGE_ONLY)),
    *(
        ("judge", name)
        for name in ("read", "repeats", "tests", "profile", "decimal", "ignored_failures", *OUTSIDE_ONLY, *SAME)
    ),
}
_NEEDED = {
    ("python", "file"): 'the file that defines evaluate, such as "evaluator/evaluate.py"',
    ("command", "command"): 'a shell command, such as "make test"',
    ("command", "read"): 'a table [evaluator.read] such as score = "json"',
    ("judge", "criteria"): 'a text that says what is better, such as "The clearer and shorter one is better."',
}
"""What each kind has no use for, and what it cannot do without: (kind, key) -> what is expected."""


class SandboxTable(_TaskTable):
    """`[sandbox]`: what a candidate may use."""

    memory: Size = 512 * 1024**2  # all processes together
    # wall clock of one request: a call, a streamed item, a command; default: three times `cpu`
    timeout: Duration | None = None
    cpu: Duration | None = None  # CPU time of one request; default: as much as `timeout`, or ten seconds
    # wall clock of all requests together; default: ten minutes, or ten times `timeout` when that is more
    total: Duration | None = None
    pids: int = Field(default=64, gt=0)  # processes and threads at a time
    disk: Size = 256 * 1024**2  # everything that is written
    output: Size = 1024**2  # stdout and stderr, each
    preload: list[Module] = []  # modules that are imported before the candidate's code
    image: str = ""  # the image that Docker starts from; default: EvoGit's own
    packages: list[Package] = []  # python requirements and, as "apt:NAME", Debian packages that programs find
    setup: list[str] = []  # shell commands that finish the image, run once, with a network
    # whether candidates share a worker, one after the other, or get a new one each
    isolation: Literal["warm", "fresh"] = "warm"
    runtime: Literal["", "runsc"] = ""  # the container runtime; "runsc" is gVisor, which has a kernel of its own
    cpus: float = Field(default=1.0, gt=0, le=1024)  # cores for all processes together
    gpus: int = Field(default=0, ge=0)  # graphics processors
    exclusive: bool = False  # whether candidates run one at a time on a core of their own, for tasks that measure time
    network: bool = False  # whether `prepare` may use the network; candidates never can
    # absolute paths that programs expect, and the folder among the candidate's files that each one leads to
    links: dict[str, Place | Literal["."]] = {}

    @field_validator("links")
    @classmethod
    def _absolute(cls, value: dict[str, str]) -> dict[str, str]:
        for path in value:
            if not re.fullmatch(r"(/[\w.-]+)+", path) or ".." in path or path.split("/")[1] in SYSTEM:
                raise ValueError(f'expected absolute paths outside of the system, such as "/data", got {path!r}')
        return value


class StageTable(_TaskTable):
    """`[[stages]]`: parts of the work in their order; each begins from the best of the one before."""

    goal: str = Field(min_length=1)  # what agents are told to do now, beside the goal of the whole
    until: str = ""  # "METRIC OP NUMBER" of the best ends it; with " in PATTERN" that must hold in each such case
    # what ends it otherwise: evaluations, failed ones included; calls of models, as `--calls` counts; minutes since it
    # began, or since the run went on
    budget: dict[Annotated[str, Field(pattern=BUDGETS)], Annotated[float, Field(gt=0, le=1e9)]] = {}


class ReviewTable(_TaskTable):
    """`[review]`: a model that looks at each would-be best before it is the best."""

    model: str = Field(min_length=1)  # a model of your settings, independent of the agents' ones


class TaskTable(_TaskTable):
    """A whole task.toml or evogit.toml."""

    name: Word  # names the run and its branches
    # what agents are told; default: the text of goal.md beside the file
    goal: str = Field(default="", validate_default=True)
    editable: list[Glob] = Field(min_length=1)  # globs of the paths that candidates may change
    # globs of the paths that stay in every commit but are shown to no agent, and to no program but a command
    withheld: list[Glob] = []
    # globs of the paths that stay in every commit but go nowhere else, such as large files without a use
    excluded: list[Glob] = []
    # globs of the paths that agents are shown although they hold credentials, such as keys that only tests use
    shared: list[Glob] = []
    metrics: dict[str, MetricTable] = Field(min_length=1)  # the numbers that candidates are evaluated by
    evaluator: EvaluatorTable  # what evaluates candidates
    stages: list[StageTable] = []  # parts of the work, one after the other
    sandbox: SandboxTable = SandboxTable()  # what a candidate may use
    review: ReviewTable | None = None  # the model that reviews would-be bests; without it none does

    @model_validator(mode="before")
    @classmethod
    def _ranked_by_strength(cls, table: Any) -> Any:
        """Comparisons of pairs always yield the same metric, so it need not be written down."""
        evaluator = table.get("evaluator") if isinstance(table, dict) else None
        if isinstance(evaluator, dict) and evaluator.get("kind") == "judge" and "metrics" not in table:
            return {**table, "metrics": _STRENGTHS}
        return table

    @field_validator("goal")
    @classmethod
    def _from_file(cls, value: str, info: ValidationInfo) -> str:
        if not value and not _beside(info, "goal.md").is_file():
            raise ValueError("expected a text, or a file goal.md beside this one, that tells agents what to improve")
        return (value or file_at(_beside(info, ""), "goal.md", MAX_TEXT_BYTES)[0].decode()).strip()

    @field_validator("metrics")
    @classmethod
    def _one_primary(cls, value: dict[str, MetricTable]) -> dict[str, MetricTable]:
        odd = [name for name in value if not name.isidentifier() or name in ("name", "feedback")]
        if odd:
            raise ValueError(f'expected Python identifiers other than "name" and "feedback", got {", ".join(odd)}')
        primary = [name for name, metric in value.items() if metric.primary]
        if len(primary) != 1 and len(value) > 1:
            raise ValueError(f"expected primary = true at exactly one metric, got {len(primary)}: {', '.join(primary)}")
        return value

    @field_validator("evaluator")
    @classmethod
    def _names_metrics(cls, value: EvaluatorTable, info: ValidationInfo) -> EvaluatorTable:
        for split, text in value.gate.items():
            known = info.data.get("metrics", [Gate.parse(text).metric])
            if Gate.parse(text).metric not in known:
                raise ValueError(f'gate.{split} names no metric: "{text}"; {nearest(Gate.parse(text).metric, known)}')
        metrics = info.data.get("metrics", value.read)
        if value.kind == "judge" and (value.splits != ["train"] or value.repeats or metrics != _STRENGTHS):
            raise ValueError('kind = "judge" ranks by strength alone; remove metrics, splits, gate and repeats')
        for name in value.read.keys() - metrics:
            raise ValueError(f"read.{name} names no metric; {nearest(name, metrics)}")
        for name in metrics.keys() - value.read if value.kind == "command" else ():
            raise ValueError(f'read.{name}: missing; say how the metric is read, such as {name} = "json"')
        return value

    @field_validator("stages")
    @classmethod
    def _end(cls, value: list[StageTable], info: ValidationInfo) -> list[StageTable]:
        for stage in value:
            if not (stage.until or stage.budget):
                raise ValueError('expected what ends a stage: until = "METRIC OP NUMBER", or a budget')
            name = Gate.parse(stage.until.partition(" in ")[0]).metric if stage.until else ""
            if name and name not in (known := info.data.get("metrics", [name])):
                raise ValueError(f'until names no metric: "{stage.until}"; {nearest(name, known)}')
        return value

    @field_validator("review")
    @classmethod
    def _of_numbers(cls, value: ReviewTable | None, info: ValidationInfo) -> ReviewTable | None:
        if value and (evaluator := info.data.get("evaluator")) and evaluator.kind == "judge":
            raise ValueError('kind = "judge" has no review, as models or people look at every candidate; remove it')
        return value


FIXED = {
    "evaluator.requirements": "an import that fails names what to install",
    "evaluator.comparisons": "4",
    "evaluator.calibrate": "true",
}
"""Keys that earlier versions had, and what holds for all tasks now."""


def read(file: Path, folder: Path) -> TaskTable:
    """Read a file whose paths are `folder`'s. Raises ConfigError: naming every problem and where it is."""
    try:
        raw = toml_of(file_at(file.parent, file.name, MAX_TEXT_BYTES)[0].decode())
        return TaskTable.model_validate(without_fixed(raw, FIXED, file), context={"folder": folder})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error
    except ValidationError as error:
        tables: dict[str, type[BaseModel]]
        tables = {"metrics": MetricTable, "evaluator": EvaluatorTable, "sandbox": SandboxTable}
        tables |= {"stages": StageTable, "review": ReviewTable}
        problems = []
        for each in error.errors():
            loc = each["loc"]
            table = tables.get(str(loc[0]), TaskTable) if loc[:-1] else TaskTable
            problems.append(f"{file}: {problem(loc, each, table.model_fields)}")
        raise ConfigError("\n".join(problems)) from None
