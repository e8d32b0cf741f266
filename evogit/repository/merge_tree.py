"""`git merge-tree`, kept running: a merge of two commits costs a question to it, not a process of its own."""

from __future__ import annotations

import os
import select
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from evogit.core import RepositoryError
from evogit.repository.conflicts import MergeImpossibleError
from evogit.repository.faults import ATTEMPTS
from evogit.repository.git import GitTooLongError, Output, environment, git_command, run_git
from evogit.subprocesses import DEVNULL, PIPE, Popen, start

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
