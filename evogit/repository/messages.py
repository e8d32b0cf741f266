"""Commit messages of candidates: a title that may come from a model, and provenance as trailers that may not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evogit.text import spaced

_INERT = (
    # of issues and merge requests: `Fixes #12`, `o/r#12`, `GH-12`, `!12`, and their addresses
    (re.compile(r"(?<![&\w])#(?=\d+\b)"), "no. "),
    (re.compile(r"(?<=\w)#(?=\d+\b)"), " no. "),
    (re.compile(r"\bGH-(?=\d)", re.IGNORECASE), "GH "),
    (re.compile(r"(?<![\w!])!(?=\d+\b)"), "! "),
    (re.compile(r"\b(issues|pulls?|merge_requests|work_items|discussions)/(?=\d)", re.IGNORECASE), r"\1/ "),
    # of people and bots: `@name`, `/approve`
    (re.compile(r"(?<!\w)@(?=\w)"), "@ "),
    (re.compile(r"^([^\w\n]*)/(?=[a-z_-]+(\s|$))", re.MULTILINE), r"\1/ "),
    # trailers and what counts as one: `Signed-off-by:`, `Change-Id:`, `Cc:`, `BREAKING CHANGE:`
    (
        re.compile(r"^([^\w\n]*)(\w+(?:-\w+)+)(?=\s*:)", re.MULTILINE),
        lambda found: found[1] + found[2].replace("-", " "),
    ),
    (re.compile(r"(?<![\w-])\w+(?:-\w+)*-by(?=\s*:)", re.IGNORECASE), lambda found: found[0].replace("-", " ")),
    (
        re.compile(r"^([^\w\n]*(?:cc|bcc|fixes|closes|resolves|link|bug|issue))\s*:", re.MULTILINE | re.IGNORECASE),
        r"\1 -",
    ),
    (re.compile(r"\bBREAKING[ -]CHANGE\s*:"), "breaking change -"),
    # of pipelines: `[skip ci]`
    (re.compile(r"\[\s*((?:skip|no)[ -]\w+|\w+[ -](?:skip|no))\s*\]", re.IGNORECASE), r"(\1)"),
    (re.compile(r"\*{3}\s*NO_CI\s*\*{3}", re.IGNORECASE), "(no ci)"),
)
"""A pattern and its replacement, which is as readable but means nothing to a machine."""

_MARKUP = (
    (re.compile(r"&(?=#|\w+;)"), "&amp;"),
    (re.compile(r"<(?=[A-Za-z/!?])"), "&lt;"),
    (re.compile(r"\]\s*(?=[(\[:])"), "] "),
    (re.compile(r"^([ \t]*)(?=#{1,6}\s|~{3}|`{3})", re.MULTILINE), r"\1\\"),
)
"""The same for Markdown: HTML, images and links whose text is not their address, headings, fences that are not closed.
"""


def inert(text: str) -> str:
    """A model's text in which nothing is done by whoever reads commits by machine."""
    for pattern, instead in _INERT:
        text = pattern.sub(instead, text)
    return text


def inert_markdown(text: str) -> str:
    """The same where it will be rendered: what is written there is seen, and only that."""
    for pattern, instead in _MARKUP:
        text = pattern.sub(instead, text)
    return text


TITLE_LENGTH = 120

MAX_READ_CHARS = 100_000  # the prefix of a message in which its title is looked for
REASON_LENGTH = 2_000  # characters of what an author says for a change
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
