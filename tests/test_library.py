"""The page for those who use EvoGit as a library is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import evogit

PAGE = Path(__file__).parent.parent / "docs" / "library.md"


def test_everything_that_is_offered_can_be_had() -> None:
    assert all(getattr(evogit, name).__name__ == name for name in evogit.__all__)
    assert "no attribute 'Nothing'" in str(_error("Nothing"))


def _error(name: str) -> Exception:
    try:
        getattr(evogit, name)
    except AttributeError as error:
        return error
    raise AssertionError(f"evogit.{name} is there")


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "evaluations 6" in lines
    assert len(lines[lines.index("evaluations 6") + 1 :]) == 6


def test_what_the_page_names_is_offered_or_there() -> None:
    text = PAGE.read_text()
    (imported,) = re.findall(r"from evogit import (.*)", text)
    assert set(imported.split(", ")) <= set(evogit.__all__)
    paths = re.findall(r"`(evogit/[a-z_/]+\.py)`", text)
    assert all((PAGE.parent.parent / path).is_file() for path in paths)
