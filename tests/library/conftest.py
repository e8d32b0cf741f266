from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import PROGRAM


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a seed, in which the test is; the list of a person's runs is there, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (work := tmp_path / "work").mkdir()
    (work / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(work)
    return work
