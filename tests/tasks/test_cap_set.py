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


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("seed(n) + seed(n)", "vector 2, (0,), is there already"),
        ("seed(n) + [(2,) * n]", "(0,), (1,) and (2,) lie on a line"),
        ("[[x] * n for x in (2, 0, 1)]", "(2,), (0,) and (1,) lie on a line"),
        ("itertools.product(range(3), repeat=n)", "JSON cannot say"),
        ("list(itertools.product(range(3), repeat=n))", "(0,), (1,) and (2,) lie on a line"),
        ("list(itertools.product(range(2), repeat=n + 1))", "expected 1 digits that are 0, 1 or 2; vector 0 is (0, 0)"),
        ("[()]", "vector 0 is ()"),
        ("[(x,) * n for x in (0, 3)]", "vector 1 is (3,)"),
        ("[(x,) * n for x in (0, -1)]", "vector 1 is (-1,)"),
        ("[(10**4000,) * n]", "vector 0 is (1000"),
        ("[(True,) * n]", "valid integer, got "),
        ("['0' * n]", "does not fit"),
        ("[]", "gate smoke"),
    ],
)
async def test_a_cheating_answer_gains_nothing(judged: Judged, answer: str, reason: str) -> None:
    evaluation = await judged(f"seed = build\ndef build(n): return {answer}")
    assert evaluation.status in ("invalid", "gated")
    assert reason in evaluation.reason


async def test_a_line_in_a_large_set_is_found(judged: Judged) -> None:
    evaluation = await judged("seed = build\ndef build(n): return seed(n) + [(0, 1, 2) + (0,) * (n - 3)][: n > 3]")
    assert evaluation.status == "invalid"
    assert evaluation.reason.endswith("(0, 1, 2, 0) lie on a line")
