import math
import random

import pytest

from evogit.stats.bradley_terry import SPREAD, Comparisons, Fit, fit


def ranking(found: Fit, items: str) -> str:
    return "".join(sorted(items, key=found.strength))


def test_nothing_known_is_nought_with_the_spread_of_the_prior() -> None:
    found = fit(Comparisons())
    assert (found.strength("a"), found.error("a"), found.preference("a", "b")) == (0.0, SPREAD, 0.5)


def test_one_win_is_not_infinity() -> None:
    tally = Comparisons()
    tally.add("me", "a", "b", 1.0)
    found = fit(tally)
    assert 0 < found.strength("a") < SPREAD
    assert found.strength("b") == pytest.approx(-found.strength("a"), abs=1e-4)
    assert 1 < found.error("a") < SPREAD


def test_a_tie_pulls_equals_together_and_is_no_win() -> None:
    tally = Comparisons()
    for _ in range(3):
        tally.add("me", "a", "b", 0.5)
    found = fit(tally)
    assert found.strength("a") == found.strength("b") == 0.0
    assert found.error("a") < SPREAD
    tally.add("me", "a", "b", 1.0)
    once = Comparisons()
    once.add("me", "a", "b", 1.0)
    assert 0 < fit(tally).strength("a") < fit(once).strength("a") / 2


def test_strengths_follow_the_wins_whichever_side_is_named_first() -> None:
    tally = Comparisons()
    for worse, better in ("ab", "bc", "cd", "ac", "bd"):
        tally.add("me", better, worse, 1.0)
        tally.add("me", worse, better, 0.0)
    assert ranking(fit(tally), "dbca") == "abcd"


def test_more_verdicts_make_it_surer() -> None:
    errors = []
    for many in (1, 10, 100):
        tally = Comparisons()
        for _ in range(many):
            tally.add("me", "a", "b", 1.0)
            tally.add("me", "b", "a", 1.0)
        errors.append(fit(tally).error("a"))
    assert errors == sorted(errors, reverse=True)


def test_the_error_is_that_of_the_inverse_information() -> None:
    tally = Comparisons()
    for pair in ("ab", "bc", "ca", "cd"):
        tally.add("me", pair[0], pair[1], 1.0)
    found = fit(tally)
    count = len(found.strengths)
    matrix = [[1 / SPREAD**2 if i == j else 0.0 for j in range(count)] for i in range(count)]
    for i, j, about in found.edges:
        for at, to, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            matrix[at][to] += sign * about
    assert found.error("d") == pytest.approx(math.sqrt(inverse(matrix)[3][3]), rel=1e-3)


def inverse(matrix: list[list[float]]) -> list[list[float]]:
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[size:] for row in rows]


def test_a_liar_is_found_and_read_backwards() -> None:
    tally, rng = Comparisons(), random.Random(1)
    for _ in range(400):
        a, b = sorted(rng.sample("abcdefgh", 2))
        judge = rng.choice("123")
        tally.add(judge, b, a, float(judge != "3"))
    found = fit(tally)
    assert found.reliability("3") < 0.1 < 0.9 < found.reliability("1")
    assert ranking(found, "hgfedcba") == "abcdefgh"
    assert fit(tally).strengths == found.strengths


def test_answers_that_are_known_tell_of_the_judge_alone() -> None:
    tally = Comparisons()
    for _ in range(20):
        tally.add_known("bad", right=False)
        tally.add_known("good", right=True)
    tally.add("bad", "a", "b", 1.0)
    tally.add("good", "b", "a", 1.0)
    found = fit(tally)
    assert found.reliability("bad") < 0.5 < found.reliability("good")
    assert found.strength("b") > found.strength("a")
    assert found.reliability("nobody") == pytest.approx(0.8)


def test_a_start_near_the_answer_leads_to_the_same() -> None:
    tally, rng = Comparisons(), random.Random(2)
    for _ in range(300):
        a, b = sorted(rng.sample(range(20), 2))
        tally.add("me", str(b), str(a), float(rng.random() < 0.8))
    before = fit(tally)
    tally.add("me", "3", "4", 1.0)
    cold, warm = fit(tally), fit(tally, before)
    assert warm.strengths == pytest.approx(cold.strengths, abs=1e-3)
