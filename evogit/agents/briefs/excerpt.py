"""Chooses the code that a brief shows: all that may be changed where it fits, else what matters most."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from evogit.agents import Background, Brief
from evogit.agents.briefs.bodies import Mentions, map_of, part_of
from evogit.agents.briefs.relevance import hot_files, is_code, ranked
from evogit.llm import estimate_tokens
from evogit.text import cut, escaped, fence, lines_of, one_line

FILL_SHARE = 0.3
"""Where not all fits: share of the room for whole files that nothing mentions but that matter most, and as much of
those that the shown ones speak of. A model that can read files itself is shown neither."""

FEW = 30  # files of which all will soon have changed, so that their order stays as it is
CONTEXT_SHARE = 0.2  # share of the room for code that goes to files which may not be changed but are spoken of
SHORT_LIST_SHARE = 0.06  # the same where all that may be changed is shown
OTHERS_LIST_SHARE = 0.2  # what other paths than those that may be changed take of the list at most
LIST_SHARE, MAX_LIST_TOKENS = 0.3, 1_500  # what the list of other files takes at most of the room for code
FAIR = 3  # files that share what is left, each in its turn: a later one may have what the earlier ones did not need
WHOLE_SHARE = 0.5  # share of the room that is left which one whole file may take, where not all fits
OTHERS_SHARE = 0.2  # share of the room that is left which a part of one file leaves to the maps of others
LARGEST_MAP = 200  # tokens of a map of a file that nothing else is shown of
MOST_MAPS = 100  # files that are read for their maps
LEAST = 100  # tokens of room in which it is worth to show a part of a file
MOST_MAPPED = 2_000_000  # bytes of a file that is mapped: others wait meanwhile
LATEST = 3  # siblings, the latest ones, whose changes tell which code matters
INSTRUCTIONS = "AGENTS.md"  # the file that briefs show apart from the code
OVERHEAD = 20  # tokens around a file
MOST_NAMES = 50_000  # paths of which it is remembered what they may be called
DEEPEST = 8  # names in a path, or in a dotted name such as that of a test, that are compared, of a path the last ones


class Excerpt(Struct, frozen=True):
    """The files shown, path -> text, and a list of the others; `whole`: no editable one is left out."""

    files: Mapping[str, str]
    unshown: str
    whole: bool

    def text(self) -> str:
        """The files, each between fences under its name."""
        return "\n\n".join(self.files.values())


def room_for_all(brief: Brief, background: Background) -> int:
    """Return the tokens with which an excerpt shows all files that may be changed whole."""
    return math.ceil(sum(_needed(background.sizes[path]) for path in brief.files) / (1 - SHORT_LIST_SHARE))


def excerpt(brief: Brief, background: Background, tokens: int, fill: float = FILL_SHARE) -> Excerpt:
    """Choose code of about so many tokens: what other briefs show alike first, what only passing matters name last."""
    sizes, most = background.sizes, int(tokens * fill)
    listed = min(int(tokens * LIST_SHARE), MAX_LIST_TOKENS)
    room = _Room(background, tokens, _mentions(brief, background), fill)
    own, usual, hot = sorted(brief.files), list[str](), dict[str, int]()
    steps = (relative.diff for relative in background.lineage)
    lasting = _named([*brief.conflicts, *_reports(brief, background), *steps], sizes)  # alike in all of its briefs
    passing = [path for path in _named(_passing(background), sizes) if path not in lasting]
    if sum(_needed(sizes[path]) for path in own) <= room.left * (1 - SHORT_LIST_SHARE):
        usual = own
        room.fill(own)
        listed = int(tokens * SHORT_LIST_SHARE)
    else:
        room.left -= min(estimate_tokens(listing(sizes, listed, own)), listed)
        hot = hot_files(background, own)
        own = ranked(background, own, [brief.goal, *background.guidance])
        room.take((path for path in dict.fromkeys([*brief.conflicts, *hot, *lasting]) if path in brief.files), hot)
        known = {*hot, *lasting, *passing}
        near = list(_within(most, [path for path in _named(room.files.values(), sizes) if path not in known], sizes))
        room.take(path for path in [*near, *passing] if path in brief.files)
        usual = list(_within(most, [path for path in own if path not in background.changed], sizes))
        room.fill(usual)
        room.take(own if not room.files else ())
        room.map(filter(is_code, own))
    apart = [path for path in [*lasting, *passing] if path not in brief.files and path != INSTRUCTIONS]
    room.take_some(apart, min(room.left, int(tokens * CONTEXT_SHARE)))
    unshown = {path: size for path, size in sizes.items() if path not in room.files and path != INSTRUCTIONS}
    first, late = set(usual), set(passing).difference(usual)
    changed = background.changed if len(own) > FEW else ()
    order = {path: number for number, path in enumerate(hot)}
    shown = sorted(
        room.files,
        key=lambda path: (order.get(path, len(hot)), path in late, path in changed, path not in first, path),
    )
    files = {path: room.files[path] for path in shown}
    return Excerpt(files, listing(unshown, listed, own), room.whole.issuperset(brief.files))


class _Room:
    """Holds files until it is full; reads none that does not fit."""

    def __init__(self, background: Background, tokens: int, mentions: Mentions, fill: float) -> None:
        self._background = background
        self._mentions = mentions
        self._fill = fill
        self._part = 1.0 - OTHERS_SHARE * (len(background.sizes) > 1)
        self.left = tokens
        self.files: dict[str, str] = {}
        self.whole = set[str]()

    def fill(self, paths: Iterable[str]) -> None:
        """Take those in whole that are texts and fit."""
        for path in paths:
            if path not in self.files and _needed(self._background.sizes[path]) <= self.left:
                self._take_whole(path)

    def take(self, paths: Iterable[str], weights: Mapping[str, int] | None = None) -> None:
        """Take each in whole where it needs no more than its share of what is left, else in part.

        The share is by its weight among the others' to come, or that of a few of them that weigh the same.
        """
        wanted = [path for path in paths if path not in self.files]
        for number, path in enumerate(wanted):
            heavy = [weights[other] for other in wanted[number:] if other in weights] if weights else []
            share = self._part * (heavy[0] / sum(heavy) if heavy else 1 / min(len(wanted) - number, FAIR))
            if path in self.files or self.left < LEAST:
                continue
            if _needed(self._background.sizes[path]) <= self.left * min(WHOLE_SHARE, share):
                self._take_whole(path)
            elif (text := lines_of(self._background.read(path))) is not None:
                fair, most = int(self.left * share), int(self.left * self._part)
                self._put(path, part_of(path, text[:MOST_MAPPED], self._mentions, fair, self._fill, most=most))

    def take_some(self, paths: Iterable[str], tokens: int) -> None:
        """Take what is spoken of in files that may not be changed."""
        kept, self.left, self._fill = self.left - tokens, tokens, 0.0
        self.take(paths)
        self.left += kept

    def map(self, paths: Iterable[str]) -> None:
        """Take in maps of the others, as long as they fit."""
        for path in islice((path for path in paths if path not in self.files), MOST_MAPS):
            if self.left < LEAST or self._background.sizes[path] > MOST_MAPPED:
                continue
            if (text := lines_of(self._background.read(path))) is not None:
                told = map_of(path, text, min(int(self.left * WHOLE_SHARE), LARGEST_MAP))
                if told and estimate_tokens(told) <= self.left:
                    self._put(path, told)

    def _take_whole(self, path: str) -> None:
        text = lines_of(self._background.read(path))
        if text is not None:
            self._put(path, f"File {one_line(path, 300)}:\n{fence(escaped(text)) or '(empty)'}")
            self.whole.add(path)

    def _put(self, path: str, shown: str) -> None:
        self.files[path] = shown
        self.left -= estimate_tokens(shown)


def _mentions(brief: Brief, background: Background) -> Mentions:
    """What the brief speaks of, the goal and reports first, then what was changed last."""
    found = (
        Mentions()
        .take([background.profile])
        .take(_reports(brief, background))
        .take(each.why for each in background.siblings)
    )
    for relative in background.lineage[-1:]:
        found.take_patch(relative.diff, after=True)
    for relative in background.siblings[-LATEST:]:
        found.take_patch(relative.diff, after=False)
    return found


def _needed(size: int) -> int:
    """Tokens of a file of so many bytes."""
    return -(-size // 4) + OVERHEAD


def _within(tokens: int, paths: Iterable[str], sizes: Mapping[str, int]) -> Iterator[str]:
    """Those of the paths that fit, one after the other."""
    for path in paths:
        if (needed := _needed(sizes[path])) <= tokens:
            tokens -= needed
            yield path


def _reports(brief: Brief, background: Background) -> Iterable[str]:
    """What people and the evaluator say."""
    yield from (brief.goal, *background.guidance, *background.feedback.values())
    yield from (background.log, background.output)
    yield background.evaluation.reason if background.evaluation else ""


def _passing(background: Background) -> Iterable[str]:
    """The other texts that may name files."""
    yield from background.failures
    for relative in (*background.siblings, *background.inspirations):
        yield from (relative.diff, relative.why)
        yield relative.evaluation.reason if relative.evaluation else ""


def _named(texts: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    """The files that texts name, in the order in which they do, code first."""
    order = {word: number for number, word in enumerate(_words(texts))}
    places = {path: min((order[name] for name in _names(path) if name in order), default=-1) for path in sizes}
    named = (path for path in sizes if places[path] >= 0)
    return sorted(named, key=lambda path: (not is_code(path), places[path], path))


def _words(texts: Iterable[str]) -> dict[str, None]:
    """What may name a file: paths, of patches without their `a/` and `b/` too, and dotted names as paths."""
    found = dict.fromkeys(word.strip("./-") for text in texts for word in re.findall(r"[\w./-]+", text))
    for word in list(found):
        if word.startswith(("a/", "b/")):
            found.setdefault(word[2:])
        if "." in word and "/" not in word:
            names = word.split(".", DEEPEST)[:DEEPEST]
            found.update(dict.fromkeys("/".join(names[:count]) for count in range(2, len(names) + 1)))
    return found


@lru_cache(MOST_NAMES)
def _names(path: str) -> tuple[str, ...]:
    """What a file may be called: its path, its name, and its path without its ending, from whatever folder on."""
    parts = path.rpartition(".")[0].split("/")[-DEEPEST:]
    return path, path.rpartition("/")[2], *("/".join(parts[first:]) for first in range(len(parts) - 1))


def listing(sizes: Mapping[str, int], tokens: int, own: Iterable[str] = ()) -> str:
    """List files with their bytes, a line for each folder: first those of `own`, as many of the first as fit.

    Of the others, how many there are in each folder, down to the depth that fits into what is left.
    """
    named = [path for path in own if path in sizes]
    others = {path: size for path, size in sizes.items() if path not in set(named)}
    room = tokens - int(tokens * OTHERS_LIST_SHARE) if named else tokens
    while estimate_tokens(lines := _by_folder(named, sizes)) > room:
        others |= {path: sizes[path] for path in named[len(named) * 3 // 4 :]}
        del named[len(named) * 3 // 4 :]
    left = min(tokens - estimate_tokens(lines), int(tokens * OTHERS_LIST_SHARE)) if named else tokens
    rest, depth = _by_folder(others, sizes), max((path.count("/") for path in others), default=0)
    while estimate_tokens(rest) > left and depth >= 0:
        rest = _counted(others, depth)
        depth -= 1
    return fence(cut("\n".join(filter(None, [lines, rest])), tokens))


def _by_folder(paths: Iterable[str], sizes: Mapping[str, int]) -> str:
    folders = dict[str, list[str]]()
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(f"{one_line(name, 300)} {sizes[path]}")
    return "\n".join(f"{one_line(folder, 300) or '.'}/ {', '.join(names)}" for folder, names in folders.items())


def _counted(sizes: Mapping[str, int], depth: int) -> str:
    held: dict[str, tuple[int, int]] = {}
    for path, size in sizes.items():
        folder = "/".join([*path.split("/")[:-1][:depth], ""]) or "./"
        files, total = held.get(folder, (0, 0))
        held[folder] = files + 1, total + size
    return "\n".join(
        f"{one_line(name, 300)} {files:,} files, {total:,} bytes" for name, (files, total) in sorted(held.items())
    )
