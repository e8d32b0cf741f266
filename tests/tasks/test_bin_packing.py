"""The bin packing judge: every item in one bin and no bin too full, or it gains nothing and is told why."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "bin_packing"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_first_fit_decreasing_has_its_known_values(judged: Judged) -> None:
    train, holdout = await judged(), await judged(split="holdout")
    cases = {name: values["excess"] for name, values in (*train.cases.items(), *holdout.cases.items())}
    assert {value for name, value in cases.items() if name.startswith("t120-")} == {17.5}
    uniform = [value for name, value in cases.items() if name.startswith("u250-")]
    assert sum(uniform) / len(uniform) == pytest.approx(1.48, abs=0.01)
    assert len(cases) == 22


async def test_another_weight_makes_better_packings(judged: Judged) -> None:
    better = await judged("MATCH = 0.5")
    assert better.ok
    assert better.metrics["excess"] < 3


async def test_only_bins_that_are_used_count(judged: Judged) -> None:
    spread = await judged(
        "seed = pack\ndef pack(items, capacity): return [len(items) - 1 - b for b in seed(items, capacity)]"
    )
    assert spread.metrics == (await judged()).metrics


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[0] * len(items)", "u7-1: bin 0 holds 344; the capacity is 150"),
        ("seed(items, capacity)[:-1]", "expected a bin for each of the 7 items, got 6 bins"),
        ("seed(items, capacity) + [0]", "expected a bin for each of the 7 items, got 8 bins"),
        ("[-1] + seed(items, capacity)[1:]", "item 0 is in bin -1; expected a bin from 0 to 6"),
        ("[7] + seed(items, capacity)[1:]", "item 0 is in bin 7; expected a bin from 0 to 6"),
        ("[10**300] + seed(items, capacity)[1:]", "expected a bin from 0 to 6"),
        ("[bool(b) for b in seed(items, capacity)]", "valid integer, got "),
        ("[float('nan')] * len(items)", "JSON cannot say"),
        ("dict(enumerate(seed(items, capacity)))", "does not fit"),
        ("(items.clear(), items)[1]", "expected a bin for each of the 7 items, got 0 bins"),
    ],
)
async def test_a_cheating_answer_is_invalid(judged: Judged, answer: str, reason: str) -> None:
    evaluation = await judged(f"seed = pack\ndef pack(items, capacity): return {answer}")
    assert (evaluation.status, evaluation.metrics) == ("invalid", {})
    assert reason in evaluation.reason
