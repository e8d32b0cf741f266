"""The values in task.toml and evogit.toml: durations, sizes, globs, gates, and how a command's numbers are read."""

from __future__ import annotations

import difflib
import functools
import json
import logging
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins

from evogit.core import Evaluation, Measure, shown
from evogit.repository.paths import is_git_folder

logger = logging.getLogger(__name__)

REPEATS = 3  # how often a would-be best is evaluated again where scores are noisy and nobody said otherwise
SLOW_REPEATS = 2  # the same where an evaluation takes long; one repeat could prove nothing

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


TIMES = re.compile(r"(^|_)((milli|micro|nano)?seconds|[mun]s|time|elapsed|latency|runtime)(_|$)")
RATES = re.compile(r"(^|_)(ops|rps|qps|fps|throughput|per_(second|sec|s))(_|$)")
MEMORY = re.compile(r"(^|_)(memory|rss|heap)(_|$)")  # names of metrics that depend on the machine


def measure_of(metric: str) -> Measure:
    """Return what a metric seems to measure of the machine, by its name; empty if the name does not tell."""
    kinds: dict[Measure, re.Pattern[str]] = {"rate": RATES, "time": TIMES, "memory": MEMORY}
    return next((kind for kind, names in kinds.items() if names.search(metric)), "")


# --- values -----------------------------------------------------------------------------------------------------


def seconds(value: float | str) -> float:
    """Return seconds of a number or "500ms", "10s", "2m", "1h". Raises ValueError: it is none, or not positive."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|m|h)", value) if isinstance(value, str) else None
    if match:
        value = float(match[1]) * _SECONDS[match[2]]
    if isinstance(value, (str, bool)) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise ValueError(f'expected a positive duration such as "10s" or 10, got {value!r}')
    return float(value)


def size(value: int | str) -> int:
    """Return bytes of a number or "64k", "512m", "2g". Raises ValueError: it is none, or not positive."""
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
    return plain and not any(map(is_git_folder, parts))


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether a glob covers `path`, from the root on: `*` and `?` stop at a slash, `**` does not."""
    return any(_covers(glob, path) for glob in globs)


MAX_BACKTRACKING = 2  # wildcards of any length in a glob that is matched by `re`, whose time grows with each of them


def _covers(glob: str, path: str) -> bool:
    parts = [part for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob) if part]
    if sum(part[0] == "*" for part in parts) <= MAX_BACKTRACKING:
        tokens = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        return re.fullmatch("".join(tokens.get(part) or re.escape(part) for part in parts), path, re.DOTALL) is not None
    starts = {0}  # the places of the path up to which the parts so far may reach
    for part in parts:
        if part == "**":
            starts = set(range(min(starts, default=len(path) + 1), len(path) + 1))
        elif part == "**/":
            first = min(starts, default=len(path) + 1)
            starts |= {place for place in range(first + 1, len(path) + 1) if path[place - 1] == "/"}
        elif part == "*":
            starts = set(_to_ends_of_names(path, starts))
        elif part == "?":
            starts = {place + 1 for place in starts if place < len(path) and path[place] != "/"}
        else:
            starts = {place + len(part) for place in starts if path.startswith(part, place)}
    return len(path) in starts


def _to_ends_of_names(path: str, starts: set[int]) -> Iterator[int]:
    """Yield the places from each start up to the end of the name of a file or folder in which it is."""
    end = -1
    for place in sorted(starts):
        if place > end:
            end = slash if (slash := path.find("/", place)) >= 0 else len(path)
            yield from range(place, end + 1)


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error's sentence: the known word that was probably meant, else all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f'did you mean "{close[0]}"?' if close else f"known: {', '.join(known) or 'none'}"


class Gate(Struct, frozen=True):
    """What the metrics of a stage must fulfil before the next split is evaluated."""

    metric: str
    op: Literal[">", ">=", "<", "<=", "=="]
    number: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read "METRIC OP NUMBER". Raises ValueError: when the text is something else."""
        match = re.fullmatch(r"\s*(\w+)\s*(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*", text)
        if not match or not math.isfinite(float(match[3])):
            raise ValueError(f'expected "METRIC OP NUMBER" with OP one of > >= < <= ==, got {text!r}')
        return cls(match[1], match[2], float(match[3]))  # type: ignore[arg-type]  # the expression lists them

    def passes(self, metrics: Mapping[str, float]) -> bool:
        """Whether the metrics fulfil it."""
        tests = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}
        return bool(tests[self.op](metrics[self.metric], self.number))

    def __str__(self) -> str:
        return f"{self.metric} {self.op} {self.number:g}"


class Stage(Struct, frozen=True, kw_only=True):
    """A part of a task: what to do, and what ends it: `until`, or the `budget` of evaluations, calls and minutes."""

    goal: str
    until: str = ""
    budget: Mapping[str, float] = {}

    def reached(self, evaluation: Evaluation) -> bool:
        """Whether `until` holds: "METRIC OP NUMBER" for the whole, with "in PATTERN" for each case with such a name.

        Raises ValueError: it is something else.
        """
        condition, among, pattern = self.until.partition(" in ")
        gate, known = Gate.parse(condition), [evaluation.metrics]
        if among:
            known = [found for name, found in evaluation.cases.items() if fnmatchcase(name, pattern.strip())]
        return bool(known) and all(gate.metric in found and gate.passes(found) for found in known)


How = Literal["exit", "junit", "regex", "json", "cpu", "wall"]


class MetricReader(Struct, frozen=True):
    """How one metric is read from a command that has ended: `how`, and the file, pattern or key that this needs."""

    how: How
    what: str = ""

    @classmethod
    def parse(cls, text: str) -> MetricReader:
        """Read "exit", "junit:FILE", "regex:PATTERN", "json[:KEY]", "cpu" or "wall". Raises ValueError: it is none."""
        match = re.fullmatch(r"(exit|cpu|wall|json)|(junit|regex|json):(.+)", text)
        if not match:
            ways = '"exit", "junit:FILE", "regex:PATTERN", "json", "json:KEY", "cpu" or "wall"'
            raise ValueError(f"expected one of {ways}, got {text!r}")
        how, what = match[1] or match[2], match[3] or ""
        if how == "junit" and not is_safe_path(what):
            raise ValueError(f'expected "junit:FILE" with a relative path, got "junit:{what}"')
        if how == "regex":
            try:
                re.compile(what)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f'"regex:{what}" is not a valid regular expression: {error}') from None
        return cls(how, what)  # type: ignore[arg-type]  # the expression lists them


class EvaluationCommand(Struct, frozen=True, kw_only=True):
    """A shell command that evaluates a candidate from inside its sandbox, for tasks of kind "command"."""

    text: str  # for the shell
    reads: Mapping[str, MetricReader]  # metric -> how it is read
    directory: str = ""  # where it runs, below the root of the candidate's files; empty for the root
    # the evaluator's, beside the task's file; its files are laid over the candidate's at the same path
    folder: str = ".evogit"
    prepare: str = ""  # for the shell, once per seed; empty for nothing
    tests: str = ""  # for the shell, before `text`: what has to succeed and is not measured; empty for nothing
    retry: int = 0  # how often all of it is run again where it fails
    profile: str = ""  # for the shell: says where a parent's time goes, for briefs; empty for nothing
    decimal: str = ""  # "." or ",", the decimal point of the numbers that it prints; empty: as each number tells
    same_output: str = ""  # for the shell: prints what must stay as the seed prints it, for an input on stdin
    same_inputs: tuple[str, ...] = ()  # globs of the seed's files from which such inputs are made

    def __repr__(self) -> str:
        later = ("tests", "retry", "profile", "decimal", "same_output", "same_inputs")
        return shown(self, but=later)  # journals hold digests of it

    @property
    def way(self) -> dict[str, Any]:
        """What scores depend on, for digests: not how often what fails is run again; later keys where they are set."""
        values = to_builtins(self)
        for name in ("retry", "profile", "same_output", "same_inputs"):
            del values[name]
        return {name: value for name, value in values.items() if value or name not in ("tests", "decimal")}


class Pairwise(Struct, frozen=True):
    """The settings of comparisons, for tasks of kind "judge"."""

    criteria: str  # what makes one better than another, for models and people
    panel: tuple[str, ...] = ()  # models that compare, in turn; where there is none, people do
    comparisons: int = 4  # how often a new candidate is compared
    calibrate: bool = True  # whether each model is asked now and then what is better, the seed or half of it


STRENGTH = "strength"  # the one metric of tasks of kind "judge"
WORD = r"^[a-z0-9][a-z0-9_-]*$"  # what names in the files look like


# --- signs of failure ---------------------------------------------------------------------------------------------

ERRORS = frozenset(("error", "errors", "err", "error_message", "error_msg", "exception", "traceback", "failure"))
"""Fields that tell what went wrong, when they hold a text, a list or true; a number there is a measurement."""
_GOOD = "valid is_valid validity feasible is_feasible success successful is_success succeeded ok correct is_correct"
GOOD = frozenset((*_GOOD.split(), "passed", "all_passed"))  # fields that say whether a result counts
COUNTED = frozenset(("correct", "passed"))
"""Those of which 0 may be a count of right answers, so that only `false` is a failure."""
BAD = frozenset(("failed", "is_error", "crashed", "timeout", "timed_out"))
CODES = frozenset(("exit_code", "exitcode", "exit_status", "returncode", "return_code"))
STATES = frozenset(("status", "state", "outcome", "verdict", "result"))
SIGNS = ERRORS | GOOD | BAD | CODES | STATES
ALL, SEED = "all", "seed"  # names in `ignored_failures` for every sign, and for all signs of the seed


def failure_signs(names: Sequence[str]) -> tuple[str, ...]:
    """Check the names in `ignored_failures`. Raises ValueError: one is none that is known."""
    known = {*SIGNS, ALL, SEED}
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not a sign of failure; {nearest(name, known)}")
    return tuple(names)


# --- keys of earlier versions -------------------------------------------------------------------------------------


def without_fixed(table: dict[str, Any], fixed: Mapping[str, str], file: Path) -> dict[str, Any]:
    """Return a table without `fixed` keys (dotted, `*` for any name -> what holds instead); warn of each."""
    for key, instead in fixed.items():
        table = _without(table, key.split("."), f"{file}: ", f" is fixed now ({instead}); remove it")
    return table


def _without(table: Any, path: Sequence[str], before: str, after: str) -> Any:
    if not isinstance(table, dict):
        return table
    names = [name for name in table if path[0] in ("*", name)]
    if path[1:]:
        return {**table, **{name: _without(table[name], path[1:], f"{before}{name}.", after) for name in names}}
    for name in names:
        _warn(f"{before}{name}{after}")
    return {name: value for name, value in table.items() if name not in names}


@functools.cache
def _warn(warning: str) -> None:
    """Log a warning once, however often the file is read."""
    logger.warning(warning)


# --- what is wrong with a file ------------------------------------------------------------------------------------


def problem(loc: tuple[int | str, ...], error: Mapping[str, Any], known: Iterable[str]) -> str:
    """One sentence for one error of pydantic: where it is, what was expected, what came; `known` are the keys there."""
    where = ".".join(map(str, loc))
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; {nearest(str(loc[-1]), known)}"
    if error["type"] == "missing":
        return f"{where}: missing; it has no default"
    if error["type"] in ("list_type", "tuple_type"):
        return f"{where}: expected a list, such as [{json.dumps(str(error['input']))}], got {error['input']!r}"
    if error.get("ctx", {}).get("pattern") == WORD:
        return f"{where}: expected small letters, digits, `-` and `_`, got {error['input']!r}"
    if error["type"] == "dict_type":
        return f"{where}: expected a table, NAME = VALUE below [{where}], got {error['input']!r}"
    message = str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "expected", 1)
    return f"{where}: {message}" if error["type"] == "value_error" else f"{where}: {message}, got {error['input']!r}"
