from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.repository import Repository

Git = Callable[..., str]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A new repository of EvoGit's own."""
    return Repository.create(tmp_path / "repo")


@pytest.fixture
def git(repository: Repository) -> Git:
    """The git command on that repository, strict about its exit code."""

    def run(*arguments: str, input: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments],
            cwd=repository.path,
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
