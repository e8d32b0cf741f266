"""Where a SEARCH matches a file, and what its lines become: exactly, or but for white space that can mean one thing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from evogit.text import escaped, fence

MOST_MATCHES = 100  # places where a SEARCH is looked for; two are too many already
TAB_WIDTHS = (2, 3, 4, 8)  # spaces that stand for a tab

Lines = tuple[str, ...]


class Match(Struct, frozen=True):
    """Lines of the file from `start` on, `search`, which become `replace`."""

    start: int
    search: Lines
    replace: Lines


def find(lines: list[str], search: Lines, replace: Lines) -> list[Match]:
    r"""All places where `search` matches exactly; where there is none, the only one that it can mean otherwise.

    What is not seen may be written as it is shown (`\u200b`). Fences around both sides, blank lines around them, space
    at the end of lines, and indentation may differ if the place is unique and the new lines' indentation is certain.
    """
    for known in (lines, escaped("\n".join(lines)).split("\n")):
        if found := _positions(known, search):
            return [Match(start, tuple(lines[start : start + len(search)]), replace) for start in found]
    search, replace = _without_blanks(*_without_fences(search, replace))
    if not search:
        return []
    found = _positions([line.strip() for line in lines], [line.strip() for line in search])
    if len(found) != 1:
        return []
    place = tuple(lines[found[0] : found[0] + len(search)])
    new = _as_in_file(place, search, replace)
    return [] if new is None else [Match(found[0], place, new)]


def _positions(lines: Sequence[str], search: Sequence[str]) -> list[int]:
    """The lines where `search` begins, overlapping matches included; the first ones when they are many."""
    text, sought = "\n" + "\n".join(lines) + "\n", "\n" + "\n".join(search) + "\n"
    found, start, line, counted = list[int](), text.find(sought), 0, 0
    while start >= 0 and len(found) < MOST_MATCHES:
        line += text.count("\n", counted, start)
        found.append(line)
        counted, start = start, text.find(sought, start + 1)
    return found


def _without_fences(search: Lines, replace: Lines) -> tuple[Lines, Lines]:
    """Both sides without a fence around each, or around both together."""
    if not search or not search[0].startswith("```"):
        return search, replace
    if search[-1].rstrip() == "```" and len(search) > 1:
        fenced = len(replace) > 1 and replace[0].startswith("```") and replace[-1].rstrip() == "```"
        return search[1:-1], replace[1:-1] if fenced else replace
    if replace and replace[-1].rstrip() == "```" and not replace[0].startswith("```"):
        return search[1:], replace[:-1]
    return search, replace


def _without_blanks(search: Lines, replace: Lines) -> tuple[Lines, Lines]:
    """The search without blank lines around it, and the other side without as many."""
    before = _blanks(search)
    after = _blanks(search[before:][::-1])
    first = min(before, _blanks(replace))
    last = min(after, _blanks(replace[first:][::-1]))
    return search[before : len(search) - after], replace[first : len(replace) - last]


def _blanks(lines: Lines) -> int:
    return next((number for number, line in enumerate(lines) if line.strip()), len(lines))


def _as_in_file(place: Lines, search: Lines, replace: Lines) -> Lines | None:
    """The new lines with the file's white space; None where it cannot be told."""
    known = dict(zip(search, place, strict=True))
    pairs = [(_indent(said), _indent(is_)) for said, is_ in zip(search, place, strict=True) if said.strip()]
    indents = dict(pairs)
    if any(indents[said] != is_ for said, is_ in pairs):
        return None
    fresh = {_indent(line) for line in replace if line.strip() and line not in known} - indents.keys()
    if fresh:
        more = _shifted(indents, fresh, _is_thin(search, replace, indents)) or _tabbed(indents, fresh)
        if more is None:
            return None
        indents |= more
    return tuple(known.get(line, indents[_indent(line)] + line.lstrip() if line.strip() else line) for line in replace)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _is_thin(search: Lines, replace: Lines, indents: dict[str, str]) -> bool:
    """Whether one line lost its indentation where the new ones below it may have kept theirs."""
    (lost,) = set(indents.values()) if len(indents) == 1 else {""}
    rest = [line for line in replace[1:] if line.strip()]
    alone = sum(bool(line.strip()) for line in search) == 1
    return bool(alone and lost and rest) and all(line.startswith(lost) for line in rest)


def _shifted(indents: dict[str, str], fresh: set[str], thin: bool) -> dict[str, str] | None:
    """The indentation of other lines where all lines of the search lack, or have, the same before theirs."""
    said = min(indents, key=len)
    is_ = indents[said]
    if is_.endswith(said):
        added = is_.removesuffix(said)
        same = all(each == added + before for before, each in indents.items())
        mixed = any(not indent.startswith(said) or len(set(added + indent)) > 1 for indent in fresh)
        certain = not added or not (thin or mixed)  # less than the search's, or tabs and spaces, may mean anything
        return {each: added + each for each in fresh} if same and certain else None
    if said.endswith(is_):
        extra = said.removesuffix(is_)
        same = all(before == extra + each for before, each in indents.items())
        fits = all(each.startswith(extra) for each in fresh)
        return {each: each.removeprefix(extra) for each in fresh} if same and fits else None
    return None


def _tabbed(indents: dict[str, str], fresh: set[str]) -> dict[str, str] | None:
    """The indentation of other lines where the search has spaces for each tab of the file, or a tab for those."""
    pairs = [pair for pair in indents.items() if any(pair)]
    for width in TAB_WIDTHS:
        for one, other in ((" " * width, "\t"), ("\t", " " * width)):
            said = {*fresh, *(said for said, _ in pairs)}
            fits = all(is_ == said.replace(one, other) for said, is_ in pairs)
            if pairs and fits and not any(each.replace(one, "") for each in said):
                return {each: each.replace(one, other) for each in fresh}
    return None


MOST_LINES = 60  # lines of the file that are shown, and of the search that are looked for
WIDEST = 300  # characters of a line that are compared and shown
OFTEN = 50  # a line that occurs more often than this says nothing about the place


def closest(lines: Sequence[str], search: Sequence[str]) -> str:
    """The part of the file that is most like `search`, with line numbers; says where nothing is."""
    sought = [line[:WIDEST].strip() for line in search[:MOST_LINES]]
    known = [line[:WIDEST].strip() for line in lines]
    start = _by_equal_lines(known, sought)
    if start is None:
        start = _by_words(known, sought)
    if start is None:
        return "The file has nothing like it."
    end = min(start + len(sought), len(lines))
    start = max(start, 0)
    why = " It differs in white space only:" if known[start:end] == sought else ""
    shown = "\n".join(f"{number + 1:>5}  {lines[number][:WIDEST]}" for number in range(start, end))
    return f"The closest lines of the file, with their numbers:{why}\n{fence(escaped(shown))}"


def _by_equal_lines(known: Sequence[str], sought: Sequence[str]) -> int | None:
    """The place where most lines are equal but for the space around them; rare lines say more."""
    places: dict[str, list[int]] = defaultdict(list)
    wanted = set(sought) - {""}
    for number, line in enumerate(known):
        if line in wanted:
            places[line].append(number)
    votes: dict[int, float] = defaultdict(float)
    for offset, line in enumerate(sought):
        if 0 < len(places.get(line, ())) <= OFTEN:
            for number in places[line]:
                votes[number - offset] += 1 / len(places[line])
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _by_words(known: Sequence[str], sought: Sequence[str]) -> int | None:
    """The place of the line that shares the most words with the longest line that is looked for."""
    offset = max(range(len(sought)), key=lambda number: len(sought[number]))
    words = set(re.findall(r"\w+", sought[offset]))
    best, shared = None, 0.0
    for number, line in enumerate(known):
        found = set(re.findall(r"\w+", line))
        if words & found and (share := len(words & found) / len(words | found)) > shared:
            best, shared = number, share
    return None if best is None or shared < 0.2 else best - offset
