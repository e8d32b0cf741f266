"""What evaluators and test runners print: without what passed, and the line that tells why something failed."""

from __future__ import annotations

import re

LONGEST = 300
"""Characters of a line that are looked at."""

_PASSING = re.compile(
    r"""
    (?:\S{1,200}\s+)?[sxX]*\.[.sxX]*\s*(?:\[\s*\d+%\])?\s*   # pytest: dots, behind the name of a file or not
    | \S{1,200}\s+PASSED\b.*                              # pytest -v
    | =*\s*\d+\ (?:passed|passing)\b(?!.*(?:fail|error)).*
    | (?:=+\ test\ session\ starts|platform\ |rootdir:|plugins:|cachedir:|collected\ \d|collecting\ ).*
    | [✓✔√].*                                            # mocha, jest
    | ok\ \d+\b.*                                        # TAP
    | (?:---\ PASS|===\ (?:RUN|PAUSE|CONT)|PASS\b|ok\s+\S+\s+[\d.]+s).*     # Go
    | .{1,250}\.\.\.\ ok                                  # unittest, Rust
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"last lines of (?:stdout|stderr):|=+ .{1,60} =+")

_TELLING = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:FAILED|ERROR) \S+ - .+",
        r"E\s+\S.*",
        r"(?:AssertionError|assert\b|Assertion failed|panicked at|not ok\b|FAIL\b).*",
        r"(?:\w+\.)*\w*(?:Error|Exception)\b:?.*",
        r".*\b(?:expected|error:|failed|FAILED)\b.*",
    )
)
"""What a line looks like that says why, the most telling kinds first."""


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
    """What says best in one line why something failed; empty where nothing does."""
    lines = [line.strip()[:LONGEST] for line in text.split("\n")]
    found = [next(filter(pattern.fullmatch, lines), "") for pattern in _TELLING]
    test, assertion, *others = found
    if test and assertion:
        return f"{test.split()[1]}: {assertion[1:].strip()}"
    return next(filter(None, (assertion[1:].strip(), test, *others)), "")
