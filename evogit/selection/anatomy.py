"""What pieces candidates are made of, and which of them differ: read from Git once per file, however often asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evogit.history import History
from evogit.repository import EXECUTABLE, FILE, Repository
from evogit.source import MAX_SOURCE_BYTES, pieces


class Piece(NamedTuple):
    """A statement at the top of a program, or with an empty name a whole file."""

    path: str
    name: str


class File(NamedTuple):
    """What a tree has at a path: mode and blob id; both empty where there is nothing.

    `whole` where it is not taken apart, as the tree has more programs that differ from the seed than may be.
    """

    mode: int = 0
    blob: str = ""
    whole: bool = False


NOTHING = File()

PLAIN = (FILE, EXECUTABLE)
"""Modes of files that can be taken apart; links and submodules are not files."""

MOST_HELD = 1_000_000
"""Pieces that are remembered, about 100 bytes each."""

Changes = Mapping[Piece, str]
"""Piece that a change alters -> a digest of what it becomes."""


@dataclass(slots=True)
class Anatomy:
    """The candidates of one run, taken apart. All is told as the difference to the seed, which most files share."""

    repository: Repository
    _files: dict[str, Mapping[str, File]] = field(default_factory=dict)
    """Candidate -> what it has where it differs from the seed."""
    _seed: dict[str, File] = field(default_factory=dict)
    """Path -> what the seed has there, for paths that a candidate changed."""
    _versions: dict[tuple[str, str], pieces.Versions] = field(default_factory=dict)
    """How the name of a file that can be taken apart ends, and its blob -> its pieces; all are forgotten now and then,
    to bound the memory."""
    _held: int = 0

    def files(self, history: History, commit: str) -> Mapping[str, File]:
        """Path -> what a candidate has there, for all that it does not share with the seed."""
        found = self._files.get(commit)
        if found is None:
            tree, seed = history.phylogeny[commit].tree, history.phylogeny[history.seed or commit].tree
            found = self._files[commit] = self._differing(seed, tree)
        return found

    def _differing(self, seed: str, tree: str) -> Mapping[str, File]:
        found: dict[str, File] = {}
        room = pieces.MOST_SOURCE_BYTES
        for old, new in self.repository.trees.differences(seed, tree):
            path = (new or old).path  # type: ignore[union-attr]  # one of both is there
            plain = new is not None and new.mode in PLAIN
            size = self.repository.trees.size(new.blob) if new and plain and pieces.has_pieces(path) else 0
            room -= size if size <= MAX_SOURCE_BYTES else 0
            found[path] = File(new.mode, new.blob, room < 0) if new else NOTHING
            self._seed[path] = File(old.mode, old.blob) if old else NOTHING
        return found

    def file(self, history: History, commit: str, path: str) -> File:
        """What a candidate has at a path at which some candidate differs from the seed."""
        return self.files(history, commit).get(path) or self._seed.get(path, NOTHING)

    def differing(self, history: History, one: str, other: str) -> frozenset[Piece]:
        """The pieces that are not alike in two candidates; whole files where they cannot be exchanged by pieces."""
        mine, theirs = self.files(history, one), self.files(history, other)
        found = set[Piece]()
        for path in mine.keys() | theirs.keys():
            here, there = (files.get(path) or self._seed.get(path, NOTHING) for files in (mine, theirs))
            if here != there:
                found |= {Piece(path, name) for name in self._names(path, here, there)}
        return frozenset(found)

    def is_like(self, history: History, commit: str, changes: Changes, origin: str, others: Collection[Piece]) -> bool:
        """Whether a candidate has the pieces that `changes` bring, and those of `others` that `origin` has."""
        for piece, version in changes.items():
            if self.version(history, commit, piece) != version:
                return False
        kept = (piece for piece in others if piece not in changes)
        return all(self.version(history, commit, each) == self.version(history, origin, each) for each in kept)

    def version(self, history: History, commit: str, piece: Piece) -> str:
        """A digest of what a candidate has in place of a piece; empty where it has nothing of that name.

        Of a whole file that is taken apart it tells what belongs to no piece: the mode, and which pieces there are.
        """
        file = self.file(history, commit, piece.path)
        if file.mode not in PLAIN:
            return file.blob
        found = self._of(piece.path, file)
        return found.get(piece.name) or (" ".join([str(file.mode), *found]) if piece.name == pieces.WHOLE else "")

    def tree(self, history: History, onto: str, other: str, taken: Collection[Piece]) -> str:
        """The tree of `onto` with those pieces of `other`; they must be among those in which the two differ."""
        mine, theirs = self.files(history, onto), self.files(history, other)
        entries: dict[str, tuple[int, str] | None] = {}
        trees = self.repository.trees
        for path in sorted({piece.path for piece in taken}):
            names = {piece.name for piece in taken if piece.path == path}
            here, there = (files.get(path) or self._seed.get(path, NOTHING) for files in (mine, theirs))
            if pieces.WHOLE in names:
                entries[path] = (there.mode, there.blob) if there.blob else None
            else:
                content = pieces.exchanged(path, trees.blob(here.blob), trees.blob(there.blob), names)
                entries[path] = (here.mode, trees.write_blob(content))
        return trees.with_entries(history.phylogeny[onto].tree, entries)

    def _names(self, path: str, here: File, there: File) -> frozenset[str]:
        if not all(file.mode in PLAIN for file in (here, there)) or here.mode != there.mode:
            return frozenset({pieces.WHOLE})
        return pieces.differing(self._of(path, here), self._of(path, there))

    def _of(self, path: str, file: File) -> pieces.Versions:
        ending = path.rpartition(".")[2] if pieces.has_pieces(path) and not file.whole else ""
        key = ending, file.blob
        if key not in self._versions:
            trees = self.repository.trees
            large = file.whole or trees.size(file.blob) > MAX_SOURCE_BYTES
            found = {pieces.WHOLE: file.blob} if large else pieces.versions(path, trees.blob(file.blob))
            self._held += len(found)
            if self._held > MOST_HELD:
                self._versions.clear()
                self._held = len(found)
            self._versions[key] = found
        return self._versions[key]


def changes_of(path: str, before: pieces.Versions, after: bytes | None) -> Changes:
    """What a proposal does to one file."""
    if after is None:
        return {Piece(path, pieces.WHOLE): "gone"}
    new = pieces.versions(path, after)
    names = pieces.differing(before, new)
    return {Piece(path, name): new.get(name, "") or pieces.digest(after) for name in sorted(names)}
