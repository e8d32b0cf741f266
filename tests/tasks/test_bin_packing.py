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
