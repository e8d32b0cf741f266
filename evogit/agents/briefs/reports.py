"""What evaluators and test runners print: without what passed, and the line that tells why something failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST = 300  # characters of a line that are looked at
MOST = 20_000  # characters of a report, its last ones, in which the reason for a failure is looked for

_PASSING = re.compile(
    r"""
    (?:\S{1,200}\s+)?[sxX]*\.[.sxX]*\s*(?:\[\s*\d+%\])?\s*   # pytest: dots, behind the name of a file or not
    | \S{1,200}\s+PASSED\b.*                              # pytest -v
    | =*\s*\d+\ (?:passed|passing)\b(?!.*(?:fail|error)).*
    | (?:=+\ test\ session\ starts|platform\ |rootdir:|plugins:|cachedir:|collected\ \d|collecting\ ).*
    | [✓✔√].*                                            # mocha, jest
    | ok\ \d+\b.*                                        # TAP
    | (?:---\ PASS|===\ (?:RUN|PAUSE|CONT)|PASS\b|ok\s+\S+\s+[\d.]+s).*     # Go
    | -{10,} | Ran\ \d+\ tests?\ in\ .* | OK(?:\ \(.*\))?      # unittest
    | .{1,250}\.\.\.\ ok                                  # Rust
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"last lines of (?:stdout|stderr):|=+ .{1,60} =+")

_TESTS = (
    r"(?:FAILED|ERROR) (\S+)(?: - .*)?",  # pytest
    r"(?:FAIL|ERROR): (\S+).*",  # unittest
    r"--- FAIL: (\S+).*",  # Go
    r"not ok \d+ (?:- )?(.+)",  # TAP
    r"test (\S+) \.\.\. FAILED",  # Rust
)
_REASONS = (
    r"E\s+(\S.*)",
    r"((?:AssertionError|Assertion failed|panicked at|thread .* panicked at)\b.*)",
    r"((?:\w+\.)*\w*(?:Error|Exception)\b:.*)",
    r"(assert\b.*)",
    r"(.*\b(?:expected|error:)\s.*)",
)
"""What a line looks like that names a failed test, and one that says why it failed; the most telling kinds first."""


def without_passing(text: str) -> str:
    """The lines that tell of anything but success, and headings of such."""
    kept: list[str] = []
    for line in text.split("\n"):
        if _PASSING.fullmatch(line.strip()[:LONGEST]) or (not line.strip() and not (kept and kept[-1].strip())):
            continue
        if kept and _HEADING.fullmatch(kept[-1].strip()) and _HEADING.fullmatch(line.strip()[:LONGEST]):
            kept.pop()
        kept.append(line)
    while kept and (not kept[-1].strip() or _HEADING.fullmatch(kept[-1].strip()[:LONGEST])):
        kept.pop()
    return "\n".join(kept)


def telling(text: str) -> str:
    """What says best in one line why something failed: the test and the assertion; empty where nothing does."""
    lines = [line.strip()[:LONGEST] for line in text[-MOST:].split("\n")]
    return ": ".join(filter(None, (_first(_TESTS, lines), _first(_REASONS, lines))))


def _first(patterns: Iterable[str], lines: Sequence[str]) -> str:
    """What the first pattern that any line has the shape of finds in the first such line."""
    found = (found[1] for pattern in patterns for line in lines if (found := re.fullmatch(pattern, line)))
    return next(found, "")
