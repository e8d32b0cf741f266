"""The numbers of files: where they stand, what two versions changed of them, and steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evogit.source import MAX_SOURCE_BYTES
from evogit.source.numbers import NOTHING, Constant, changed_numbers, numbers_of, with_step

SAMPLE = '''\
"""0.5 in a docstring, and 3 more."""
# 0.5 in a comment
GRÖSSE = -0.5; ä = {"ü": [1.5, 2, (3e-2,
4.0)], 0.25: 1}
STEP: float = 2.5
HINT: float
a.b = c[0.5] = 1.0
COUNT, FLAG, TEXT, ROOT = 3, True, "0.5", 1j
N = -3
SUM = 1.0 + f(2.0)


def f(x=0.5):
    """At 2.5 it is 7."""
    y = 0.5  # and not 1.5
    return x * y + v1.2 - 0x10 - 1_000 - 012
'''
NAMED = {
    **{("GRÖSSE", place): value for place, value in enumerate((-0.5, 1.5, 0.03, 4.0, 0.25))},
    ("STEP", 0): 2.5,
    ("SUM", 0): 1.0,
    ("SUM", 1): 2.0,
}
OTHERS = [2, 1, 0.5, 1.0, 3, -3, 0.5, 0.5]


def test_the_numbers_of_a_module_are_those_of_its_code() -> None:
    content = SAMPLE.encode()
    numbers = numbers_of("a.py", content)
    assert {(name, place): number.value for (_, name, place), number in numbers.named.items()} == NAMED
    others = [number.value for constant, number in numbers.numbers.items() if not constant.name]
    assert others == OTHERS
    assert all(float(content[start:end]) == value for start, end, value in numbers.numbers.values())


@pytest.mark.parametrize(
    ("path", "content", "values"),
    [
        ("a.cpp", b'#define N 5\nint a = 3; // 4\n/* 9 */ double b = -2.5; char *s = "7";\n', [5, 3, -2.5]),
        ("a.toml", b"rate = 0.5 # 7\nwhen = 2026-11-24\nat = 12:30\nmany = 1,000\n", [0.5]),
        ("a.json", b'{"1": [2, -3.5]}', [2, -3.5]),
        ("a.js", b"let a = 12;", [12]),
    ],
)
def test_numbers_of_other_languages_stand_outside_of_strings_and_comments(
    path: str, content: bytes, values: list[float]
) -> None:
    assert [number.value for number in numbers_of(path, content).numbers.values()] == values


@pytest.mark.parametrize(
    ("path", "content"),
    [
        *((path, b"A = 0.5\n") for path in ("a.txt", "README.md", "LICENSE", "docs/a.rst")),
        ("a.py", b"A = 0.5\0"),
        ("a.py", b"A = 0.5\n" + b"#" * MAX_SOURCE_BYTES),
    ],
)
def test_prose_and_files_that_are_no_text_or_too_large_have_none(path: str, content: bytes) -> None:
    assert numbers_of(path, content) == NOTHING
    assert not changed_numbers(path, content, content.replace(b"0.5", b"0.6"))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_modules_that_differ_in_numbers_alone_have_the_same_rest(values: list[float]) -> None:
    one, other = (numbers_of("a.py", f"A = [{value!r}]\nB = {value!r}\n".encode()) for value in values)
    assert one.rest == other.rest != numbers_of("a.py", b"A = [1.0]\nC = 1.0\n").rest
    assert [number.value for number in other.numbers.values()] == [values[1], values[1]]
    assert list(one.numbers) == [Constant("a.py", "A", 0), Constant("a.py", "B", 0)]


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ("A = 1\n", "A = 3\n", "A = 5\n"),
        ("f(1, 20, 3)", "f(1, 21, 3)", "f(1, 22, 3)"),
        ("rate = 0.30\n", "rate = 0.45\n", "rate = 0.6\n"),
        ("x = 2", "x = -1", "x = -4"),
        ("x = -1", "x = 0", "x = 1"),
        ("lr = 1e-3", "lr = 2e-3", "lr = 0.003"),
        ("lr = 0.0003", "lr = 0.00018", "lr = 0.00006"),
        ("y = f(x)-1", "y = f(x)-3", "y = f(x)-5"),
        ("return -2", "return -1", "return 0"),
        ("[1,2,3]", "[1,4,3]", "[1,6,3]"),
        ("n = 12345678901234567890", "n = 12345678901234567999", "n = 12345678901234568108"),
        ("é = 7 # 7", "é = 8 # 7", "é = 9 # 7"),
    ],
)
def test_a_change_of_one_number_is_found_and_continues(before: str, after: str, again: str) -> None:
    changes = changed_numbers("a.py", before.encode(), after.encode())
    assert len(changes) == 1
    ((constant, by),) = changes.items()
    content = after.encode()
    assert with_step(content, numbers_of("a.py", content).numbers[constant], by) == again.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1", "a = 1"),
        ("a = 1", "b = 1"),
        ("a = 1", "a = 1 + 1"),
        ("v = '1.2.3'", "v = '1.2.4'"),
        ('"""Up to 5."""\n', '"""Up to 6."""\n'),
        ("a1 = 0", "a2 = 0"),
        ("m = 0x10", "m = 0x20"),
        ("chmod 0644", "chmod 0755"),
        ("a = β2", "a = β3"),
        ("", "1"),
    ],
)
def test_any_other_change_is_not_one_of_numbers(before: str, after: str) -> None:
    assert not changed_numbers("a.py", before.encode(), after.encode())


@pytest.mark.parametrize(
    ("before", "number", "by"),
    [
        ("a = ", "1", 0),
        ("a = ", "1", 11),
        ("a = ", "1", float("inf")),
        ("a = ", "8.988e307", 8.988e307),
        ("a = ", "1" * 30, 9 * 10**29),
        ("a = len(b)-", "1", -2),
        ("a = b - ", "1", -2),
    ],
)
def test_no_step_goes_nowhere_too_far_or_turns_a_subtraction_round(before: str, number: str, by: float) -> None:
    text = f"{before}{number}".encode()
    (found,) = numbers_of("a.py", text).numbers.values()
    assert with_step(text, found, by) is None
