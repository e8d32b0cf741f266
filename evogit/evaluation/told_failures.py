"""Failures that a program tells beside the number that it prints: a score of a failure is no score.

docs/tasks.md ("A failure beside a number") states the rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from evogit.config.values import ALL, BAD, CODES, COUNTED, ERRORS, GOOD, SIGNS

FAILED = re.compile(
    r"(?:\w+[ _-])?(?:fail(?:ed|ing|ure|s)?|err(?:or(?:ed)?)?|crash(?:ed)?|exception|invalid|incorrect|wrong|"
    r"infeasible|time(?:d[ _-]?)?out|aborted|killed|rejected|unsuccessful|not[ _-]ok|ko)(?![\w-])",
    re.IGNORECASE,
)
NOTHING = frozenset(("", "none", "null", "nil", "no", "false", "0", "ok", "n/a", "-", "[]", "{}", "no error"))
FALSE = frozenset(("false", "no", "failed", "invalid", "n"))
_NAMES = "|".join(sorted(SIGNS, key=len, reverse=True))
PAIR = re.compile(
    rf"(?<![\w.-])[\"']?(?P<name>{_NAMES})[\"']?\s{{0,8}}[:=]\s{{0,8}}(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;)\]}}|]+)",
    re.IGNORECASE,
)
"""A field in a line: `valid=False`, `"error": "..."`."""
ROW = re.compile(
    rf"\s{{0,8}}(?:METRIC\s+)?[\[(*#-]{{0,3}}\s?(?P<name>{_NAMES})[\])*]{{0,3}}\s{{0,8}}[:=]\s{{0,8}}(?P<value>.+)",
    re.IGNORECASE,
)
"""A line that is a field and nothing else; also `ERROR: no such function`."""
SHOUTED = re.compile(
    r"(?<!\d )(?<![\w=:-])(?:[\[(](?i:failed|failure|error|invalid|crashed|timeout|timed out|incorrect|wrong)[\])]|"
    r"(?:FAILED|FAILURE|FAIL|ERROR|INVALID|CRASHED|TIMEOUT|INCORRECT|WRONG)(?![\w-]|\s?[:=]?\s?\d))"
)
"""A word in the line of a number that tells a failure: `score: 0 (failed)`."""
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
CRASH = re.compile(
    r"\s*(?:Traceback \(most recent call last\):|thread '.*' panicked at|panic: |Exception in thread \"|"
    r"terminate called |ERROR: LoadError|Node\.js v\d|\S+:\d+:in |Uncaught \w*(?:Error|Exception)\b|"
    r"(?:.*: )?(?:Segmentation fault|Bus error|Aborted|Illegal instruction)\b)"
)
"""The line with which a crash begins, or for Node ends."""
TRACE = re.compile(r"\s|\w[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b|During handling|The above exception|$")
"""Lines of a Python traceback behind its first one."""
TAIL_LINES = 200
MAX_LINE_CHARS = 4096
MAX_SHOWN_CHARS = 200


def failure_in(fields: Mapping[str, Any], ignored: Collection[str] = (), metrics: Collection[str] = ()) -> str:
    """Return the failure that fields tell, such as `valid: false`, or ""; `metrics` are measured themselves."""
    found = ((name, value) for name, value in fields.items() if isinstance(name, str) and name not in metrics)
    told = (f"{name}: {_short(value)}" for name, value in found if _fails(_plain(name), value, ignored))
    return next(told, "")


def _plain(name: str) -> str:
    """`exit_code` of `exitCode`; of `tests_passed` and the like what it ends with."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name).lower()
    return name if name in SIGNS or name.rpartition("_")[2] not in COUNTED else name.rpartition("_")[2]


def _fails(name: str, value: object, ignored: Collection[str]) -> bool:
    if ALL in ignored or name in ignored or name not in SIGNS or value is None:
        return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = value.strip().lower() if isinstance(value, str) else None
    if name in ERRORS | BAD:
        return bool(value) and not is_number and text not in NOTHING and not (text and NUMBER.match(text))
    if name in GOOD:
        return value is False or text in FALSE or (is_number and value == 0 and name not in COUNTED)
    if name in CODES:
        return is_number and value != 0
    return text is not None and FAILED.match(text) is not None


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value).lower() if isinstance(value, bool) else repr(value)
    return " ".join(text.split())[:MAX_SHOWN_CHARS]


def failure_around(
    lines: Sequence[str],
    first: int,
    last: int,
    span: tuple[int, int] | None,
    ignored: Collection[str] = (),
    metrics: Collection[str] = (),
) -> str:
    """Return the failure told in the lines of a number (`first` to `last`), the one before, or any after; "" for none.

    `span` is the number's match in a single line. Lines METRIC name=value belong together, wherever they are.
    """
    if ALL in ignored:
        return ""
    rest = "" if span is None else f"{lines[first][: span[0]]} {lines[first][span[1] :]}"[:MAX_LINE_CHARS]
    start = max(0, first - TAIL_LINES)
    rows = [each for each in lines[start : max(0, first - 1)] if each.lstrip().startswith("METRIC")]
    rows += [*lines[max(0, first - 1) : first], *lines[last + 1 : last + 1 + TAIL_LINES]]
    fields = filter(None, (ROW.fullmatch(each[:MAX_LINE_CHARS].rstrip()) for each in rows))
    for matches in (PAIR.finditer(rest), fields):
        for name, value in _pairs(matches):
            if told := failure_in({name: value}, ignored, metrics):
                return told
    alone = (each.strip() for each in rows)
    words = (SHOUTED.search(rest), *(SHOUTED.fullmatch(each.rstrip("!.")) for each in alone))
    if "error" not in ignored and (shouted := next(filter(None, words), None)):
        return shouted[0].strip("[]()")
    return "" if "traceback" in ignored else crash_in(lines[last + 1 :])


def _pairs(matches: Iterable[re.Match[str]]) -> Iterator[tuple[str, Any]]:
    for match in matches:
        text = match["value"].strip()
        value: Any = text.strip("\"'")
        if NUMBER.fullmatch(text):
            value = float(text.rstrip("%"))
        elif text.lower() in ("true", "false"):
            value = text.lower() == "true"
        yield match["name"].lower(), value


def crash_in(lines: Sequence[str]) -> str:
    """The crash that lines tell of, by its last line where it is Python's; empty for none."""
    for at, line in enumerate(lines[-TAIL_LINES:]):
        if CRASH.match(line):
            block = lines[-TAIL_LINES:][at:]
            last = next((each for each in reversed(block) if re.match(r"\w[\w.]*(?::|$)", each)), line)
            return f"{line.strip()[:80]} {last.strip()[:120]}" if last is not line else line.strip()[:200]
    return ""


def other_crash(lines: Sequence[str]) -> str:
    """The crash on another stream than the number's; empty for none, and for a traceback behind which more is told."""
    last = next((at for at in range(len(lines) - 1, -1, -1) if CRASH.match(lines[at])), None)
    if last is None or len(lines) - last > TAIL_LINES:
        return ""
    caught = lines[last].lstrip().startswith("Traceback") and not all(map(TRACE.match, lines[last + 1 :]))
    return "" if caught else crash_in(lines[last:])
