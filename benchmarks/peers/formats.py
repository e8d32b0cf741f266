"""What a question holds and how an edit is written down: the same for all systems, in the format that each asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

WEAK = re.compile(r"weakest part: \w+ [\d.]+ \(([^)]*)\)")
"""How landscapes say what is worst (`scoring.py`)."""


@dataclass(frozen=True)
class Reading:
    """What a question holds: the parent, its score, what was said of it, and what is told of others.

    `programs` are whole ones with their scores, `changes` lines before and after with what that brought.
    """

    parent: str
    score: float | None = None
    feedback: str = ""
    programs: list[tuple[str, float]] = field(default_factory=list)
    changes: list[tuple[str, str, float]] = field(default_factory=list)

    @property
    def weak(self) -> tuple[str, ...]:
        """The names that the feedback says are involved in what is worst."""
        found = WEAK.search(self.feedback)
        return tuple(found[1].split(", ")) if found else ()


def code_after(heading: str, prompt: str) -> str:
    """The first block of code after the last place of a heading; empty if there is none."""
    found = re.search(r"^(`{3,}).*\n((?:.*\n)*?)\1", prompt[prompt.rfind(heading) :], re.MULTILINE)
    return found[2].rstrip("\n") + "\n" if found and heading in prompt else ""


def section(heading: str, prompt: str) -> str:
    """What stands under a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}.*\n((?:(?!{level} ).*\n?)*)", prompt, re.MULTILINE)
    return found[1] if found else ""


def numbered(pattern: str, text: str) -> Iterable[tuple[float, str]]:
    """The scores that a pattern finds, each with the text up to the next."""
    found = [*re.finditer(pattern, text)]
    for one, following in zip(found, [*found[1:], None], strict=False):
        yield float(one[1]), text[one.end() : following.start() if following else len(text)]


def replacement(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, with as many above as make the place unique."""
    old, new = before.splitlines(), after.splitlines()
    first = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), len(old) - 1)
    last = next(at for at in range(len(old)) if at >= len(old) - 1 - first or old[-1 - at] != new[-1 - at])
    end_old, end_new = len(old) - last, len(new) - last
    while before.count("\n".join(old[first:end_old]) + "\n") > 1 and first:
        first -= 1
    return "\n".join(old[first:end_old]), "\n".join(new[first:end_new])


def blocks(before: str, after: str, name: str = "") -> str:
    """The edit as SEARCH and REPLACE."""
    search, replace = replacement(before, after)
    return f"<<<<<<< SEARCH{name and ' '}{name}\n{search}\n=======\n{replace}\n>>>>>>> REPLACE"
