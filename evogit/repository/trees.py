"""Git trees as base plus changes: read lazily, written only where something changed."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import pygit2

from evogit.core import RepositoryError
from evogit.repository.faults import found_tree, written
from evogit.repository.objects import read_object
from evogit.repository.paths import UnfitChangeError, check_path, check_read, folded, parts_of

FILE, EXECUTABLE, LINK, GITLINK, FOLDER = 0o100644, 0o100755, 0o120000, 0o160000, 0o040000


MOST_LISTED = 200_000  # entries in remembered listings, about 250 bytes each
MOST_COMPARED = 50_000  # entries in remembered differences, about 500 bytes each
MOST_HELD = 4 << 20  # bytes of remembered files, which several parts read one after the other


class TreeEntry(NamedTuple):
    """One file of a tree: path, Git mode and blob id."""

    path: str
    mode: int
    blob: str

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file, executable or not: no link and no submodule."""
        return self.mode in (FILE, EXECUTABLE)


Key = TypeVar("Key")
Value = TypeVar("Value")

Pair = tuple[TreeEntry | None, TreeEntry | None]  # what was at a path and what is


def blob_id(content: bytes | memoryview) -> str:
    """The id that Git gives a file with this content."""
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


class _Remembered(dict[Key, Value]):
    """Values that are at hand; all are forgotten now and then, so that memory stays within bounds."""

    def __init__(self, most: int) -> None:
        """`most`: how much they may weigh together."""
        self._most = most
        self._held = 0

    def keep(self, key: Key, value: Value, weight: int) -> Value:
        if self._held + weight > self._most:
            self.clear()
            self._held = 0
        if weight <= self._most:
            self[key] = value
            self._held += weight
        return value


class Trees:
    """Reads and writes the trees of one repository. Ids are 40 hex digits, paths use forward slashes."""

    def __init__(self, repo: pygit2.Repository, modules: Iterable[Path] = ()) -> None:
        """`modules` are the folders in which Git has the repositories of submodules."""
        self._repo = repo
        self._modules = tuple(modules)
        self._listed = _Remembered[tuple[str, str], tuple[TreeEntry, ...]](MOST_LISTED)
        self._compared = _Remembered[tuple[str, str], Sequence[Pair]](MOST_COMPARED)
        self._blobs = _Remembered[str, bytes](MOST_HELD)

    # --- reading ------------------------------------------------------------------------------------------------

    def entries(self, tree: str) -> tuple[TreeEntry, ...]:
        """Every file, link and submodule of a tree, in Git's order. Folders seen before are not read again."""
        return self._below(tree, "")

    def _below(self, tree: str, prefix: str) -> tuple[TreeEntry, ...]:
        if (known := self._listed.get((tree, prefix))) is not None:
            return known
        found: list[TreeEntry] = []
        for item in self._tree(tree):
            path = prefix + os.fsdecode(item.raw_name or b"")
            check_read(path[len(prefix) :])
            if item.filemode == FOLDER:
                found.extend(self._below(str(item.id), path + "/"))
            else:
                found.append(TreeEntry(path, int(item.filemode), str(item.id)))
        return self._listed.keep((tree, prefix), tuple(found), len(found))

    def files(self, tree: str, wanted: Callable[[str], bool]) -> dict[str, bytes]:
        """Contents of the regular files whose path is wanted."""
        return {
            entry.path: self.blob(entry.blob) for entry in self.entries(tree) if entry.is_file and wanted(entry.path)
        }

    def kept(self, tree: str | None) -> dict[str, bytes]:
        """Return the files of an evidence tree; none if there is no tree, or it was removed."""
        try:
            return self.files(tree, lambda _: True) if tree else {}
        except RepositoryError:
            return {}

    def lazily(self, tree: str, wanted: Callable[[str], bool]) -> TreeFiles:
        """The same, each content read only when it is asked for."""
        regular = (entry for entry in self.entries(tree) if entry.is_file)
        return TreeFiles(self, (entry for entry in regular if wanted(entry.path)))

    def blob(self, blob: str) -> bytes:
        """The content of a blob; that of the latest is not read again."""
        content = self._blobs.get(blob)
        if content is None:
            found = read_object(self._repo, blob)
            if not isinstance(found, pygit2.Blob):
                raise RepositoryError(f"expected the blob {blob}; the repository lacks it (a partial clone?)")
            content = self._blobs.keep(blob, found.data, len(found.data))
        return content

    def size(self, blob: str) -> int:
        """Bytes of a blob, without reading it."""
        if (content := self._blobs.get(blob)) is not None:
            return len(content)
        try:
            return int(self._repo.odb.read_header(blob)[1])
        except KeyError:
            raise RepositoryError(f"expected the blob {blob}; the repository lacks it (a partial clone?)") from None

    def exists(self, tree: str) -> bool:
        """Whether there is such a tree; evidence may be gone."""
        return tree in self._repo

    def whole(self, tree: str) -> tuple[TreeEntry, ...]:
        """The entries, with the files of a submodule in its place where its commit was fetched."""
        return tuple(inner for entry in self.entries(tree) for inner in self._opened(entry))

    def readers(self, tree: str) -> dict[str, Callable[[], bytes]]:
        """How to read each regular file of a tree, those of submodules too."""
        return {entry.path: partial(self.blob, entry.blob) for entry in self.whole(tree) if entry.is_file}

    def _opened(self, entry: TreeEntry) -> Iterator[TreeEntry]:
        if entry.mode == GITLINK:  # where Git has the commits of submodules is looked up at the first one
            for folder in (objects for modules in self._modules for objects in object_folders(modules)):
                self._repo.odb.add_disk_alternate(str(folder))
            self._modules = ()
        if entry.mode != GITLINK or entry.blob not in self._repo:
            yield entry
            return
        for inner in self._below(entry.blob, f"{entry.path}/"):
            yield from self._opened(inner)

    def tar(self, tree: str, wanted: Callable[[str], bool]) -> bytes:
        """The wanted files and links, those of fetched submodules too, as an uncompressed tar, alike for like trees."""
        return self._archive(entry for entry in self.whole(tree) if wanted(entry.path))

    def changes(self, base: str, tree: str, wanted: Callable[[str], bool]) -> tuple[bytes, tuple[str, ...]]:
        """Return what makes `tree` of `base`: a `tar` of what is new or differs, and paths to remove."""
        changed, removed = list[TreeEntry](), list[str]()
        for old, new in self.differences(base, tree):
            if new is not None and wanted(new.path):
                changed.append(new)
            elif new is None and old is not None and old.mode != GITLINK and wanted(old.path):
                removed.append(old.path)  # but candidates change no submodules
        return self._archive(changed), tuple(removed)

    def differences(self, base: str, tree: str) -> Sequence[Pair]:
        """What differs between two trees, before and after, None where there is nothing; equal folders are not read."""
        found = self._compared.get((base, tree))
        if found is None:
            found = [sides(delta) for delta in deltas(self._repo, base, tree)]
            self._compared.keep((base, tree), found, len(found) + 1)
        return found

    def _archive(self, entries: Iterable[TreeEntry]) -> bytes:
        import tarfile  # which takes a while to load

        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for entry in (entry for entry in entries if entry.mode != GITLINK):
                content = self.blob(entry.blob)
                member = tarfile.TarInfo(entry.path)
                if entry.mode == LINK:
                    member.type = tarfile.SYMTYPE
                    member.linkname = os.fsdecode(content)
                    archive.addfile(member)
                else:
                    member.size = len(content)
                    member.mode = entry.mode & 0o777
                    archive.addfile(member, io.BytesIO(content))
        return buffer.getvalue()

    def refuse_twins(self, before: str, after: str) -> None:
        """Refuse what is new in `after` and differs from something there only in case. Raises UnfitChangeError."""
        whole = self._tree(after)
        fresh = [new.path for old, new in self.differences(before, after) if old is None and new is not None]
        folders: dict[str, set[str]] = {}
        for above, _, name in {part.rpartition("/") for path in fresh for part in parts_of(path)}:
            folders.setdefault(above, set()).add(name)
        for above, names in sorted(folders.items()):
            folder = whole[above] if above else whole
            assert isinstance(folder, pygit2.Tree)  # something is below it
            _refuse_case_twins({item.name for item in folder}, sorted(names), f"{above}/" * bool(above))

    # --- writing ------------------------------------------------------------------------------------------------

    def write(
        self, base: str | None, changes: Mapping[str, bytes | None], modes: Mapping[str, int] | None = None
    ) -> str:
        """Return the tree `base` with `changes` (None deletes) and `modes` applied. Raises UnfitChangeError."""
        for path in changes:
            check_path(path)
        nested: dict[str, object] = {}
        for path, content in changes.items():
            _nest(nested, path.split("/"), content, (modes or {}).get(path))
        old = self._tree(base) if base else None
        return str(
            written("a tree", self._repo, lambda: self._write(old, nested, "") or self._repo.TreeBuilder().write())
        )

    def write_blob(self, content: bytes) -> str:
        """The id of a blob with this content."""
        return str(written("a file", self._repo, lambda: self._repo.create_blob(content)))

    def with_entries(self, base: str, entries: Mapping[str, tuple[int, str] | None]) -> str:
        """The id of `base` with files put in their places: path -> mode and blob, or None. Raises UnfitChangeError."""
        if not entries:
            return base
        index, old = pygit2.Index(), self._tree(base)
        try:
            index.read_tree(old)
            for path in sorted(entries):
                if entries[path] is None and path in index:
                    index.remove(path)
            for path, entry in sorted(entries.items()):
                if entry is not None:
                    index.add(pygit2.IndexEntry(path, pygit2.Oid(hex=entry[1]), pygit2.enums.FileMode(entry[0])))
        except (pygit2.GitError, UnicodeEncodeError, OSError) as error:
            raise UnfitChangeError(f"no tree can hold that: {error}") from error
        return str(written("a tree", self._repo, lambda: index.write_tree(self._repo)))

    def _write(self, base: pygit2.Tree | None, nested: Mapping[str, object], prefix: str) -> pygit2.Oid | None:
        builder = self._repo.TreeBuilder(base) if base is not None else self._repo.TreeBuilder()
        names = {item.name for item in base} if base is not None else set[str | None]()
        deletions = {name for name, each in nested.items() if isinstance(each, _Leaf) and each.content is None}
        for name, change in sorted(nested.items(), key=lambda pair: pair[0] in deletions, reverse=True):
            old = base[name] if base is not None and name in names else None
            if isinstance(change, dict):
                if old is not None and not isinstance(old, pygit2.Tree):
                    raise UnfitChangeError(
                        f"expected a folder at {prefix + name!r}, found a file; delete it in an edit of its own"
                    )
                below = self._write(old, change, f"{prefix}{name}/")
                made = None if below is None else (below, FOLDER)
            else:
                made = self._write_file(old, change, prefix + name)
            if made is not None:
                builder.insert(name, *made)
                names.add(name)
            elif old is not None:
                builder.remove(name)
                names.discard(name)
        _refuse_case_twins(names, nested, prefix)
        return builder.write() if len(builder) else None

    def _write_file(self, old: pygit2.Object | None, change: object, path: str) -> tuple[pygit2.Oid, int] | None:
        assert isinstance(change, _Leaf)
        if old is not None and old.filemode not in (FILE, EXECUTABLE):
            raise UnfitChangeError(f"{path!r} is a folder, a link or a submodule; only plain files can be edited")
        if change.content is None:
            if old is None:
                raise UnfitChangeError(f"cannot delete {path!r}: there is no such file")
            return None
        mode = change.mode or (int(old.filemode) if old is not None else FILE)
        return self._repo.create_blob(change.content), mode

    def _tree(self, tree: str) -> pygit2.Tree:
        return found_tree(self._repo, tree)


class TreeFiles(Mapping[str, bytes]):
    """Files of a tree: path -> content, read when it is asked for; `entries` are the same without content."""

    def __init__(self, trees: Trees, entries: Iterable[TreeEntry]) -> None:
        self._trees = trees
        self.entries = {entry.path: entry for entry in entries}

    def __getitem__(self, path: str) -> bytes:
        return self._trees.blob(self.entries[path].blob)

    def __contains__(self, path: object) -> bool:
        return path in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def deltas(repo: pygit2.Repository, old: str, new: str) -> list[pygit2.DiffDelta]:
    """Return the changes between two trees or commits. Raises UnfitChangeError: Git makes no such path."""
    return deltas_of(found_tree(repo, old).diff_to_tree(found_tree(repo, new)))


def deltas_of(diff: pygit2.Diff) -> list[pygit2.DiffDelta]:
    """Return the changes of a diff, all paths checked. Raises UnfitChangeError: Git makes no such path."""
    found = list(diff.deltas)
    for delta in found:
        check_read(os.fsdecode(delta.new_file.raw_path))
    return found


def sides(delta: pygit2.DiffDelta) -> tuple[TreeEntry | None, TreeEntry | None]:
    """What a file was and what it becomes; None where there is none."""
    old, new = _side(delta.old_file), _side(delta.new_file)
    return old if old.mode else None, new if new.mode else None


def _side(file: pygit2.DiffFile) -> TreeEntry:
    return TreeEntry(os.fsdecode(file.raw_path), int(file.mode), str(file.id))


class _Leaf(NamedTuple):
    content: bytes | None
    mode: int | None


def _nest(nested: dict[str, object], parts: list[str], content: bytes | None, mode: int | None) -> None:
    for part in parts[:-1]:
        inner = nested.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UnfitChangeError(f"{part!r} is changed both as a file and as a folder; choose one")
        nested = inner
    if isinstance(nested.get(parts[-1]), dict):
        raise UnfitChangeError(f"{parts[-1]!r} is changed both as a file and as a folder; choose one")
    nested[parts[-1]] = _Leaf(content, mode)


def _refuse_case_twins(names: set[str | None], changed: Iterable[str], prefix: str) -> None:
    spelled: dict[str, int] = {}
    for name in names:
        key = folded(name or "")
        spelled[key] = spelled.get(key, 0) + 1
    for name in changed:
        if name in names and spelled[folded(name)] > 1:
            raise UnfitChangeError(f"{prefix + name!r} differs from a neighbour only in case; rename it")


def object_folders(modules: Path) -> Iterator[Path]:
    """The object databases of the submodules that were fetched, and of those in them; `modules` is Git's folder."""
    for folder in sorted(modules.iterdir()) if modules.is_dir() else ():
        if (folder / "HEAD").is_file():
            yield folder / "objects"
            yield from object_folders(folder / "modules")
        else:  # of a name such as libs/parser
            yield from object_folders(folder)
