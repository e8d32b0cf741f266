"""The circle packing judge: validity is exact, and what is not valid gains nothing and is told why."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("(0.25 + 1e-9, 0.5, 0.25)", "circles 0 and 1 overlap by 1e-09"),
        ("(0.25 + 2**-54, 0.5, 0.25)", "circles 0 and 1 overlap by 5.55e-17"),
        ("(0.3, 0.5, 0.25 + 1e-9)", "circles 0 and 1 overlap by 0.05"),
        ("(0.75, 0.5, 0.25)", "circles 0 and 1 overlap by 0.5"),
        ("(0.25 - 1e-9, 0.5, 0.25)", "circle 0 sticks out of the square by 1e-09"),
        ("(0.25, 0.1, 0.25)", "circle 0 sticks out of the square by 0.15"),
        ("(2.0, 0.5, 0.1)", r"circle 0 is \(2.0, 0.5, 0.1\); expected .* from 0 to 1"),
        ("(0.25, 0.5, -0.1)", "circle 0 is .* expected .* from 0 to 1"),
        ("(0.25, 0.5, 10**400)", r"\[0\]\[2\]"),
        ("(0.25, 0.5, float('nan'))", "JSON cannot say"),
        ("(0.25, 0.5, True)", r"\[0\]\[2\].*True"),
        ("(0.25, 0.5)", r"\[0\]"),
        ("(0.25, 0.5, 0.25, 0.25)", r"\[0\]"),
    ],
)
async def test_a_circle_that_breaks_the_rules_makes_the_packing_invalid(
    judged: Judged, first: str, reason: str
) -> None:
    evaluation = await judged(TWO.format(first=first))
    assert (evaluation.status, evaluation.metrics) == ("invalid", {})
    assert re.search(reason, evaluation.reason)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("seed(n)[:-1]", "expected 5 circles, got 4"),
        ("seed(n) + [(0.0, 0.0, 0.0)]", "expected 5 circles, got 6"),
        ("[]", "expected 5 circles, got 0"),
        ("{'sum_radii': 9.99}", "does not fit"),
        ("seed(n) if n == 5 else seed(26)", "expected 33 circles, got 26"),
    ],
)
async def test_an_answer_of_another_form_is_invalid(judged: Judged, answer: str, reason: str) -> None:
    evaluation = await judged(f"seed = pack\ndef pack(n): return {answer}")
    assert (evaluation.status, evaluation.metrics) == ("invalid", {})
    assert reason in evaluation.reason


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
