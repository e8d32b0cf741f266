"""The judge of expressions: read, never executed; judged on rows that the program has not seen."""

from __future__ import annotations

import pytest

from .conftest import Judged

TASK = "symbolic_regression"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_linear_fit_finds_lines_alone(judged: Judged) -> None:
    train = await judged()
    assert train.stages["smoke"]["error"] == pytest.approx(0, abs=1e-9)
    assert train.cases["logarithms"]["error"] < 0.2 < train.cases["polynomial"]["error"]
    assert train.cases["waves"]["error"] == 1


async def test_other_terms_fit_better(judged: Judged) -> None:
    better = await judged("DEGREE = 3")
    assert better.cases["polynomial"]["error"] == pytest.approx(0, abs=1e-6)
    assert better.metrics["parts"] > 12.6


async def test_the_formula_itself_has_no_error_and_other_spellings_hardly_any(judged: Judged) -> None:
    code = """
def regress(rows, values):
    if len(rows[0]) == 2:
        return "2.1 * sin(0.9 * x0) * cos(1.4 * x1)" if values[0] == wave(rows[0]) else "0.5*x0 - 1.5*x1 + +2"
    return "x0 * (x0 * (x0 * 0.7 - 1.2) + 0.5) + 0.3" if abs(max(values)) < 4 and min(values) < -8 else "-1 + x0*2.5"
def wave(row): return 2.1 * math.sin(0.9 * row[0]) * math.cos(1.4 * row[1])
"""
    exact = await judged(code, split="lite")
    assert exact.metrics["error"] == pytest.approx(0, abs=1e-12)
    assert exact.metrics["parts"] == 13


@pytest.mark.parametrize(
    "answer", ["log(x0 - 9)", "1 / (x0 - x0)", "exp(exp(exp(x0 + 9)))", "(0 - 1) ** 0.5", "1e300**9"]
)
async def test_an_expression_without_a_value_is_as_good_as_none(judged: Judged, answer: str) -> None:
    evaluation = await judged(f"seed = regress\ndef regress(rows, values): return {answer!r}")
    assert (evaluation.status, evaluation.stages["smoke"]["error"]) == ("gated", 1)


async def test_a_table_of_the_data_is_too_long(judged: Judged) -> None:
    """Forty bumps, one for each row, say what the values were and nothing else."""
    code = """
def regress(rows, values):
    return " + ".join(f"{v!r} * exp(-1e9 * (x0 - {row[0]!r})**2)" for row, v in zip(rows, values))
"""
    evaluation = await judged(code)
    assert (evaluation.status, evaluation.metrics) == ("invalid", {})
    assert "parts, got" in evaluation.reason
