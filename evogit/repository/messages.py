"""Commit messages of candidates: a title that may come from a model, and provenance as trailers that may not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evogit.repository.directives import inert
from evogit.text import spaced

TITLE_LENGTH = 120

MAX_READ_CHARS = 100_000
"""The prefix of a message in which its title is looked for."""

REASON_LENGTH = 2_000
"""Characters of what an author says for a change."""

_OURS = re.compile(r"^\s*evogit\s*-[\w-]*\s*:", re.IGNORECASE)


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
"""Commands to a terminal, of which nothing is to be left: titles, links, colours."""


def clean(text: str) -> str:
    """Text that is safe to store and show: no characters that are not seen, no line like our trailers."""
    lines = _ANSI.sub("", text).replace("\r\n", "\n").split("\n")
    printable = (spaced(line).rstrip() for line in lines)
    return "\n".join(line for line in printable if not _OURS.match(line)).strip()


def clean_title(text: str) -> str:
    """The first line of `clean(text)`, cut to a length that fits a log; never empty."""
    title = clean(text[:MAX_READ_CHARS]).partition("\n")[0].strip()
    if len(title) > TITLE_LENGTH:
        title = title[: TITLE_LENGTH - 1] + "…"
    return title or "(no title)"


def candidate_message(title: str, reason: str, trailers: Mapping[str, str | Sequence[str]]) -> str:
    """The message of a candidate commit; `trailers` maps `Agent` to the value of `Evogit-Agent`, or to several."""
    said = clean(reason)
    if len(said) > REASON_LENGTH:
        said = said[: REASON_LENGTH - 1] + "…"
    title, said = inert(clean_title(title)), inert(said)
    pairs = ((key, [said] if isinstance(said, str) else said) for key, said in trailers.items())
    lines = [f"Evogit-{key}: {clean_title(value)}" for key, values in pairs for value in values if value]
    return "\n\n".join(filter(None, (title, said, "\n".join(lines)))) + "\n"


def reason_in(message: str) -> str:
    """What the author of a commit says for it: its message without the title and our trailers."""
    return clean(message.partition("\n")[2])
