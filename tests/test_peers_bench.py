"""`benchmarks/peers`: the gate counts and refuses, the model gives all the same edit, systems run through both."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"
GEARS = PEERS / "landscapes" / "gears"
PROGRAM = (GEARS / "program.py").read_text()
QUESTIONS = {
    "plain": f"Program:\n```python\n{PROGRAM}```\n",
    "openevolve": f"- Fitness: 0.4139\n# Current Program\n```python\n{PROGRAM}\n```\n# Task\nUse SEARCH/REPLACE.",
    "shinka": f"# Current program\n\n```python\n{PROGRAM}```\nRewrite the program.",
    "skydiscover": f"# Current Program\n\n```python\n{PROGRAM}\n```\nUse SEARCH/REPLACE blocks.",
    "gepa": f"## Current Component\n\n```\n{PROGRAM}```\n\n## Evaluation Results\n",
    "evogit": f"File program.py:\n```\n{PROGRAM}```\n",
}


@contextmanager
def served(script: str) -> Iterator[str]:
    with subprocess.Popen([sys.executable, PEERS / script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def ask(url: str, **body: object) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_the_gate_scores_as_often_as_was_agreed() -> None:
    with served("gate.py") as gate:
        ask(f"{gate}/open", run="one", budget=3, python=sys.executable, kind="landscape", folder=str(GEARS))
        seed = ask(f"{gate}/evaluate", run="one", text=PROGRAM)
        assert seed["ok"]
        assert seed["feedback"].startswith("weakest part: ratio")
        ask(f"{gate}/evaluate", run="one", text=f"# the same\n{PROGRAM}")
        assert not ask(f"{gate}/evaluate", run="one", text="no Python at all")["ok"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(f"{gate}/evaluate", run="one", text=PROGRAM)
        refused.value.close()
        assert refused.value.code == 410
        told = ask(f"{gate}/run", run="one")["evaluated"]
    assert [(each["ok"], each["duplicate"]) for each in told] == [(True, False), (True, True), (False, False)]
    assert told[0]["score"] == seed["score"]


def test_the_model_makes_the_same_edit_whoever_asks() -> None:
    changed = {}
    with served("model.py") as model:
        for system, question in QUESTIONS.items():
            ask(f"{model}/open", run=system, seed=7, kind="blind")
            url = f"{model}/{system}/{system}/v1/chat/completions"
            replies = [ask(url, messages=[{"role": "user", "content": question}]) for _ in range(5)]
            texts = [reply["choices"][0]["message"]["content"] for reply in replies]
            changed[system] = [
                [line for line in text.splitlines() if " = " in line and "->" not in line][:6] for text in texts
            ]
            assert ask(f"{model}/run", run=system)["unread"] == 0
    whole = changed["plain"]
    assert changed["shinka"] == changed["gepa"] == whole
    for system in ("openevolve", "skydiscover", "evogit"):
        for lines, program in zip(changed[system], whole, strict=True):
            assert {line for line in program if line not in PROGRAM} <= set(lines)


def test_who_reads_does_not_repeat_what_it_is_told_has_failed() -> None:
    failed = "\n".join(
        f"- 0000{n:03} FIRST_DRIVER = 20 -> FIRST_DRIVER = {n}: 0.3 (worse, -0.1)" for n in range(21, 24)
    )
    with served("model.py") as model:
        ask(f"{model}/open", run="one", seed=7, kind="reading")
        url = f"{model}/evogit/one/v1/chat/completions"
        message = {"role": "user", "content": f"{QUESTIONS['evogit']}\n```\n{failed}\n```\n"}
        replies = [ask(url, messages=[message])["choices"][0]["message"]["content"] for _ in range(30)]
        assert ask(f"{model}/run", run="one")["told"] == 30
    moves = [line.split(" = ")[1] for text in replies for line in text.splitlines() if line.startswith("FIRST_DRIVER")]
    assert moves
    assert all(float(value) <= 20 for value in moves)


def bench(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    limits = ["--tasks", "gears", "--seeds", "1", "--no-trials", "--results", str(folder / "peers.jsonl")]
    command = [sys.executable, str(PEERS), *limits, "--scratch", str(folder), *options]
    environment = {**os.environ, "PEERS_EXAMPLES": ""}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_hill_climbing_runs_through_both(tmp_path: Path) -> None:
    done = bench(tmp_path, "--systems", "hill-climbing", "--kinds", "blind", "--budget", "4")
    assert done.returncode == 0, done.stderr
    assert "1 runs of 4 evaluations" in done.stdout
    assert "examples of the peers" in done.stderr


@pytest.mark.slow
def test_evogit_runs_through_both(tmp_path: Path) -> None:
    done = bench(tmp_path, "--systems", "evogit-1", "hill-climbing", "--kinds", "reading", "--budget", "6")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "peers.jsonl").read_text().splitlines()
    outcomes = {line["outcome"]["system"]: line["outcome"] for line in map(json.loads, lines)}
    assert len(outcomes["evogit-1"]["scores"]) == len(outcomes["hill-climbing"]["scores"]) == 6
    asked = outcomes["evogit-1"]["asked"]
    assert asked["told"] == asked["questions"] > 0
    assert "| evogit-1 | hill climbing |" in done.stdout
