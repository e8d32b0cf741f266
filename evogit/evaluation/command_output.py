"""Finds a command's numbers in what it printed, and failures that are told beside them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from evogit.config.printed_numbers import NEUTRAL, rank_of_words
from evogit.config.values import ALL, EvaluationCommand, MetricReader
from evogit.evaluation.numbers import MAX_SHOWN_CHARS, TOKEN, UNIT, pattern_of, read_match, unit_of, value_group
from evogit.evaluation.told_failures import failure_around, failure_in, other_crash
from evogit.sandbox.values import parse

MAX_LINE_CHARS = 4096
"""Characters of a line in which a pattern is searched."""
MAX_LINES = 1000
"""Last lines of the output in which numbers and JSON objects are looked for."""
MAX_SHOWN_KEYS = 8
"""Keys of an object that an error names."""
MAX_OTHERS, FAR = 64, 1e300
"""Numbers beside the metrics that are kept, and how large one may be."""
NAME = re.compile(r"[A-Za-z_][\w.-]{0,59}", re.ASCII)
"""The name of such a number; whatever else a program prints as one is text of its own."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""Colours, and what moves the cursor."""
HEAD = re.compile(r"\((?:times? )?in ([A-Za-zµμ]+)\)")
"""The unit of a table: `Name (time in us)   Min   Max   Mean`."""
MAX_HEAD_LINES, MIN_COLUMNS = 8, 3
TRIPLE = re.compile(r"\[\s*([\d.,eE+-]+\s*\S{0,9})\s+([\d.,eE+-]+\s*\S{0,9})\s+([\d.,eE+-]+\s*\S{0,9})\s*\]")
"""A lower bound, an estimate and an upper bound."""


class Source(Struct, frozen=True):
    """The place of a metric's number.

    Attributes:
        value: of the metric.
        where: "line 3 of stdout"; of a measured one, what it is.
        text: the line, or the JSON object.
        span: where the number is in the line.
        others: other places that the pattern matches, each with its line.
        why: why this one was taken of several.
    """

    value: float
    where: str
    text: str = ""
    span: tuple[int, int] | None = None
    others: tuple[str, ...] = ()
    why: str = ""


class Stream(Struct, frozen=True):
    """The lines that a command printed on stdout or stderr, each with its number."""

    name: str
    lines: Sequence[str]
    numbers: Sequence[int]

    @classmethod
    def of(cls, name: str, text: str) -> Stream:
        """Split a text at line ends and carriage returns, without colours."""
        rows = [(number, piece) for number, row in enumerate(plain(text).split("\n"), 1) for piece in row.splitlines()]
        return cls(name, [piece for _, piece in rows], [number for number, _ in rows])

    def place(self, at: int) -> str:
        """The words for a line."""
        return f"line {self.numbers[at]} of {self.name}"


def plain(text: str) -> str:
    """A text without colours; what backspaces go back over ends like a line that is drawn again."""
    text = ESCAPES.sub("", text) if "\x1b" in text else text
    return re.sub("\b+", "\r", text) if "\b" in text else text


def shown_lines(text: str, most: int) -> list[str]:
    """The last lines of an output; of a progress bar, which is drawn again and again, the last state."""
    found = list[str]()
    for row in plain(text).rstrip().split("\n")[-most:]:
        if "\r" not in row:
            found.append(row)
            continue
        pieces = [piece for piece in row.split("\r") if piece.strip()] or [""]
        drawn = [re.sub(r"[^A-Za-z=]+", "", piece) for piece in pieces]
        found += [piece for at, piece in enumerate(pieces) if drawn[at + 1 : at + 2] != [drawn[at]]]
    return found[-most:] if any(found) else []


class Output:
    """The output of a command, from which metrics are read."""

    def __init__(
        self,
        command: EvaluationCommand,
        stdout: str,
        stderr: str,
        *,
        ignored: Collection[str] = (),
        whole: bool = False,
    ) -> None:
        """Take the output; `whole`: find all places of a pattern. `ignored` signs of failure do not count."""
        self._command = command
        self._ignored = ignored
        self._streams = Stream.of("stdout", stdout), Stream.of("stderr", stderr)
        self._whole = whole

    @property
    def count(self) -> int:
        """Return how many lines there are."""
        return sum(len(stream.lines) for stream in self._streams)

    def read(self, metric: str, read: MetricReader) -> Source:
        """Find the number of a printed metric. Raises ValueError if it is missing, ambiguous, or beside a failure."""
        return self._matched(metric, read.what) if read.how == "regex" else self._named(metric, read.what or metric)

    def check_end(self, metric: str, taken: str = "") -> None:
        """Refuse a metric if the output ends with a crash, by a ValueError that names it."""
        ignored = self._ignored
        for stream in self._streams if not {ALL, "traceback"} & set(ignored) else ():
            if stream.name != taken and (crash := other_crash(stream.lines)):
                raise ValueError(_told(metric, f"{crash} on {stream.name}"))

    # --- patterns -----------------------------------------------------------------------------------------------

    def _matched(self, metric: str, text: str) -> Source:
        pattern = pattern_of(text)
        for stream in self._streams:
            if found := self._places(stream, pattern.search, last_alone=not (pattern.labelled or self._whole)):
                at, match, why = _preferred(found, stream, labelled=pattern.labelled)
                decimal = self._command.decimal or pattern.decimal
                unit = _unit_of_table(stream.lines, at)
                number = read_match(match, metric, decimal, numeric=pattern.numeric, unit=unit, named=pattern.unit)
                self._check(metric, stream, at, at, (match.start(), max(match.end(), number.end)))
                others = [(row, other) for row, other in found if (row, other.span()) != (at, match.span())]
                places = tuple(
                    f"{stream.place(row)}: {other[0] if row == at else other.string.strip()[:MAX_SHOWN_CHARS]}"
                    for row, other in others
                )
                span = number.start, number.end
                return Source(number.value, stream.place(at), match.string, span, places, why if others else "")
        printed = any(line.strip() for stream in self._streams for line in stream.lines)
        why = f"no line of its output matches {text}" if printed else "it printed nothing"
        raise ValueError(f"the command said nothing for {metric}: {why}")

    def _places(self, stream: Stream, pattern: re.Pattern[str], *, last_alone: bool) -> list[tuple[int, re.Match[str]]]:
        found = list[tuple[int, re.Match[str]]]()
        for at in range(len(stream.lines) - 1, max(-1, len(stream.lines) - 1 - MAX_LINES), -1):
            line = stream.lines[at]
            matches = (
                pattern.finditer(line, 0, MAX_LINE_CHARS) if len(line) > MAX_LINE_CHARS else pattern.finditer(line)
            )
            found += [(at, match) for match in reversed([match for match in matches if match[0]])]
            if found and last_alone:
                return found[:1]
        return found[::-1]

    def _check(self, metric: str, stream: Stream, first: int, last: int, span: tuple[int, int] | None) -> None:
        ignored, metrics = self._ignored, self._command.reads
        if told := failure_around(stream.lines, first, last, span, ignored, metrics):
            raise ValueError(_told(metric, told))
        self.check_end(metric, stream.name)

    # --- JSON ---------------------------------------------------------------------------------------------------

    @property
    def others(self) -> dict[str, float]:
        """The other numbers of the object that metrics are read from, the first ones."""
        named = {
            name: value for name, value in (self._object[0] if self._object else {}).items() if NAME.fullmatch(name)
        }
        reads = self._command.reads
        numbers = {name: value for name, value in named.items() if name not in reads and isinstance(value, int | float)}
        kept = {name: value for name, value in numbers.items() if not isinstance(value, bool) and abs(value) < FAR}
        return dict(list(kept.items())[:MAX_OTHERS])

    def _named(self, metric: str, key: str) -> Source:
        if self._object is None:
            raise ValueError(f"the command said nothing for {metric}: no line of its stdout is a JSON object")
        fields, first, last = self._object
        value: object = fields
        told = ""
        for part in [key] if key in fields else key.split("."):
            holder = value if isinstance(value, dict) else {}
            told = told or failure_in(holder, self._ignored, (*self._command.reads, part))
            value = holder.get(part)
            if not told and part not in holder:
                names = ", ".join(map(str, list(holder)[:MAX_SHOWN_KEYS])) or "none"
                raise ValueError(f"the last JSON object has no key {key} for {metric}; its keys are {names}")
        if told:
            raise ValueError(_told(metric, told))
        number = self._number(metric, key, value)
        stream = self._streams[0]
        self._check(metric, stream, first, last, None)
        where = f"key {key} of the JSON object in {stream.place(first)}"
        return Source(number, where, json.dumps(fields, ensure_ascii=False))

    def alike(self, taken: Source, kind: str = "") -> list[str]:
        """The places of other numbers, in a unit of this kind such as "time" if there is one, each with its line."""
        found = list[str]()
        for stream in self._streams:
            for at, line in enumerate(stream.lines):
                numbers = list(TOKEN.finditer(line[:MAX_LINE_CHARS]))
                units = (unit_of(unit["unit"]) for number in numbers if (unit := UNIT.match(line, number.end())))
                if line != taken.text and (any(unit and unit.kind == kind for unit in units) if kind else numbers):
                    found.append(f"{stream.place(at)}: {line.strip()[:MAX_SHOWN_CHARS]}")
        return found

    def _number(self, metric: str, key: str, value: object) -> float:
        if isinstance(value, str) and (match := re.fullmatch(r"(?s)(.*)", value.strip())) and value.strip():
            return read_match(match, metric, self._command.decimal).value
        if isinstance(value, bool) or not isinstance(value, int | float):
            said = json.dumps(value)[:80]
            raise ValueError(f"expected a number at {key} of the last JSON object for {metric}, got {said}")
        try:
            number = float(value)
        except OverflowError:
            raise ValueError(f"expected a finite number for {metric}, got one of {len(str(value))} digits") from None
        if not math.isfinite(number):
            raise ValueError(f"expected a finite number for {metric}, the command said {number}")
        return number

    @cached_property
    def _object(self) -> tuple[dict[str, Any], int, int] | None:
        return _last_object(self._streams[0].lines)


def _told(metric: str, failure: str) -> str:
    return f"a failure is told beside {metric}: {failure}"


def _last_object(lines: Sequence[str]) -> tuple[dict[str, Any], int, int] | None:
    """The last JSON object that begins a line, and its first and last line: on one line, or on several."""
    first = max(0, len(lines) - MAX_LINES)
    outer = [at for at in range(len(lines) - 1, first - 1, -1) if lines[at].startswith("{")]
    inner = [at for at in range(first, len(lines)) if lines[at].lstrip().startswith("{")] if not outer else []
    found = next(filter(None, (_object_at(lines, at) for at in outer)), None)
    if found is None:
        end = -1
        for at in inner or [at for at in range(first, len(lines)) if lines[at].lstrip().startswith("{")]:
            if at > end and (each := _object_at(lines, at)):
                found, end = each, each[2]
    return found


def _object_at(lines: Sequence[str], at: int) -> tuple[dict[str, Any], int, int] | None:
    """Return the object that begins in a line, or None. Raises ValueError for one with a duplicate key or the like."""
    line = lines[at].strip()
    text = line if line.endswith("}") else "\n".join(lines[at:]).lstrip()
    try:
        value, end = json.JSONDecoder().raw_decode(text)
        if text is line and end < len(line):
            return None
    except RecursionError:
        return None
    except ValueError:
        if text is not line:
            return None
        try:
            text = "\n".join(lines[at:]).lstrip()
            value, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return None
    try:
        value = parse(text[:end].encode(errors="replace"))
    except ValueError as error:
        if not re.search(r"\bNaN\b|\bInfinity\b|too large", str(error)):
            raise ValueError(f"the last JSON object of its stdout cannot be read: {error}") from None
    return value, at, at + text[:end].count("\n")


def _unit_of_table(lines: Sequence[str], at: int) -> str:
    """The unit that the head of a table gives for the numbers in a row of it; empty where that is no table."""
    heads = [line[:MAX_LINE_CHARS] for line in lines[max(0, at - MAX_HEAD_LINES) : at] if "in " in line]
    found = next(filter(None, map(HEAD.search, reversed(heads))), None)
    return found[1] if found and len(TOKEN.findall(lines[at][:MAX_LINE_CHARS])) >= MIN_COLUMNS else ""


# --- which of several -----------------------------------------------------------------------------------------------


def _preferred(
    found: Sequence[tuple[int, re.Match[str]]], stream: Stream, *, labelled: bool
) -> tuple[int, re.Match[str], str]:
    """Of several matches the one whose words say total, mean or median; of equals the last one."""
    if len(found) == 1 or not labelled:
        return *found[-1], "it is the last one"
    ranks = [rank_of(match.string, match.start(value_group(match))) for _, match in found]
    best = min(ranks)
    at = max(place for place, rank in enumerate(ranks) if rank == best)
    why = ("it says total", "it says mean", "it says median", "it is the last that names no part", "it is the last one")
    return *found[at], why[best]


def rank_of(line: str, start: int) -> int:
    """How likely the number at this place stands for the whole run: 0 to 2 by WHOLE, 3 otherwise, 4 for a part."""
    if triple := TRIPLE.search(line):
        for group in (1, 2, 3):
            if triple.start(group) <= start < triple.end(group):
                return NEUTRAL - 1 if group == 2 else NEUTRAL + 1
    rank, end = NEUTRAL, 0
    for number in [*TOKEN.finditer(line, 0, start), None]:
        words = line[end : number.start() if number else start]
        unit = re.match(r"\s*((?:[^\W\d_]|/)+)", words)
        if re.search(r"[^\W\d_]{2,}", words[unit.end() :] if unit and end and unit_of(unit[1]) else words):
            rank = rank_of_words(words)
        elif "±" in words or "+/-" in words:
            rank = NEUTRAL + 1
        end = number.end() if number else start
    return rank
