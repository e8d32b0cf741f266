"""Commit messages of candidates: a title that may come from a model, and provenance as trailers that may not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

TITLE_LENGTH = 120
_OURS = re.compile(r"^\s*evogit\s*-[\w-]*\s*:", re.IGNORECASE)


def clean(text: str) -> str:
    """Text that is safe to store and show: no control, bidi or surrogate characters, no line like our trailers."""
    lines = text.replace("\r\n", "\n").split("\n")
    printable = ("".join(c if _printable(c) else " " for c in line).rstrip() for line in lines)
    return "\n".join(line for line in printable if not _OURS.match(line)).strip()


def _printable(character: str) -> bool:
    return character == "\t" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean_title(text: str) -> str:
    """The first line of `clean(text)`, cut to a length that fits a log; never empty."""
    title = clean(text).partition("\n")[0].strip()
    if len(title) > TITLE_LENGTH:
        title = title[: TITLE_LENGTH - 1] + "…"
    return title or "(no title)"


def candidate_message(title: str, trailers: Mapping[str, str | Sequence[str]]) -> str:
    """The message of a candidate commit; `trailers` maps `Agent` to the value of `Evogit-Agent`, or to several."""
    pairs = ((key, [said] if isinstance(said, str) else said) for key, said in trailers.items())
    lines = [f"Evogit-{key}: {clean_title(value)}" for key, values in pairs for value in values if value]
    return clean_title(title) + "\n\n" + "\n".join(lines) + "\n"
