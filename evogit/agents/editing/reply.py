"""The edit format: what a model writes to change files, read strictly, since half an understood reply is none.

A block's markers are runs of five or more of one character; the same number closes it, so that content which holds
markers itself, such as conflicts left in a file, is written between longer ones. Patches are read too. All else is
prose. What models write beside the format is understood only where it can mean one thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from evogit.agents.editing import patches
from evogit.agents.editing.blocks import (
    Block,
    Delete,
    EditError,
    Rename,
    Replace,
    Write,
    cleaned_path,
    is_prose,
    path_alone,
    path_in_comment,
    path_of_fence,
)
from evogit.llm.thoughts import NO_ANSWER
from evogit.text import family_key, one_line, titled

MOST_BLOCKS = 200  # blocks of a reply; carrying one out may take as long as reading the file
PATCH = "PATCH"  # the kind of what is no block of ours but a patch
EDITS = ("SEARCH", "WRITE", "DELETE", "RENAME")  # kinds of blocks that change files

_BEGINNINGS = frozenset("<>-*@r")
"""What the first line of a block, or its last, begins with; all other lines are told by that in little time."""

_CLOSE = re.compile(r"(>{5,}) ?[A-Z]+[ \t]*")
_MARKER = re.compile(r"[<=>]{5,}")
_LABEL = re.compile(r"[#*_ \t]*(TITLE|FAMILY|DIFFERS)[*_ \t]*:(.*)", re.IGNORECASE)
_PLAN = re.compile(r"^[#*_ ]{0,9}PLAN[*_ ]{0,9}:[*_ ]{0,9}")
_NAMED = re.compile(r"[./]\w")
_OPENS = re.compile(r"<{5,}|[ \t]*```")
_SENTENCE = re.compile(r"[A-Z]\w* [^{}();=]*[.!:]")


class EditReply(Struct, frozen=True):
    """What a model answered: a title of one line, and blocks to be carried out in order.

    `family` is the key of the approach, `differs` why an idea that was tried before is different; both may be empty.
    """

    title: str
    blocks: tuple[Block, ...]
    family: str = ""
    differs: str = ""


def parse(text: str) -> EditReply:
    """Read a reply. Raises EditError: when it holds no block, or one that can be read in two ways or not at all."""
    reader = Reader(text)
    blocks: list[Block] = []
    for opening in reader.openings():
        blocks += reader.blocks(opening)
        if len(blocks) > MOST_BLOCKS:
            raise EditError(f"the reply holds more than the {MOST_BLOCKS} edit blocks that are allowed")
    if not blocks:
        hint = "Code between fences alone does not say what it replaces: write it as SEARCH, or WRITE the whole file."
        raise EditError("the reply holds no edit block", hint if "```" in text else "")
    title = reader.title or f"edit {one_line(blocks[0].path, 60)}"
    return EditReply(title, tuple(blocks), reader.family, reader.differs)


def idea_in(reply: str) -> dict[str, str]:
    """Return `title`, `family` and `differs` of a reply whose blocks cannot be used, as far as they precede these."""
    with suppress(EditError):
        reader = Reader(reply)
        next(reader.openings(), None)
        return {"title": reader.title, "family": reader.family, "differs": reader.differs}
    return {}


def reason_of(reply: str) -> str:
    """Why a reply does what it does: what it says before its first block, without title, labels and the file's name."""
    said: list[str] = []
    lines = reply.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines):
        if _OPENS.match(line) or patches.begins(lines, number):
            break
        said += [] if _LABEL.fullmatch(line) else [_PLAN.sub("", line)]
    while said and (not said[-1].strip() or (path_alone(said[-1]) and _NAMED.search(said[-1]))):
        said.pop()
    return "\n".join(said).strip()


class Opening(Struct, frozen=True):
    """The line that a block begins with: the length of its marker, its kind, and what stands behind that."""

    length: int
    kind: str
    name: str


class Reader:
    """Goes through the lines of a reply once, block by block. Raises EditError: the reply is not text."""

    def __init__(self, reply: str, kinds: Iterable[str] = EDITS) -> None:
        text = reply.replace("\r\n", "\n")
        if text == NO_ANSWER:
            raise EditError("the reply is nothing but thoughts, as their end is missing", "Write blocks after them.")
        if "\0" in text:
            raise EditError("the reply holds a NUL character, which no text file has")
        self._open = re.compile(rf"(<{{5,}}) ?({'|'.join(kinds)})((?:[ \t:].*)?)")
        self._lines = text.split("\n")
        self._next = 0
        self._above = ""
        self._before = ""
        self._fenced = False
        self.title = ""
        self.family = ""
        self.differs = ""

    def openings(self) -> Iterator[Opening]:
        """Yield the lines at which blocks begin, each to be read before the next; the title is known at the end."""
        while self._next < len(self._lines):
            if self._lines[self._next][:1] not in _BEGINNINGS:
                self._prose(self._take())
                continue
            if patches.begins(self._lines, self._next):
                yield Opening(0, PATCH, "")
                continue
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
        if not line.strip():
            return
        if label := _LABEL.fullmatch(line):
            self._take_label(label[1].upper(), label[2].strip("*_` \t"))
        if line.lstrip().startswith("```"):
            self._fenced = not self._fenced
            self._above = path_of_fence(line) or self._above
        else:
            self._above = line

    def _take_label(self, name: str, text: str) -> None:
        """Keep the first title, family and difference of a reply; `TITLE: [family] title` gives both."""
        if name == "TITLE" and not self.title:
            family, title = titled(text)
            self.title = one_line(title)
            self.family = self.family or family
        elif name == "FAMILY":
            self.family = self.family or family_key(text)
        elif name == "DIFFERS":
            self.differs = self.differs or text

    def blocks(self, opening: Opening) -> list[Block]:
        """The edits that begin here: one, or those of a patch."""
        if opening.kind != PATCH:
            return [self._block(opening)]
        blocks, self._next = patches.read(self._lines, self._next, fenced=self._fenced)
        return blocks

    def _block(self, opening: Opening) -> Block:
        kind, name = opening.kind, cleaned_path(opening.name)
        if kind in ("DELETE", "RENAME"):
            self.pass_close(opening.length)
            if kind == "RENAME":
                parts = [cleaned_path(part) for part in opening.name.split(" => ")]
                if len(parts) != 2 or not all(parts):
                    hint = "Write `RENAME old/path => new/path`."
                    raise EditError("a RENAME block does not say from where to where", hint)
                return Rename(*parts)
            if not name:
                raise EditError("a DELETE block names no file", "Write the path behind DELETE, on the same line.")
            return Delete(name)
        begun, above = self._next, self._above
        path = name or ("" if _LABEL.fullmatch(above) else path_alone(above))
        lines = self.until_closed(opening, path)
        if not path and kind == "SEARCH":  # the path may be its first line, or the one of the block before
            if path := path_in_comment(lines[0]) if lines else "":
                lines = lines[1:]
            elif lines and not above and not lines[0].startswith("====="):
                path = self._before
        if not path:
            raise EditError(
                f"the {kind} block at line {begun} of the reply names no file",
                f"Write the path behind {kind}, on the same line.",
            )
        self._before = path
        return Write(path, unfenced(lines, path)) if kind == "WRITE" else _replace(path, lines, "=" * opening.length)

    def pass_close(self, length: int) -> None:
        """Pass over the end of a block of one line, which some models close too."""
        closed = _CLOSE.fullmatch(self._lines[self._next]) if self._next < len(self._lines) else None
        if closed and len(closed[1]) == length:
            self._next += 1

    def is_closed(self, length: int) -> bool:
        """Whether the next marker of this length closes a block, and does not open another."""
        for line in self._lines[self._next :]:
            opened, closed = self._open.fullmatch(line), _CLOSE.fullmatch(line)
            if (opened and len(opened[1]) == length) or (closed and len(closed[1]) == length):
                return bool(closed)
        return False

    def until_closed(self, opening: Opening, path: str) -> list[str]:
        """Return the lines of a block; the last one may lack its end. Raises EditError: it is not closed."""
        lines: list[str] = []
        begun, length, kind = self._next, opening.length, opening.kind
        while self._next < len(self._lines):
            line = self._take()
            if line[:1] not in _BEGINNINGS:
                lines.append(line)
                continue
            opened, closed = self._open.fullmatch(line), _CLOSE.fullmatch(line)
            if closed and len(closed[1]) == length:
                return lines
            if opened and len(opened[1]) == length:
                raise EditError(
                    f"the {kind} block of {one_line(path)} at line {begun} of the reply holds the beginning of another",
                    "Close each block before the next. If the content itself has such a line, use longer markers.",
                )
            lines.append(line)
        if kind in EDITS and (rest := self._to_the_end(lines, path, "=" * length if kind == "SEARCH" else "")):
            return rest
        raise EditError(
            f"the {kind} block of {one_line(path)} at line {begun} of the reply is not closed",
            f"Close it with a line `{'>' * length} {'REPLACE' if kind == 'SEARCH' else 'END'}`.",
        )

    def _to_the_end(self, lines: list[str], path: str, divider: str) -> list[str]:
        """Return the lines of a block that lacks its last marker; none if prose or a marker may be among them."""
        end = len(lines)
        while end and not lines[end - 1].strip():
            end -= 1
        if self._fenced and end:
            end = end - 1 if lines[end - 1].strip() == "```" else 0
        rest = lines[:end]
        strange = any(_MARKER.match(line) for line in rest if line.rstrip() != divider)
        told = bool(rest) and not is_prose(path) and _SENTENCE.fullmatch(rest[-1].strip())
        return [] if strange or told or (divider and divider not in rest) else rest

    def through(self, last: str) -> list[str] | None:
        """The lines up to one that consists of this text, and that one; None, and nothing is passed, without it."""
        lines = self._lines[self._next :]
        found = next((number for number, line in enumerate(lines, 1) if line.strip() == last), None)
        if found is None:
            return None
        self._next += found
        return lines[:found]


def _replace(path: str, lines: list[str], divider: str) -> Replace:
    at = [number for number, line in enumerate(lines) if line.rstrip() == divider]
    if len(at) != 1:
        raise EditError(
            f"a SEARCH block of {one_line(path)} has {len(at)} lines `{divider}` where one divides it",
            "If the content itself has such a line, use longer markers for the whole block.",
        )
    return Replace(path, tuple(lines[: at[0]]), tuple(lines[at[0] + 1 :]))


def unfenced(lines: list[str], path: str) -> tuple[str, ...]:
    """Return lines without the fence around them. Raises EditError: a fence begins and does not end with them."""
    if is_prose(path) or not lines or not lines[0].startswith("```"):
        return tuple(lines)
    if len(lines) == 1 or lines[-1].rstrip() != "```":
        raise EditError(
            f"the content of {one_line(path)} begins with a code fence, which would become part of the file",
            "Leave the lines with ``` out of the block.",
        )
    return tuple(lines[1:-1])
