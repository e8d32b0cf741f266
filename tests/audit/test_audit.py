"""Leaky evaluators are found out with a candidate that shows it; sound ones are left in peace."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evogit.audit.auditing import audited, chosen
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import SECOND, Laboratory, NoTimeError
from evogit.config import load_task
from evogit.content import content
from evogit.core import UsageError

from .conftest import Audit
from .leaky_tasks import LEAKY
from .sound_tasks import SOUND

QUICK = ("coins_only_sum", "told", "bench_inside")
"""Leaky tasks of the plain tests; all others take seconds."""


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LEAKY])
async def test_a_leak_is_found_by_its_attack(audit: Audit, name: str) -> None:
    small = LEAKY[name]
    (finding,) = await audit(small, small.found)
    if finding.value is not None and finding.value != finding.seed:
        assert (finding.value > finding.seed) == (small.direction == "maximize")
    assert finding.diff or small.found in ("luck", "state")  # these need nothing but the seed
    assert finding.source in small.evaluate or finding.line.startswith("task.toml:")


NEAREST = {
    "stock": ("broken-rules",),
    "alike": ("nan",),
    "slots": ("order",),
    "worst_of_tries": ("spread",),
    "sides": ("order",),
    "secrets": ("foreseen",),
    "moves": ("lookahead",),
    "smoothed": ("lookahead",),
    "report": ("nan",),
    "patterns": ("constant",),
    "filed": ("passed-on",),
    "few_inputs": ("holdout",),
    "named": ("broken-rules", "nothing"),
    "choose": ("broken-rules",),
    "mix": ("edited",),
    "triples": ("respelled",),
    "judged": ("claims",),
    "forecast": ("in-arguments",),
    "beside": ("in-arguments",),
    "games": ("foreseen",),
    "scripts_apart": ("passed-on",),
    "phrases": ("feedback", "all-answers"),
    "totals": ("all-answers", "nan"),
    "steps": ("tolerance",),
    "cover": ("edited", "broken-rules"),
    "signed_curve": ("claims", "constant"),
    "predicted": ("claims", "passed-on"),
    "coins": ("broken-rules", "nothing"),
    "script_without_functions": ("inside",),
    "round_trip": ("passed-on", "dense"),
    "spans": ("broken-rules", "nothing"),
    "amounts": ("broken-rules", "nothing"),
    "tour": ("broken-rules", "nothing"),
    "colours": ("broken-rules", "constant"),
    "exact": ("tolerance", "constant"),
    "short": ("broken-rules",),
    "boxes": ("broken-rules",),
    "retold": ("holdout",),
    "labels": ("feedback", "all-answers", "edited"),
    "poor_curve": ("constant", "claims"),
    "constants": ("constant", "first-answer", "claims"),
    "noisy": ("luck", "state", "constant"),
    "bench_apart": ("prints-and-exits", "scripts", "fake-clock"),
}
"""The attacks that come nearest to a sound task; all of them, which takes seconds, are tried on one of the gallery.

`timed` needs a quiet machine: audit it by hand.
"""


@pytest.mark.parametrize("name", [n if n == "coins" else pytest.param(n, marks=pytest.mark.slow) for n in NEAREST])
async def test_a_sound_evaluator_is_left_in_peace(audit: Audit, name: str) -> None:
    assert [finding.hit.what for finding in await audit(SOUND[name], *NEAREST[name])] == []


@pytest.mark.slow
async def test_the_gallery_holds() -> None:
    async with Laboratory(load_task(content("tasks") / "bin_packing"), "bubblewrap") as lab:
        assert [each.attack.name async for each in audited(lab, chosen(())) if each.findings] == []


@pytest.mark.slow
async def test_times_that_an_evaluator_calls_equal_are_times() -> None:
    """The seed of `speedup` has exactly 1, as its evaluator cannot tell it from itself."""
    async with Laboratory(load_task(content("tasks") / "speedup"), "bubblewrap") as lab:
        assert lab.timed


@pytest.mark.slow
async def test_the_candidate_of_a_finding_reproduces_it(audit: Audit, tmp_path: Path) -> None:
    small = LEAKY["coins_only_sum"]
    (finding,) = await audit(small, "broken-rules")
    assert finding.source == "yield Case(str(amount), score=len(paid))"
    again = tmp_path / "again"
    shutil.copytree(tmp_path / "small", again)
    (again / "seed" / "program.py").write_bytes(finding.hit.candidate.files["program.py"])
    async with Laboratory(load_task(again), "bubblewrap") as lab:
        assert lab.seed.evaluation.metrics == {"score": 1.0}  # a single coin, of the whole amount
    assert finding.value == 1.0


@pytest.mark.slow
async def test_a_tolerance_is_blamed_by_its_line(audit: Audit) -> None:
    (finding,) = await audit(LEAKY["tolerant"], "tolerance")
    assert "+ 1e-6" in finding.source
    assert 0 < finding.value - 1 <= 1e-6  # more than there is


async def test_an_audit_that_has_no_time_says_so(tmp_path: Path) -> None:
    task = load_task(SOUND["coins"].write(tmp_path / "small"))
    async with Laboratory(task, "bubblewrap") as lab:
        lab.until = 0.0
        with pytest.raises(NoTimeError):
            await lab.evaluate(AttackCandidate({}), anew=True)
        assert [each.late async for each in audited(lab, chosen(["nothing"]))] == [True]


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a core of its own, and another one")
async def test_a_task_with_a_core_of_its_own_is_audited(tmp_path: Path) -> None:
    folder = SOUND["timed"].write(tmp_path / "small")
    with (folder / "task.toml").open("a") as toml:  # ends with [sandbox]
        toml.write("exclusive = true\n")
    before = os.sched_getaffinity(0)
    async with Laboratory(load_task(folder), "bubblewrap") as lab:
        trial = await lab.evaluate(AttackCandidate({}), secret=SECOND)  # in another evaluator than the seed before
        assert trial.evaluation.ok
    assert os.sched_getaffinity(0) == before


def test_attacks_are_chosen_by_name_and_family() -> None:
    assert [attack.name for attack in chosen(["memo"])] == ["memo"]
    assert {attack.family for attack in chosen(["timing"])} == {"timing"}
    with pytest.raises(UsageError, match="got misspelt"):
        chosen(["misspelt"])
