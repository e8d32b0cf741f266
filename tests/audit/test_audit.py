"""Leaky evaluators are exposed with a candidate that shows it; sound ones raise no alarm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evogit.audit.attack import Finding, audited
from evogit.audit.attacks import chosen
from evogit.audit.candidate import SEED
from evogit.audit.laboratory import SECOND, Laboratory, NoTimeError
from evogit.config import load_task
from evogit.content import content
from evogit.core import UsageError

from .small_tasks import LEAKY, SOUND

QUICK = ("coins_only_values", "same_holdout", "bench_inside")
"""Leaky tasks of the plain tests; all others take seconds."""


async def findings(folder: Path, *names: str, provider: str = "bubblewrap") -> list[Finding]:
    """Return the findings of these attacks, or of all if there are none."""
    async with Laboratory(load_task(folder), provider) as lab:
        return [finding async for result in audited(lab, chosen(names)) for finding in result.findings]


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LEAKY])
async def test_a_leak_is_found_by_its_attack(tmp_path: Path, name: str) -> None:
    small = LEAKY[name]
    (finding,) = await findings(small.write(tmp_path / "small"), small.attack)
    if finding.value is not None and finding.value != finding.seed and small.attack not in ("idle", "holdout"):
        assert (finding.value > finding.seed) == (small.direction == "maximize")
    assert finding.diff or small.attack in ("luck", "state")  # these need nothing but the seed
    assert finding.source in small.evaluate or finding.line.startswith("task.toml:")


@pytest.mark.parametrize("name", [n if n == "coins" else pytest.param(n, marks=pytest.mark.slow) for n in SOUND])
async def test_a_sound_evaluator_raises_no_alarm(tmp_path: Path, name: str) -> None:
    names = {"coins": ["nothing"], "timed": ["memo", "kept-on-disk", "hard-coded"]}.get(name, [])
    folder = SOUND[name].write(tmp_path / "small")
    assert [finding.what for finding in await findings(folder, *names)] == []


@pytest.mark.slow
async def test_a_program_outside_a_sandbox_reads_the_evaluator(tmp_path: Path) -> None:
    folder = SOUND["coins"].write(tmp_path / "small")
    assert len(await findings(folder, "reads-evaluator", provider="none")) == 1
    assert await findings(folder, "reads-evaluator") == []


@pytest.mark.slow
async def test_the_candidate_of_a_finding_reproduces_it(tmp_path: Path) -> None:
    (finding,) = await findings(LEAKY["coins_only_values"].write(tmp_path / "small"), "nothing")
    again = shutil.copytree(tmp_path / "small", tmp_path / "again")
    (again / "seed" / "program.py").write_bytes(finding.files["program.py"])
    async with Laboratory(load_task(again), "bubblewrap") as lab:
        assert lab.seed.evaluation.metrics == {"score": finding.value}


@pytest.mark.slow
async def test_equal_times_of_an_evaluator_that_measures_are_times() -> None:
    """The seed of `speedup` has exactly 1, because its evaluator cannot tell it from itself."""
    async with Laboratory(load_task(content("tasks") / "speedup"), "bubblewrap") as lab:
        assert lab.timed


async def test_an_audit_without_time_reports_it(tmp_path: Path) -> None:
    async with Laboratory(load_task(SOUND["coins"].write(tmp_path / "small")), "bubblewrap") as lab:
        outcomes = [result.outcome async for result in audited(lab, chosen(["memo", "scripts"]))]
        lab.until = 0.0
        with pytest.raises(NoTimeError):
            await lab.evaluate(SEED, anew=True)
        outcomes += [result.outcome async for result in audited(lab, chosen(["nothing"]))]
    assert outcomes == ["does not apply", "does not apply", "no time left"]


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a core of its own, and another one")
async def test_a_task_with_a_core_of_its_own_is_audited(tmp_path: Path) -> None:
    folder = SOUND["timed"].write(tmp_path / "small")
    with (folder / "task.toml").open("a") as toml:  # ends with [sandbox]
        toml.write("exclusive = true\n")
    before = os.sched_getaffinity(0)
    async with Laboratory(load_task(folder), "bubblewrap") as lab:
        trial = await lab.evaluate(SEED, secret=SECOND)  # in another evaluator than the seed before
        assert trial.evaluation.ok
    assert os.sched_getaffinity(0) == before


def test_attacks_are_chosen_by_name() -> None:
    assert [attack.name for attack in chosen(["memo", "model"])] == ["memo"]
    with pytest.raises(UsageError):
        chosen(["misspelt"])
