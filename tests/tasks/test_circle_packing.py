"""The circle packing judge: validity is exact, and what is not valid gains nothing and is told why."""

from __future__ import annotations

import runpy

import pytest

from evogit.adopt import find_task

from .conftest import Judged

TASK = "circle_packing"

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO = """
def pack(n):
    return [{first}, (0.75, 0.5, 0.25)] + [(0.0, 0.0, 0.0)] * (n - 2)
"""


async def test_the_seed_has_its_published_values(judged: Judged) -> None:
    train, holdout = await judged(), await judged(split="holdout")
    assert train.cases["n=26"]["sum_radii"] == pytest.approx(0.959764, abs=5e-7)
    assert holdout.cases["n=29"]["sum_radii"] == pytest.approx(0.929764, abs=5e-7)
    assert holdout.cases["n=32"]["sum_radii"] == pytest.approx(0.979764, abs=5e-7)


async def test_circles_may_touch_each_other_and_the_border(judged: Judged) -> None:
    evaluation = await judged(TWO.format(first=(0.25, 0.5, 0.25)))
    assert (evaluation.status, evaluation.metrics["sum_radii"]) == ("ok", 0.5)


async def test_the_share_of_the_bound_compares_different_numbers_of_circles(judged: Judged) -> None:
    """Two circles of 0.25 in 26: 0.5 of at most sqrt(26 / pi)."""
    evaluation = await judged(TWO.format(first=(0.25, 0.5, 0.25)))
    assert evaluation.metrics["of_bound"] == pytest.approx(0.5 / 2.876813)


async def test_better_numbers_make_a_better_packing(judged: Judged) -> None:
    better = await judged("OUTER_RADIUS = 0.5\nGROWTH = 1.0")
    assert better.ok
    assert better.metrics["sum_radii"] > 1.2


async def test_patching_what_the_judge_uses_changes_nothing(judged: Judged) -> None:
    patched = "import fractions\nmath.fsum = math.sqrt = lambda *_: 1e9\nfractions.Fraction = lambda *_: 0"
    evaluation = await judged(patched)
    assert evaluation.metrics == (await judged()).metrics


async def test_the_seed_packs_any_number_of_circles() -> None:
    task = find_task(TASK)
    assert task.seed
    pack = runpy.run_path(str(task.seed / "packing.py"))["pack"]
    check = runpy.run_path(str(task.evaluator))["check"]
    for n in range(1, 51):
        check(pack(n), n)
