"""What Git would track of a folder, whether it is a checkout or not."""

from __future__ import annotations

import os
from pathlib import Path

from evogit.repository.git import git
from evogit.repository.git_files import check_ignores


async def tracked_below(git_dir: Path, folder: Path) -> list[str]:
    """Paths below `folder` that are in the repository's index or that no `.gitignore` there excludes, sorted.

    They use forward slashes and are relative to the folder, which is taken for the root of a checkout. Some may be
    gone, or no files. No index is written.

    Raises:
        RepositoryError: when git cannot look at it.
    """
    check_ignores(folder)
    where = ("-C", str(folder), f"--work-tree={folder}")
    listed = await git(git_dir, *where, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({os.fsdecode(path) for path in listed.stdout.split(b"\0") if path})
