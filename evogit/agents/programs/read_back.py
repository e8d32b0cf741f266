"""From the folder of a program that worked on a candidate's files to what it changed in them.

Whatever is in there may be hostile. What may not be changed is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from msgspec import Struct

from evogit.agents import Background, Brief, NoUsableChangeError
from evogit.agents.programs.uniform import kept_uniform
from evogit.repository import EXECUTABLE, FILE, GITLINK, LINK, UnfitChangeError, blob_id, check_path, twins
from evogit.repository.diff_limits import MAX_CHANGED_BYTES, MAX_CHANGED_FILES
from evogit.repository.git import GitTooLongError
from evogit.repository.ignored import ignored
from evogit.sandbox import FolderEntry
from evogit.sandbox.answers import listed
from evogit.sandbox.archive import covered
from evogit.text import one_line

Kind = Literal["file", "executable", "link", "folder", "other"]

MOST_NAMES = 64 << 20
"""Characters of all paths, each once for every folder that it is in: folders are looked at path by path."""

LENGTH = 4  # bytes, big-endian, that say how long a list is


class Member(Struct, frozen=True):
    """One entry: its path, which need not be a harmless one; the content of a link is its target."""

    path: str
    kind: Kind
    content: memoryview


def members(entries: Iterable[FolderEntry], contents: bytes) -> Iterator[Member]:
    """Entries with their contents, which stand in a row."""
    view, position = memoryview(contents), 0
    for path, kind, size, _ in entries:
        yield Member(path, cast(Kind, kind), view[position : position + size])
        position += size


def read_members(packed: bytes) -> list[Member]:
    """Unpack what `sandbox/evaluate.py` packs. Raises NoUsableChangeError: it is not that, or too much."""
    end = LENGTH + int.from_bytes(packed[:LENGTH])
    try:
        found = list(members(listed([packed[LENGTH:end], packed[end:]]), packed[end:]))
    except ValueError as error:
        raise NoUsableChangeError(f"the files cannot be read: {error}") from error
    if sum(len(each.path) * (1 + each.path.count("/")) for each in found) > MOST_NAMES:
        raise NoUsableChangeError("there are too many files in too many folders; remove what is not the candidate's")
    return found


LARGEST = 8 << 20  # bytes of one new or changed file
NAMED = 3  # paths that a sentence names
USUAL = "__pycache__/\n*.pyc\n"  # what is never part of a change, wherever no `.gitignore` says something else

_MODES = {"file": FILE, "executable": EXECUTABLE, "link": LINK}


class Returned(Struct, frozen=True, kw_only=True):
    """What a program changed of the parent's files, as in a proposal; `left_out` says what of it was not taken."""

    changes: dict[str, bytes | None]
    modes: dict[str, int]
    left_out: list[str]


def read_back(found: Iterable[Member], brief: Brief, background: Background, junk: Sequence[str]) -> Returned:
    """Return what a program changed of the parent's files, without `junk` (patterns of a `.gitignore`); in a thread.

    Raises NoUsableChangeError: the parent's files are gone, or too many changed; RepositoryError: git fails.
    """
    folder = _Folder(brief, background)
    folder.take(found)
    folder.compare(junk)
    folder.leave_out()
    folder.bound()
    changes = dict[str, bytes | None]()
    for path, now in folder.changed.items():
        before = background.read(path) if now and path in background.sizes else b""
        changes[path] = kept_uniform(path, before, bytes(now.content)) if now else None
        if now and changes[path] == before != bytes(now.content) and background.entries[path][0] == _MODES[now.kind]:
            del changes[path]  # nothing but its line ends, or the like, was changed
    modes = {path: _MODES[now.kind] for path, now in folder.changed.items() if now and path in changes}
    parent = background.entries
    modes = {path: mode for path, mode in modes.items() if mode != parent.get(path, (FILE, ""))[0]}
    return Returned(changes=changes, modes=modes, left_out=folder.left_out)


@dataclass(slots=True)
class _Folder:
    """What was found, and what of it differs from the parent: path -> what is there now, None for nothing."""

    brief: Brief
    background: Background
    found: dict[str, Member] = field(default_factory=dict)
    changed: dict[str, Member | None] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    repositories: set[str] = field(default_factory=set)
    """Folders with a `.git` of their own: clones and worktrees that the program made."""

    def take(self, entries: Iterable[Member]) -> None:
        """Remember what is there; folders come of what they hold, and of two at a path the last one counts."""
        for member in entries:
            above, git, _ = f"/{member.path}/".partition("/.git/")
            if git and above:
                self.repositories.add(above[1:])
            elif not git and member.kind != "folder":
                self.found[member.path] = member
        files = self.background.sizes
        if files and not any(path in self.found for path in files):
            raise NoUsableChangeError("none of the candidate's files are where they were")

    def compare(self, junk: Sequence[str]) -> None:
        """Find what differs and is worth a word."""
        parent, read = self.background.entries, self.background.read
        self.changed = {path: now for path, now in sorted(self.found.items()) if not self._same(now)}
        closed = {path for path, now in self.found.items() if now.kind == "other"}  # folders too, with what is in them
        missing = (path for path, (mode, _) in parent.items() if path not in self.found and mode != GITLINK)
        gone = [path for path in missing if not covered(path, closed)] if closed else missing
        self.changed |= dict.fromkeys(path for path in gone if not _unfit(path))  # such names are not listed
        self._leave("file", "whose names no candidate can have", _unfit)
        self._drop(_ignored(self.changed, "\n".join(junk)))
        ignoring = [path for path in self.background.sizes if path.rpartition("/")[2] == ".gitignore"]
        patterns = {path: read(path) for path in ignoring if not _unfit(path)}
        self._drop(_ignored([path for path in self.changed if path not in parent], USUAL, patterns))

    def leave_out(self) -> None:
        """Leave out what no proposal may change."""
        background, files = self.background, self.brief.files
        parent, now = background.entries, {path: member for path, member in self.changed.items() if member}
        were, are = _folders(parent), _folders(now)

        def swapped(path: str) -> bool:
            below = any(above in parent or above in now for above in _above(path))
            return below or path in (were if path in now else are)

        def linked(path: str) -> bool:
            return parent.get(path, (FILE, ""))[0] in (LINK, GITLINK) or (path in now and now[path].kind == "link")

        def to_what(path: str) -> str:
            return (
                f"{path} -> {os.fsdecode(bytes(now[path].content))}"
                if path in now and now[path].kind == "link"
                else path
            )

        self._leave("file", "in the place of a folder, or the other way: that takes two changes", swapped)
        self._leave("symbolic link", "or submodule, added or changed", linked, to_what)
        self._leave(
            "file",
            "of a special kind, too large or not to be read",
            lambda path: path in now and now[path].kind == "other",
        )
        self._leave(
            "file",
            "of a repository within this one",
            lambda path: path not in parent and covered(path, self.repositories),
        )
        self._leave("file", "outside what may be edited", lambda path: path in now and bool(background.refusal(path)))
        self._leave("removal", "of what may not be edited", lambda path: path not in now and path not in files)
        self._leave("file", f"of more than {LARGEST:,} bytes", lambda path: path in now and _size(now[path]) > LARGEST)

    def bound(self) -> None:
        """Leave out new files if they are too many, then twins in case. Raises NoUsableChangeError: still too much."""
        parent = self.background.entries
        if _share(len(self.changed), sum(map(_size, self.changed.values()))) > 1:
            top = self._too_much()
            where = f"below {one_line(top, 100)}" if top else "anywhere"
            new = {path for path in self.changed if path not in parent and (not top or covered(path, {top}))}
            self._leave("new file", f"{where}, too much to take in", new.__contains__)
        for fresh in (True, False):  # what is new gives way to what was there
            gone = {path for path, now in self.changed.items() if now is None}
            double = twins({*parent, *self.changed} - gone, self.changed)
            double = {path for path in double if not fresh or path not in parent}
            self._leave("file", "that differ from another only in case", double.__contains__)

    def _too_much(self) -> str:
        """The folder, empty for all of them, or the file without whose new files the rest is little enough."""
        sizes = {path: _size(now) for path, now in self.changed.items()}
        below = dict[str, tuple[int, int]]()
        for path in sizes.keys() - self.background.entries.keys():
            for top in (path, *_above(path), ""):
                files, size = below.get(top, (0, 0))
                below[top] = files + 1, size + sizes[path]
        files, size = len(sizes), sum(sizes.values())
        enough = [top for top, (n, much) in below.items() if _share(files - n, size - much) <= 1]
        if not enough:
            raise NoUsableChangeError(
                f"expected {MAX_CHANGED_FILES:,} changed files and {MAX_CHANGED_BYTES:,} bytes at most, "
                f"got {files:,} files and {size:,} bytes"
            )
        return min(enough, key=lambda top: (_share(*below[top]), len(top), top))

    def _same(self, now: Member) -> bool:
        """Whether something is as the parent has it."""
        mode, blob = self.background.entries.get(now.path, (0, ""))
        size = self.background.sizes.get(now.path, _size(now))
        return _MODES.get(now.kind) == mode and size == _size(now) and blob_id(now.content) == blob

    def _drop(self, paths: Iterable[str]) -> None:
        for path in paths:
            del self.changed[path]

    def _leave(
        self, noun: str, reason: str, unwanted: Callable[[str], bool], shown: Callable[[str], str] = str
    ) -> None:
        """Leave out what is unwanted, and say so in a sentence."""
        paths = [path for path in self.changed if unwanted(path)]
        if paths:
            names = ", ".join(one_line(shown(path), 100) for path in paths[:NAMED]) + ", ..." * (len(paths) > NAMED)
            self.left_out.append(f"{len(paths):,} {noun}{'s' * (len(paths) > 1)} {reason} ({names})")
        self._drop(paths)


def _ignored(paths: Collection[str], patterns: str, files: Mapping[str, bytes] | None = None) -> set[str]:
    """Those that Git ignores; patterns that take it too long are the program's or a candidate's own fault."""
    try:
        return ignored(paths, patterns, files)
    except GitTooLongError as error:
        raise NoUsableChangeError(
            f"expected .gitignore files that Git can apply to {len(paths):,} paths; {error}"
        ) from error


def _unfit(path: str) -> bool:
    try:
        check_path(path)
    except UnfitChangeError:
        return True
    return False


def _above(path: str) -> Iterator[str]:
    """The folders above a path, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _folders(paths: Iterable[str]) -> set[str]:
    return {above for path in paths for above in _above(path)}


def _size(member: Member | None) -> int:
    return len(member.content) if member else 0


def _share(files: int, size: int) -> float:
    """How much that is of what may be changed, by number or by bytes."""
    return max(files / MAX_CHANGED_FILES, size / MAX_CHANGED_BYTES)
