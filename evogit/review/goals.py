"""What a goal is about, as far as it is told in passing; some goals are pages with headings."""

from __future__ import annotations

import re

LONGEST = 600
"""Characters of a goal that are told."""


def opening(goal: str) -> str:
    """A goal up to its first section, its title as a sentence of its own."""
    first, _, rest = goal.strip().partition("\n")
    text = goal.strip()
    if heading := re.match(r"#+\s+(.*)", first):
        text = f"{heading[1].rstrip(' .:#')}. {rest.strip()}".strip()
    text = re.split(r"\n\s*#+\s", text, maxsplit=1)[0].strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def first_sentence(goal: str) -> str:
    """The first sentence, or line, of its opening."""
    return re.split(r"(?<=[.!?;])\s|\n", opening(goal), maxsplit=1)[0]
