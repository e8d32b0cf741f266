"""Patches, which many models write unasked: unified diffs, and those with `*** Update File:`.

What a hunk takes away, with its context, has to match once, as a SEARCH has: line numbers of models are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evogit.agents.editing.blocks import Block, Delete, EditError, Rename, Replace, Write, cleaned_path
from evogit.text import one_line

NOTHING = "/dev/null"  # what a diff calls the file that is not there before or after

_STAR = re.compile(r"\*\*\* (Update|Add|Delete) File: *(\S.*)")
_MOVED = "*** Move to:"
_HUNK = re.compile(r"@@( .*|)")
_LEFT_OUT: tuple[str, ...] = (
    "*** Begin Patch",
    "*** End Patch",
    "*** End of File",
    "diff --git ",
    "index ",
    "new file mode ",
)
_LEFT_OUT += ("deleted file mode ", "old mode ", "new mode ", "similarity index ", "\\ No newline")


def begins(lines: Sequence[str], at: int) -> bool:
    """Whether the changes of a file begin at this line, or a hunk, which then belongs to no file."""
    line = lines[at]
    after = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(
        (line.startswith("--- ") and after.startswith("+++ "))
        or (line.startswith("rename from ") and after.startswith("rename to "))
        or _STAR.fullmatch(line)
        or re.match(r"@@ -\d", line)
    )


def read(lines: Sequence[str], at: int, *, fenced: bool) -> tuple[list[Block], int]:
    """Return the blocks that begin at line `at` and the line after them. Raises EditError: they cannot be read."""
    first = lines[at]
    if starred := _STAR.fullmatch(first):
        return _starred(starred[1], cleaned_path(starred[2]), lines, at + 1, fenced=fenced)
    if first.startswith("rename from "):
        old, new = (lines[at + number].split(maxsplit=2)[2] for number in (0, 1))
        return [Rename(old.strip(), new.strip())], at + 2
    if not first.startswith("--- "):
        raise EditError(f"line {at + 1} of the reply begins a hunk of no file", "Write `--- path` and `+++ path`.")
    # paths without the date behind them and the `a/` and `b/` that Git writes
    old, new = (line[4:].split("\t")[0].strip() for line in lines[at : at + 2])
    new = new.removeprefix("b/") if old.startswith("a/") or old == NOTHING else new
    new = new if new == NOTHING else cleaned_path(new)
    old = old if old == NOTHING else cleaned_path(old.removeprefix("a/"))
    hunks, end = _hunks(lines, at + 2, fenced=fenced)
    if new == NOTHING:
        return [Delete(old)], end
    if old == NOTHING:
        return [Write(new, _added(hunks, new))], end
    return _changes(new, hunks), end


def _starred(kind: str, path: str, lines: Sequence[str], at: int, *, fenced: bool) -> tuple[list[Block], int]:
    blocks: list[Block] = []
    if kind == "Delete":
        return [Delete(path)], at
    if at < len(lines) and lines[at].startswith(_MOVED):
        moved = cleaned_path(lines[at].removeprefix(_MOVED))
        blocks.append(Rename(path, moved))
        path, at = moved, at + 1
    hunks, end = _hunks(lines, at, fenced=fenced)
    if kind == "Add":
        return [Write(path, _added(hunks, path))], end
    if not hunks and blocks:
        return blocks, end
    return [*blocks, *_changes(path, hunks)], end


def _hunks(lines: Sequence[str], at: int, *, fenced: bool) -> tuple[list[list[str]], int]:
    """The lines of each hunk, and the number of the line behind the last one."""
    hunks: list[list[str]] = []
    goes_on = fenced
    while at < len(lines) and not _ends(lines, at):
        line = lines[at]
        if _HUNK.fullmatch(line) or not hunks:
            hunks.append([])
        if line[:1] in ("+", "-", " "):
            hunks[-1].append(line)
        elif not line:
            if not goes_on:  # blank lines within a hunk are context that lost its space; looked ahead for once
                rest = next((lines[number] for number in range(at, len(lines)) if lines[number]), "")
                goes_on = rest[:1] in ("+", "-", " ") or bool(_HUNK.fullmatch(rest))
            if not goes_on:
                break
            hunks[-1].append(" ")
        elif not _HUNK.fullmatch(line) and not line.startswith(_LEFT_OUT):
            raise EditError(
                f"line {at + 1} of the reply stands in a patch and begins with none of `+`, `-` and a space",
                "Begin each line of context with a space, or write a SEARCH block.",
            )
        goes_on = fenced or (goes_on and not line)  # which holds for all blank lines that follow each other
        at += 1
    for hunk in hunks:
        while hunk and hunk[-1] == " ":
            hunk.pop()
    return list(filter(None, hunks)), at


def _ends(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    is_hunk = bool(_HUNK.fullmatch(line))
    return line.startswith(("```", "*** End Patch", "diff --git ", "<<<<<")) or (begins(lines, at) and not is_hunk)


def _added(hunks: Sequence[Sequence[str]], path: str) -> tuple[str, ...]:
    lines = [line for hunk in hunks for line in hunk]
    if any(not line.startswith("+") for line in lines):
        raise EditError(f"the patch adds {one_line(path)} and has lines without `+`", "Begin each line with `+`.")
    return tuple(line[1:] for line in lines)


def _changes(path: str, hunks: Sequence[Sequence[str]]) -> list[Block]:
    if not hunks:
        raise EditError(f"the patch of {one_line(path)} holds no line", "Write hunks, or a SEARCH block.")
    return [
        Replace(
            path, tuple(line[1:] for line in hunk if line[0] != "+"), tuple(line[1:] for line in hunk if line[0] != "-")
        )
        for hunk in hunks
    ]
