"""Judges expressions on rows that the program does not see; they are read, not executed."""

import math
from collections.abc import Iterator

from expression import Expression, Row, read
from formulas import LINES, NEW, TRAIN, Formula

from evogit import Case, Invalid

SPLITS = {"smoke": LINES, "lite": [TRAIN[0], TRAIN[3]], "train": TRAIN, "holdout": [*TRAIN, *NEW]}
GIVEN = 40
ASKED = 100


def evaluate(program, split: str) -> Iterator[Case]:
    for formula in SPLITS[split]:
        rows = formula.within(GIVEN, "given anew" if split == "holdout" else "given")
        arguments = {"rows": rows, "values": formula.values(rows)}
        text = program.call("regression:regress", kwargs=arguments, returns=str).value
        yield judge(formula, text, beyond=split == "holdout" and formula not in NEW)


def judge(formula: Formula, text: str, *, beyond: bool) -> Case:
    """How well the expression predicts other rows: in the range, or beyond it for formulas that the search knows."""
    try:
        expression = read(text, len(formula.ranges))
    except ValueError as problem:
        raise Invalid(f"{formula.name}: {problem}") from None
    asked = formula.beyond(ASKED, "asked") if beyond else formula.within(ASKED, "asked")
    found = error(expression, asked, formula.values(asked))
    feedback = f"error {found:.3g} on {ASKED} other rows; {expression.parts} parts: {text[:200]}"
    return Case(formula.name, feedback=feedback, error=found, parts=expression.parts)


def error(expression: Expression, rows: list[Row], values: list[float]) -> float:
    """The root mean square error in standard deviations of the values, 1 at most: that is what their mean would have.

    An expression without a value in one of the rows has error 1.
    """
    mean = math.fsum(values) / len(values)
    try:
        found = [expression.value(row) for row in rows]
    except (ValueError, OverflowError, ZeroDivisionError):
        return 1.0
    distance = math.dist(found, values)
    return min(1.0, distance / math.dist(values, [mean] * len(values))) if math.isfinite(distance) else 1.0
