from __future__ import annotations

from pathlib import Path

import pytest

from evogit.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A new repository of EvoGit's own."""
    return Repository.create(tmp_path / "repo")
