"""What two sides disagree about, path by path, and what is put in its place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from evogit.repository.git import run_git
from evogit.repository.paths import UnfitChangeError, parts_of
from evogit.repository.trees import EXECUTABLE, FILE, TreeEntry

Side = Literal["ours", "theirs"]

Kind = Literal["lines", "deleted", "binary", "mode", "folder", "rename"]
"""What a conflict is about: lines of one file, a file that only one side keeps, a file that is not text, whether a file
may be run, a file where the other side has a folder, names alone."""

Choose = Callable[[], Side]  # decides one conflict, a hunk or a whole path; asked in order


class MergeImpossibleError(UnfitChangeError):
    """The two candidates cannot be merged; the message names what is in the way, such as a link or a submodule."""


class Version(NamedTuple):
    """One side's file: its mode and blob id."""

    mode: int
    blob: str


Entries = Mapping[str, Version]  # path -> version; what is not named is not there


class Conflict(Struct, frozen=True):
    """What the base and two sides have at `path`, or below it where one of them has a folder there."""

    path: str
    base: Entries
    ours: Entries
    theirs: Entries
    marked: str = ""  # the blob in which Git left both sides between markers of seven characters
    whole: bool = False  # whether it is settled as a whole, whatever it is about, as there is too much to look into

    @property
    def files(self) -> tuple[Version, Version] | None:
        """Both sides' versions where both have one plain file at the path."""
        ours, theirs = self.ours.get(self.path), self.theirs.get(self.path)
        plain = all(version and version.mode in (FILE, EXECUTABLE) for version in (ours, theirs))
        return (ours, theirs) if ours and theirs and plain else None

    @property
    def paths(self) -> set[str]:
        """All that it is about."""
        return {*self.base, *self.ours, *self.theirs}

    def taken(self, side: Side) -> dict[str, Version | None]:
        """One side's version as a whole: path -> version, None for what goes."""
        chosen = self.ours if side == "ours" else self.theirs
        return {path: chosen.get(path) for path in sorted(self.paths)}

    def check(self) -> None:
        """Refuse what cannot be merged. Raises MergeImpossibleError: a link or a submodule is part of it."""
        for entries in (self.ours, self.theirs, self.base):
            for path, version in entries.items():
                if version.mode not in (FILE, EXECUTABLE):
                    raise MergeImpossibleError(f"cannot merge {path!r}: a link or a submodule that differs")


class Settlement(Struct, frozen=True):
    """How one conflict was settled: `how` says by what, `count` the decisions that took, `entries` the result."""

    path: str
    kind: Kind
    how: str
    count: int
    entries: Mapping[str, Version | None]


Settler = Callable[[Conflict], Settlement]  # settles one conflict


def of_stages(stages: bytes) -> list[Conflict]:
    r"""Parse `<mode> <id> <stage>\t<path>` records of `git merge-tree -z`; stages: 1 base, 2 ours, 3 theirs."""
    found: dict[str, tuple[dict[str, Version], dict[str, Version], dict[str, Version]]] = {}
    for record in filter(None, stages.split(b"\0")):
        facts, _, name = record.partition(b"\t")
        mode, blob, stage = facts.decode().split()
        path = os.fsdecode(name)
        found.setdefault(path, ({}, {}, {}))[int(stage) - 1][path] = Version(int(mode, 8), blob)
    return [Conflict(path, base, ours, theirs) for path, (base, ours, theirs) in found.items()]


def path_by_path(
    base: Iterable[TreeEntry], ours: Iterable[TreeEntry], theirs: Iterable[TreeEntry]
) -> tuple[dict[str, Version | None], list[Conflict]]:
    """Merge three trees by names alone: what becomes of `ours`, and conflicts. A file against a folder is one."""
    trees = [{entry.path: Version(entry.mode, entry.blob) for entry in tree} for tree in (base, ours, theirs)]
    changed = [path for path in sorted(set().union(*trees)) if len({tree.get(path) for tree in trees}) > 1]
    result: dict[str, Version | None] = {}
    conflicts: list[Conflict] = []
    units: dict[str, list[str]] = {}  # what is decided together: a path that is a folder to another one takes all below
    for path in changed:
        units.setdefault(next((above for above in parts_of(path) if above in units), path), []).append(path)
    for unit, paths in units.items():
        old, mine, other = ({path: tree[path] for path in paths if path in tree} for tree in trees)
        conflict = Conflict(unit, old, mine, other)
        if mine == old:
            result |= conflict.taken("theirs")
        elif other not in (old, mine):
            conflicts.append(conflict)
    return result, conflicts


SHORTEST_MARKER = 7  # characters of Git's own markers
LONGEST = 2.0  # seconds of CPU that one file may take; larger ones than Git merges faster are not given to it


def merge_hunks(scratch: Path, ours: bytes, base: bytes, theirs: bytes, choose: Choose) -> tuple[bytes, int]:
    """The merged text, and how many hunks `choose` was asked about. `scratch` is a Git directory without settings."""
    size = marker_size(ours, base, theirs)
    text = _merge_file(scratch, (ours, base, theirs), f"--marker-size={size}")
    return choose_hunks(text, size, choose, ends_of(ours, theirs))


def marked_hunks(scratch: Path, ours: bytes, base: bytes, theirs: bytes, size: int) -> bytes:
    """The merged text, conflicts between markers of `size` characters, the base's lines in the middle of each."""
    return _merge_file(scratch, (ours, base, theirs), f"--marker-size={size}", "--diff3")


def _merge_file(scratch: Path, versions: Sequence[bytes], *options: str) -> bytes:
    """Merge versions that exist as files in memory only: candidates' code never touches the host's file system."""
    with ExitStack() as stack:
        files = [stack.enter_context(os.fdopen(os.memfd_create("evogit-merge", 0), "wb")) for _ in versions]
        for file, version in zip(files, versions, strict=True):
            file.write(version)
            file.flush()
        descriptors = [file.fileno() for file in files]
        labels = (part for name in ("ours", "base", "theirs") for part in ("-L", name))
        paths = (f"/proc/self/fd/{descriptor}" for descriptor in descriptors)
        command = ("merge-file", "-p", "-q", *options, *labels, *paths)
        return run_git(scratch, *command, pass_fds=descriptors, ok=range(128), seconds=LONGEST).stdout


def ends_of(ours: bytes, theirs: bytes) -> dict[Side, bool]:
    """Return, by side, whether its last line ends with a newline."""
    return {"ours": ours.endswith(b"\n"), "theirs": theirs.endswith(b"\n")}


def marker_size(*versions: bytes) -> int:
    """A length for conflict markers that no line of the versions begins with."""
    runs = (len(run) for version in versions for run in re.findall(rb"(?m)^(?:<+|=+|>+|\|+)", version))
    return max(SHORTEST_MARKER, *runs, 0) + 1


def count_markers(content: bytes, size: int) -> int:
    """Lines that begin with as many marker characters: four for each conflict that `marked_hunks` leaves."""
    starts = tuple(character * size for character in (b"<", b"|", b"=", b">"))
    return sum(line.startswith(starts) for line in content.split(b"\n"))


def choose_hunks(text: bytes, size: int, choose: Choose, ends: Mapping[Side, bool]) -> tuple[bytes, int]:
    """Replace each conflict of a text by the side that is chosen; `ends` says whose last line has an end."""
    ours, middle, theirs = b"<" * size, b"=" * size, b">" * size
    result: list[bytes] = []
    sides: dict[Side, list[bytes]] = {"ours": [], "theirs": []}
    into, hunks, last = result, 0, True
    for line in [line for line in re.split(rb"(?<=\n)", text) if line]:
        if line.startswith(ours):
            sides = {"ours": [], "theirs": []}
            into = sides["ours"]
        elif line.startswith(middle):
            into = sides["theirs"]
        elif line.startswith(theirs):
            side = choose()
            result += sides[side]
            into, hunks, last = result, hunks + 1, ends[side]
        else:
            into.append(line)
            last = last or into is result
    merged = b"".join(result)
    return (merged if last else merged.removesuffix(b"\n").removesuffix(b"\r")), hunks
