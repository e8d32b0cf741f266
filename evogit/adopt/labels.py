"""Labels in front of numbers that sources print, in any language: `score: {x}`, `"loss=" << x`, `echo "cost $c"`.

All patterns are bounded, and look at the first characters of a line alone, so that their time grows with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from evogit.config.printed_numbers import NUMBER, is_cost, rank_of_words, standing
from evogit.contained import lines_of

PRINTS = re.compile(
    r"\b(?:print|println|printf|puts|echo|cat|say|log|info|write|writeln|cout|display)\b|\b[A-Z]\w{0,40}\.[Pp]rint\w{0,9}"
)
NO_PRINT = re.compile(r"[ \t]*(?://|#(?!\{)|\*)|.*\b(?:raise|throw|assert|add_argument|help[ \t]?=)")
"""Lines whose strings are not what a program prints: comments, errors, helps."""
WORD = r"(?!(?:is|was|are|of|the|with|and|in|at|a|an|for|to|by|done|finished|new|has|have|got)\b)[A-Za-z][\w-]{0,40}"
HOLE = (
    r"(?P<hole>\$?\{(?![{\s])[^{}\n]{0,200}|%[-+ #'0-9.*]{0,12}l{0,2}[a-zA-Z]|\$[\w({]|\#\{|\\\(|`|"
    r"[\"'`][ \t]{0,8}(?:,(?![ \t]{0,8}(?:end|file|sep)[ \t]?=)|<<|\+|\.{1,2}|&|\$|%)[ \t]{0,8}(?:\w{1,40}\W)?)"
)
"""Where a number is put in; what follows the quote that ends a string."""
LABEL = re.compile(
    rf"(?<![\w$.%/{{-])(?P<words>(?:{WORD} ){{0,2}}{WORD})(?P<unit>[ \t]{{0,8}}\([^()\n\"']{{0,40}}\))?"
    rf"(?P<between>[ \t]{{0,8}}(?:[:=]|[-=]>)|[ \t]{{1,8}}(?:is|was):?|)[ \t]{{0,24}}[$€*]{{0,3}}{HOLE}"
)
ARGUMENT = re.compile(r"(?:%[-+ #0-9.*]{0,12}l{0,2}[a-zA-Z]|\{(?::[^{}\n]{0,60})?\})[ \t]{0,8}$")
"""A hole in front of a word, which what follows the string fills."""
ERRORS = re.compile(r"\berr(or)?s?\b|exceptions?|fail(ed|ures?)?|warnings?", re.IGNORECASE)
MESSAGE = re.compile(
    r"\W{0,8}(e|ex|exc|err|error|exception|message|msg|stderr|reason)\b|.*\b(message|stderr)\b", re.DOTALL
)
"""A hole that takes a message, no number."""
RESULTS = re.compile(r"(^|_)(objective|result|answer|optimum|value)(_|$)")
"""What labels say of a program's number without saying which way is better."""
EXTREMES = re.compile(r"(^|_)(best|worst|min|max)(_|$)")
"""What labels say of one run of several, where others tell of all."""
MARKS = re.compile("\"\"\"|'''")
ECHO = re.compile(r"\becho\b")
CLOCKED = re.compile(
    r"elapsed|timeit|perf_counter|monotonic|process_time|time\.time|hrtime|steady_clock|now\(\)|clock\(\)|"
    r"\b(?:duration|runtime)\b",
    re.IGNORECASE,
)
"""What a line says that prints a time."""
BEHIND = re.compile(
    r"(?:%[-+ #0-9.*]{0,12}l{0,2}[a-z]|[)}]|[,+<&][ \t]{0,8}[\"'`]) ?"
    r"(?P<unit>(?P<which>milli|micro|nano|)sec(?:ond)?s?|(?P<short>[mnuµμ]?)s)(?![\w/])"
)
"""A time with its unit behind it."""
VARYING = re.compile(r"\{\w{0,40}:[^{}\n]{0,20}\?\}|\btime\.Since\(|\bconsole\.timeEnd\(")
"""What prints a time in the unit that suits it: Rust's `{:?}`, Go, `console.timeEnd`."""
PREFIXES = {"m": "milli", "n": "nano", "": ""} | dict.fromkeys("uµμ", "micro")


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
    """Yield the labels in front of numbers that a source prints, in its order."""
    block = ""
    for line in lines_of(text):
        if block or any(mark in line for mark in ('"', "'", "`", "echo")) and not NO_PRINT.match(line):
            yield from _labels(re.sub(r"\\[nrt]", "  ", line), bool(block))
        for mark in MARKS.findall(line):
            block = mark if not block else "" if block == mark else block


def _labels(line: str, within: bool) -> Iterator[Label]:
    """Yield the labels of one line; `within` a string that has begun before it."""
    quoted, prints, echo = _quoted(line), PRINTS.search(line), ECHO.search(line)
    at = 0
    while match := LABEL.search(line, at):
        start = match.start()
        said = within or quoted[start] or (echo and echo.end() <= start)
        is_printed = prints and prints.end() <= start and not ERRORS.search(match["words"])
        if said and (match["between"] or (is_printed and not _is_filled(match))) and not _is_message(match):
            yield _label(match)
            at = match.end("between")
        else:
            at = start + 1


def best_label(text: str) -> Label | None:
    """The label of what a program most likely is about; of equals the last one; None if no name tells."""
    labels = list(reversed(list(labels_of(text))))
    found = [each for each in labels if standing(each.metric) < (3 if each.plain else 2)]
    results = [each for each in labels if each.plain and RESULTS.search(each.metric)]
    found.sort(key=lambda each: (*_standing(each.metric), rank_of_words(each.metric)))
    return next(iter([*found, *results]), None)


def _standing(metric: str) -> tuple[int, bool, bool]:
    return standing(metric), is_cost(metric), EXTREMES.search(metric) is not None


def time_of(text: str) -> tuple[str, str] | None:
    """The time that a source prints last, if that is what it prints last: its name, and how it is read.

    An empty reading is any number.
    """
    lines = [line for line in lines_of(text) if PRINTS.search(line) or VARYING.search(line)]
    if not lines or NO_PRINT.match(lines[-1]):
        return None
    if match := BEHIND.search(lines[-1]):
        prefix = PREFIXES[match["short"]] if match["short"] is not None else match["which"]
        return f"{prefix}seconds", rf"regex:{NUMBER}\s?{match['unit']}(?!\w)"
    return ("time", "") if CLOCKED.search(lines[-1]) or VARYING.search(lines[-1]) else None


def _label(match: re.Match[str]) -> Label:
    metric = re.sub(r"\W+", "_", match["words"], flags=re.ASCII).strip("_").lower()
    if not re.match(r"[a-z]", metric) or metric in ("name", "feedback"):
        metric = "score"
    name = r"\s+".join(map(re.escape, match["words"].split()))
    sign = r"(?:[:=]|[-=]>)" if re.search(r"[:=>]", match["between"]) else r"(?:(?:is|was)?\s*[:=]?)"
    aside = r"\s*\([^()]*\)" if match["unit"] else ""
    return Label(metric, rf"regex:\b{name}{aside}\s*{sign}\s*[$€*]*{NUMBER}", bool(match["between"]))


def _is_message(match: re.Match[str]) -> bool:
    if re.search(r"\b(failed|failure|warning|exception)$", match["words"], re.IGNORECASE):
        return True
    if re.fullmatch(r"%[-+ #0-9.*]{0,12}l{0,2}[a-rt-zA-Z]", match["hole"]):
        return False
    hole = match["hole"] + match.string[match.end() : match.end() + 20]
    return ERRORS.search(match["words"]) is not None and MESSAGE.match(hole) is not None


def _is_filled(match: re.Match[str]) -> bool:
    """Whether what follows a word's string fills a hole in front of the word: `("%.3f GFLOPS", x)`."""
    before = match.string[max(0, match.start() - 100) : match.start()]
    return re.match(r"[\"'`][ \t]{0,8},", match["hole"]) is not None and ARGUMENT.search(before) is not None


def _quoted(line: str) -> list[bool]:
    """Return whether a string is open in front of each character of a line."""
    found, quote, escaped = list[bool](), "", False
    for character in line:
        found.append(quote != "")
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif not quote and character in "\"'`":
            quote = character
        elif character == quote:
            quote = ""
    return found
