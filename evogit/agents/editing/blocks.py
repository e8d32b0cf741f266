"""The edit format: what a model writes to change files, read strictly, since half an understood reply is none.

A block's markers are runs of seven or more of one character; the same number closes it, so that content which holds
markers itself, such as conflicts left in a file, is written between longer ones. Everything outside blocks is prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evogit.core import EvoGitError
from evogit.text import one_line

MOST_BLOCKS = 200
"""Blocks of a reply; carrying one out may take as long as reading the file."""

EDITS = ("SEARCH", "WRITE", "DELETE", "RENAME")
"""Kinds of blocks that change files."""

_CLOSE = re.compile(r"(>{7,}) ?[A-Z]+[ \t]*")
_TITLE = re.compile(r"[#*_ \t]*TITLE[*_ \t]*:(.*)", re.IGNORECASE)
_LABEL = re.compile(r"(?:file(?:name)?|path)[*` \t]*:[*` \t]*", re.IGNORECASE)


class EditError(EvoGitError):
    """A reply that cannot be carried out. The message is one sentence; `hint` helps the model to do better."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Replace:
    """The lines `search`, which occur exactly once in the file, become `replace`."""

    path: str
    search: tuple[str, ...]
    replace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """The file, new or not, consists of these lines."""

    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """The file goes."""

    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """The file moves to `to`, which is not there yet."""

    path: str
    to: str


Block = Replace | Write | Delete | Rename


@dataclass(frozen=True, slots=True)
class EditReply:
    """What a model answered: a title of one line, and blocks to be carried out in order."""

    title: str
    blocks: tuple[Block, ...]


def parse(text: str) -> EditReply:
    """Read a reply.

    Raises:
        EditError: when it holds no block, or one that can be read in two ways or not at all.
    """
    reader = Reader(text)
    blocks = tuple(reader.block(opening) for opening in reader.openings())
    if not blocks:
        raise EditError("the reply holds no edit block")
    if len(blocks) > MOST_BLOCKS:
        raise EditError(f"the reply holds {len(blocks):,} edit blocks, {MOST_BLOCKS} are allowed")
    return EditReply(reader.title or f"edit {one_line(blocks[0].path, 60)}", blocks)


def _answer(text: str) -> str:
    """The reply without the thoughts that some models write before it."""
    before, end, after = text.partition("</think>")
    return after if end and before.lstrip().startswith("<think>") else text


@dataclass(frozen=True, slots=True)
class Opening:
    """The line that a block begins with: the length of its marker, its kind, and what stands behind that."""

    length: int
    kind: str
    name: str


class Reader:
    """Goes through the lines of a reply once, from one block to the next, of these kinds.

    Raises:
        EditError: the reply is not text.
    """

    def __init__(self, reply: str, kinds: Iterable[str] = EDITS) -> None:
        text = _answer(reply).replace("\r\n", "\n")
        if "\0" in text:
            raise EditError("the reply holds a NUL character, which no text file has")
        self._open = re.compile(rf"(<{{7,}}) ?({'|'.join(kinds)})((?:[ \t].*)?)")
        self._lines = text.split("\n")
        self._next = 0
        self._above = ""
        self.title = ""

    def openings(self) -> Iterator[Opening]:
        """Where blocks begin, in order, each to be read before the next; the title is known at the end.

        Raises:
            EditError: a block is closed that is not open.
        """
        while self._next < len(self._lines):
            line = self._take()
            if opened := self._open.fullmatch(line):
                yield Opening(len(opened[1]), opened[2], opened[3].strip("` \t"))
                self._above = ""
            elif _CLOSE.fullmatch(line):
                raise EditError(
                    f"line {self._next} of the reply closes a block that is not open",
                    "If the content itself has such a line, use longer markers for the whole block.",
                )
            else:
                self._prose(line)

    def _take(self) -> str:
        self._next += 1
        return self._lines[self._next - 1]

    def _prose(self, line: str) -> None:
        titled = _TITLE.fullmatch(line)
        if titled and not self.title:
            self.title = one_line(titled[1].strip("*_ \t"))
        if line.strip() and not line.lstrip().startswith("```"):
            self._above = line

    def block(self, opening: Opening) -> Block:
        """The edit that begins here.

        Raises:
            EditError: it can be read in two ways or not at all.
        """
        kind, name = opening.kind, opening.name
        if kind in ("DELETE", "RENAME"):
            self.pass_close(opening.length)
            return Delete(_path(name, kind)) if kind == "DELETE" else _rename(name)
        begun, above = self._next, self._above
        path = name or _path_above(above, kind, begun)
        lines = self.until_closed(opening, path)
        if kind == "WRITE":
            return Write(path, _unfenced(lines, path))
        return _replace(path, lines, "=" * opening.length)

    def pass_close(self, length: int) -> None:
        """Pass over the end of a block of one line, which some models close too."""
        closed = _CLOSE.fullmatch(self._lines[self._next]) if self._next < len(self._lines) else None
        if closed and len(closed[1]) == length:
            self._next += 1

    def until_closed(self, opening: Opening, path: str) -> list[str]:
        """The lines of a block that is about `path`.

        Raises:
            EditError: it is not closed.
        """
        lines: list[str] = []
        begun, length, kind = self._next, opening.length, opening.kind
        while self._next < len(self._lines):
            line = self._take()
            opened, closed = self._open.fullmatch(line), _CLOSE.fullmatch(line)
            if closed and len(closed[1]) == length:
                return lines
            if opened and len(opened[1]) == length:
                raise EditError(
                    f"the {kind} block of {one_line(path)} at line {begun} of the reply holds the beginning of another",
                    "Close each block before the next. If the content itself has such a line, use longer markers.",
                )
            lines.append(line)
        raise EditError(
            f"the {kind} block of {one_line(path)} at line {begun} of the reply is not closed",
            f"Close it with a line `{'>' * length} {'REPLACE' if kind == 'SEARCH' else 'END'}`.",
        )


def _path(name: str, kind: str) -> str:
    if not name:
        raise EditError(f"a {kind} block names no file", f"Write the path behind {kind}, on the same line.")
    return name


def _path_above(line: str, kind: str, number: int) -> str:
    """The path that some models write on a line of its own above a block."""
    text = line.strip("#*` \t")
    label = _LABEL.match(text)
    path = text[label.end() if label else 0 :].strip("*`: \t")
    if not path or " " in path or _TITLE.fullmatch(line):
        raise EditError(
            f"the {kind} block at line {number} of the reply names no file",
            f"Write the path behind {kind}, on the same line.",
        )
    return path


def _rename(name: str) -> Rename:
    parts = [part.strip("` \t") for part in name.split(" => ")]
    if len(parts) != 2 or not all(parts):
        raise EditError("a RENAME block does not say from where to where", "Write `RENAME old/path => new/path`.")
    return Rename(*parts)


def _replace(path: str, lines: list[str], divider: str) -> Replace:
    at = [number for number, line in enumerate(lines) if line.rstrip() == divider]
    if len(at) != 1:
        raise EditError(
            f"a SEARCH block of {one_line(path)} has {len(at)} lines `{divider}` where one divides it",
            "If the content itself has such a line, use longer markers for the whole block.",
        )
    return Replace(path, tuple(lines[: at[0]]), tuple(lines[at[0] + 1 :]))


def _unfenced(lines: list[str], path: str) -> tuple[str, ...]:
    """The lines; those of code must not be fenced, which only texts about code are."""
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].rstrip() == "```"
    if fenced and not path.lower().endswith((".md", ".mdx", ".markdown", ".rst", ".txt")):
        raise EditError(
            f"the content of {one_line(path)} stands in a code fence, which would become part of the file",
            "Leave the lines with ``` out of the block.",
        )
    return tuple(lines)
