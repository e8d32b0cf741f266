"""Takes the text of a Dockerfile apart: its instructions with their options and variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.contained import MAX_LINE_CHARS

MAX_CHARS = 1 << 16
"""Characters of a Dockerfile that are read."""
VARIABLE = re.compile(r"\$(?:(\w{1,80})|\{(\w{1,80})(?:(:?[-+])([^{}]{0,500}))?\})")
HEREDOC = re.compile(r"(?<!\S)\d?<<-?[ \t]{0,8}[\"']?([\w.]{1,80})[\"']?(?!\S)")
OPTION = re.compile(r"--([\w-]{1,40})(?:=(\S*))?(?:[ \t]+|$)")


class Instruction(Struct, frozen=True):
    """One instruction; `has_document` where a here-document follows, which is not read."""

    word: str
    options: Sequence[tuple[str, str]]
    rest: str
    has_document: bool


def instructions(text: str) -> Iterator[Instruction]:
    """Yield what a Dockerfile tells to do, in order, each as far as patterns look."""
    lines = text[:MAX_CHARS].splitlines()
    last = {line.lstrip("\t"): number for number, line in enumerate(lines)}
    at = 0
    while at < len(lines):
        parts = [lines[at]]
        at += 1
        if parts[0].lstrip().startswith("#"):
            continue
        while parts[-1].rstrip().endswith("\\") and at < len(lines):
            parts[-1] = parts[-1].rstrip()[:-1]
            parts.append("\\" if lines[at].lstrip().startswith("#") else lines[at])
            at += 1
        word, *rest = "".join(parts).strip()[:MAX_LINE_CHARS].split(None, 1) or [""]
        ends = HEREDOC.findall("".join(rest)) if word.upper() in ("RUN", "COPY", "ADD") else []
        for end in (end for end in ends if last.get(end, 0) >= at):
            at = next(place for place in range(at, len(lines)) if lines[place].lstrip("\t") == end) + 1
        options, left = _options("".join(rest).strip())
        yield Instruction(word.upper(), options, left, any(end in last for end in ends))


def _options(rest: str) -> tuple[list[tuple[str, str]], str]:
    """The options that an instruction begins with, and what follows."""
    found, at = [], 0
    while match := OPTION.match(rest, at):
        found.append((match[1], (match[2] or "").strip("\"'")))
        at = match.end()
    return found, rest[at:]


def array(rest: str) -> list[str]:
    """The words of a JSON array; none where it is no such."""
    try:
        found = json.loads(rest) if rest.startswith("[") else []
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []


def expanded(text: str, told: Mapping[str, str], *, unknown: bool = False) -> str:
    """With the values of its variables; one without is empty, or left to the shell where it is `unknown`.

    What gets longer is cut where patterns stop.
    """

    def value(match: re.Match[str]) -> str:
        known, how, word = told.get(match[1] or match[2]), match[3] or "", match[4] or ""
        if known is None and not how:
            return match[0] if unknown else ""
        missing = not known if how.startswith(":") else known is None
        return word if missing == how.endswith("-") and how else ("" if missing else known or "")

    return VARIABLE.sub(value, text)[: max(len(text), MAX_LINE_CHARS)]
