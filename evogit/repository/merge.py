"""Merges with `git merge-tree`. Conflicts about names are merged path by path (docs/design/merging.md)."""

from __future__ import annotations

import os
import select
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from pathlib import Path

import pygit2
from msgspec import Struct, field
from msgspec.structs import replace

from evogit.core import RepositoryError
from evogit.repository.commit_writer import loose_objects, raw_commit
from evogit.repository.conflicts import (
    SHORTEST_MARKER,
    Choose,
    Conflict,
    Kind,
    MergeImpossibleError,
    Settlement,
    Settler,
    Version,
    choose_hunks,
    ends_of,
    marked_hunks,
    marker_size,
    merge_hunks,
    of_stages,
    path_by_path,
)
from evogit.repository.diff_limits import is_quick, merge_room
from evogit.repository.faults import ATTEMPTS, WAIT_FOR_ROOM, found_tree
from evogit.repository.git import GitTooLongError, Output, environment, git_command, held_folder, run_git
from evogit.repository.state_folder import StateFolder
from evogit.repository.trees import Trees
from evogit.subprocesses import DEVNULL, PIPE, Popen, start

_BY_PATH = {"Auto-merging", "CONFLICT (contents)", "CONFLICT (modify/delete)", "CONFLICT (binary)"}
"""Kinds of messages of `git merge-tree` after which each path can be settled for itself."""

MOST_DRAFTS = 1_000  # merges that are remembered before their conflicts are settled

CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\twarnAmbiguousRefs = false\n"
"""The last line keeps Git from looking, by a dozen questions to the system, for refs called like a commit."""

LEAST = {"config": CONFIG, "HEAD": "ref: refs/heads/none\n"}
"""The files that make a folder with `refs` a repository to Git."""

LONGEST_MARKER = 1000  # characters; a text with longer ones is taken for binary


class UnsettledMerge(Struct, frozen=True):
    """A merge before its conflicts are settled; `remark` is Git's about a conflict of names or kinds of files."""

    tree: str
    conflicts: tuple[Conflict, ...] = ()
    entries: Mapping[str, Version | None] = field(default_factory=dict)
    remark: str = ""

    @property
    def unsettled(self) -> list[str]:
        """What Git alone cannot merge: paths, or its remark where names alone are in conflict; empty if all is well."""
        paths = [conflict.path for conflict in self.conflicts]
        return paths or [self.remark] * bool(self.remark)


class Merged(Struct, frozen=True):
    """A merged tree, and how what was in conflict was settled to get it."""

    tree: str
    settled: tuple[Settlement, ...] = ()

    @property
    def conflicts(self) -> int:
        """How many decisions that took: hunks, definitions or whole paths."""
        return sum(each.count for each in self.settled)


class Merger:
    """Merges in a scratch Git directory that shares the repository's objects and none of its settings."""

    def __init__(self, state: StateFolder, repo: pygit2.Repository, trees: Trees) -> None:
        self._state = state.below("scratch")
        self._drafts: dict[tuple[str | None, str, str], UnsettledMerge] = {}
        self._repo = repo
        self._trees = trees

    # --- drafts -------------------------------------------------------------------------------------------------

    def draft(self, base: str | None, ours: str, theirs: str) -> UnsettledMerge:
        """Apply what leads from the tree `base` (None: nothing) to the tree `theirs` to the tree `ours`, as Git can.

        A merge of late is remembered. Git is given two commits of `ours` and `theirs` whose one parent is a commit of
        `base`, outside of the repository: what it makes follows from three trees alone, and takes no longer where
        lines of candidates crossed many times. Git before 2.40 takes no other word for a base.
        """
        if (base, ours, theirs) not in self._drafts:
            if len(self._drafts) >= MOST_DRAFTS:
                self._drafts = {}
            self._drafts[base, ours, theirs] = self._draft(base, ours, theirs)
        return self._drafts[base, ours, theirs]

    def _draft(self, base: str | None, ours: str, theirs: str) -> UnsettledMerge:
        for tree in filter(None, (base, ours, theirs)):
            found_tree(self._repo, tree)  # Git takes one that it cannot read for an empty one
        if not is_quick(self._trees, base, ours, theirs):
            draft = self._path_by_path((base, ours, theirs), "")
            return replace(draft, conflicts=tuple(replace(each, whole=True) for each in draft.conflicts))
        while True:
            try:
                draft = self._by_git(base, ours, theirs)
                return self._path_by_path((base, ours, theirs), draft.remark) if draft.remark else draft
            except RepositoryError as error:
                if not WAIT_FOR_ROOM.get()(error):
                    raise

    def _by_git(self, base: str | None, ours: str, theirs: str) -> UnsettledMerge:
        try:
            parents = [_passing_commit(self._commits, base)] if base else []
            one, other = (_passing_commit(self._commits, tree, *parents) for tree in (ours, theirs))
        except (OSError, pygit2.GitError) as error:
            raise RepositoryError(f"cannot write to {self._state.path}: {error}; make room, then run again") from error
        output = self._git.merge(one, other, ours)
        head, _, rest = output.stdout.partition(b"\0")
        if not head:
            raise RepositoryError(f"cannot merge {theirs[:7]} into {ours[:7]}: {output.stderr[:500]}")
        tree = head.decode()
        if output.code == 0:
            return UnsettledMerge(tree)
        stages, _, messages = rest.partition(b"\0\0")
        conflicts, remark = of_stages(stages), _other_kind(messages)
        if not remark:
            conflicts = [replace(each, marked=self._marked(tree, each)) for each in conflicts]
        return UnsettledMerge(tree, tuple(conflicts), remark=remark)

    def _marked(self, tree: str, conflict: Conflict) -> str:
        """The blob of a text that Git merged as far as it could; empty where it is no text, or not to be told apart."""
        texts = self.texts(conflict)
        if texts is None or marker_size(texts[0], texts[2]) > SHORTEST_MARKER + 1:
            return ""
        return str(found_tree(self._repo, tree)[conflict.path].id)

    def _path_by_path(self, trees: Sequence[str | None], remark: str) -> UnsettledMerge:
        changes, conflicts = path_by_path(*(self._trees.entries(tree) if tree else () for tree in trees))
        return UnsettledMerge(trees[1] or "", tuple(conflicts), changes, remark)

    @cached_property
    def _scratch(self) -> Path:
        """A repository of our own: Git would obey another one's configuration, where a merge driver is a command."""
        stack = ExitStack()
        with self._state.opened(make=True):
            folder = stack.enter_context(held_folder(self._state.path, "merge-"))
        weakref.finalize(self, _close, stack, os.getpid())
        (folder / "objects").mkdir()
        (folder / "refs").mkdir()
        for name, text in LEAST.items():
            (folder / name).write_text(text)
        return folder

    @cached_property
    def _commits(self) -> pygit2.Odb:
        return loose_objects(self._scratch / "objects")

    @cached_property
    def _git(self) -> MergeTree:
        return MergeTree(self._scratch, self._state.common / "objects")

    # --- settling -----------------------------------------------------------------------------------------------

    def merge(self, draft: UnsettledMerge, settle: Settler) -> Merged:
        """The tree of a draft whose conflicts `settle` settles in order. Raises MergeImpossibleError."""
        settled: list[Settlement] = []
        if draft.remark:
            settled.append(Settlement("", "rename", "each path as its side has it", int(not draft.conflicts), {}))
        for conflict in draft.conflicts:
            conflict.check()
            settled.append(settle(conflict))
        entries = {path: version for each in settled for path, version in each.entries.items()}
        tree = self._trees.with_entries(draft.tree, {**draft.entries, **entries})
        return Merged(tree, tuple(settled))

    def settle(self, conflict: Conflict, choose: Choose, how: str) -> Settlement:
        """Settle one conflict by asking `choose`: hunk by hunk where both sides are text, else once for the whole."""
        files = self.texts(conflict)
        if files is None:
            kind: Kind = "binary" if conflict.files else "deleted"
            if conflict.paths != {conflict.path}:
                kind = "folder"
            return Settlement(conflict.path, kind, how, 1, conflict.taken(choose()))
        ours, base, theirs = files
        if conflict.marked:
            text = self._trees.blob(conflict.marked)
            content, count = choose_hunks(text, SHORTEST_MARKER, choose, ends_of(ours, theirs))
        else:
            content, count = merge_hunks(self._scratch, ours, base, theirs, choose)
        return self.settled(conflict, content, count, choose, how)

    def settled(self, conflict: Conflict, content: bytes, count: int, choose: Choose, how: str) -> Settlement:
        """Put `content` in the place of a file in conflict; `choose` is asked for a mode that is in conflict, too."""
        mode = _merged_mode(conflict)
        kind: Kind = "lines" if count else "mode"
        if mode is None:
            chosen = conflict.ours if choose() == "ours" else conflict.theirs
            mode, count = chosen[conflict.path].mode, count + 1
        version = Version(mode, self._trees.write_blob(content))
        return Settlement(conflict.path, kind, how, max(count, 1), {conflict.path: version})

    def texts(self, conflict: Conflict) -> tuple[bytes, bytes, bytes] | None:
        """Ours, base (nothing where it has none) and theirs, where both sides have a text of some size at the path."""
        files, base = conflict.files, conflict.base.get(conflict.path)
        if files is None or conflict.whole:
            return None
        blob, (mine, other) = base.blob if base else "", (version.blob for version in files)
        if not merge_room(self._trees).takes((blob, mine), (blob, other)):
            return None
        ours, theirs = self._trees.blob(mine), self._trees.blob(other)
        old = self._trees.blob(blob) if base else b""
        text = b"\0" not in ours + old + theirs and marker_size(ours, old, theirs) <= LONGEST_MARKER
        return (ours, old, theirs) if text else None

    def marked(self, texts: tuple[bytes, bytes, bytes]) -> tuple[bytes, int]:
        """The text with its conflicts between markers, and how many characters a marker has."""
        size = marker_size(*texts)
        return marked_hunks(self._scratch, *texts, size), size


def _close(stack: ExitStack, owner: int) -> None:
    if os.getpid() == owner:  # a fork of the process ends earlier
        stack.close()


def _passing_commit(odb: pygit2.Odb, tree: str, *parents: str) -> str:
    """Write a commit that says nothing but its tree and parents; one that is there counts as new."""
    text = raw_commit("evogit <evogit@evogit.invalid> 0 +0000", "", tree, parents)
    return str(odb.write(pygit2.enums.ObjectType.COMMIT, text))


def _other_kind(messages: bytes) -> str:
    r"""The first message about more than single paths; each is `<number of paths>\0<path>...\0<type>\0<text>\0`."""
    fields = iter(messages.decode(errors="replace").split("\0"))
    for count in fields:
        if not count.strip():
            continue
        for _ in range(int(count)):
            next(fields)
        kind, text = next(fields), next(fields)
        if kind not in _BY_PATH:
            return text.strip()
    return ""


def _merged_mode(conflict: Conflict) -> int | None:
    """The mode of a file that both sides have: that of the side that changed it; None where they differ otherwise."""
    ours, theirs = (side[conflict.path].mode for side in (conflict.ours, conflict.theirs))
    base = conflict.base.get(conflict.path)
    if ours == theirs or (base and theirs == base.mode):
        return ours
    return theirs if base and ours == base.mode else None


MERGE_TREE = ("merge-tree", "--allow-unrelated-histories")

LONGEST = 2.0
"""Seconds that an answer may take, wall clock; the process is given up after it, as one that went wrong is. What could
take so long is not asked (`merge_sizes`): this is for a Git that hangs."""

MOST_ANSWERS = 2_000  # merges after which the process is replaced, as Git remembers every object that it read


class MergeTree:
    """Merges commits in `git_dir` by one resident process (Git 2.39 and newer), else by a process for each merge."""

    def __init__(self, git_dir: Path, objects: Path) -> None:
        self._git_dir, self._objects, self._elsewhere = git_dir, objects, git_dir / "objects"
        self._resident: _Resident | None = None
        self._is_able = True

    def merge(self, ours: str, theirs: str, tree: str) -> Output:
        """Merge two commits; `tree` is that of `ours`. Raises MergeImpossibleError: too slow; RepositoryError."""
        if self._is_able:
            try:
                resident = self._resident
                if resident is None or resident.answers >= MOST_ANSWERS or resident.owner != os.getpid():
                    self.forget()
                    resident = _Resident(environment(self._git_dir, self._objects, self._elsewhere))
                    self._resident = resident
                return resident.ask(ours, theirs, tree)
            except TimeoutError as error:
                self.forget()
                raise MergeImpossibleError(f"Git needs more than {LONGEST:.0f} s to merge them") from error
            except (OSError, EOFError, ValueError):
                self._is_able = self.forget() > 0
        command = (*MERGE_TREE, "--write-tree", "-z", ours, theirs)  # by a process of its own
        run = partial(run_git, self._git_dir, *command, objects=self._objects, elsewhere=self._elsewhere, ok=(0, 1))
        for attempt in range(1, ATTEMPTS + 1):  # as often as `written` would try
            try:
                return run(seconds=LONGEST)
            except GitTooLongError as error:
                raise MergeImpossibleError(str(error)) from error
            except RepositoryError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the loop ends by an answer or an error")

    def forget(self) -> int:
        """End the process; what it knows of the repository may be out of date. Says how many answers it gave."""
        resident, self._resident = self._resident, None
        if resident is None:
            return 0
        resident.end()
        return resident.answers


class _Resident:
    """One `git merge-tree --stdin`. A second question follows each: Git keeps the last answer back."""

    def __init__(self, surroundings: Mapping[str, str]) -> None:
        command = git_command(*MERGE_TREE, "--stdin", "--messages")
        self._process = start(command, env=surroundings, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, bufsize=0)
        self.owner = os.getpid()
        self.answers = 0
        self.end = weakref.finalize(self, _end, self._process)

    def ask(self, ours: str, theirs: str, tree: str) -> Output:
        assert self._process.stdin  # as it was opened
        self._process.stdin.write(f"{ours} {theirs}\n{ours} {ours}\n".encode())
        status, _, said = self._answer(f"\0001\0{tree}\0\0".encode()).partition(b"\0")
        if status not in (b"0", b"1"):
            raise ValueError(f"expected how a merge ended, got {status[:100]!r}")
        self.answers += 1
        return Output(int(status == b"0"), said, "")

    def _answer(self, known: bytes) -> bytes:
        """What is said before the `known` answer; the end of the last one, zeros, is still there at the beginning."""
        assert self._process.stdout  # as it was opened
        descriptor = self._process.stdout.fileno()
        answer = bytearray()
        until = time.monotonic() + LONGEST
        while True:
            if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            if not (part := os.read(descriptor, 1 << 16)):
                raise EOFError
            answer += part
            whole = bytes(answer).strip(b"\0") + b"\0\0"
            if len(whole) > len(known) and whole.endswith(known):
                return whole.removesuffix(known)


def _end(process: Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe.close()  # type: ignore[union-attr]  # both were opened
    process.kill()
    process.wait()
