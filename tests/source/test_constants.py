"""Named numbers stand where they are said to stand, and nothing else counts as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evogit.source import MAX_SOURCE_BYTES
from evogit.source.constants import NOTHING, Constant, named

SAMPLE = """\
# 0.5 in a comment
GRÖSSE = -0.5; ä = {"ü": [1.5, 2, (3e-2, - 4.0)], 0.25: 1}
STEP: float = 2.5
HINT: float
a.b = c[0.5] = 1.0
TWICE = 1.0
TWICE = 7.0
COUNT, FLAG, TEXT, ROOT = 3, True, "0.5", 1j
N = -3
SUM = 1.0 + f(2.0)


def f(x=0.5):
    y = 0.5
    return x * y
"""
VALUES = {
    ("GRÖSSE", 0): -0.5,
    **{("ä", place): value for place, value in enumerate((0.25, 1.5, 0.03))},
    ("STEP", 0): 2.5,
    ("TWICE", 0): 7.0,
    ("SUM", 0): 1.0,
    ("SUM", 1): 2.0,
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_floats_of_what_has_a_name_at_the_top_of_a_module_are_found_where_they_stand(end: str) -> None:
    content = SAMPLE.replace("\n", end).encode()
    found = named("a.py", content).numbers
    assert {(name, place): number.value for (_, name, place), number in found.items()} == VALUES
    assert all(float(content[each.start : each.end]) == each.value for each in found.values())


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.txt", b"A = 0.5\n"),
        ("a.py", b"A = 0.5 +\n"),
        ("a.py", b"A = 0.5  # \xff\n"),
        ("a.py", b"A = 0.5\n" + b"#" * MAX_SOURCE_BYTES),
    ],
)
def test_nothing_is_found_in_what_is_not_looked_into(path: str, content: bytes) -> None:
    assert named(path, content) == NOTHING


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_modules_that_differ_in_named_numbers_alone_have_the_same_rest(values: list[float]) -> None:
    one, other = (named("a.py", f"A = [{value!r}]\nB = {value!r}\n".encode()) for value in values)
    assert one.rest == other.rest != named("a.py", b"A = [1.0]\nB = 1\n").rest
    assert [number.value for number in other.numbers.values()] == [values[1], values[1]]
    assert list(one.numbers) == [Constant("a.py", "A", 0), Constant("a.py", "B", 0)]
