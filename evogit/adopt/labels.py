"""Labels in front of numbers that sources print, in any language: `score: {x}`, `"loss=" << x`, `echo "cost $c"`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from evogit.config.printed_numbers import GROUPED, standing

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
ERRORS = re.compile(r"\berr(or)?s?\b|exceptions?|fail(ed|ures?)?|warnings?", re.IGNORECASE)
MESSAGE = re.compile(r"\W*(e|ex|exc|err|error|exception|message|msg|stderr|reason)\b|.*\b(message|stderr)\b", re.DOTALL)
"""A hole that takes a message, no number."""
RESULTS = re.compile(r"(^|_)(objective|result|answer|optimum|value)(_|$)")
"""What labels say of a program's number without saying which way is better."""
EXTREMES = re.compile(r"(^|_)(best|worst|min|max)(_|$)")
"""What labels say of one run of several, where others tell of all."""
MARKS = re.compile("\"\"\"|'''")
ECHO = re.compile(r"\becho\b")
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
        if said and not _is_message(match) and (match["between"] or _is_printed(match["words"], before)):
            yield _label(match)
            at = match.end("between")
        else:
            at = match.start() + 1


def best_label(text: str) -> Label | None:
    """The label of what a program most likely is about; of equals the last one; None if no name tells."""
    labels = list(reversed(list(labels_of(text))))
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
    hole = match["hole"] + match.string[match.end() : match.end() + 20]
    return ERRORS.search(match["words"]) is not None and MESSAGE.match(hole) is not None


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
