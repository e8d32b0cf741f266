"""What forges and tools act upon in commit messages and pull requests, made inert in texts that models write.

A landed commit is a person's: no model may close issues, call people, sign off, or steer bots with it.
"""

from __future__ import annotations

import re

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
"""What is looked for, and what takes its place: as readable, and nothing to a machine."""

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
