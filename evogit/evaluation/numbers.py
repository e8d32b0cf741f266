"""Reads the numbers that programs print: the one reader for every pattern, of ours and of users.

docs/tasks.md ("Numbers that a command prints") has the rules; tests/evaluation/printed_numbers.json has what a second
reader says that was written from these rules alone.
"""

from __future__ import annotations

import math
import re
from functools import cache

from msgspec import Struct

from evogit.config.printed_numbers import DEAR, words_of

SPACES = "\u00a0\u202f\u2009"
"""Spaces that do not break a line; some languages group thousands with them."""
SIGN = r"(?:(?<![\w.)])[-+\u2212])?"
EXPONENT = r"(?:[eEdD][-+\u2212]?\d+)?"
TOKEN = re.compile(rf"{SIGN}(?:\d(?:[\d_]|[.,'\u2019{SPACES}](?=\d))*\.?|\.\d+){EXPONENT}")
"""All characters of one number in any notation."""
PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
"""A number as most programs print it."""
NO_NUMBER = r"(?i:inf(?:inity)?|nan)(?=(?:[nuµμm]?s|[kKMGT]?i?B|x)?(?![A-Za-z]))"
ANY = rf"({SIGN}(?:(?:\d(?:[\d._,'\u2019{SPACES}]*\d)?\.?|\.\d+){EXPONENT}|{NO_NUMBER}))"
"""The group that takes the place of one in a pattern that stands for a number, such as `([0-9.]+)`."""
NUMERIC = re.compile(r"(?:\\d|\\[.,+-]|\[(?:\\[d.,+-]|[-0-9.,+eE_'])+\]|[-+.,eE0-9?*|]|\(\?:|\(|\)|\{\d*(?:,\d*)?\})+")
"""The inside of a group that stands for a number."""
REPEATED = re.compile(r"(?:\\d|\])(?:[+*]|\{\d*,\})")
LEADING, TRAILING = re.compile(r"[\s$€£¥(\[{=:\"'*~≈<>]*"), re.compile(r"[\s,;:.)\]}\"'*!%]*")
"""Characters around a number in a group that takes more than numbers."""
RUN = frozenset(f"0123456789.,_'\u2019-+\u2212eEdD{SPACES}")
MAX_NUMBER_CHARS = 400
MAX_SHOWN_CHARS = 160
ENGLISH, CONTINENTAL = (
    re.compile(rf"\d{{1,3}}(?:{group}\d{{3}})+{point}\d*|\d{{1,3}}(?:{group}\d{{3}}){{2,}}")
    for group, point in ((",", r"\."), (r"\.", ","))
)
"""Thousands that can be nothing else: with a decimal point, or of more than one group."""
COMPOUND = re.compile(
    r"(?=\d+ ?(?:d|h|m(?!s)))(?:(\d+) ?d(?:ays?)?,? ?)?(?:(\d+) ?h(?:ours?|rs?)? ?)?(?:(\d+) ?m(?:in(?:ute)?s?)? ?)?"
    r"(?:(\d+(?:[.,]\d+)?) ?s(?:ec(?:ond)?s?)?)?(?![\w.])"
)
"""A duration of more than one part: 1m30.5s, 2 h 5 min."""
CLOCK = re.compile(r"(?:(\d+) ?d(?:ays?)?,? )?(?:(\d+):)?(\d+):([0-5]\d(?:[.,]\d+)?)(?![\d:]|[.,]\d)")
SPACED = re.compile(r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?![\d.,:/-]*\d)")
"""Digits that are one number with spaces between its thousands, or several numbers."""
MAGNITUDE = re.compile(r"\s?(?:hundred|thousand|million|billion|trillion)s?(?![A-Za-z])", re.IGNORECASE)
LABEL = re.compile(r"[(_](?P<unit>[A-Za-zµμ]+(?:/[A-Za-z]+)?)\)?[ \t]*[:=]?[ \t]*$")
"""The end of a label, which may be the unit of the number behind it: `elapsed_ms: 5`, `size (kbytes): 5`."""
POWER = re.compile(r"\s?[x×*·]\s?10(?:\^|\*\*|[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹])|\s?(?:\^|\*\*)\s?[-\d]|[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]")
UNIT = re.compile(
    rf"(?:\s?(?:±|\+/-|\+-)\s?[\d.]+{EXPONENT})?(?P<gap>[ \t{SPACES}]{{0,4}})[\[(]?"
    r"(?P<unit>%|[A-Za-zµμ]+(?:/[A-Za-z]+)?)"
)
PREFIXES = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
TIMES = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "millis"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86400.0),
}
SIZES = {
    **dict.fromkeys(("B", "byte", "bytes"), 1.0),
    **{f"{each}{b}": 1000.0**power for each, power in PREFIXES.items() for b in ("B", "b")},
    **{f"{each.lower()}b": 1000.0**power for each, power in PREFIXES.items()},
    **{f"{each}iB": 1024.0**power for each, power in PREFIXES.items()},
    **{f"{each.lower()}ib": 1024.0**power for each, power in PREFIXES.items()},
    **dict.fromkeys(("kbyte", "kbytes"), 1024.0),  # of GNU time
    **{f"{word}byte{s}": 1000.0**power for power, word in enumerate(("kilo", "mega", "giga"), 1) for s in ("", "s")},
}
NAMED_UNIT = re.compile(r"(?P<gap>(?: |\\s)?[?*+]?)(?P<unit>ns|us|µs|ms|s|secs?|seconds?)(?![\w/?*+{|])")
"""A unit of time that a pattern names right behind its group."""
ANY_TIME = r"(?:ns|us|µs|μs|ms|s|secs?|seconds?)(?![A-Za-z])"
SPOKEN_RATES = re.compile(r"([kKMGT]?)(?:[qrftib]ps|ops|iops|Hz|[Ff][Ll][Oo][Pp][Ss]?)")
MEMORY = re.compile(r"memory|mem|rss|heap|footprint")
BYTE_RATES = re.compile(r"([kKMGT]?)Bps")
AMBIGUOUS_APART = frozenset(("min", "mins", "h", "B"))
"""Units that count behind a space only if the metric is known to be of their kind: `5 min 3 max` is no time."""


class Unit(Struct, frozen=True):
    """A unit: what it measures, and how many base units (seconds, bytes, things, per second) it is."""

    kind: str
    factor: float = 1.0
    stated: bool = True
    """False where a metric's name tells only the kind, as `latency` does."""


class Reading(Struct, frozen=True):
    """A number, and the characters that it was read from."""

    value: float
    text: str
    start: int
    end: int


def read_match(
    match: re.Match[str], metric: str, decimal: str = "", *, numeric: bool = False, unit: str = "", named: str = ""
) -> Reading:
    """Read the number in group 1 of a match, or in all of it: the whole number of which the group has a part.

    Args:
        match: of a pattern in one line; its group `unit` makes seconds of a time where the metric's name has no unit.
        metric: its name may tell the unit that is wanted.
        decimal: "." or ",", which of the two is the decimal point; empty: as the number itself tells.
        numeric: whether the group stands for a number, so that what it leaves out is read, too.
        unit: of numbers that have none of their own, as the head of a table says.
        named: the unit of time that the pattern names.

    Raises:
        ValueError: there is no number, or it can be read in two ways; the message says how and shows the line.
    """
    line, (first, last) = match.string, match.span(value_group(match))
    group = line[max(first, 0) : max(last, 0)]
    odd = re.search(NO_NUMBER, group)
    token = None if odd and odd.start() <= LEADING.match(group).end() + 1 else _token(line, match, first, last)  # type: ignore[union-attr]
    if odd and token is None:
        raise ValueError(f"expected a finite number for {metric}, the command said {group.strip()[:MAX_SHOWN_CHARS]}")
    if token is None or not LEADING.fullmatch(line[first : max(first, token.start())]):
        raise ValueError(f"expected a number for {metric}, the command said {group[:80]!r}")
    start, end = token.span()
    if line[start] in "-+\u2212" and match.start() <= start < first:  # the pattern has the sign, apart from its group
        start = first
    _check_cut(match, start, end, first, last, metric, numeric=numeric)
    if match.end() <= max(end, last) and (parts := _duration(line, start, end)):
        days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in parts.groups())
        value = 86400 * days + 3600 * hours + 60 * minutes + seconds
        value = _converted(value, Unit("time"), unit_of_metric(metric), "hours, minutes or seconds", metric, line)
        return Reading(value, parts[0], *parts.span())
    spaced = SPACED.match(line, start)
    if spaced and spaced.end() <= last and numeric is False:
        end = spaced.end()
    _check_apart(match, start, end, metric)
    _check_behind(match, start, end, metric)
    reading = _measured(match, start, end, last, metric, decimal, named)
    if unit and (known := unit_of(unit)) and reading.end == end:
        value = _converted(reading.value, known, unit_of_metric(metric), unit, metric, line)
        return Reading(value, reading.text, start, end)
    return reading


def value_group(match: re.Match[str]) -> int:
    """The group that has the number: the first one that takes part in the match; 0 for a pattern without groups."""
    unit = match.re.groupindex.get("unit")
    return next((group for group in range(1, match.re.groups + 1) if match[group] is not None and group != unit), 0)


def _token(line: str, match: re.Match[str], first: int, last: int) -> re.Match[str] | None:
    """The whole number of which the group has a part; a comma that the pattern names separates numbers."""
    begin, stop = first, len(line)
    if match.end() > last and line[last : last + 1] == ",":
        stop = last
    if not (match.start() < first and line[first - 1] == ","):
        while begin > max(0, first - MAX_NUMBER_CHARS) and line[begin - 1] in RUN:
            begin -= 1
    found = (token for token in TOKEN.finditer(line, begin, stop) if token.end() > first)
    token = next(found, None)
    return token if token and token.start() < last else None


def _check_cut(
    match: re.Match[str], start: int, end: int, first: int, last: int, metric: str, *, numeric: bool
) -> None:
    """Refuse a group that has a part of a number alone, unless it stands for a number and nothing says otherwise."""
    line = match.string
    beyond = end > last and line[last:end] != "."
    if (start < first or beyond) and (not numeric or (beyond and match.end() > last)):
        raise ValueError(
            f"the pattern takes only a part of the number for {metric}, {line[start:end]!r}: "
            f"{match.re.pattern!r} takes {line[first:last]!r}, in the line {_shown(line)}"
        )


def _check_apart(match: re.Match[str], start: int, end: int, metric: str) -> None:
    line = match.string
    left = re.fullmatch(r"\d[-\u2013:]", line[max(0, start - 2) : start]) and match.start() >= start
    right = re.match(r"[-\u2013.×*:]\d|[A-Za-z]{1,3}\d", line[end : end + 4]) and match.end() <= end
    if left or right or POWER.match(line, end) or re.match(r"0[xXbBoO][0-9a-fA-F]", line[start : start + 3]):
        raise ValueError(f"expected a number for {metric}, found a part of something longer in the line {_shown(line)}")


def _check_behind(match: re.Match[str], start: int, end: int, metric: str) -> None:
    """Refuse a number of which a part, or the unit, is not understood, unless the pattern names what follows."""
    line, word = match.string, UNIT.match(match.string, end)
    if match.end() > end or "unit" in match.re.groupindex:
        return
    if (spaced := SPACED.match(line, start)) and spaced.end() > end:
        joined = spaced[0].replace(" ", "")
        raise ValueError(
            f"{spaced[0]} may be {line[start:end]} or {joined} for {metric}: take one number of it in a group such as "
            rf"([\d ]+), or name what follows in the pattern; the line is {_shown(line)}"
        )
    if MAGNITUDE.match(line, end):
        raise ValueError(f"expected a number in digits for {metric}, in the line {_shown(line)}")
    if word and not word["gap"] and word.start("unit") == end and _printed_unit(word, unit_of_metric(metric)) is None:
        raise ValueError(
            f"expected a known unit for {metric}, got {word['unit'][:40]!r}; if it says nothing, name it in the "
            f"pattern; the line is {_shown(line)}"
        )


def _measured(match: re.Match[str], start: int, end: int, last: int, metric: str, decimal: str, named: str) -> Reading:
    line, wanted = match.string, unit_of_metric(metric)
    if named and (wanted is None or not wanted.stated):
        wanted = unit_of(named)
    text = line[start:end]
    value = value_of(text.replace(" ", ""), decimal)
    if value is None:
        raise ValueError(f"expected a number for {metric}, the command said {text!r}, in the line {_shown(line)}")
    said = UNIT.match(line, end)
    name = (match.groupdict().get("unit") or "") if "unit" in match.re.groupindex else said["unit"] if said else ""
    if "unit" in match.re.groupindex:
        unit = Unit("time", 60.0) if name == "m" else unit_of(name)
    else:
        unit = _printed_unit(said, wanted) if said else None
    ends = said.end() if said and unit else end
    if match.re.groups and not TRAILING.fullmatch(line[ends : max(ends, last)]) and unit_of(line[ends:last]) is None:
        raise ValueError(f"expected a number for {metric}, the command said {match[value_group(match)][:80]!r}")
    if unit is None and wanted and wanted.stated:
        name, unit = _labelled(line[:start], wanted)
    fixed = unit is not None and (wanted is None or not wanted.stated) and _is_fixed(match, name)
    if unit is not None and not fixed:
        value = _converted(value, unit, wanted, name, metric, line)
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number for {metric}, the command said {text[:40]}, which is too large")
    return Reading(value, line[start:ends] if unit else text, start, ends)


def _labelled(before: str, wanted: Unit) -> tuple[str, Unit | None]:
    label = LABEL.search(before)
    unit = unit_of(label["unit"]) if label and label["unit"] not in AMBIGUOUS_APART else None
    return (label["unit"], unit) if label and unit and unit.kind == wanted.kind else ("", None)


def _printed_unit(said: re.Match[str], wanted: Unit | None) -> Unit | None:
    name, glued = said["unit"], not said["gap"]
    if name == "m" and glued and wanted and wanted.kind == "time":
        return Unit("time", 60.0)
    if name in "KMGT" and not glued and wanted and wanted.kind == "size":
        return Unit("size", 1024.0 ** PREFIXES[name])
    unit = unit_of(name) or (Unit("count", 1000.0 ** PREFIXES[name]) if glued and name in PREFIXES else None)
    if unit and name in AMBIGUOUS_APART and not glued and (wanted is None or wanted.kind != unit.kind):
        return None
    if unit and unit.kind == "count" and wanted and wanted.kind == "size":
        return Unit("size", 1024.0 ** PREFIXES[name])
    return unit


def _is_fixed(match: re.Match[str], name: str) -> bool:
    """Return whether the pattern itself names the unit and no other, so that it never varies."""
    if "unit" in match.re.groupindex:
        return False
    behind = match.re.pattern[_group(match.re.pattern)[1] :] if match.re.groups else ""
    words = {word for word in re.findall(r"[A-Za-zµμ%]+(?:/[A-Za-z]+)?", behind) if unit_of(word)}
    return words == {name}


def _converted(value: float, unit: Unit, wanted: Unit | None, name: str, metric: str, line: str) -> float:
    if unit.kind in ("count", "share"):
        return value * unit.factor
    if wanted and unit.kind != wanted.kind:
        raise ValueError(f"expected {wanted.kind} for {metric}, got a number in {name}, in the line {_shown(line)}")
    return value * (unit.factor / (wanted.factor if wanted else 1.0))


def _duration(line: str, start: int, end: int) -> re.Match[str] | None:
    if (parts := COMPOUND.match(line, start)) and len([each for each in parts.groups() if each]) > 1:
        return parts
    before = re.search(r"(?:\d+:){1,2}$", line[max(0, start - 12) : start])
    clock = CLOCK.match(line, start - len(before[0]) if before else start)
    return clock if clock and clock.end() >= end else None


def value_of(text: str, decimal: str = "") -> float | None:
    """Return the value of digits, perhaps infinite, or None. Raises ValueError if a comma has two meanings."""
    if decimal != "," and PLAIN.fullmatch(text):
        return float(text)
    parts = re.fullmatch(r"([-+\u2212]?)(.*?)(?:[eEdD]([-+\u2212]?\d+))?", text.strip())
    sign, digits, exponent = parts.groups() if parts else ("", "", "")
    if re.fullmatch(r"\d+(?:_\d+)+(?:\.[\d_]*)?", digits):
        digits = digits.replace("_", "")
    if re.fullmatch(rf"\d{{1,3}}(?:['\u2019{SPACES}]\d{{3}})+(?:[.,]\d+)?", digits):
        digits = re.sub(rf"['\u2019{SPACES}]", "", digits)
        decimal = decimal or ("," if "," in digits else "")
    plain = _plain(digits, decimal)
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", plain):
        return None
    return float(f"{sign}{plain}e{exponent or 0}".replace("\u2212", "-"))


def _plain(digits: str, decimal: str) -> str:
    """The digits with at most a decimal point between them; as they were where that cannot be."""
    if decimal == "," or (not decimal and CONTINENTAL.fullmatch(digits)):
        if "." not in digits or re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d*)?", digits):
            return digits.replace(".", "").replace(",", ".", 1)
        return digits if decimal != "," else "?"
    if "," not in digits:
        return digits
    if ENGLISH.fullmatch(digits) or (decimal == "." and re.fullmatch(r"\d{1,3}(?:,\d{3})+", digits)):
        return digits.replace(",", "")
    if decimal == "" and re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits):
        point, thousands = digits.replace(",", "."), digits.replace(",", "")
        raise ValueError(
            f'{digits} may be {point} or {thousands}: say which with decimal = "," or decimal = "." in [evaluator]'
        )
    return digits.replace(",", ".") if decimal == "" and digits.count(",") == 1 and "." not in digits else digits


# --- patterns -------------------------------------------------------------------------------------------------------


class NumberPattern(Struct, frozen=True):
    r"""A pattern as it is searched with.

    Attributes:
        search: where the group stands for a number, as in `([0-9.]+)`, it takes numbers in every notation.
        numeric: whether it does.
        decimal: "." if the pattern spells thousands out, `(?:,\d{3})+`.
        labelled: whether it has letters, so that what it matches has a name or a unit.
        unit: the unit of time that the pattern names behind such a group, in whose place it takes every one.
    """

    search: re.Pattern[str]
    numeric: bool
    decimal: str
    labelled: bool
    unit: str


@cache
def pattern_of(text: str) -> NumberPattern:
    """The pattern of a metric's reading."""
    bare = re.sub(r"\\.|\[[^\]]*\]|\(\?(?:P<\w+>|[a-zA-Z]*[:)])", "", text)
    search, numeric, unit = _widened(text)
    labelled = re.search(r"[^\W\d_]", bare) is not None
    return NumberPattern(search, numeric, "." if r",\d{3}" in text else "", labelled, unit)


def _widened(text: str) -> tuple[re.Pattern[str], bool, str]:
    plain = re.compile(text)
    first, last = (0, len(text)) if not plain.groups else _group(text)
    inner = re.sub(r"^\?P<\w+>", "", text[first:last])
    if not (NUMERIC.fullmatch(inner) and REPEATED.search(inner) and re.search(r"\\d|0-9", inner)):
        return plain, False, ""
    ahead, behind = (text[: first - 1], text[last + 1 :]) if plain.groups else ("", "")
    separated = ahead.endswith(",") or behind.startswith(",")
    named = NAMED_UNIT.match(behind)
    rest = f"{named['gap']}{ANY_TIME}{behind[named.end() :]}" if named else behind
    try:
        search = re.compile(f"{ahead}{ANY.replace(',', '') if separated else ANY}{rest}")
    except re.error:
        return plain, False, ""
    return search, True, named["unit"] if named else ""


def _group(text: str) -> tuple[int, int]:
    first, depth = 0, 0
    for piece in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?!P<)[^)]?)?|\)", text, re.DOTALL):
        if piece[0] == "(" and not first:
            first, depth = piece.end(), 0
        elif piece[0].startswith("("):
            depth += 1
        elif piece[0] == ")" and first:
            if depth == 0:
                return first, piece.start()
            depth -= 1
    return 0, 0


# --- units ----------------------------------------------------------------------------------------------------------


@cache
def unit_of(name: str) -> Unit | None:
    """The unit that a word such as `ms`, `MiB`, `ops/s` or `%` stands for."""
    if name in TIMES:
        return Unit("time", TIMES[name])
    if name in SIZES:
        return Unit("size", SIZES[name])
    if name in ("%", "x"):
        return Unit("share")
    if each := BYTE_RATES.fullmatch(name):
        return Unit("size rate", 1000.0 ** PREFIXES.get(each[1], 0))
    if spoken := SPOKEN_RATES.fullmatch(name):
        return Unit("rate", 1000.0 ** PREFIXES.get(spoken[1], 0))
    what, per, time = name.partition("/")
    if per and time in TIMES and what.isalpha():
        if what in SIZES:
            return Unit("size rate", SIZES[what] / TIMES[time])
        prefix = PREFIXES.get(what[:1], 0) if len(what) > 1 and what[:1] in "kKMG" else 0
        return None if what in TIMES else Unit("rate", 1000.0**prefix / TIMES[time])
    return Unit("time", TIMES[what]) if per and what in TIMES else None


@cache
def unit_of_metric(metric: str) -> Unit | None:
    """The unit that a metric's name tells: `p99_ms`, `mb_per_s`, `nanoseconds`; `latency` tells the kind alone."""
    words = words_of(metric)
    known = [None if word in ("min", "mins", "h", "b") else unit_of(word) for word in words]
    if "per" in words[1:-1]:
        at = words.index("per")
        what, time = known[at - 1], TIMES.get(words[at + 1])
        if time and words[at + 1] != "min":
            kind = "size rate" if what and what.kind == "size" else "rate"
            return Unit(kind, (what.factor if what and what.kind == "size" else 1.0) / time)
        return what if what and what.kind == "time" else None
    if stated := next((unit for unit in known if unit), None):
        return stated
    if any(MEMORY.fullmatch(word) for word in words):
        return Unit("size", stated=False)
    return Unit("time", stated=False) if any(DEAR.fullmatch(word) for word in words) else None


def _shown(line: str) -> str:
    return repr(line.strip()[:MAX_SHOWN_CHARS])
