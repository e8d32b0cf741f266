"""What a move of a mutator costs where evaluating costs nothing: selection, tuning, credit, edits, fingerprints, Git.

The program is the seed of circle_packing; it is scored in this process, by how near its named numbers are to some that
are better, so that the search goes on as a real one does: records get rarer, some candidates fail, steps are learned.
"""

from __future__ import annotations

import asyncio
import io
import math
import random
import re
import tarfile
from pathlib import Path

from engine import NullExecutor
from meter import Meter

from evogit.config import load_task
from evogit.config.run_settings import AgentSpec
from evogit.core import Evaluation, Evidence, Files
from evogit.repository import Repository
from evogit.run import Run, Settings

TASK = Path(__file__).parent.parent / "tasks" / "circle_packing"
NAMED = re.compile(rb"^([A-Z_]+) = (-?[0-9.e-]+)$", re.MULTILINE)
FAILING = 0.15
"""Share of candidates that crash."""
FIRST = 20
"""Candidates after which caches are warm."""


class Scorer(NullExecutor):
    """Scores a candidate at once by its named numbers; what else differs in it counts a little, by chance."""

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """The same for the same tree."""
        rng = random.Random(tree)
        if files.changed and rng.random() < FAILING:
            return Evaluation(status="crashed", reason="ValueError", split=split, key=f"{tree} {split}"), Evidence()
        score = sum(map(_nearness, NAMED.findall(_program(files.changed)))) + rng.gauss(0, 0.01)
        metrics = {"sum_radii": score, "of_bound": score / 3}
        cases = {f"n = {number}": {"sum_radii": score * rng.uniform(0.9, 1.1)} for number in (20, 26, 32)}
        evaluation = Evaluation(status="ok", metrics=metrics, cases=cases, split=split, key=f"{tree} {split}")
        return evaluation, Evidence(feedback={name: f"{case['sum_radii']:.4f}" for name, case in cases.items()})


def _nearness(named: tuple[bytes, bytes]) -> float:
    """0 to 0.2: how near a number is to the best one, which its name decides."""
    name, text = named
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return 0.2 * math.exp(-abs(value - random.Random(name).uniform(-1, 2)))


def _program(archive: bytes) -> bytes:
    """The changed program in an archive; nothing where it is that of the seed."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = [tar.extractfile(member) for member in tar.getmembers()]
        return b"\n".join(member.read() for member in members if member)


def work(folder: Path, *, candidates: int, agents: int = 2, window: int = 100, seed: int = 1) -> Meter:
    """Let mutators work; readings begin and end two windows, one as soon as caches are warm and one at the end."""
    meter = Meter([FIRST, FIRST + window, candidates - window, candidates])
    population = (AgentSpec("mutator", count=agents),)
    settings = Settings(population=population, evaluations=candidates, jobs=agents, seed=seed)
    repository = Repository.create(folder / "repository")
    run = Run(repository, load_task(TASK), "mutating", settings, meter, backend=Scorer())
    asyncio.run(run.evolve())
    return meter
