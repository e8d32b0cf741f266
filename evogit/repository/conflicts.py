"""What two sides disagree about, path by path, and what is put in its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from evogit.repository.paths import UnfitChangeError
from evogit.repository.trees import EXECUTABLE, FILE, TreeEntry

Side = Literal["ours", "theirs"]

Kind = Literal["lines", "deleted", "binary", "mode", "folder", "rename"]
"""What a conflict is about: lines of one file, a file that only one side keeps, a file that is not text, whether a file
may be run, a file where the other side has a folder, names alone."""

Choose = Callable[[], Side]
"""Decides one conflict, a hunk or a whole path; asked in order."""


class MergeImpossibleError(UnfitChangeError):
    """The two candidates cannot be merged; the message names what is in the way, such as a link or a submodule."""


class Version(NamedTuple):
    """One side's file: its mode and blob id."""

    mode: int
    blob: str


Entries = Mapping[str, Version]
"""Path -> version; what is not named is not there."""


class Conflict(Struct, frozen=True):
    """What the base and two sides have at `path`, or below it where one of them has a folder there."""

    path: str
    base: Entries
    ours: Entries
    theirs: Entries
    marked: str = ""
    """The blob in which Git left both sides' lines between markers of seven characters, where it wrote one."""
    whole: bool = False
    """Whether it is settled as a whole, whatever it is about, as there is too much to look into."""

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
        """Refuse what cannot be merged.

        Raises:
            MergeImpossibleError: a link or a submodule is part of it.
        """
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


Settler = Callable[[Conflict], Settlement]
"""Settles one conflict."""


def of_stages(stages: bytes) -> list[Conflict]:
    r"""Parse `<mode> <id> <stage>\t<path>` records, three stages per path at most: 1 base, 2 ours, 3 theirs.

    The format is that of `git merge-tree --write-tree -z` (git-merge-tree(1), "Conflicted file info").
    """
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
    """Merge three trees by names alone, no rename followed: what becomes of `ours`, and the conflicts.

    A path is as it is in both sides, or in the one that changed it; where a side has a file and the other a folder of
    that name, all below is one.
    """
    trees = [{entry.path: Version(entry.mode, entry.blob) for entry in tree} for tree in (base, ours, theirs)]
    changed = [path for path in sorted(set().union(*trees)) if len({tree.get(path) for tree in trees}) > 1]
    result: dict[str, Version | None] = {}
    conflicts: list[Conflict] = []
    for unit, paths in _units(changed).items():
        old, mine, other = ({path: tree[path] for path in paths if path in tree} for tree in trees)
        conflict = Conflict(unit, old, mine, other)
        if mine == old:
            result |= conflict.taken("theirs")
        elif other not in (old, mine):
            conflicts.append(conflict)
    return result, conflicts


def _units(paths: Iterable[str]) -> dict[str, list[str]]:
    """Sorted paths by what is decided together: a path that is a folder to another one takes all below with it."""
    units: dict[str, list[str]] = {}
    for path in paths:
        unit = next((above for above in _above(path) if above in units), path)
        units.setdefault(unit, []).append(path)
    return units


def _above(path: str) -> Iterator[str]:
    at = path.find("/")
    while at != -1:
        yield path[:at]
        at = path.find("/", at + 1)
