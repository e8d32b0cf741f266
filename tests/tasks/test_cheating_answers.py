"""Answers that a judge of the gallery must refuse: each gains nothing, and is told why."""

from __future__ import annotations

import pytest

from .conftest import judge_of

CIRCLES = {
    "(0.25 + 1e-9, 0.5, 0.25)": "circles 0 and 1 overlap by 1e-09",
    "(0.25 + 2**-54, 0.5, 0.25)": "circles 0 and 1 overlap by 5.55e-17",
    "(0.3, 0.5, 0.25 + 1e-9)": "circles 0 and 1 overlap by 0.05",
    "(0.75, 0.5, 0.25)": "circles 0 and 1 overlap by 0.5",
    "(0.25 - 1e-9, 0.5, 0.25)": "circle 0 sticks out of the square by 1e-09",
    "(0.25, 0.1, 0.25)": "circle 0 sticks out of the square by 0.15",
    "(2.0, 0.5, 0.1)": "circle 0 is (2.0, 0.5, 0.1); expected",
    "(0.25, 0.5, -0.1)": "from 0 to 1",
    "(0.25, 0.5, 10**400)": "[0][2]",
    "(0.25, 0.5, float('nan'))": "JSON cannot say",
    "(0.25, 0.5, True)": "got True",
    "(0.25, 0.5)": "[0]",
    "(0.25, 0.5, 0.25, 0.25)": "[0]",
    "(0.25, 0.5, -5e-324)": "from 0 to 1",
    "(0.25, 0.5, 10**4299)": "[0][2]",
}
"""The first of the circles, beside one of the radius 0.25 at its right."""
CHEATS = {
    "bin_packing": (
        "seed = pack\ndef pack(items, capacity): return {}",
        {
            "[0] * len(items)": "u7-1: bin 0 holds 344; the capacity is 150",
            "seed(items, capacity)[:-1]": "expected a bin for each of the 7 items, got 6 bins",
            "seed(items, capacity) + [0]": "expected a bin for each of the 7 items, got 8 bins",
            "[-1] + seed(items, capacity)[1:]": "item 0 is in bin -1; expected a bin from 0 to 6",
            "[7] + seed(items, capacity)[1:]": "item 0 is in bin 7; expected a bin from 0 to 6",
            "[10**300] + seed(items, capacity)[1:]": "expected a bin from 0 to 6",
            "[bool(b) for b in seed(items, capacity)]": "valid integer, got ",
            "[float('nan')] * len(items)": "JSON cannot say",
            "dict(enumerate(seed(items, capacity)))": "does not fit",
            "(items.clear(), items)[1]": "expected a bin for each of the 7 items, got 0 bins",
            "[10**4299] * len(items)": "item 0 is in bin 1000",
            "[-0.0] * len(items)": "valid integer, got -0.0",
        },
    ),
    "cap_set": (
        "seed = build\ndef build(n): return {}",
        {
            "seed(n) + seed(n)": "vector 2, (0,), is there already",
            "seed(n) + [(2,) * n]": "(0,), (1,) and (2,) lie on a line",
            "[[x] * n for x in (2, 0, 1)]": "(2,), (0,) and (1,) lie on a line",
            "itertools.product(range(3), repeat=n)": "JSON cannot say",
            "list(itertools.product(range(3), repeat=n))": "(0,), (1,) and (2,) lie on a line",
            "list(itertools.product(range(2), repeat=n + 1))": "1 digits that are 0, 1 or 2; vector 0 is (0, 0)",
            "[()]": "vector 0 is ()",
            "[(x,) * n for x in (0, 3)]": "vector 1 is (3,)",
            "[(x,) * n for x in (0, -1)]": "vector 1 is (-1,)",
            "[(10**4000,) * n]": "vector 0 is (1000",
            "[(True,) * n]": "valid integer, got ",
            "['0' * n]": "does not fit",
            "[]": "gate smoke",
        },
    ),
    "circle_packing": (
        "seed = pack\ndef pack(n): return {}",
        {
            "seed(n)[:-1]": "expected 5 circles, got 4",
            "seed(n) + [(0.0, 0.0, 0.0)]": "expected 5 circles, got 6",
            "[]": "expected 5 circles, got 0",
            "{'sum_radii': 9.99}": "does not fit",
            "seed(n) if n == 5 else seed(26)": "expected 33 circles, got 26",
            "[(0.5, 0.5, 0.5)] * 2 + [(5e-324, 0.5, 0.0)] * (n - 2)": "circles 0 and 1 overlap by 1",
            "[(0.5, 5e-324, 5e-324)] * n": "circles 0 and 1 overlap by 9.88e-324",
            **{f"[{first}, (0.75, 0.5, 0.25)] + [(0.0, 0.0, 0.0)] * (n - 2)": why for first, why in CIRCLES.items()},
        },
    ),
    "online_bin_packing": (
        "seed = place\ndef place(size): return {}",
        {
            "0": "which has room for",
            "seed(size) and -1": "goes into bin -1; expected an open bin",
            "seed(size) + 1": "item 0 goes into bin 1; expected an open bin",
            "10**300": "expected an open bin",
            "bool(seed(size))": "valid integer, got ",
            "float('nan')": "JSON cannot say",
            "None": "valid integer, got None",
            "10**4299": "goes into bin 1000",
        },
    ),
    "speedup": (
        "seed = neighbours\ndef neighbours(points, radius): return {}",
        {
            "[]": "uniform-3: expected a number for each of the 3 points, got 0",
            "[0] * len(points)": "line-40: ",
            "seed(points, radius - 30000)": "line-40: ",
            "seed(points, radius) + [0]": "expected a number for each of the 3 points, got 4",
            "[bool(count) for count in seed(points, radius)]": "valid integer, got ",
            "[10**4000] * len(points)": "3 of the 3 numbers are wrong",
            "[-1] * len(points)": "3 of the 3 numbers are wrong",
            "{'speedup': 1e9}": "does not fit",
            "points.clear() or []": "expected a number for each of the 3 points, got 0",
        },
    ),
    "symbolic_regression": (
        "def regress(rows, values): return {}",
        {
            "'__import__(\"os\").abort()'": "is not allowed",
            "'x0.__class__'": "'x0.__class__' is not allowed",
            "'[x0][0]'": "'[x0][0]' is not allowed",
            "'(lambda: x0)()'": "is not allowed",
            "'open(0)'": "'open(0)' is not allowed",
            "'sin(x0, x0)'": "is not allowed",
            "'sin'": "'sin' is not allowed",
            "'values'": "'values' is not allowed",
            "'x1'": "'x1' is not allowed",
            "'x0 if x0 > 0 else 1'": "is not allowed",
            "'x0 // 1'": "is not allowed",
            "'True'": "'True' is not allowed",
            "'1j'": "'1j' is not allowed",
            "'1e999'": "a number is too large",
            "'9' * 3000": "a number is too large",
            "'9' * 4001": "expected at most 4000 characters",
            "'x0\\n1'": "not an expression",
            "''": "not an expression",
            "'\\0'": "null bytes",
            "'(' * 250 + 'x0' + ')' * 250": "not an expression",
            "'+'.join(['x0'] * 70)": "expected at most 120 parts, got 139",
            "'x0' + '.a' * 1900": "parts, got 1901",
            "'-' * 3900 + 'x0'": "line: ",
            "'ｘ0'": "characters of ASCII",
            "{'error': 0.0}": "does not fit",
        },
    ),
    "tiny_ml": (
        "seed = classify\ndef classify(rows, labels, asked): return {}",
        {
            "[]": "blobs-0: expected a label for each of the 150 rows, got 0",
            "labels": "expected a label for each of the 150 rows, got 80",
            "seed(rows, labels, asked) * 2": "expected a label for each of the 150 rows, got 300",
            "[3] * len(asked)": "expected labels among [0, 1, 2], got 3",
            "[-1] * len(asked)": "expected labels among [0, 1, 2], got -1",
            "[10**4000] * len(asked)": "expected labels among [0, 1, 2], got 1000",
            "[bool(label) for label in seed(rows, labels, asked)]": "valid integer, got ",
            "[None] * len(asked)": "valid integer, got None",
            "{'accuracy': 1.0}": "does not fit",
            "(asked.clear(), asked)[1]": "expected a label for each of the 150 rows, got 0",
        },
    ),
    "tsp": (
        "seed = tour\ndef tour(cities): return {}",
        {
            "[0] * len(cities)": "u5-1: city 0 is visited twice",
            "seed(cities)[:-1]": "u5-1: expected each of the 5 cities once, got 4",
            "seed(cities) + [0]": "expected each of the 5 cities once, got 6",
            "[]": "expected each of the 5 cities once, got 0",
            "[-1, 0, 1, 2, 3]": "expected cities from 0 to 4, got -1",
            "[1, 2, 3, 4, 5]": "expected cities from 0 to 4, got 5",
            "[10**4000, 0, 1, 2, 3]": "expected cities from 0 to 4, got 1000",
            "[True, 0, 2, 3, 4]": "valid integer, got True",
            "[float('nan')] * len(cities)": "JSON cannot say",
            "{'excess': -100.0}": "does not fit",
        },
    ),
}
"""Task -> the function that answers, and what it returns, with the reason of the refusal."""


@pytest.mark.parametrize("name", CHEATS)
async def test_a_cheating_answer_gains_nothing(name: str) -> None:
    code, answers = CHEATS[name]
    async with judge_of(name) as judged:
        for answer, reason in answers.items():
            evaluation = await judged(code.format(answer), "lite")
            assert evaluation.status == ("gated" if reason == "gate smoke" else "invalid"), (answer, evaluation.reason)
            assert evaluation.metrics == {}
            assert reason in evaluation.reason
