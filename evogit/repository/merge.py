"""Merges two candidates with `git merge-tree`, conflicts settled hunk by hunk by a rule that the caller gives."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evogit.core import RepositoryError
from evogit.repository.faults import ATTEMPTS
from evogit.repository.git import Output, git
from evogit.repository.trees import EXECUTABLE, FILE, Trees, UnfitChangeError

Side = Literal["ours", "theirs"]

_SETTLED = {"Auto-merging", "CONFLICT (contents)", "CONFLICT (modify/delete)", "CONFLICT (binary)"}


class MergeImpossibleError(UnfitChangeError):
    """The two candidates cannot be merged by hunks; the message says which kind of conflict is in the way."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged tree, and how many conflicting hunks were settled to get it."""

    tree: str
    conflicts: int


@dataclass(frozen=True, slots=True)
class _Conflict:
    """The three versions of one path (blob id and mode; None: not there)."""

    path: str
    base: tuple[str, int] | None
    ours: tuple[str, int] | None
    theirs: tuple[str, int] | None

    @property
    def plain(self) -> bool:
        versions = (self.ours, self.theirs)
        return all(version is not None and version[1] in (FILE, EXECUTABLE) for version in versions)


class Merger:
    """Merges in a scratch Git directory that shares the repository's objects and none of its settings."""

    def __init__(self, common: Path, trees: Trees) -> None:
        self._scratch = common / "evogit" / "scratch"
        self._objects = common / "objects"
        self._trees = trees

    async def merge(self, ours: str, theirs: str, choose: Callable[[], Side]) -> Merged:
        """Merge commit `theirs` into commit `ours`; `choose` is asked once per conflicting hunk or file, in order.

        Raises:
            MergeImpossibleError: for conflicts that are not about content or deletion (renames, folders, links).
        """
        self._prepare()
        output = await self._merge_trees(ours, theirs)
        head, _, rest = output.stdout.partition(b"\0")
        tree = head.decode()
        if output.code == 0:
            return Merged(tree, 0)
        stages, _, messages = rest.partition(b"\0\0")
        _refuse_other_kinds(messages)
        changes: dict[str, bytes | None] = {}
        settled = 0
        for conflict in _conflicts(stages):
            content, hunks = await self._settle(conflict, choose)
            changes[conflict.path] = content
            settled += hunks
        present = {entry.path for entry in self._trees.entries(tree)}
        changes = {path: content for path, content in changes.items() if content is not None or path in present}
        return Merged(self._trees.write(tree, changes), settled)

    async def clean(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Merge commit `theirs` into commit `ours` as it is: the tree, and the paths in conflict (none: it is good)."""
        self._prepare()
        output = await self._merge_trees(ours, theirs)
        head, _, rest = output.stdout.partition(b"\0")
        stages = rest.partition(b"\0\0")[0] if output.code else b""
        paths = {conflict.path for conflict in _conflicts(stages)} if stages else ()
        return head.decode(), tuple(sorted(paths))

    async def _merge_trees(self, ours: str, theirs: str) -> Output:
        """What `git merge-tree` says; it writes objects, so it is run again where `written` would."""
        command = ("merge-tree", "--write-tree", "-z", "--allow-unrelated-histories", ours, theirs)
        for _ in range(ATTEMPTS - 1):
            with suppress(RepositoryError):
                return await git(self._scratch, *command, objects=self._objects, ok=(0, 1))
        return await git(self._scratch, *command, objects=self._objects, ok=(0, 1))

    def _prepare(self) -> None:
        """Make the scratch directory: the least that git takes for a repository."""
        if not (self._scratch / "HEAD").exists():
            (self._scratch / "refs").mkdir(parents=True, exist_ok=True)
            (self._scratch / "objects").mkdir(exist_ok=True)
            (self._scratch / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
            (self._scratch / "HEAD").write_text("ref: refs/heads/none\n")
        shallow, known = (folder / "shallow" for folder in (self._objects.parent, self._scratch))
        if _content(shallow) != _content(known):  # where a shallow clone's history ends, without which none is found
            known.write_bytes(_content(shallow))

    async def _settle(self, conflict: _Conflict, choose: Callable[[], Side]) -> tuple[bytes | None, int]:
        """The content that one conflicting path gets (None: deleted), and the number of choices that took."""
        ours, base, theirs = (
            self._trees.blob(version[0]) if version and version[1] in (FILE, EXECUTABLE) else None
            for version in (conflict.ours, conflict.base, conflict.theirs)
        )
        if conflict.plain and ours is not None and theirs is not None and b"\0" not in ours + theirs:
            return await self._merge_hunks(ours, base or b"", theirs, choose)
        return (ours if choose() == "ours" else theirs), 1

    async def _merge_hunks(
        self, ours: bytes, base: bytes, theirs: bytes, choose: Callable[[], Side]
    ) -> tuple[bytes, int]:
        size = _marker_size(ours, base, theirs)
        with _in_memory(ours, base, theirs) as (paths, descriptors):
            output = await git(
                self._scratch,
                *("merge-file", "-p", "-q", f"--marker-size={size}", *paths),
                pass_fds=descriptors,
                ok=range(128),
            )
        return _choose_hunks(output.stdout, size, choose), output.code


def _content(file: Path) -> bytes:
    """What is in a file, nothing where there is none."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _conflicts(stages: bytes) -> list[_Conflict]:
    r"""Parse `<mode> <id> <stage>\t<path>` records, three stages per path at most: 1 base, 2 ours, 3 theirs."""
    versions: dict[str, dict[int, tuple[str, int]]] = {}
    for record in stages.split(b"\0"):
        facts, _, path = record.partition(b"\t")
        mode, blob, stage = facts.decode().split()
        versions.setdefault(os.fsdecode(path), {})[int(stage)] = (blob, int(mode, 8))
    return [_Conflict(path, found.get(1), found.get(2), found.get(3)) for path, found in versions.items()]


def _refuse_other_kinds(messages: bytes) -> None:
    r"""Each message is `<number of paths>\0<path>...\0<type>\0<text>\0`."""
    fields = iter(messages.decode(errors="replace").split("\0"))
    for count in fields:
        if not count.strip():
            continue
        for _ in range(int(count)):
            next(fields)
        kind, text = next(fields), next(fields)
        if kind not in _SETTLED:
            raise MergeImpossibleError(f"cannot merge: {text.strip()}")


def _marker_size(*versions: bytes) -> int:
    """A length for conflict markers that no line of the versions begins with."""
    runs = (len(run) for version in versions for run in re.findall(rb"(?m)^(?:<+|=+|>+)", version))
    return max(7, *runs, 0) + 1


def _choose_hunks(text: bytes, size: int, choose: Callable[[], Side]) -> bytes:
    """Replace each conflict of a file with markers of `size` by the side that is chosen."""
    ours, middle, theirs = b"<" * size, b"=" * size, b">" * size
    result: list[bytes] = []
    sides: dict[Side, list[bytes]] = {"ours": [], "theirs": []}
    into = result
    for line in _lines(text):
        if line.startswith(ours):
            sides = {"ours": [], "theirs": []}
            into = sides["ours"]
        elif line.startswith(middle):
            into = sides["theirs"]
        elif line.startswith(theirs):
            result += sides[choose()]
            into = result
        else:
            into.append(line)
    return b"".join(result)


def _lines(text: bytes) -> list[bytes]:
    """Lines as Git sees them: only a line feed ends one."""
    return [line for line in re.split(rb"(?<=\n)", text) if line]


@contextmanager
def _in_memory(*versions: bytes) -> Iterator[tuple[list[str], Sequence[int]]]:
    """Versions as files that exist in memory only: candidates' code never touches the host's file system."""
    descriptors = [os.memfd_create("evogit-merge", 0) for _ in versions]
    try:
        for descriptor, version in zip(descriptors, versions, strict=True):
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(version)
        yield [f"/proc/self/fd/{descriptor}" for descriptor in descriptors], descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
