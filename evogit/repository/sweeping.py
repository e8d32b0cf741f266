"""Removes the objects of evidence that was given up, and of the chains that kept it; a person's objects all stay.

What is unreachable may still be wanted: a stash that was dropped, a branch that was deleted. Git keeps such objects for
two weeks, so `git prune` is not for us: only what chains of `keep` held is removed, unless something else, reachable or
not, has it too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository.git import LONGEST, run_git
from evogit.repository.keeping import is_link
from evogit.repository.objects import read_commit, read_object
from evogit.repository.refs import below
from evogit.repository.state_folder import FOLDER_FLAGS

GRACE = 60.0
"""Seconds for which an object stays that was written, or written again: who did it has not moved its ref yet."""

HOLDING = ("--all", "--reflog", "--indexed-objects")
"""What holds objects: refs and their logs, and the index, of all worktrees."""


class Swept(Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        removed: how many objects are gone.
        young: how many are not yet, as they were written just now.
        held: of the evidence trees that were given up, how many something else still has.
    """

    removed: int
    young: int
    held: int


def sweep(repo: pygit2.Repository, common: Path, given_up: Collection[str]) -> Swept:
    """Remove what nothing holds of these evidence trees and of old chains of `keep`.

    Raises:
        RepositoryError: objects are missing, so that it cannot be known what is held, or some are kept elsewhere;
            nothing is removed then.
    """
    check_links(common)
    until = time.time() - GRACE
    packs = _packs(common)  # before anything is listed: what comes later is not in the list
    reachable = set(_lines(common, "rev-list", "--objects", "--no-object-names", *HOLDING))
    kinds = _kinds(common)
    rest = {name: kind for name, kind in kinds.items() if name not in reachable}
    links = {name for name, kind in rest.items() if kind == "commit" and _is_link(repo, name)}
    ours = links | {name for name in given_up if name in rest}
    ours |= _content(repo, ours, rest)
    ours -= _held(repo, rest.keys() - ours, ours)
    packs_are_old = bool(packs) and all(pack.stat().st_mtime < until for pack in packs)
    files = {name: _file(common, name) for name in ours}
    loose = {name for name, file in files.items() if file.exists()}
    fresh = {name for name in loose if files[name].stat().st_mtime >= until}
    waiting = _with_what_has_them(repo, ours, fresh if packs_are_old else fresh | (ours - loose))
    old, packed = loose - waiting, ours - loose - waiting
    _renew_graph(common)
    if packed and not _pack(common, packs, kinds.keys() - old - packed, until):
        packed = set()
    _remove(common, [name for name in old if files[name].stat().st_mtime < until])  # nobody wrote them again
    removed = len(old) + len(packed)
    return Swept(removed=removed, young=len(ours) - removed, held=sum(name in reachable for name in given_up))


def check_links(common: Path) -> None:
    """Refuse folders of objects that a link leads to, as what lies there may be another repository's; of refs, too.

    Raises:
        RepositoryError: naming the link.
    """
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
    """Remove loose objects, through no link although somebody makes one just now.

    Raises:
        OSError: there is one, or something cannot be removed.
    """
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


def _packs(common: Path) -> list[Path]:
    """The packs that may be rewritten; none if some objects are at a server."""
    folder = common / "objects" / "pack"
    if any(folder.glob("*.promisor")):
        return []
    return [pack for pack in folder.glob("pack-*.pack") if not pack.with_suffix(".keep").exists()]


def _pack(common: Path, old: Sequence[Path], wanted: Collection[str], until: float) -> bool:
    """Put objects into one pack, in the place of old ones: as `git repack` does, which would keep all or lose more.

    False, and nothing is lost, where something in the old ones was written again meanwhile.
    """
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


def _kinds(common: Path) -> dict[str, str]:
    """Every object of the repository, and what it is."""
    told = "--batch-check=%(objectname) %(objecttype)"
    rows = (line.partition(" ") for line in _lines(common, "cat-file", "--batch-all-objects", "--unordered", told))
    return {name: kind for name, _, kind in rows if name}


def _is_link(repo: pygit2.Repository, name: str) -> bool:
    found = read_commit(repo, name)
    return not isinstance(found, str) and is_link(found)


def _content(repo: pygit2.Repository, roots: Iterable[str], among: Collection[str]) -> set[str]:
    """The trees and files in some trees and commits, as far as they are among some objects."""
    found, todo = set[str](), list(roots)
    while todo:
        for name in _trees_and_files(repo, todo.pop()):
            if name in among and name not in found:
                found.add(name)
                todo.append(name)
    return found


def _held(repo: pygit2.Repository, others: Iterable[str], ours: Collection[str]) -> set[str]:
    """What of ours some other unreachable objects have, with what is in it."""
    named = {name for each in others for name in (*_trees_and_files(repo, each), *_links(repo, each)) if name in ours}
    return named | _content(repo, named, ours)


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


def _links(repo: pygit2.Repository, name: str) -> Iterator[str]:
    """What a commit comes from, and what a tag names."""
    found = read_object(repo, name)
    if isinstance(found, pygit2.Commit):
        yield from map(str, found.parent_ids)
    elif isinstance(found, pygit2.Tag):
        yield str(found.target)


def _file(common: Path, name: str) -> Path:
    return common / "objects" / name[:2] / name[2:]


def _renew_graph(common: Path) -> None:
    """Write Git's list of commits again, where there is one: it may have some of ours, and must not name lost ones."""
    info = common / "objects" / "info"
    if (info / "commit-graph").exists() or (info / "commit-graphs").exists():
        way = ["--split=replace"] if (info / "commit-graphs").exists() else []
        run_git(common, "commit-graph", "write", "--reachable", *way, seconds=LONGEST)
