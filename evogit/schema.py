"""The shape of task.toml and evogit.toml: every key, its values, and what is wrong with a file."""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from evogit.core import Direction

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


# --- values -----------------------------------------------------------------------------------------------------


def seconds(value: float | str) -> float:
    """A duration in seconds, from a number of seconds or a text such as "500ms", "10s", "2m", "1h".

    Raises:
        ValueError: when it is neither, or not positive.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|m|h)", value) if isinstance(value, str) else None
    if match:
        value = float(match[1]) * _SECONDS[match[2]]
    if isinstance(value, (str, bool)) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise ValueError(f'expected a positive duration such as "10s" or 10, got {value!r}')
    return float(value)


def size(value: int | str) -> int:
    """A size in bytes, from a number of bytes or a text such as "64k", "512m", "2g".

    Raises:
        ValueError: when it is neither, or not positive.
    """
    match = re.fullmatch(r"(\d+)([kmg]?)", value.lower()) if isinstance(value, str) else None
    if match:
        value = int(match[1]) * _BYTES[match[2]]
    if isinstance(value, (str, bool)) or not isinstance(value, int) or value <= 0:
        raise ValueError(f'expected a size such as "512m" or 536870912, got {value!r}')
    return value


def is_safe_path(path: str) -> bool:
    """Whether `path` is relative, normal, with forward slashes, and nowhere near a `.git`."""
    parts = path.split("/")
    plain = "\\" not in path and "\0" not in path and not any(part in ("", ".", "..") for part in parts)
    return plain and not any(part.casefold().rstrip(". ") in (".git", "git~1") for part in parts)


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether a glob covers `path`, from the root on: `*` and `?` stop at a slash, `**` does not."""
    return any(re.fullmatch(_regex(glob), path, re.DOTALL) for glob in globs)


def _regex(glob: str) -> str:
    tokens = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(tokens.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob))


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error's sentence: the known word that was probably meant, else all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f'did you mean "{close[0]}"?' if close else f"known: {', '.join(known) or 'none'}"


def _glob(value: str) -> str:
    if not is_safe_path(value):
        raise ValueError(
            f'expected a relative path or glob such as "src/**", without "..", ".git" or "\\", got {value!r}'
        )
    return value


def _package(value: str) -> str:
    if value.startswith("apt:") and not re.fullmatch(r"apt: *[a-z0-9][a-z0-9+.-]+([:=][\w+.:~-]+)? *", value):
        raise ValueError(f'expected the name of a Debian package, such as "apt:gcc", got {value!r}')
    return value


@dataclass(frozen=True, slots=True)
class Gate:
    """What the metrics of a stage must fulfil before the next split is judged."""

    metric: str
    op: Literal[">", ">=", "<", "<=", "=="]
    number: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read "METRIC OP NUMBER".

        Raises:
            ValueError: when the text is something else.
        """
        match = re.fullmatch(r"\s*(\w+)\s*(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*", text)
        if not match:
            raise ValueError(f'expected "METRIC OP NUMBER" with OP one of > >= < <= ==, got {text!r}')
        return cls(match[1], match[2], float(match[3]))  # type: ignore[arg-type]  # the expression lists them

    def passes(self, metrics: Mapping[str, float]) -> bool:
        """Whether the metrics fulfil it."""
        value, number = metrics[self.metric], self.number
        tests = {
            ">": value > number,
            ">=": value >= number,
            "<": value < number,
            "<=": value <= number,
            "==": value == number,
        }
        return tests[self.op]

    def __str__(self) -> str:
        return f"{self.metric} {self.op} {self.number:g}"


# --- the file's shape -------------------------------------------------------------------------------------------

Duration = Annotated[float, BeforeValidator(seconds)]
Size = Annotated[int, BeforeValidator(size)]
Glob = Annotated[str, BeforeValidator(_glob)]
Package = Annotated[str, AfterValidator(_package)]
Module = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _beside(info: ValidationInfo, name: str) -> Path:
    context: Mapping[str, Path] = info.context or {}
    return context["folder"] / name


class MetricTable(_Table):
    """`[metrics.NAME]`: one number that the evaluator yields for every case."""

    direction: Direction
    """Which way is better."""
    primary: bool = False
    """Whether this is the metric that candidates are ranked by; a single metric is primary by itself."""
    aggregate: Literal["mean", "sum", "min", "max", "geometric"] = "mean"
    """How the values of the cases become one."""
    baseline: FiniteFloat | None = None
    """The seed's value, as published with the task."""
    best_known: FiniteFloat | None = None
    """The best value known from elsewhere, shown beside the results."""


class EvaluatorTable(_Table):
    """`[evaluator]`: the trusted code that judges."""

    kind: str
    """How it judges; this version knows "python"."""
    file: str
    """The Python file that defines `evaluate`, in a folder of its own, relative to the task's folder."""
    requirements: list[str] = []
    """Names of the packages that the evaluator itself imports."""
    splits: list[Word] = Field(default=["train"], min_length=1)
    """The sets of cases in order; those before "train" are stages that run first."""
    gate: dict[str, str] = {}
    """Stage -> "METRIC OP NUMBER" that must hold before the next split is judged."""

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, value: str) -> str:
        if value != "python":
            raise ValueError(f'this version knows only kind = "python", got "{value}"')
        return value

    @field_validator("file")
    @classmethod
    def _in_own_folder(cls, value: str, info: ValidationInfo) -> str:
        if not is_safe_path(value) or "/" not in value:
            raise ValueError(f'expected a file in a folder of its own, such as "evaluator/evaluate.py", got "{value}"')
        if not _beside(info, value).is_file():
            raise ValueError(f'there is no file "{value}" in the folder of this file; create it')
        return value

    @field_validator("requirements")
    @classmethod
    def _installed(cls, value: list[str]) -> list[str]:
        odd = [name for name in value if not re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", name)]
        if odd:
            raise ValueError(f"expected names of packages without versions, got {', '.join(odd)}")
        missing = [name for name in value if not any(importlib.metadata.distributions(name=name))]
        if missing:
            raise ValueError(f"the evaluator needs packages that are not here; run: pip install {' '.join(missing)}")
        return value

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
                raise ValueError(f'"{split}" is no split before "train" in splits; {nearest(split, stages)}')
        return value


class SandboxTable(_Table):
    """`[sandbox]`: what a candidate may use."""

    memory: Size = 512 * 1024**2
    """All processes together."""
    timeout: Duration = 10.0
    """Wall clock of one request: a call, a streamed item, a command."""
    cpu: Duration | None = None
    """CPU time of one request; default: as much as `timeout`."""
    total: Duration | None = None
    """Wall clock of all requests together; default: ten minutes, or ten times `timeout` when that is more."""
    pids: int = Field(default=64, gt=0)
    """Processes and threads at a time."""
    disk: Size = 256 * 1024**2
    """Everything that is written."""
    output: Size = 1024**2
    """Stdout and stderr, each."""
    preload: list[Module] = []
    """Modules that are imported before the candidate's code."""
    image: str = ""
    """The image that Docker starts from; default: EvoGit's own."""
    packages: list[Package] = []
    """Python requirements and, as "apt:NAME", Debian packages that programs find."""
    setup: list[str] = []
    """Shell commands that finish the image, run once, with a network."""
    isolation: Literal["warm", "fresh"] = "warm"
    """Whether candidates share a worker, one after the other, or get a new one each."""
    runtime: Literal["", "runsc"] = ""
    """The container runtime; "runsc" is gVisor, which has a kernel of its own."""
    cpus: float = Field(default=1.0, gt=0, le=1024)
    """Cores for all processes together."""
    gpus: int = Field(default=0, ge=0)
    """Graphics processors."""
    exclusive: bool = False
    """Whether candidates run one at a time on a core of their own, for tasks that measure time."""
    network: bool = False
    """Whether `prepare` may use the network; candidates never can."""


class TaskTable(_Table):
    """A whole task.toml or evogit.toml."""

    name: Word
    """Names the run and its branches."""
    goal: str = Field(default="", validate_default=True)
    """What agents are told; default: the text of goal.md beside the file."""
    editable: list[Glob] = Field(min_length=1)
    """Globs of the paths that candidates may change."""
    withheld: list[Glob] = []
    """Globs of the paths that stay in every commit but are shown to no agent and no sandbox."""
    metrics: dict[str, MetricTable] = Field(min_length=1)
    """The numbers that candidates are judged by."""
    evaluator: EvaluatorTable
    """Who judges."""
    sandbox: SandboxTable = SandboxTable()
    """What a candidate may use."""

    @field_validator("goal")
    @classmethod
    def _from_file(cls, value: str, info: ValidationInfo) -> str:
        file = _beside(info, "goal.md")
        if not value and not file.is_file():
            raise ValueError("expected a text, or a file goal.md beside this one, that tells agents what to improve")
        return (value or file.read_text(encoding="utf-8")).strip()

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
    def _gates_name_metrics(cls, value: EvaluatorTable, info: ValidationInfo) -> EvaluatorTable:
        for split, text in value.gate.items():
            known = info.data.get("metrics", [Gate.parse(text).metric])
            if Gate.parse(text).metric not in known:
                raise ValueError(f'gate.{split} names no metric: "{text}"; {nearest(Gate.parse(text).metric, known)}')
        return value


# --- what is wrong with a file ------------------------------------------------------------------------------------


def problem(loc: tuple[int | str, ...], error: Mapping[str, Any]) -> str:
    """One sentence for one error of pydantic: where it is, what was expected, what came."""
    where = ".".join(map(str, loc))
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; {nearest(str(loc[-1]), _known_keys(loc[:-1]))}"
    if error["type"] == "missing":
        return f"{where}: missing; it has no default"
    if error["type"] == "list_type":
        return f"{where}: expected a list, such as [{json.dumps(str(error['input']))}], got {error['input']!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if error["type"] == "value_error" else f"{where}: {message}, got {error['input']!r}"


def _known_keys(loc: tuple[int | str, ...]) -> Iterable[str]:
    tables: dict[int | str, type[BaseModel]] = {
        "metrics": MetricTable,
        "evaluator": EvaluatorTable,
        "sandbox": SandboxTable,
    }
    return tables[loc[0]].model_fields if loc else TaskTable.model_fields
