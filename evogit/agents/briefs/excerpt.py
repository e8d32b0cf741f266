"""Chooses the code that a brief shows: all that may be changed where it fits, else what matters most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from evogit.agents import Background, Brief
from evogit.llm import estimate_tokens
from evogit.text import cut, escaped, fence, one_line

FILL_SHARE = 0.3
"""Where not all fits: share of the room for code of small files that nothing mentions, and as much of those that the
shown ones speak of. A model that can read files itself is shown neither."""

FEW = 30
"""Files of which all will soon have changed, so that their order stays as it is."""

CONTEXT_SHARE = 0.2
"""Share of the room for code that goes to files which may not be changed but are spoken of."""

MAP_SHARE = 0.06
"""Share of the room for code that the list of other files takes at most."""

INSTRUCTIONS = "AGENTS.md"
"""The file that briefs show apart from the code."""

OVERHEAD = 20
"""Tokens around a file."""

MOST_NAMES = 50_000
"""Paths of which it is remembered what they may be called."""

DEEPEST = 8
"""Names in a path, or in a dotted name such as that of a test, that are compared, of a path the last ones."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The files that are shown, path -> text, and the list of all others."""

    files: Mapping[str, str]
    unshown: str

    def text(self) -> str:
        """The files, each between fences under its name."""
        return "\n\n".join(f"File {one_line(path, 300)}:\n{fence(escaped(text))}" for path, text in self.files.items())


def excerpt(brief: Brief, background: Background, tokens: int, fill: float = FILL_SHARE) -> Excerpt:
    """Choose files that take about so many tokens in all.

    Those stand first that other briefs show alike, those last that only passing matters speak of.
    """
    sizes, room, most = background.sizes, _Room(background, int(tokens * (1 - MAP_SHARE))), int(tokens * fill)
    own = sorted(brief.files, key=lambda path: (sizes[path], path))
    usual = [path for path in own if _needed(sizes[path]) <= room.left]
    lasting = _named(_lasting(brief, background), sizes)
    passing = [path for path in _named(_passing(background), sizes) if path not in lasting]
    near = list[str]()
    if sum(_needed(sizes[path]) for path in usual) > room.left:
        usual = list(_within(most, [path for path in usual if path not in background.changed], sizes))
        room.fill(path for path in lasting if path in brief.files)
        known = {*lasting, *passing}
        near = list(_within(most, [path for path in _named(room.files.values(), sizes) if path not in known], sizes))
    wanted = [*lasting, *near, *passing]
    room.fill(path for path in [*wanted, *usual] if path in brief.files)
    for path in (path for path in [*wanted, *own] if path in brief.files):
        if not room.files:
            room.take_part(path)
    apart = (path for path in wanted if path not in brief.files and path != INSTRUCTIONS)
    room.fill(_within(min(room.left, int(tokens * CONTEXT_SHARE)), apart, sizes))
    unshown = {path: size for path, size in sizes.items() if path not in room.files and path != INSTRUCTIONS}
    first, late = set(usual), set(passing).difference(usual)
    changed = background.changed if len(own) > FEW else ()
    shown = sorted(room.files, key=lambda path: (path in late, path in changed, path not in first, path))
    return Excerpt({path: room.files[path] for path in shown}, listing(unshown, int(tokens * MAP_SHARE)))


class _Room:
    """Holds files until it is full; reads none that does not fit."""

    def __init__(self, background: Background, tokens: int) -> None:
        self._background = background
        self.left = tokens
        self.files: dict[str, str] = {}

    def fill(self, paths: Iterable[str]) -> None:
        """Take those in that are texts and fit."""
        for path in paths:
            needed = _needed(self._background.sizes[path])
            if needed <= self.left and path not in self.files:
                text = _text(self._background.read(path))
                if text is not None:
                    self.files[path] = text
                    self.left -= needed

    def take_part(self, path: str) -> None:
        """Take in as much of a text as fits."""
        if (text := _text(self._background.read(path))) is not None:
            self.files[path] = cut(text, self.left - OVERHEAD)
            self.left = 0


def _text(content: bytes) -> str | None:
    """A file as lines without their CR; None for what is not text."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")


def _needed(size: int) -> int:
    """Tokens of a file of so many bytes."""
    return -(-size // 4) + OVERHEAD


def _within(tokens: int, paths: Iterable[str], sizes: Mapping[str, int]) -> Iterator[str]:
    """Those of the paths that fit, one after the other."""
    for path in paths:
        if (needed := _needed(sizes[path])) <= tokens:
            tokens -= needed
            yield path


def _lasting(brief: Brief, background: Background) -> Iterable[str]:
    """The texts of the brief that may name files and are the same in every brief of this parent."""
    yield brief.goal
    yield from brief.conflicts
    yield from background.guidance
    yield from background.feedback.values()
    yield from (background.log, background.output)
    yield background.evaluation.reason if background.evaluation else ""
    yield from (relative.diff for relative in background.lineage)


def _passing(background: Background) -> Iterable[str]:
    """The other texts that may name files."""
    yield from background.failures
    for relative in (*background.siblings, *background.inspirations):
        yield relative.diff
        yield relative.evaluation.reason if relative.evaluation else ""


def _named(texts: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    """The files that texts name, the smallest first."""
    words = _words(texts)
    return sorted((path for path in sizes if not words.isdisjoint(_names(path))), key=lambda path: (sizes[path], path))


def _words(texts: Iterable[str]) -> set[str]:
    """What may name a file: paths, of patches without their `a/` and `b/` too, and dotted names as paths."""
    found = {word.strip("./-") for text in texts for word in re.findall(r"[\w./-]+", text)}
    found |= {word[2:] for word in found if word.startswith(("a/", "b/"))}
    for word in [word for word in found if "." in word and "/" not in word]:
        names = word.split(".", DEEPEST)[:DEEPEST]
        found |= {"/".join(names[:count]) for count in range(2, len(names) + 1)}
    return found


@lru_cache(MOST_NAMES)
def _names(path: str) -> tuple[str, ...]:
    """What a file may be called: its path, its name, and its path without its ending, from whatever folder on."""
    parts = path.rpartition(".")[0].split("/")[-DEEPEST:]
    return path, path.rpartition("/")[2], *("/".join(parts[first:]) for first in range(len(parts) - 1))


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
