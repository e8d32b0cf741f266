"""`evogit verify`: what is on record is evaluated again, and holds or does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evogit.evaluation import evaluator as evaluators
from tests.conftest import TOML, write_task

from .conftest import Cli

NOISY = """\
import os
from evogit import Case

def evaluate(program, split):
    y = program.call("program:value", args=[1], returns=float).value
    yield Case("one", score=-abs(y - 20) + os.urandom(1)[0] / 256)
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tiny")


def run(cli: Cli, task: Path, *limits: str) -> None:
    done = cli("-C", "repo", "run", str(task), *limits, "--sandbox", "none", "-j", "1")
    assert done.code == 0, done.err


@pytest.mark.slow
def test_an_exact_score_holds_until_what_judges_changes(cli: Cli, task: Path) -> None:
    run(cli, task, "--evaluations", "6", "--deterministic")
    asked = ("-C", "repo", "verify", "best", "seed", "--task", str(task), "--sandbox", "none")
    shown = cli(*asked)
    assert shown.out.count("holds") == 4, "each on train and on the holdout"
    evaluator = task / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text().replace("y - 20", "y - 21"))
    done = cli(*asked, "--json")
    found = done.json
    assert (done.code, found["holds"]) == (1, False)
    assert "score was" in found["verified"][0]["against"][0]
    assert "the evaluator has changed" in found["verified"][0]["differs"][0]
    assert "the task changed" in done.err


CROWDED = """\
import os, subprocess
from pathlib import Path
from evogit import Case

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

def evaluate(program, split):
    burn = ["sh", "-c", "while :; do :; done"]
    hogs = [subprocess.Popen(burn, start_new_session=True) for _ in range(14 if Path(BUSY).exists() else 0)]
    try:
        yield Case("one", score=program.call("program:value", [1], timeout="2s", returns=float).value)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
"""


@pytest.mark.slow
def test_a_busy_machine_does_not_speak_against_a_claim(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluators, "LATER", (0.01, 0.01))  # this machine may be busy for long
    busy = tmp_path / "busy"
    program = "import time\n\ndef value(x):\n    while time.process_time() < 0.3:\n        pass\n    return 1.0\n"
    task = write_task(tmp_path / "tiny", evaluate=CROWDED.replace("BUSY", repr(str(busy))), program=program)
    run(cli, task, "--evaluations", "1")
    busy.touch()
    done = cli("-C", "repo", "verify", "seed", "--task", str(task), "--sandbox", "none", "--json")
    assert done.code == 1
    found = [(each["under_load"], each["again"]["status"]) for each in done.json["verified"]]
    assert found == [(True, "not-measured")] * 2, "on train and on the holdout"


@pytest.mark.slow
def test_a_noisy_score_holds_within_the_noise_and_is_shown_with_it_everywhere(cli: Cli, tmp_path: Path) -> None:
    toml = TOML.replace('splits = ["smoke", "train", "holdout"]', 'splits = ["train", "holdout"]\nrepeats = 3')
    task = write_task(tmp_path / "noisy", evaluate=NOISY, toml=toml.replace('gate.smoke = "score > -1e9"\n', ""))
    run(cli, task, "--evaluations", "6")
    tries = (cli("-C", "repo", "verify", "--task", str(task), "--sandbox", "none") for _ in range(4))
    shown = next((each for each in tries if "on train: holds" in each.out), None)  # one in twenty misses by chance
    assert shown
    for command in ("status", "log", "graph", "report"):
        assert "±" in cli("-C", "repo", command).out, command
    found = cli("-C", "repo", "status", "--json").json
    low, high = found["best"]["interval"]
    assert low < found["best"]["metrics"]["score"] < high
    assert found["repeated"] >= 3


DRAWS = """\
from evogit import Case

def evaluate(program, split, rng):
    y = program.call("program:value", args=[1], returns=float).value
    yield Case("one", score=rng.random() - abs(y - 20))
"""


@pytest.mark.slow
def test_drawn_inputs_repeat_for_whoever_has_the_secret_of_the_run(cli: Cli, tmp_path: Path) -> None:
    task = write_task(tmp_path / "draws", evaluate=DRAWS)
    run(cli, task, "--evaluations", "4", "--deterministic")
    asked = ("-C", "repo", "verify", "best", "seed", "--task", str(task), "--sandbox", "none")
    assert cli(*asked).out.count("holds") == 4
    keys, apart = tmp_path / "repo" / ".git" / "evogit" / "keys", tmp_path / "keys"
    keys.rename(apart)
    for command in (asked, ("-C", "repo", "run", str(task), "--evaluations", "6", "--sandbox", "none")):
        done = cli(*command)
        assert (done.code, "copy evogit/keys/" in done.err) == (4, True)
    apart.rename(keys)
    run(cli, task, "--evaluations", "6")
    assert cli(*asked).out.count("holds") == 4


@pytest.mark.slow
def test_any_candidate_can_be_seen_on_the_holdout(cli: Cli, task: Path) -> None:
    run(cli, task, "--evaluations", "6", "--deterministic")
    known = cli("-C", "repo", "log", "--json").out.splitlines()
    other = next(each for each in map(json.loads, known) if each["score"] is not None and not each["best"])
    asked = ("-C", "repo", "verify", other["commit"], "--task", str(task), "--sandbox", "none")
    done = cli(*asked, "--json")
    assert (done.code, done.json["holds"]) == (0, True)
    train, holdout = done.json["verified"]
    assert (train["split"], train["recorded"]["metrics"]) == ("train", train["again"]["metrics"])
    assert (holdout["split"], holdout["recorded"]) == ("holdout", None)
    assert holdout["again"]["metrics"].keys() == {"score"}
    assert "on holdout" in cli(*asked).out


def test_there_must_be_something_to_verify(cli: Cli, tmp_path: Path) -> None:
    done = cli("-C", str(tmp_path), "verify")
    assert (done.code, "Git repository" in done.err) == (3, True), done.err
