"""Labels in front of numbers that sources print, in any language: `score: {x}`, `"loss=" << x`, `echo "cost $c"`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from evogit.config.printed_numbers import GROUPED, is_cost, standing

PRINTS = re.compile(
    r"\b(?:print|println|printf|puts|echo|cat|say|log|info|write|writeln|cout|display)\b|\b[A-Z]\w*\.[Pp]rint\w*"
)
NO_PRINT = re.compile(r"^\s*(?://|#(?!\{)|\*)|\b(?:raise|throw|assert|add_argument|help\s*=)")
"""Lines whose strings are not what a program prints: comments, errors, helps."""
WORD = r"(?!(?:is|was|are|of|the|with|and|in|at|a|an|for|to|by|done|finished|new|has|have|got)\b)[A-Za-z][\w-]*"
HOLE = (
    r"(?P<hole>\$?\{(?![{\s])[^{}\n]*|%[-+ #'0-9.*]*l{0,2}[a-zA-Z]|\$[\w({]|\#\{|\\\(|`|"
    r"[\"'`]\s*(?:,(?!\s*(?:end|file|sep)\s*=)|<<|\+|\.{1,2}|&|\$|%)\s*(?:\w+\W)?)"
)
"""Where a number is put in; what follows the quote that ends a string."""
LABEL = re.compile(
    rf"(?<![\w$.%/{{-])(?P<words>(?:{WORD} ){{0,2}}{WORD})(?P<unit>\s*\([^()\n\"']*\))?"
    rf"(?P<between>\s*(?:[:=]|[-=]>)|\s+(?:is|was):?|)\s*(?P<sign>[$€*]*){HOLE}"
)
RATE = re.compile(
    r"(?:%[-+ #0-9.*]*l{0,2}[a-z]|\{[^{}\n]*\}) ?"
    r"(?P<words>[kmgt]?flops?(?:/s)?|[kmgt]?i?b/s|[fqrt]ps|[a-z]+/s(?:ec(?:ond)?)?)(?![\w:=/])",
    re.IGNORECASE,
)
"""A rate that stands behind its number: `%.3f GFLOPS`, `{rate} ops/s`."""
ARGUMENT = re.compile(r"(?:%[-+ #0-9.*]*l{0,2}[a-zA-Z]|\{(?::[^{}\n]*)?\})\s*$")
"""A hole in front of a word, which what follows the string fills."""
ERRORS = re.compile(r"\berr(or)?s?\b|exceptions?|fail(ed|ures?)?|warnings?", re.IGNORECASE)
MESSAGE = re.compile(r"\W*(e|ex|exc|err|error|exception|message|msg|stderr|reason)\b|.*\b(message|stderr)\b", re.DOTALL)
"""A hole that takes a message, no number."""
RESULTS = re.compile(r"(^|_)(objective|result|answer|optimum|value)(_|$)")
"""What labels say of a program's number without saying which way is better."""
EXTREMES = re.compile(r"(^|_)(best|worst|min|max)(_|$)")
"""What labels say of one run of several, where others tell of all."""
MARKS = re.compile("\"\"\"|'''")
ECHO = re.compile(r"\becho\b")
_CLOCK = r"(?:elapsed|timeit|perf_counter|monotonic|process_time|time\.time|hrtime|steady_clock|now\(\)|clock\(\))"
TIMED = re.compile(
    rf"\bwhile\b[^\n]*{_CLOCK}[^\n]*<|\bif\b[^\n]*{_CLOCK}[^\n]*>(?:[^\n]*\n){{0,8}}?[^\n]*\bbreak\b", re.IGNORECASE
)
"""A loop that lasts as long as a clock says, so that the time is no result."""
CLOCKED = re.compile(rf"{_CLOCK}|\b(?:duration|runtime)\b", re.IGNORECASE)
BEHIND = re.compile(
    r"(?:%[-+ #0-9.*]*l{0,2}[a-z]|[)}]|[,+<&]\s*[\"'`]) ?"
    r"(?P<unit>(?P<which>milli|micro|nano|)sec(?:ond)?s?|(?P<short>[mnuµμ]?)s)(?![\w/])"
)
"""A time with its unit behind it."""
VARYING = re.compile(r"\{\w*:[^{}\n]*\?\}|\btime\.Since\(|\bconsole\.timeEnd\(")
"""What prints a time in the unit that suits it: Rust's `{:?}`, Go, `console.timeEnd`."""
IN_UNIT = r"\s?(?P<unit>ns|[uµμ]s|ms|s|m)(?![\w:])"
"""Such a unit, by which a number that is read becomes seconds."""
PREFIXES = {"m": "milli", "n": "nano", "": ""} | dict.fromkeys("uµμ", "micro")
LONGEST = 2000
"""Characters of a line that are looked at."""


class Label(Struct, frozen=True):
    """A label that a source prints in front of a number.

    Attributes:
        metric: what the number is called.
        read: how it is read.
        plain: whether a sign separates the two, not a space alone.
    """

    metric: str
    read: str
    plain: bool


def labels_of(text: str) -> Iterator[Label]:
    """The labels in front of numbers that a source prints, in its order."""
    varying = VARYING.search(text) is not None
    for each in _written(text):
        yield replace(each, read=f"{each.read}(?:{IN_UNIT})?") if varying and is_cost(each.metric) else each


def _written(text: str) -> Iterator[Label]:
    block = ""
    for written in text.splitlines():
        line = re.sub(r"\\[nrt]", "  ", written[:LONGEST])
        if block or ('"' in line or "'" in line or "`" in line or "echo" in line) and not NO_PRINT.search(line):
            yield from _labels(line, bool(block))
        for mark in MARKS.findall(written):
            block = mark if not block else "" if block == mark else block


def _labels(line: str, within: bool) -> Iterator[Label]:
    """The labels of one line; `within` a string that has begun before it."""
    at = 0
    while match := LABEL.search(line, at):
        before = line[: match.start()]
        said = within or _in_string(before) or ECHO.search(before)
        label = match["between"] or (_is_printed(match["words"], before) and not _is_filled(match, before))
        if said and label and not _is_message(match):
            yield _label(match)
            at = match.end("between")
        else:
            at = match.start() + 1
    for match in RATE.finditer(line):
        if within or _in_string(line[: match.start()]) or ECHO.search(line[: match.start()]):
            name = re.sub("/s.*", "_per_second", match["words"].lower())
            yield Label(name, rf"regex:{GROUPED} ?{re.escape(match['words'])}(?!\w)", plain=False)


def best_label(text: str) -> Label | None:
    """The label of what a program most likely is about; of equals the last one; None if no name tells."""
    labels = [each for each in reversed(list(labels_of(text))) if not (is_cost(each.metric) and TIMED.search(text))]
    found = [each for each in labels if standing(each.metric) < (3 if each.plain else 2)]
    results = [each for each in labels if each.plain and RESULTS.search(each.metric)]
    found.sort(key=lambda each: (standing(each.metric), EXTREMES.search(each.metric) is not None))
    return next(iter([*found, *results]), None)


def labelled(words: str, between: str = ":", unit: str = "") -> str:
    """How the number behind a label is read; without a sign `between`, spaces will do."""
    name = r"\s+".join(map(re.escape, words.split()))
    sign = r"(?:[:=]|[-=]>)" if re.search(r"[:=>]", between) else r"(?:(?:is|was)?\s*[:=]?)"
    aside = r"\s*\([^()]*\)" if unit else ""
    return rf"regex:\b{name}{aside}\s*{sign}\s*[$€*]*{GROUPED}"


def _label(match: re.Match[str]) -> Label:
    metric = re.sub(r"\W+", "_", match["words"], flags=re.ASCII).strip("_").lower()
    if not re.match(r"[a-z]", metric) or metric in ("name", "feedback"):
        metric = "score"
    return Label(metric, labelled(match["words"], match["between"], match["unit"] or ""), bool(match["between"]))


def _is_message(match: re.Match[str]) -> bool:
    if re.search(r"\b(failed|failure|warning|exception)$", match["words"], re.IGNORECASE):
        return True
    if re.fullmatch(r"%[-+ #0-9.*]*l{0,2}[a-rt-zA-Z]", match["hole"]):
        return False
    hole = match["hole"] + match.string[match.end() : match.end() + 20]
    return ERRORS.search(match["words"]) is not None and MESSAGE.match(hole) is not None


def _is_filled(match: re.Match[str], before: str) -> bool:
    """Whether what follows a word's string fills a hole in front of the word: `("%.3f GFLOPS", x)`."""
    return re.match(r"[\"'`]\s*,", match["hole"]) is not None and ARGUMENT.search(before) is not None


def time_of(text: str) -> tuple[str, str] | None:
    """The time that a source prints last, if that is what it prints last: its name, and how it is read.

    An empty reading is any number.
    """
    lines = [line for line in text.splitlines() if PRINTS.search(line) or VARYING.search(line)]
    if not lines or NO_PRINT.search(lines[-1]):
        return None
    if VARYING.search(lines[-1]) and (CLOCKED.search(lines[-1]) or "time" in lines[-1].lower()):
        return "seconds", f"regex:{GROUPED}{IN_UNIT}"
    if match := BEHIND.search(lines[-1]):
        prefix = PREFIXES[match["short"]] if match["short"] is not None else match["which"]
        return f"{prefix}seconds", rf"regex:{GROUPED}\s?{match['unit']}(?!\w)"
    return ("time", "") if CLOCKED.search(lines[-1]) else None


def _is_printed(words: str, before: str) -> bool:
    """Whether words that a space alone parts from a value are a label: of an error, it is a message."""
    return PRINTS.search(before) is not None and ERRORS.search(words) is None


def _in_string(before: str) -> bool:
    """Whether a string is open at the end of a part of a line."""
    quote = ""
    for character in re.sub(r"\\.", "", before):
        if not quote and character in "\"'`":
            quote = character
        elif character == quote:
            quote = ""
    return bool(quote)
