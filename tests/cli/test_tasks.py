"""`tasks`, `new`, `check`, `doctor` on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import TOML, write_task

from .conftest import Cli


def test_tasks_lists_the_gallery_with_values(cli: Cli) -> None:
    (circle,) = [line for line in cli("tasks").out.splitlines() if line.startswith("circle_packing")]
    assert circle.split()[1:5] == ["sum_radii", "higher", "0.9598", "2.6360"]
    assert "Improve `packing.py`" in circle
    assert "circle_packing" in {task["task"] for task in cli("tasks", "--json").json["tasks"]}


def test_a_new_task_is_accepted_by_check_at_once(cli: Cli, tmp_path: Path) -> None:
    assert cli("new", "my_task", "--at", "there").code == 0
    done = cli("check", "there", "--json")
    assert done.json["problems"] == []
    assert [(each["split"], each["status"]) for each in done.json["splits"]] == [
        ("smoke", "ok"),
        ("train", "ok"),
        ("holdout", "ok"),
    ]
    assert 'name = "my_task"' in (tmp_path / "there" / "task.toml").read_text()


def test_new_overwrites_nothing_and_wants_a_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    assert cli("new", "mine").code == 4
    assert cli("new", "No/Name").code == 2
    assert cli("new", "bin_packing").code == 4  # `evogit run bin_packing` would evolve the gallery's
    assert [path.name for path in tmp_path.iterdir() if path.name != ".local"] == ["mine"]


@pytest.mark.slow
def test_check_says_what_is_wrong_with_seed_and_baseline(cli: Cli, tmp_path: Path) -> None:
    cli("new", "wrong")
    seed = tmp_path / "wrong" / "seed" / "solution.py"
    seed.write_text(seed.read_text().replace("HEIGHT = 1.0", "HEIGHT = 0.9"))
    done = cli("check", "wrong", "--split", "train")
    assert done.code == 1
    assert (
        "worst_error.baseline is 0.0559612, but the seed measures 0.0999305 on train; write that into wrong/task.toml"
        in done.out
    )
    seed.write_text("def sines(xs):\n    raise RuntimeError('not ready')\n")
    done = cli("check", "wrong", "--split", "train")
    assert done.code == 1
    assert "train: the seed fails (crashed)" in done.out
    assert "not ready" in done.out


NOISY = """
import random
from pathlib import Path
from evogit import Case

def evaluate(program, split, rng):
    seen = Path(__file__).with_name("seen")
    times = len(seen.read_text()) if seen.exists() else 0
    seen.write_text("x" * (times + 1))
    yield Case("one", score=DRAW)
"""


@pytest.mark.slow
def test_check_finds_noise_of_which_the_task_says_nothing(cli: Cli, tmp_path: Path) -> None:
    toml = TOML.replace('splits = ["smoke", "train", "holdout"]', 'splits = ["train"]').replace("gate.smoke", "# gate")
    write_task(tmp_path / "noisy", evaluate=NOISY.replace("DRAW", "1.0 + times"), toml=toml)
    done = cli("check", "noisy")
    assert done.code == 1
    assert "score of the seed was 1 to 3 in 3 evaluations, 100 % apart, so scores are noisy: set repeats" in done.out
    write_task(tmp_path / "drawn", evaluate=NOISY.replace("DRAW", "rng.random()"), toml=toml)
    assert cli("check", "drawn").code == 0, "the same draws give the same"


@pytest.mark.slow
def test_check_takes_a_baseline_within_the_noise_for_right(cli: Cli, tmp_path: Path) -> None:
    toml = TOML.replace('splits = ["smoke", "train", "holdout"]', 'splits = ["train"]\nrepeats = 3')
    toml = toml.replace("gate.smoke", "# gate").replace("best_known = 0", "baseline = 1.01")
    evaluate = NOISY.replace("DRAW", "(0.98, 1.02, 1.0, 1.0)[times]")
    assert cli("check", write_task(tmp_path / "near", evaluate=evaluate, toml=toml)).code == 0
    done = cli("check", write_task(tmp_path / "far", evaluate=evaluate, toml=toml.replace("1.01", "1.2")))
    assert done.code == 1
    assert "but the seed measures 1 on train, give or take 0.02" in done.out


def test_doctor_looks_at_everything(cli: Cli) -> None:
    checks = {check["what"]: check["level"] for check in cli("doctor", "--json").json["checks"]}
    assert {"Python", "Git", "sandbox", "isolation", "disk", "repository"} <= set(checks)
    assert "fail" not in checks.values()


def test_doctor_without_git_says_what_to_install(cli: Cli) -> None:
    done = cli("doctor", PATH="/nonexistent")
    assert done.code == 1
    assert "install git" in done.out


def test_an_unknown_task_is_not_found_with_the_nearest_name(cli: Cli) -> None:
    done = cli("check", "circle_paking")
    assert done.code == 3
    assert 'did you mean "circle_packing"?' in done.err


def test_doctor_fails_where_the_named_repository_is_none(cli: Cli, tmp_path: Path) -> None:
    done = cli("doctor", "-C", tmp_path)
    assert done.code == 1
    assert "fail" in done.out
