"""`run --selector`: what it says when that is wrong, and that a run goes on with the one of its last start."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Cli


@pytest.fixture
def task(cli: Cli, tmp_path: Path) -> Path:
    """A new task, as `evogit new` writes it."""
    cli("new", "sine")
    return tmp_path / "sine"


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("", "no selector ''; available:\n  elitist"),
        ("weighted:\x1b[31m=3", "no option '\\x1b[31m'"),
        ("map-elites:worst=0..1/5", 'did you mean "worst_error"?'),
    ],
)
def test_a_wrong_selector_is_refused_before_anything_is_made(
    cli: Cli, task: Path, tmp_path: Path, selector: str, said: str
) -> None:
    refused = cli("run", "sine", "--evaluations", "3", "--selector", selector)
    assert refused.code == 2
    assert said in refused.err
    assert "\x1b" not in refused.err
    assert not (tmp_path / "evogit-sine").exists()


@pytest.mark.slow
def test_a_run_goes_on_with_the_selector_of_its_last_start(cli: Cli, task: Path, tmp_path: Path) -> None:
    mine = "from evogit.selection.weighted import Weighted\nclass Mine(Weighted): pass\n"
    (tmp_path / "mine.py").write_text(mine)
    assert cli("run", "sine", "--evaluations", "1", "--selector", "mine.py:Mine").code == 0
    assert cli("run", "sine", "--evaluations", "2", "--json").json["settings"]["selector"] == f"{tmp_path}/mine.py:Mine"
    folder = ("-C", "evogit-sine")
    assert "mine.py:Mine" in cli(*folder, "status").out
    assert "mine.py:Mine" in cli(*folder, "report").out
    (tmp_path / "mine.py").unlink()
    gone = cli("run", "sine", "--evaluations", "3")
    assert "the run's last start had this selector; name another with --selector" in gone.err
    back = cli("run", "sine", "--evaluations", "3", "--selector", "elitist", "--json")
    assert back.json["settings"]["selector"] == "elitist"
    assert "selector" not in cli(*folder, "status").out
