"""A second reader of what commands print, written from docs/tasks.md alone and without the product's code.

It looks at characters one by one where the product has regular expressions, and knows patterns as what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

NAMED = ("ns", "us", "µs", "ms", "s", "seconds")
"""Units of time in whose place a pattern takes every other one."""
NARROW = "\u00a0\u202f\u2009"
TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "seconds": 1.0, "min": 60.0, "h": 3600.0}
SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}
RATES = {"ops/s": 1.0, "ops/ms": 1e3, "kHz": 1e3, "qps": 1.0, "GFLOPS": 1e9, "it/s": 1.0, "Gbps": 1e9}
PER_THING = {"ns/op": 1e-9, "ms/it": 1e-3}
GLUED = {"k": 1e3, "M": 1e6, "G": 1e9}
WANTED = {
    "seconds": ("time", 1.0),
    "p99_ms": ("time", 1e-3),
    "nanoseconds": ("time", 1e-9),
    "peak_mb": ("size", 1e6),
    "ops_per_second": ("rate", 1.0),
    "latency": ("time", None),
    "rss": ("size", None),
    "score": (None, None),
    "loss": (None, None),
}
"""Metric -> what its name tells: the kind, and the unit."""
FIRST = (("total", "overall", "final"), ("mean", "average", "estimate"), ("median",))
PARTS = ("user", "system", "setup", "warmup", "load", "min", "max", "first", "std", "baseline")


class Unreadable(Exception):
    """There is no number, or it can be read in two ways, or it is a failure's."""


@dataclass
class Asked:
    """A pattern as what it means: a label, a group of a kind (number, word, three digits), a unit that it names."""

    metric: str
    label: str = ""
    group: str = "number"
    unit: str = ""
    key: str = ""
    decimal: str = ""
    ignored: Sequence[str] = ()
    others: Sequence[str] = field(default_factory=list)


def read(asked: Asked, stdout: str, stderr: str) -> float:
    """Return the number, or raise Unreadable."""
    streams = _lines(stdout), _lines(stderr)
    if asked.key:
        return _object(asked, *streams)
    for lines, others in (streams, streams[::-1]):
        if places := [(at, start) for at, line in enumerate(lines) for start in _places(asked, line)]:
            at, start = _chosen(asked, lines, places)
            value, end = _number(asked, lines[at], start)
            _failures(asked, lines, at, at, lines[at][:start] + " " + lines[at][end:], others)
            return value
    raise Unreadable


def _lines(text: str) -> list[str]:
    while "\x1b[" in text:
        begin = text.index("\x1b[")
        end = begin + 2
        while not text[end].isalpha():
            end += 1
        text = text[:begin] + text[end + 1 :]
    return text.replace("\r", "\n").split("\n")


# --- where ----------------------------------------------------------------------------------------------------------


def _places(asked: Asked, line: str) -> Iterator[int]:
    """Where numbers begin that the pattern finds."""
    if not asked.label:
        at = 0
        while at < len(line):
            begins = _begins(line, at)
            if begins and not (at and (line[at - 1].isalnum() or line[at - 1] in "_.")):
                yield at
                at = _token(line, at)
            else:
                at += 1
        return
    at = line.find(asked.label)
    while at >= 0:
        start = at + len(asked.label)
        if asked.group == "three digits":
            three = line[start : start + 4]
            if len(three) == 4 and three[1] == "." and (three[0] + three[2:]).isdigit():
                yield start
        elif asked.group == "word":
            if line[start : start + 1].strip():
                yield start
        elif _begins(line, start) and (not asked.unit or _named_unit(asked, line, start)):
            yield start
        at = line.find(asked.label, start)


def _begins(line: str, at: int) -> bool:
    rest = line[at:]
    if rest[:1] in ("-", "+", "−") and not (at and (line[at - 1].isalnum() or line[at - 1] in "_.)")):
        rest = rest[1:]
    odd = next((word for word in ("infinity", "inf", "nan") if rest.lower().startswith(word)), "")
    if odd:
        after = rest[len(odd) :]
        for unit in sorted(("ns", "us", "µs", "ms", "s", "x", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB"), key=len):
            if after.startswith(unit) and not (after[len(unit) : len(unit) + 1].isalpha()):
                return True
        return not (after[:1].isalpha() and after[:1].isascii())
    return rest[:1].isdigit() or (rest[:1] == "." and rest[1:2].isdigit())


def _named_unit(asked: Asked, line: str, start: int) -> bool:
    rest = line[_token(line, start) :]
    if asked.unit in NAMED:
        word = rest[1:].split(" ")[0]
        return rest[:1] == " " and word in NAMED
    return rest.startswith(f" {asked.unit}")


def _token(line: str, at: int) -> int:
    """Where the number that begins here ends."""
    end = at + 1 if line[at] in "-+−" else at
    for odd in ("infinity", "inf", "nan"):
        if line[end:].lower().startswith(odd):
            return end + len(odd)
    while end < len(line):
        after = line[end + 1 : end + 2]
        if not (line[end].isdigit() or line[end] == "_" or (line[end] in ".,'" + NARROW and after.isdigit())):
            break
        end += 1
    if line[end : end + 1] == "." and line[end - 1].isdigit():
        end += 1
    if line[end : end + 1] and line[end] in "eEdD":
        power = end + 1
        if line[power : power + 1] and line[power] in "-+−":
            power += 1
        if line[power : power + 1].isdigit():
            end = power
            while end < len(line) and line[end].isdigit():
                end += 1
    return end


def _chosen(asked: Asked, lines: Sequence[str], places: list[tuple[int, int]]) -> tuple[int, int]:
    if not asked.label:
        return places[-1]
    ranks = [_rank(lines[at], start) for at, start in places]
    return max(zip(places, ranks, strict=True), key=lambda each: (-each[1], places.index(each[0])))[0]


def _rank(line: str, start: int) -> int:
    begin, end = line.find("["), line.find("]")
    if 0 <= begin < start < end and len(line[begin + 1 : end].split()) == 6:
        before = len(line[begin + 1 : start].split())
        return 2 if before == 2 else 4
    words, rank = "", 3
    at = 0
    numbers = False
    while at <= start:
        if at == start or (_begins(line, at) and not (at and (line[at - 1].isalnum() or line[at - 1] == "_"))):
            named = words.replace("_", " ").replace(":", " ").replace(",", " ").split()
            if numbers and named and (named[0] in TIMES or named[0] in SIZES or named[0] in RATES):
                named = named[1:]
            if any(len(word) > 1 and word.isalpha() for word in named):
                lower = [word.lower().strip("()=") for word in named]
                rank = (
                    4
                    if set(lower) & set(PARTS)
                    else next((n for n, first in enumerate(FIRST) if set(lower) & set(first)), 3)
                )
            elif "±" in words:
                rank = 4
            words, numbers = "", True
            if at == start:
                break
            at = _token(line, at)
        else:
            words += line[at]
            at += 1
    return rank


# --- what -----------------------------------------------------------------------------------------------------------


def _number(asked: Asked, line: str, start: int) -> tuple[float, int]:
    first = start
    if asked.group in ("word", "whole"):
        while line[start : start + 1] and line[start] in "$(=[\"'":
            start += 1
        if not _begins(line, start):
            raise Unreadable
    end = _token(line, start)
    text = line[start:end]
    if text.lower().lstrip("-+−") in ("inf", "infinity", "nan"):
        raise Unreadable
    if asked.group == "three digits" and end != start + 4 and line[start + 4 : end] != ".":
        raise Unreadable
    rest = line[end:]
    if (value := _duration(line, start, end)) is not None:
        return _in_unit(asked, *value)
    if _goes_on(line, start, end) or not (asked.unit or _known(asked, line, start, end)):
        raise Unreadable
    value = _value(text, asked.decimal)
    unit, after = _unit(asked, rest)
    kind, factor = _kind(asked, unit, glued=rest.startswith(unit) if unit else False)
    if not kind and unit not in ("%", "x") and (labelled := _labelled(asked, line[:start])):
        kind, factor, after = "time", labelled, 0
    if asked.group in ("word", "whole"):
        word_end = len(line) if asked.group == "whole" else first
        while word_end < len(line) and not line[word_end].isspace():
            word_end += 1
        left = line[end + after if kind or unit in ("%", "x") else end : word_end]
        if word_end < end or left.strip(",;:.)]}\"'*!%"):
            raise Unreadable
    if kind and not (asked.unit and asked.unit not in NAMED and WANTED[asked.metric][1] is None):
        wanted_kind, wanted = WANTED[asked.metric]
        if asked.unit and wanted is None:
            wanted_kind, wanted = "time", TIMES[asked.unit]
        if kind != "things" and wanted_kind not in (None, kind):
            raise Unreadable
        value *= factor if kind == "things" else factor / (wanted or 1.0)
        if not abs(value) < float("inf"):
            raise Unreadable
    return value, end + (after if kind else 0)


def _labelled(asked: Asked, before: str) -> float | None:
    """The unit of time that the label tells, if the metric is a time in a unit of its own."""
    if WANTED[asked.metric][0] != "time" or WANTED[asked.metric][1] is None:
        return None
    label = before.rstrip(" \t").rstrip(":=").rstrip(" \t").rstrip(")")
    return next((TIMES[unit] for unit in ("ms", "us", "ns") if label.endswith((f"_{unit}", f"({unit}"))), None)


def _known(asked: Asked, line: str, start: int, end: int) -> bool:
    """Whether nothing that is not understood follows: a word without a gap, or what may be more of the digits."""
    rest = line[end:]
    word, _ = _unit(asked, rest)
    if word and rest.startswith(word) and word not in ("%", "x") and not _kind(asked, word, glued=True)[0]:
        return False
    fields = rest.split(" ")
    follows = fields[1].replace(",", ".").partition(".")[0] if len(fields) > 1 and not fields[0] else ""
    return not (line[start:end].isdigit() and end - start <= 3 and len(follows) == 3 and follows.isdigit())


def _goes_on(line: str, start: int, end: int) -> bool:
    text, rest, before = line[start:end], line[end:], line[:start]
    if text == "0" and rest[:1] in ("x", "X", "b", "o") and rest[1:2] and rest[1:2] in "0123456789abcdefABCDEF":
        return True
    letters = rest[: len(rest) - len(rest.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))]
    if 1 <= len(letters) <= 3 and rest[len(letters) : len(letters) + 1].isdigit():
        return True
    if rest[:1] in ("-", "–", ".", "×", "*", ":") and rest[1:2].isdigit():
        return True
    if before[-1:] in ("-", "–", ":") and before[-2:-1].isdigit():
        return True
    power = rest.lstrip(" ")
    if power[:1] == "^" or power[:2] == "**":
        return True
    return power[:1] in ("x", "×", "*", "·") and power[1:].lstrip(" ").startswith(("10^", "10**", "10⁻", "10⁰"))


def _duration(line: str, start: int, end: int) -> tuple[float, int] | None:
    """A duration of several parts that begins here, in seconds, and where it ends."""
    begin = start
    while begin >= 2 and line[begin - 1] == ":" and line[begin - 2].isdigit():
        begin -= 1
        while begin and line[begin - 1].isdigit():
            begin -= 1
    word, stop = "", begin
    while stop < len(line) and (line[stop].isdigit() or (line[stop] in ":." and line[stop + 1 : stop + 2].isdigit())):
        word += line[stop]
        stop += 1
    fields = word.split(":")
    if 2 <= len(fields) <= 3 and all(map(str.isdigit, fields[:-1])) and fields[-1].count(".") < 2:
        whole = fields[-1].partition(".")[0]
        if len(whole) == 2 and whole < "60" and line[stop : stop + 1] != ":":
            seconds = 0.0
            for each in fields:
                seconds = 60 * seconds + float(each)
            return seconds, stop
    parts, at, left = list[tuple[float, str]](), start, "hms"
    while at < len(line) and line[at].isdigit():
        stop = at
        while stop < len(line) and (
            line[stop].isdigit() or (line[stop] == "." and line[stop + 1 : stop + 2].isdigit())
        ):
            stop += 1
        unit = line[stop : stop + 1]
        if unit not in left or not unit or (unit == "m" and line[stop + 1 : stop + 2] == "s"):
            break
        if line[at:stop].count(".") > (unit == "s"):
            break
        parts.append((float(line[at:stop]), unit))
        left = left[left.index(unit) + 1 :]
        at = stop + 1
    if len(parts) < 2 or (at < len(line) and (line[at].isalnum() or line[at] in "._")):
        return None
    return sum(value * {"h": 3600, "m": 60, "s": 1}[unit] for value, unit in parts), at


def _in_unit(asked: Asked, seconds: float, end: int) -> tuple[float, int]:
    kind, factor = WANTED[asked.metric]
    if kind not in (None, "time"):
        raise Unreadable
    return seconds / (factor or 1.0), end


def _value(text: str, decimal: str) -> float:
    """The value of the characters of a number."""
    sign = -1.0 if text[0] in "-−" else 1.0
    text = text.lstrip("-+−")
    power = ""
    for at, character in enumerate(text):
        if character in "eEdD":
            text, power = text[:at], text[at + 1 :].replace("−", "-")
            break
    for mark in ("_", "'", *NARROW):
        if mark in text:
            whole, *rest = text.split(mark)
            last = rest[-1].replace(",", ".").split(".")[0]
            groups = [*rest[:-1], last]
            if mark != "_" and not (
                1 <= len(whole) <= 3 and all(len(group) == 3 and group.isdigit() for group in groups)
            ):
                raise Unreadable
            text = text.replace(mark, "")
            if mark != "_" and "," in text and not decimal:
                decimal = ","
    commas, points = text.count(","), text.count(".")
    thousands = ""
    if decimal:
        thousands = {".": ",", ",": "."}[decimal] if (commas if decimal == "." else points) else ""
        mark = decimal
    elif commas and points:
        mark = "." if text.rindex(".") > text.rindex(",") else ","
        thousands = "," if mark == "." else "."
    elif commas > 1 or points > 1:
        thousands, mark = ("," if commas else "."), ""
    elif commas:
        whole, part = text.split(",")
        if len(part) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0":
            raise Unreadable
        mark = ","
    else:
        mark = "."
    if mark and text.count(mark) > 1:
        raise Unreadable
    whole, _, part = text.partition(mark) if mark else (text, "", "")
    if thousands:
        first, *groups = whole.split(thousands)
        if not groups or not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups) or thousands in part:
            raise Unreadable
        whole = whole.replace(thousands, "")
    if not (whole + part).isdigit():
        raise Unreadable
    value = sign * float(f"{whole or 0}.{part or 0}e{power or 0}")
    if value in (float("inf"), float("-inf")):
        raise Unreadable
    return value


def _unit(asked: Asked, rest: str) -> tuple[str, int]:
    """The word behind a number and how many characters there are up to its end."""
    at = 0
    for spread in (" ± ", " +/- "):
        if rest.startswith(spread):
            at = _token(rest, len(spread))
    gap = at
    while gap < len(rest) and rest[gap] in " \t" and gap - at < 4:
        gap += 1
    if rest[gap : gap + 1] in ("(", "["):
        gap += 1
    end = gap
    if rest[gap : gap + 1] == "%":
        return "%", gap + 1
    while end < len(rest) and rest[end].isalpha():
        end += 1
    if end > gap and rest[end : end + 1] == "/" and rest[end + 1 : end + 2].isalpha():
        end += 1
        while end < len(rest) and rest[end].isalpha():
            end += 1
    return rest[gap:end], end


def _kind(asked: Asked, unit: str, *, glued: bool) -> tuple[str, float]:
    wanted = WANTED[asked.metric][0]
    if not glued and ((unit in ("min", "h") and wanted != "time") or (unit == "B" and wanted != "size")):
        return "", 1.0
    if unit == "m" and glued and wanted == "time":
        return "time", 60.0
    if unit in ("K", "M", "G", "T") and not glued and wanted == "size":
        return "size", 1024.0 ** (1 + "KMGT".index(unit))
    for kind, units in (("time", TIMES), ("size", SIZES), ("rate", RATES), ("time", PER_THING)):
        if unit in units:
            return kind, units[unit]
    if unit in GLUED and glued:
        return ("size", 1024.0 ** (1 + "kMG".index(unit))) if wanted == "size" else ("things", GLUED[unit])
    return "", 1.0


# --- failures -------------------------------------------------------------------------------------------------------

NONE = ("", "none", "null", "no", "false", "ok", "0")


def _object(asked: Asked, lines: Sequence[str], errors: Sequence[str]) -> float:
    for at in range(len(lines) - 1, -1, -1):
        if not lines[at].startswith("{"):
            continue
        for end in range(at, len(lines)):
            try:
                found = json.loads("\n".join(lines[at : end + 1]))
            except ValueError:
                continue
            if any(_tells(asked, name, value) for name, value in found.items() if name != asked.key):
                raise Unreadable
            value = found.get(asked.key)
            if isinstance(value, str):
                value, _ = _number(Asked(asked.metric, group="whole", decimal=asked.decimal), value.strip(), 0)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or value != value
                or abs(value) == float("inf")
            ):
                raise Unreadable
            _failures(asked, lines, at, end, "", errors)
            return float(value)
    raise Unreadable


def _failures(asked: Asked, lines: Sequence[str], first: int, last: int, beside: str, errors: Sequence[str]) -> None:
    if "all" in asked.ignored:
        return
    whole = [*[line for line in lines[:first] if line][-1:], *lines[last + 1 :]]
    whole += [line for line in lines[:first] if line.startswith("METRIC")]
    for line in whole:
        row = line.strip().removeprefix("METRIC ")
        for sign in ":=":
            name, found, value = row.partition(sign)
            if (
                found
                and name.strip()
                and " " not in name.strip()
                and _tells(asked, name.strip(), _typed(value.strip()))
            ):
                raise Unreadable
    for piece in beside.replace(";", ",").replace("(", ",").replace(")", ",").replace(" ", ",").split(","):
        name, found, value = piece.partition("=")
        if found and _tells(asked, name.strip(), _typed(value.strip())):
            raise Unreadable
    if "error" not in asked.ignored and ("(failed)" in beside or " FAILED" in beside):
        raise Unreadable
    if "traceback" not in asked.ignored:
        if any(line.startswith(("Traceback (most recent", "panic: ")) for line in lines[last + 1 :]):
            raise Unreadable
        if any(line.startswith("panic: ") for line in errors):
            raise Unreadable
        for line in reversed(errors):
            if line.startswith("Traceback (most recent"):
                raise Unreadable
            if line.strip() and not line.startswith(" ") and not line.startswith("NameError"):
                break


def _typed(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _tells(asked: Asked, name: str, value: object) -> bool:
    if "all" in asked.ignored or name in asked.ignored or name == asked.metric or name in asked.others:
        return False
    if name in ("error", "exception"):
        return (
            bool(value) and not isinstance(value, float | int) or value is True
            if not isinstance(value, str)
            else value.lower() not in NONE and not value[:1].isdigit()
        )
    if name in ("valid", "success", "ok"):
        return value is False or value == 0 or (isinstance(value, str) and value.lower() in ("no", "failed"))
    if name in ("correct", "passed"):
        return value is False
    if name == "failed":
        return value is True
    if name == "status":
        return isinstance(value, str) and value.lower() in ("failed", "error", "timeout", "invalid")
    return name in ("exit_code", "returncode") and isinstance(value, int | float) and value != 0
