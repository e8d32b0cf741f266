"""Chooses the code that a brief shows: all that may be changed where it fits, else what matters most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evogit.agents import Background, Brief
from evogit.agents.digest import cut, fence
from evogit.agents.edits import one_line
from evogit.llm import estimate_tokens

CONTEXT_SHARE = 0.2
"""Share of the room for code that goes to files which may not be changed but are spoken of."""

MAP_SHARE = 0.06
"""Share of the room for code that the list of other files takes at most."""

INSTRUCTIONS = "AGENTS.md"
"""The file that briefs show apart from the code."""

OVERHEAD = 20
"""Tokens around a file."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The files that are shown, path -> text, and the list of all others."""

    files: Mapping[str, str]
    unshown: str

    def text(self) -> str:
        """The files, each between fences under its name."""
        return "\n\n".join(f"{one_line(path, 300)}:\n{fence(text)}" for path, text in self.files.items())


def excerpt(brief: Brief, background: Background, tokens: int) -> Excerpt:
    """Choose files that take about so many tokens in all."""
    spoken, sizes = _words(_spoken(brief, background)), background.sizes
    room = _Room(background, int(tokens * (1 - MAP_SHARE)))
    own = sorted(brief.files, key=lambda path: (not _is_in(path, spoken), sizes[path], path))
    for path in own:
        room.take(path)
    for path in own:
        if not room.files:
            room.take_part(path)
    context = min(room.left, int(tokens * CONTEXT_SHARE))
    apart = {*brief.files, INSTRUCTIONS}
    for path in sorted((path for path in sizes if path not in apart and _is_in(path, spoken)), key=sizes.__getitem__):
        if sizes[path] // 4 <= context:
            context -= room.take(path)
    unshown = {path: size for path, size in sizes.items() if path not in room.files and path != INSTRUCTIONS}
    return Excerpt(dict(sorted(room.files.items())), listing(unshown, int(tokens * MAP_SHARE)))


class _Room:
    """Holds files until it is full; reads none that does not fit."""

    def __init__(self, background: Background, tokens: int) -> None:
        self._background, self.left = background, tokens
        self.files: dict[str, str] = {}

    def take(self, path: str) -> int:
        """Take a file in if it is a text and fits; the tokens that it takes."""
        needed = -(-self._background.sizes[path] // 4) + OVERHEAD
        text = _text(self._background.read(path)) if needed <= self.left else None
        if text is None:
            return 0
        self.files[path] = text
        self.left -= needed
        return needed

    def take_part(self, path: str) -> None:
        """Take in as much of a text as fits."""
        if (text := _text(self._background.read(path))) is not None:
            self.files[path] = cut(text, self.left - OVERHEAD)
            self.left = 0


def _text(content: bytes) -> str | None:
    """A file as lines without their CR; None for what is no text."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")


def _spoken(brief: Brief, background: Background) -> Iterable[str]:
    """All texts of the brief that may name files."""
    yield brief.goal
    yield from brief.conflicts
    yield from background.guidance
    yield from background.feedback.values()
    yield from (background.log, background.output, *background.failures)
    yield background.evaluation.reason if background.evaluation else ""
    for relative in (*background.lineage, *background.siblings, *background.inspirations):
        yield relative.diff
        yield relative.evaluation.reason if relative.evaluation else ""


def _words(texts: Iterable[str]) -> set[str]:
    """What may be a path or the name of a file; paths of patches without their `a/` and `b/` too."""
    found = {word.rstrip("./-") for text in texts for word in re.findall(r"[\w./-]+", text)}
    return found | {word[2:] for word in found if word.startswith(("a/", "b/", "./"))}


def _is_in(path: str, words: set[str]) -> bool:
    return path in words or path.rpartition("/")[2] in words


def listing(sizes: Mapping[str, int], tokens: int) -> str:
    """Paths with their bytes; of many files only how much folders hold, down to the depth that fits."""
    lines = "\n".join(f"{one_line(path, 300)} {size:,}" for path, size in sorted(sizes.items()))
    depth = max((path.count("/") for path in sizes), default=0)
    while estimate_tokens(lines) > tokens and depth >= 0:
        lines, depth = _folders(sizes, depth), depth - 1
    return fence(cut(lines, tokens))


def _folders(sizes: Mapping[str, int], depth: int) -> str:
    held: dict[str, tuple[int, int]] = {}
    for path, size in sizes.items():
        folder = "/".join([*path.split("/")[:-1][:depth], ""]) or "./"
        files, total = held.get(folder, (0, 0))
        held[folder] = files + 1, total + size
    return "\n".join(f"{one_line(name, 300)} {held[name][0]:,} files, {held[name][1]:,} bytes" for name in sorted(held))
