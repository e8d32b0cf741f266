from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from evogit.repository import Repository
from tests import plain_git

Git = Callable[..., str]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A new repository of EvoGit's own."""
    return Repository.create(tmp_path / "repo")


@pytest.fixture
def git(repository: Repository) -> Git:
    """The git command on that repository, strict about its exit code."""
    return partial(plain_git.git, repository.path)
