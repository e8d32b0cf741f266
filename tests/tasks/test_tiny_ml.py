"""The judge of labels: those that are right stay outside, and what is no label gains nothing."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "tiny_ml"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_nearest_centroid_is_right_where_classes_are_round_and_equal(judged: Judged) -> None:
    train, holdout = await judged(), await judged(split="holdout")
    right = {name: values["accuracy"] for name, values in (*train.cases.items(), *holdout.cases.items())}
    assert len(right) == 18
    assert right["blobs-1"] > 0.9
    assert right["corners-1"] == 0.5  # the middles of both classes lie at one place


async def test_rows_nearby_tell_more_than_the_middle(judged: Judged) -> None:
    better = await judged("NEARBY = 1.0\nMIDDLE = 0.0")
    assert better.ok
    assert better.cases["corners-1"]["accuracy"] > 0.9


async def test_the_rows_that_are_asked_for_are_in_no_order_that_tells(judged: Judged) -> None:
    for guess in ("[0] * 150", "sorted(seed(rows, labels, asked))", "(labels * 2)[:150]"):
        evaluation = await judged(f"seed = classify\ndef classify(rows, labels, asked): return {guess}", split="lite")
        assert evaluation.status == "gated" or evaluation.metrics["accuracy"] < 0.6
