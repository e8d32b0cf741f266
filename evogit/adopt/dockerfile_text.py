"""Takes the text of a Dockerfile apart: its instructions with their options, here-documents and variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:(:?[-+])((?:[^{}]|\{[^}]*\})*))?\})")
HEREDOC = re.compile(r"(?:^|(?<=\s))\d?<<(-?)[ \t]*([\"']?)([\w.]+)\2(?=\s|$)")


class Instruction(Struct, frozen=True):
    """One instruction, with its here-documents: name -> text, and whether it says variables."""

    word: str
    options: Sequence[tuple[str, str]]
    rest: str
    documents: Mapping[str, tuple[str, bool]]


def instructions(text: str) -> Iterator[Instruction]:
    """What a Dockerfile tells to do, in order."""
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if line.lstrip().startswith("#"):
            continue
        while lines and line.rstrip().endswith("\\"):
            after = lines.pop(0)
            line = line if after.lstrip().startswith("#") else line.rstrip()[:-1] + after
        word, _, rest = re.sub(r"\s+", " ", line.strip(), count=1).partition(" ")
        documents = _documents(rest, lines) if word.upper() in ("RUN", "COPY", "ADD") else {}
        if documents and word.upper() != "RUN":
            rest = HEREDOC.sub(r"'<<\3'", rest)
        options, rest = _options(rest.strip())
        yield Instruction(word.upper(), options, rest, documents)


def _documents(rest: str, lines: list[str]) -> dict[str, tuple[str, bool]]:
    """The here-documents that an instruction begins; their lines are taken away."""
    found = {}
    for match in HEREDOC.finditer(rest):
        bare = [line.lstrip("\t") if match[1] else line for line in lines]
        if match[3] in bare:
            end = bare.index(match[3])
            found[match[3]] = "".join(f"{line}\n" for line in bare[:end]), not match[2]
            del lines[: end + 1]
    return found


def _options(rest: str) -> tuple[list[tuple[str, str]], str]:
    """The options that an instruction begins with, and what follows."""
    found = []
    while match := re.match(r"--([\w-]+)(?:=(\S*))?(\s+|$)", rest):
        found.append((match[1], (match[2] or "").strip("\"'")))
        rest = rest[match.end() :]
    return found, rest


def array(rest: str) -> list[str]:
    """The words of a JSON array; none where it is no such."""
    try:
        found = json.loads(rest) if rest.startswith("[") else []
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []


def pairs(given: Sequence[str], told: Mapping[str, str]) -> dict[str, str | None]:
    """Variable -> value of each NAME=VALUE, None where it says none."""
    split = (word.partition("=") for word in given)
    return {name: expanded(value, told) if said else None for name, said, value in split}


def expanded(text: str, told: Mapping[str, str], *, unknown: bool = False) -> str:
    """With the values of its variables; one without is empty, or left to the shell where it is `unknown`."""

    def value(match: re.Match[str]) -> str:
        known, how, word = told.get(match[1] or match[2]), match[3] or "", match[4] or ""
        if known is None and not how:
            return match[0] if unknown else ""
        missing = not known if how.startswith(":") else known is None
        return expanded(word, told) if missing == how.endswith("-") and how else ("" if missing else known or "")

    return VARIABLE.sub(value, text)
