"""The files of a parent as a model's blocks change them: all of them, or none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from evogit.agents import Background, Brief, FileContents, Proposal
from evogit.agents.editing.blocks import Block, EditError, Rename, Replace, Write, is_prose
from evogit.agents.editing.matching import MOST_MATCHES, Match, closest, find
from evogit.repository import EXECUTABLE, FILE, count_markers
from evogit.text import one_line

BYTE_ORDER_MARK = "\ufeff"


class Draft:
    """Takes blocks in order; `refusal` says why agents may not change a path, "" for those that they may."""

    def __init__(self, files: FileContents, refusal: Callable[[str], str]) -> None:
        self._base = files
        self._refusal = refusal
        self._made: dict[str, bytes | Text | None] = {}
        self._origins: dict[str, str] = {}
        self._kinds: set[str] = set()
        self.carried_out = 0
        """The number of blocks that were carried out."""

    @property
    def changes(self) -> dict[str, bytes | None]:
        """What differs from the parent: path -> new content, or None where the file goes."""
        made = {path: self.content(path) for path in self._made}
        return {path: content for path, content in made.items() if content != self._base.get(path)}

    @property
    def origins(self) -> dict[str, str]:
        """New path -> the one that the file had before."""
        return dict(self._origins)

    @property
    def strategy(self) -> str:
        """The kinds of blocks, such as `edit` or `edit+new`."""
        return "+".join(sorted(self._kinds))

    def content(self, path: str) -> bytes | None:
        """A file as it is now; None where there is none that may be changed."""
        made = self._made[path] if path in self._made else self._base.get(path)
        return made.content() if isinstance(made, Text) else made

    def twin(self) -> Draft:
        """One that goes on from here, while this one stays what it is."""
        twin = Draft(self._base, self._refusal)
        twin._made = {path: self.content(path) for path in self._made}
        twin._origins = dict(self._origins)
        twin._kinds = set(self._kinds)
        return twin

    def take(self, blocks: Iterable[Block]) -> None:
        """Carry out all blocks."""
        self.carry_out(blocks)
        if not self.changes:
            raise EditError("the edits leave every file as it was")

    def carry_out(self, blocks: Iterable[Block]) -> None:
        """Carry out all blocks. Raises EditError: one cannot be; the draft is then worth nothing."""
        for block in blocks:
            self._check(block.path)
            if isinstance(block, Replace):
                self._replace(block)
            elif isinstance(block, Write):
                self._write(block)
            elif isinstance(block, Rename):
                self._rename(block)
            else:
                self._existing(block.path)
                self._made[block.path] = None
                self._origins.pop(block.path, None)
                self._kinds.add("delete")
            self.carried_out += 1

    def _check(self, path: str) -> None:
        if reason := self._refusal(path):
            raise EditError(one_line(reason, 300), "Change only files that you may change.")

    def _exists(self, path: str) -> bool:
        return self._made[path] is not None if path in self._made else path in self._base

    def _existing(self, path: str) -> bytes:
        content = self.content(path)
        if content is None:
            paths = filter(self._exists, {*self._base, *self._made})
            near = difflib.get_close_matches(path, paths, n=3)
            hint = f"The nearest names: {', '.join(one_line(each, 300) for each in near)}." if near else ""
            raise EditError(f"there is no file {one_line(path)!r} that may be changed", hint)
        return content

    def _replace(self, block: Replace) -> None:
        if not block.search and not (self._exists(block.path) and self.content(block.path)):
            return self._write(Write(block.path, block.replace))
        text = self._made.get(block.path)  # stays a text while more blocks change it, as reading takes long
        if not isinstance(text, Text):
            text = Text(self._existing(block.path), block.path)
        text.replace(block.search, block.replace)
        self._made[block.path] = text
        self._kinds.add("edit")
        return None

    def _write(self, block: Write) -> None:
        old = self.content(block.path)
        text = Text(old or b"", block.path)
        text.write(block.lines)
        self._made[block.path] = text
        self._kinds.add("new" if old is None else "whole")

    def _rename(self, block: Rename) -> None:
        self._check(block.to)
        content = self._existing(block.path)
        if self._exists(block.to):
            raise EditError(f"cannot rename {one_line(block.path)!r}: there is a file {one_line(block.to)!r} already")
        self._made[block.path], self._made[block.to] = None, content
        self._origins[block.to] = self._origins.pop(block.path, block.path)
        self._kinds.add("rename")


class Text:
    """A text file as lines, which keeps its encoding mark and line ends. Raises EditError: it is not UTF-8."""

    def __init__(self, content: bytes, path: str) -> None:
        self._path = path
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EditError(f"{one_line(path)!r} is not UTF-8 text, so it cannot be edited") from error
        if "\0" in text:
            raise EditError(f"{one_line(path)!r} is a binary file, so it cannot be edited")
        self._mark = text.startswith(BYTE_ORDER_MARK)
        *whole, last = text.removeprefix(BYTE_ORDER_MARK).split("\n")
        self._lines = [line.removesuffix("\r") for line in whole] + [last] * bool(last)
        self._ends = ["\r\n" if line.endswith("\r") else "\n" for line in whole] + [""] * bool(last)
        self._open_end = bool(last)
        self._end = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"

    def replace(self, search: tuple[str, ...], replace: tuple[str, ...]) -> None:
        """Put lines in the place of others, which must be there exactly once; lines in both keep their ends."""
        match = self._only(search, replace)
        at, search, replace = match.start, match.search, match.replace
        refuse_placeholders(self._path, self._lines, replace)
        before = _common(search, replace)
        after = _common(search[before:][::-1], replace[before:][::-1])
        new = replace[before : len(replace) - after]
        place = slice(at + before, at + len(search) - after)
        self._lines[place], self._ends[place] = new, [self._end] * len(new)

    def write(self, lines: tuple[str, ...]) -> None:
        """Put lines in the place of all."""
        refuse_placeholders(self._path, self._lines, lines)
        self._lines = list(lines)
        self._ends = [self._end] * len(lines)

    def content(self) -> bytes:
        """The file."""
        rows = [line + (end or self._end) for line, end in zip(self._lines, self._ends, strict=True)]
        if rows and self._open_end:
            rows[-1] = self._lines[-1]
        try:
            return ((BYTE_ORDER_MARK if self._mark else "") + "".join(rows)).encode()
        except UnicodeEncodeError as error:
            raise EditError(f"the new content of {one_line(self._path)!r} is not valid Unicode") from error

    def _only(self, search: tuple[str, ...], replace: tuple[str, ...]) -> Match:
        """Where the lines are, and what they become."""
        if not search:
            raise EditError(
                f"a SEARCH of {one_line(self._path)!r} is empty, but the file is not",
                "Give lines of the file that the new ones replace or stand beside.",
            )
        found = find(self._lines, search, replace)
        if len(found) == 1:
            return found[0]
        if not found:
            raise EditError(f"a SEARCH does not match {one_line(self._path)!r}", closest(self._lines, search))
        where = ", ".join(str(match.start + 1) for match in found[:5]) + (" and more" if found[5:] else "")
        raise EditError(
            f"a SEARCH matches {one_line(self._path)!r} {len(found)} times" + " or more" * (len(found) == MOST_MATCHES),
            f"It matches at the lines {where}. Take in more lines around it, so that it matches once.",
        )


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """How many lines both begin with."""
    return next((number for number, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


_COMMENT = re.compile(r"(?:#+|//+|/\*+|\*|<!--|--|;+|%+|\{/\*)")
_LEFT_OUT = re.compile(
    r"\b(?:rest|remain\w*|remainder|exist\w*|unchanged|unmodified|same|omitted|elided|previous|other|as before)\b",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"[\[(]?\b(?:rest|remainder) of .*\b(?:unchanged|(?:stays|is|remains) the same|as before)\b.*", re.I
)


def refuse_placeholders(path: str, old: Sequence[str], new: Sequence[str]) -> None:
    """Raises EditError: a line of the new text stands for code left out, and the file does not have it."""
    if is_prose(path):
        return
    left_out = [line for line in new if _is_placeholder(line, path)]
    if left_out and (fresh := set(left_out) - set(old)):
        raise EditError(
            f"the new lines of {one_line(path)!r} leave out code: {one_line(min(fresh), 100)!r}",
            "Write every line of a new content; SEARCH and REPLACE only the lines that change.",
        )


def _is_placeholder(line: str, path: str) -> bool:
    """Return True if a line stands for others. `...` inside a Python function is a statement."""
    text = line[:300].strip()
    comment = _COMMENT.match(text)
    said = (text[comment.end() :] if comment else text).removesuffix("*/}").removesuffix("*/").removesuffix("-->")
    said = said.strip()
    if said in ("...", "…"):
        return bool(comment) or not (path.endswith((".py", ".pyi")) and line[:1].isspace())
    if said.startswith(("...", "…")) or said.rstrip(")]").endswith(("...", "…")):
        return bool(_LEFT_OUT.search(said)) and (bool(comment) or said.startswith(("... ", "…", "[")))
    return bool(comment) and bool(_WHOLE.fullmatch(said))


def proposal_of(draft: Draft, brief: Brief, background: Background, proposal: Proposal) -> Proposal:
    """Complete a proposal with its strategy and modes. Raises EditError: a conflict is still open."""
    files = {**{path: brief.files[path] for path in brief.conflicts}, **draft.changes}
    for path, size in brief.conflicts.items():
        if count_markers(files[path] or b"", size):
            hint = "Settle every conflict of the file; SEARCH it with all its markers, or WRITE the whole file."
            raise EditError(f"markers of conflicts are left in {one_line(path, 300)!r}", hint)
    modes = {}
    for path, content in draft.changes.items():  # renamed files keep their mode; new ones with #! are programs
        origin = draft.origins.get(path)
        if content is None or (path in brief.files and not origin):
            continue
        program = origin in background.programs if origin else content.startswith(b"#!")
        modes[path] = EXECUTABLE if program else FILE
    return replace(proposal, strategy=draft.strategy, modes=modes)
