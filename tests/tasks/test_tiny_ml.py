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


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[]", "blobs-0: expected a label for each of the 150 rows, got 0"),
        ("labels", "expected a label for each of the 150 rows, got 80"),
        ("seed(rows, labels, asked) * 2", "expected a label for each of the 150 rows, got 300"),
        ("[3] * len(asked)", "expected labels among [0, 1, 2], got 3"),
        ("[-1] * len(asked)", "expected labels among [0, 1, 2], got -1"),
        ("[10**4000] * len(asked)", "expected labels among [0, 1, 2], got 1000"),
        ("[bool(label) for label in seed(rows, labels, asked)]", "valid integer, got "),
        ("[None] * len(asked)", "valid integer, got None"),
        ("{'accuracy': 1.0}", "does not fit"),
        ("(asked.clear(), asked)[1]", "expected a label for each of the 150 rows, got 0"),
    ],
)
async def test_a_cheating_answer_is_invalid(judged: Judged, answer: str, reason: str) -> None:
    evaluation = await judged(f"seed = classify\ndef classify(rows, labels, asked): return {answer}")
    assert (evaluation.status, evaluation.metrics) == ("invalid", {})
    assert reason in evaluation.reason


async def test_the_rows_that_are_asked_for_are_in_no_order_that_tells(judged: Judged) -> None:
    for guess in ("[0] * 150", "sorted(seed(rows, labels, asked))", "(labels * 2)[:150]"):
        evaluation = await judged(f"seed = classify\ndef classify(rows, labels, asked): return {guess}", split="lite")
        assert evaluation.status == "gated" or evaluation.metrics["accuracy"] < 0.6
