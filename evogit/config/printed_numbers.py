"""Which number a benchmark prints, how it is read, and which way is better: as far as sources and names tell."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evogit.core import Direction

OBJECT = re.compile(r"(?:dumps?|stringify)\(\s*\{(.{1,400})|[\"'`]\{+(\\?\".{1,400})", re.DOTALL)
KEY = re.compile(r"(?:^|[{,])\s*\\?[\"']?([A-Za-z_]\w*)\\?[\"']?\s*(?=[:,}])")
PRINTED = re.compile(
    r"([A-Za-z]+)([ :=]{1,3})(?:%[-+ #0-9.]*l?[a-z]|\$?\{[^{}\n]*\})( ?)(ms|us|ns|s|seconds|ops/s)(?![\w/])"
)
UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "s": "seconds", "ops/s": "ops_per_second"}

WORSE = re.compile(r"errors?|loss|miss(es)?|fail(ed|ures?)|excess|costs?")
BETTER = re.compile(r"ops|throughput|rate|score|accuracy|speed(up)?|pass(ed)?|coverage|[fqr]ps|per|hits|f1|recall")
LOWER = re.compile(
    r"seconds?|secs?|[mun]?s|(milli|micro|nano)seconds?|time|elapsed|duration|latency|took|cpu|wall|bytes|size|memory|"
    r"rss|[kmg]b"
)


def read_of(texts: Iterable[str]) -> dict[str, str]:
    """How the number that a benchmark's source prints can be read: metric -> how; empty when it does not tell."""
    for text in texts:
        for match in OBJECT.finditer(text):
            for key in KEY.findall(match[1] or match[2]):
                if direction_of(key, "json"):
                    return {key: "json"}
        if found := PRINTED.search(text):
            word, between, space, unit = found.groups()
            return {UNITS.get(unit, unit): f"regex:{word}{between}([0-9.]+){space}{unit}"}
    return {}


def direction_of(metric: str, how: str) -> Direction | None:
    """Which way is better, as far as the metric's name and the way that it is read tell."""
    if how == "exit" or how.startswith("junit:"):
        return "maximize"
    if how in ("cpu", "wall"):
        return "minimize"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", metric).lower().split("_")
    for pattern, direction in ((WORSE, "minimize"), (BETTER, "maximize"), (LOWER, "minimize")):
        if any(pattern.fullmatch(word) for word in words):
            return "minimize" if direction == "minimize" else "maximize"
    return None
