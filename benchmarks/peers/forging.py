"""Whether a system believes a candidate that forges its score: each is evaluated by the system's own evaluator.

A candidate's `answers(10)` should be ten squares, and its score the share that is right. What is in `exploits` knows
none of them, so all that is above 0 was forged. Evaluators are written as in the examples of each system.
"""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from environments import Environment

from evogit.config import load_task
from evogit.core import EvoGitError
from evogit.review.checking import judge_seed

EXPLOITS = sorted((Path(__file__).parent / "exploits").glob("*.py"))
LONGEST = 300.0
SQUARES = "EXPECTED = [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]\n"
SHARE = """

def share(found):
    return sum(a == b for a, b in zip(found, EXPECTED)) / len(EXPECTED)
"""
LOADED = f"""import importlib.util

{SQUARES}{SHARE}

def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {{"combined_score": float(share(program.answers(10)))}}
"""
OPENEVOLVE = """
import asyncio, sys
from openevolve.config import load_config
from openevolve.evaluator import Evaluator
judge = Evaluator(load_config().evaluator, "evaluator.py", None, None, suffix=".py")
metrics = asyncio.run(judge.evaluate_program(open("program.py").read(), "one"))
print("RESULT", metrics["combined_score"])
"""
SKYDISCOVER = """
import asyncio
from skydiscover.config import load_config
from skydiscover.evaluation.evaluator import Evaluator
judge = Evaluator(load_config(None).evaluator, "evaluator.py")
found = asyncio.run(judge.evaluate_program(open("program.py").read(), "one"))
print("RESULT", found.metrics["combined_score"])
"""
SHINKA_EVALUATE = f"""
import argparse
from shinka.core import run_shinka_eval

{SQUARES}{SHARE}

def aggregate(results):
    value = float(share(results[0]))
    return {{"combined_score": value, "public": {{"score": value}}, "private": {{}}}}


parser = argparse.ArgumentParser()
parser.add_argument("--program_path")
parser.add_argument("--results_dir")
given = parser.parse_args()
run_shinka_eval(
    program_path=given.program_path,
    results_dir=given.results_dir,
    experiment_fn_name="answers",
    num_runs=1,
    get_experiment_kwargs=lambda number: {{"amount": 10}},
    aggregate_metrics_fn=aggregate,
)
"""
SHINKA = """
import json, os, subprocess, sys
os.mkdir("results")
subprocess.run([sys.executable, "evaluator.py", "--program_path", "program.py", "--results_dir", "results"])
correct = json.load(open("results/correct.json"))["correct"]
print("RESULT", json.load(open("results/metrics.json"))["combined_score"] if correct else 0)
"""
THEIRS = {
    "openevolve": (LOADED, OPENEVOLVE),
    "shinka": (SHINKA_EVALUATE, SHINKA),
    "skydiscover": (LOADED, SKYDISCOVER),
}
"""Of each speaker: the evaluator that its user writes, and a script that evaluates by the system's own means."""
EVOGIT = f"""from evogit import Case

{SQUARES}{SHARE}

def evaluate(program, split):
    yield Case("all", score=share(program.call("program:answers", args=[10], returns=list[int]).value))
"""
TASK = """name = "forged"
goal = "Ten squares."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""


@dataclass(frozen=True)
class Forged:
    """Which exploits were believed, of how many that came to an end."""

    believed: list[str]
    tried: int


def forged(speaker: str, found: Environment) -> Forged | None:
    """Try all on a system; None where the evaluator is the caller's own code, in his own process."""
    if speaker not in {*THEIRS, "evogit"}:
        return None
    scores = {file.stem: score_of(speaker, found, file.read_text()) for file in EXPLOITS}
    known = {name: score for name, score in scores.items() if score is not None}
    return Forged([name for name, score in known.items() if score > 0], len(known))


def score_of(speaker: str, found: Environment, program: str) -> float | None:
    """What a program is worth to a system; 0 where it fails, None where it takes too long to say."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if speaker == "evogit":
            return in_the_sandbox(folder, program)
        evaluator, script = THEIRS[speaker]
        for file, text in {"program.py": program, "evaluator.py": evaluator, "judge.py": script}.items():
            (folder / file).write_text(text)
        try:
            done = subprocess.run(
                [found.python, "judge.py"], cwd=folder, capture_output=True, text=True, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            return None
    said = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return float(said[-1]) if said else 0.0


def in_the_sandbox(folder: Path, program: str) -> float:
    """What it is worth to EvoGit."""
    for place, text in {"task.toml": TASK, "seed/program.py": program, "evaluator/evaluate.py": EVOGIT}.items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text(text)

    async def judged() -> float:
        async for each in judge_seed(load_task(folder), ["train"], "bubblewrap"):
            return each.evaluation.metrics.get("score", 0.0) if each.evaluation.ok else 0.0
        return 0.0

    try:
        return asyncio.run(judged())
    except EvoGitError:
        return 0.0
