"""Finds where a SEARCH that matches nowhere was probably meant to match, also in large files at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from evogit.text import escaped, fence

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
