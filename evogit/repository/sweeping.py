"""Removes the objects of evidence that was given up, and of the chains that kept it; a person's objects all stay.

What is unreachable may still be wanted: a stash that was dropped, a branch that was deleted. Git keeps such objects for
two weeks, so `git prune` is not for us: only what chains of `keep` held is removed, unless something else, reachable or
not, has it too.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository import refs
from evogit.repository.commit_writer import CommitWriter
from evogit.repository.faults import written
from evogit.repository.git import LONGEST, run_git
from evogit.repository.journal import entry_commit
from evogit.repository.keeping import LEFT, THINNED, Keeping, Kept, is_link
from evogit.repository.objects import read_commit, read_object
from evogit.repository.refs import below
from evogit.repository.state_folder import FOLDER_FLAGS
from evogit.repository.trees import FOLDER, Trees

GRACE = 60.0  # seconds for which a written object stays: its writer has not moved its ref yet
HOLDING = ("--all", "--reflog", "--indexed-objects")  # refs, their logs, and the index, of all worktrees


class Swept(Struct, frozen=True, kw_only=True):
    """The number of `removed` objects, of those too `young` to remove, and of evidence trees `held`."""

    removed: int
    young: int
    held: int


def sweep(repo: pygit2.Repository, common: Path, given_up: Collection[str]) -> Swept:
    """Remove evidence trees and old chains that nothing holds. Raises RepositoryError: objects are missing."""
    check_links(common)
    until = time.time() - GRACE
    folder = common / "objects" / "pack"  # looked into before anything is listed: what comes later is not in the list
    packs = [pack for pack in folder.glob("pack-*.pack") if not pack.with_suffix(".keep").exists()]
    if any(folder.glob("*.promisor")):  # some objects are at a server
        packs = []
    reachable = set(_lines(common, "rev-list", "--objects", "--no-object-names", *HOLDING))
    told = "--batch-check=%(objectname) %(objecttype)"
    rows = _lines(common, "cat-file", "--batch-all-objects", "--unordered", told)
    kinds = {name: kind for name, _, kind in (line.partition(" ") for line in rows) if name}
    rest = {name: kind for name, kind in kinds.items() if name not in reachable}
    commits = (found for name, kind in rest.items() if kind == "commit" for found in [read_commit(repo, name)])
    links = {str(found.id) for found in commits if not isinstance(found, str) and is_link(found)}
    ours = links | {name for name in given_up if name in rest}
    ours |= _content(repo, ours, rest)
    held = {name for each in rest.keys() - ours for name in _named(repo, each) if name in ours}
    ours -= held | _content(repo, held, ours)  # some other unreachable object has them, with what is in them
    packs_are_old = bool(packs) and all(pack.stat().st_mtime < until for pack in packs)
    files = {name: common / "objects" / name[:2] / name[2:] for name in ours}
    loose = {name for name, file in files.items() if file.exists()}
    fresh = {name for name in loose if files[name].stat().st_mtime >= until}
    waiting = _with_what_has_them(repo, ours, fresh if packs_are_old else fresh | (ours - loose))
    old, packed = loose - waiting, ours - loose - waiting
    info = common / "objects" / "info"
    if (info / "commit-graph").exists() or (info / "commit-graphs").exists():  # it must not name lost ones
        way = ["--split=replace"] if (info / "commit-graphs").exists() else []
        run_git(common, "commit-graph", "write", "--reachable", *way, seconds=LONGEST)
    if packed and not _pack(common, packs, kinds.keys() - old - packed, until):
        packed = set()
    _remove(common, [name for name in old if files[name].stat().st_mtime < until])  # nobody wrote them again
    removed = len(old) + len(packed)
    return Swept(removed=removed, young=len(ours) - removed, held=sum(name in reachable for name in given_up))


def check_links(common: Path) -> None:
    """Refuse folders of objects and refs that a link leads to. Raises RepositoryError: naming the link."""
    folder = common / "objects"
    fixed = (folder, *sorted(folder.iterdir()), folder / "info" / "commit-graphs", common / "logs")
    walked = chain(below(common, "refs"), below(common, "logs"))
    for path in chain(fixed, (path for path in walked if path.is_dir())):
        if path.is_symlink():
            raise RepositoryError(
                f"expected a folder of this repository at {path}, found a link, which may lead to another one; "
                "nothing was removed"
            )


def _remove(common: Path, names: Iterable[str]) -> None:
    """Remove loose objects, through no link although somebody makes one just now."""
    objects = os.open(common / "objects", FOLDER_FLAGS)
    try:
        for name in names:
            folder = os.open(name[:2], FOLDER_FLAGS, dir_fd=objects)
            try:
                os.unlink(name[2:], dir_fd=folder)
            finally:
                os.close(folder)
    finally:
        os.close(objects)


def _pack(common: Path, old: Sequence[Path], wanted: Collection[str], until: float) -> bool:
    """Put objects into one pack in place of old ones. Return False, losing nothing, if old ones were written again."""
    folder = common / "objects" / "pack"
    names = "\n".join(sorted(wanted)).encode() + b"\n"
    options = ("-q", "--local", "--honor-pack-keep", "--delta-base-offset")
    made = run_git(common, "pack-objects", *options, str(folder / "pack"), stdin=names, seconds=LONGEST)
    new = {f"pack-{name}" for name in made.stdout.decode("ascii").split()}
    if any(pack.stat().st_mtime >= until for pack in old):
        return False
    for index in folder.glob("multi-pack-index*"):
        index.unlink()
    for pack in old:
        for suffix in (".idx", ".pack", ".rev", ".bitmap", ".mtimes") if pack.stem not in new else ():
            pack.with_suffix(suffix).unlink(missing_ok=True)
    run_git(common, "prune-packed", "-q", seconds=LONGEST)
    return True


def space(common: Path) -> int:
    """Bytes that objects take on the disk."""
    found = 0
    for folder, _, files in os.walk(common / "objects"):
        for name in files:
            with suppress(FileNotFoundError):
                found += os.stat(f"{folder}/{name}").st_blocks * 512  # noqa: PTH116  a Path takes longer
    return found


def _lines(common: Path, *arguments: str) -> Iterator[str]:
    try:
        return iter(run_git(common, *arguments, seconds=LONGEST).stdout.decode("ascii").split("\n"))
    except RepositoryError as error:
        raise RepositoryError(f"{error}; see `evogit doctor runs`; nothing was removed") from error


def _content(repo: pygit2.Repository, roots: Iterable[str], among: Collection[str]) -> set[str]:
    found, todo = set[str](), list(roots)
    while todo:
        for name in _trees_and_files(repo, todo.pop()):
            if name in among and name not in found:
                found.add(name)
                todo.append(name)
    return found


def _trees_and_files(repo: pygit2.Repository, name: str) -> Iterator[str]:
    found = read_object(repo, name)
    if isinstance(found, pygit2.Commit):
        yield str(found.tree_id)
    elif isinstance(found, pygit2.Tree):
        yield from (str(item.id) for item in found)


def _with_what_has_them(repo: pygit2.Repository, ours: Collection[str], some: set[str]) -> set[str]:
    """Some objects, and those of ours that they are in, by which they are found again."""
    found, before = set(some), 0
    while len(found) > before:
        before = len(found)
        found |= {name for name in ours if name not in found and not found.isdisjoint(_trees_and_files(repo, name))}
    return found


def _named(repo: pygit2.Repository, name: str) -> Iterator[str]:
    found = read_object(repo, name)
    yield from _trees_and_files(repo, name)
    if isinstance(found, pygit2.Commit):
        yield from map(str, found.parent_ids)
    elif isinstance(found, pygit2.Tag):
        yield str(found.target)


AT_ONCE = 200  # parents of one commit: candidates from which no other one that is kept was bred


class Thinner(Struct, frozen=True, kw_only=True):
    """Gives up evidence of a run in one clone. Killed at any moment, it leaves the old chain or the new one."""

    repo: pygit2.Repository
    commits: CommitWriter
    common: Path
    trees: Trees
    run: str
    host: str

    def thin(self, gone: Collection[str], why: str) -> None:
        """Let go of evidence trees; `why` says what was asked. Raises RepositoryError: `keep` is damaged."""
        refs.retry(partial(self._tell, gone, why))  # first: what is gone is known to be
        refs.retry(partial(self._rewrite, frozenset(gone)))

    def _tell(self, gone: Collection[str], why: str) -> bool:
        ref = f"refs/evogit/{self.run}/thinned/{self.host}"
        tip = refs.target(self.repo, ref)
        known = {*gone, *Keeping(self.repo, self.run).listed(tip)}
        listed = "".join(f"{tree}\n" for tree in sorted(known)).encode()
        tree, parents = self.trees.write(None, {THINNED: listed}), [tip] if tip else []
        commit = self._commit(f"{why}\n", tree, parents, int(time.time()))
        return refs.swap(self.repo, self.common, ref, commit, tip)

    def _rewrite(self, gone: frozenset[str]) -> bool:
        """Put a chain without this evidence in the place of the one that is there, unless that grew meanwhile."""
        ref = f"refs/evogit/{self.run}/keep/{self.host}"
        tip = refs.target(self.repo, ref)
        if tip is None:
            return True
        kept = Keeping(self.repo, self.run).read([tip])
        for commit in kept.commits:
            if isinstance(wrong := read_commit(self.repo, commit), str):
                kept.wrong.append(f"the candidate {commit} {wrong}")
        if kept.wrong:
            raise RepositoryError(f"{kept.wrong[0]}; see `evogit doctor runs`")
        return refs.swap(self.repo, self.common, ref, self._left(kept, kept.trees - gone), tip)

    def _left(self, kept: Kept, trees: Collection[str]) -> str:
        """A new chain that holds these trees and all commits that the old one held; its last commit."""
        folders: dict[str, dict[str, str]] = {}
        for tree in trees:
            folders.setdefault(tree[:2], {})[tree[2:]] = tree
        left = self._folder({name: self._folder(inner) for name, inner in folders.items()})
        ends, message = self._ends(kept.commits), f"{LEFT}, of {len(kept.chain)}\n"
        parents = list[str]()
        for at in range(0, max(len(ends), 1), AT_ONCE):
            some = ends[at : at + AT_ONCE]
            named = [*parents, *(str(end.id) for end in some)]
            parents = [self._commit(message, left, named, max(some[-1].commit_time, 0) if some else 0)]
        return parents[0]

    def _ends(self, commits: Collection[str]) -> Sequence[pygit2.Commit]:
        """Return the oldest first of the commits that hold all of them: Git sorts commits in hand by date."""
        found = [self.repo[commit].peel(pygit2.Commit) for commit in commits]
        parents = {str(parent) for commit in found for parent in commit.parent_ids}
        return sorted((each for each in found if str(each.id) not in parents), key=lambda each: each.commit_time)

    def _folder(self, inner: Mapping[str, str]) -> str:
        """Return a tree of trees. One that is there is not written again: that would make its pack young."""
        rows = [b"%o %s\0%s" % (FOLDER, name.encode(), bytes.fromhex(tree)) for name, tree in sorted(inner.items())]
        content = b"".join(rows)
        tree = hashlib.sha1(b"tree %d\0%s" % (len(content), content)).hexdigest()
        if tree not in self.repo:
            written("what gc left", self.repo, partial(self.repo.odb.write, pygit2.enums.ObjectType.TREE, content))
        return tree

    def _commit(self, message: str, tree: str, parents: list[str], date: int) -> str:
        return entry_commit(self.commits, self.host, message, tree, parents, date)
