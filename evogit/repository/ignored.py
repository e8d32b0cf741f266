"""What Git ignores: by the patterns of a tree, without anything of the person's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import pygit2

from evogit.core import RepositoryError
from evogit.repository.git import git, passing, run_git
from evogit.repository.git_files import check_file

HERE = b"./"  # before a path that may begin with a colon, which would be magic to Git
LONGEST = 3.0  # seconds of CPU for it: patterns can be such that Git takes for ever over a few names
NONE = 1  # exit code of `git check-ignore` that found nothing to ignore


def ignored(paths: Collection[str], patterns: str, files: Mapping[str, bytes] | None = None) -> set[str]:
    """Return the paths that Git ignores by `patterns`, as in a `.gitignore` at the root; `files` are others by path.

    Raises GitTooLongError: the patterns take too long; RepositoryError: git fails, or the disk is full.
    """
    if not paths:
        return set()
    try:
        with tempfile.TemporaryDirectory(dir=passing()) as folder:
            top = Path(folder, "tree")
            git_dir = Path(pygit2.init_repository(folder, bare=True).path)
            (git_dir / "info" / "exclude").write_text(patterns + "\n", encoding="utf-8", errors="surrogateescape")
            top.mkdir()
            for path, content in (files or {}).items():
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_bytes(content)
            stdin = b"\0".join(HERE + os.fsencode(path) for path in paths)
            command = (f"--work-tree={top}", "check-ignore", "--no-index", "-z", "--stdin")
            done = run_git(git_dir, *command, stdin=stdin, ok=(0, NONE), seconds=LONGEST)
    except (OSError, pygit2.GitError) as error:
        raise RepositoryError(f"cannot look up what is ignored: {error}; make room") from error
    return {os.fsdecode(path.removeprefix(HERE)) for path in done.stdout.split(b"\0") if path}


async def tracked_below(git_dir: Path, folder: Path) -> list[str]:
    """Return sorted paths below `folder` that the index has or nothing ignores. Raises RepositoryError: Git fails."""
    check_file(folder / ".gitignore")
    where = ("-C", str(folder), f"--work-tree={folder}")
    listed = await git(git_dir, *where, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({os.fsdecode(path) for path in listed.stdout.split(b"\0") if path})
