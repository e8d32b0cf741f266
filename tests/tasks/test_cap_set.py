"""The cap set judge: every pair of vectors is looked at, and a set with a line gains nothing and is told which."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "cap_set"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_vectors_without_a_2_are_the_seeds_sets(judged: Judged) -> None:
    train, holdout = await judged(), await judged(split="holdout")
    sizes = {name: values["size"] for name, values in (*train.cases.items(), *holdout.cases.items())}
    assert sizes == {f"n={n}": 2**n for n in range(4, 10)}
    assert holdout.metrics["growth"] == pytest.approx(2)


async def test_a_product_of_small_sets_is_worth_its_size(judged: Judged) -> None:
    """The largest set of two dimensions has four vectors, that of four dimensions twenty: sixteen is not the end."""
    code = """
SQUARE = [(0, 0), (0, 1), (1, 0), (1, 1)]
def build(n):
    return [a + b + (0,) * (n - 4) for a in SQUARE for b in SQUARE] if n > 3 else [(0,) * n]
"""
    evaluation = await judged(code)
    assert (evaluation.status, evaluation.metrics["size"]) == ("ok", 64)


async def test_another_weight_builds_larger_sets(judged: Judged) -> None:
    better = await judged("BY_PRODUCTS[0] = 7.0")
    assert better.ok
    assert better.metrics["size"] > 260


async def test_a_line_in_a_large_set_is_found(judged: Judged) -> None:
    evaluation = await judged("seed = build\ndef build(n): return seed(n) + [(0, 1, 2) + (0,) * (n - 3)][: n > 3]")
    assert evaluation.status == "invalid"
    assert evaluation.reason.endswith("(0, 1, 2, 0) lie on a line")
