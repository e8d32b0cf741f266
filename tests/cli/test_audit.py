"""`evogit audit`, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.leaky_tasks import LEAKY
from tests.audit.sound_tasks import SOUND

from .conftest import Cli


def test_the_command_shows_the_candidate_the_line_and_the_remedy(cli: Cli, tmp_path: Path) -> None:
    LEAKY["coins_only_values"].write(tmp_path / "coins")
    done = cli("audit", "coins", "--only", "nothing")
    assert done.code == 1
    assert "answering an empty answer is accepted" in done.out
    assert "blame   evaluator/evaluate.py:10  yield Case(str(amount), score=len(paid))" in done.out
    assert "+    return type(honest(*args, **kwargs))()" in done.out
    assert "1 of 1 attack worked" in done.out


@pytest.mark.slow
def test_the_command_writes_files_and_data(cli: Cli, tmp_path: Path) -> None:
    LEAKY["coins_only_values"].write(tmp_path / "coins")
    done = cli("audit", "coins", "--only", "nothing", "--out", "found", "--json")
    (finding,) = done.json["findings"]
    assert (done.code, finding["attack"], finding["value"], finding["line"]) == (
        1,
        "nothing",
        0.0,
        "evaluator/evaluate.py:10",
    )
    assert b"_cheat" in (tmp_path / "found" / "nothing" / "seed" / "program.py").read_bytes()
    assert "+++ b/program.py" in (tmp_path / "found" / "nothing" / "candidate.diff").read_text()
    assert cli("audit", "coins", "--only", "nothing", "--out", "found").code == 4


@pytest.mark.slow
def test_the_command_is_content_with_what_holds(cli: Cli) -> None:
    done = cli("audit", "bin_packing", "--only", "nothing", "--only", "constant")
    assert (done.code, done.out.splitlines()[-1]) == (0, "no attack worked (2 tried)")


def test_the_attacks_are_listed(cli: Cli) -> None:
    listed = cli("audit", "--list").out
    assert "hard-coded" in listed
    assert "a model" in listed
    assert len(cli("audit", "--list", "--json").json["attacks"]) >= 30


@pytest.mark.slow
def test_check_says_when_a_timed_task_can_be_gamed(cli: Cli, tmp_path: Path) -> None:
    toml = LEAKY["timed_repeats"].write(tmp_path / "timed") / "task.toml"
    toml.write_text(toml.read_text().replace("[evaluator]\n", "[evaluator]\nrepeats = 2\n"))
    done = cli("check", "timed")
    assert done.code == 0
    assert "can be gamed: results kept in memory make later calls faster" in done.out
    SOUND["coins"].write(tmp_path / "coins")
    assert "try  evogit audit coins" in cli("check", "coins").out
