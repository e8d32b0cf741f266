"""One number that became another, in texts of any language."""

from __future__ import annotations

import pytest

from evogit.source.number_changes import changed_number, with_step


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ("A = 1\n", "A = 3\n", "A = 5\n"),
        ("let a = 12;", "let a = 120;", "let a = 228;"),
        ("f(1, 20, 3)", "f(1, 21, 3)", "f(1, 22, 3)"),
        ("rate: 0.30\n", "rate: 0.45\n", "rate: 0.6\n"),
        ("x = 2", "x = -1", "x = -4"),
        ("x = -1", "x = 0", "x = 1"),
        ("lr = 1e-3", "lr = 2e-3", "lr = 0.003"),
        ("k = 4", "k = 4.5", "k = 5.0"),
        ("é = 7 # 7", "é = 8 # 7", "é = 9 # 7"),
    ],
)
def test_a_change_of_one_number_is_found_and_goes_on(before: str, after: str, again: str) -> None:
    old, new = before.encode(), after.encode()
    change = changed_number(old, new)
    assert change
    assert with_step(new, change.start, change.new_end, change.by) == again.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1", "a = 1"),
        ("a = 1", "b = 1"),
        ("a = 1 + 1", "a = 2 + 2"),
        ("a = 1", "a = 1 + 1"),
        ("v = '1.2.3'", "v = '1.2.4'"),
        ("a1 = 0", "a2 = 0"),
        ("m = 0x10", "m = 0x20"),
        ("", "1"),
    ],
)
def test_any_other_change_is_none_of_one_number(before: str, after: str) -> None:
    assert changed_number(before.encode(), after.encode()) is None


@pytest.mark.parametrize(
    ("text", "by"), [("a = 1", 0.0), ("a = 1", 11.0), ("a = 1e300", 1e308), ("a = b-1", -2.0), ("a = 1", float("inf"))]
)
def test_no_step_goes_nowhere_too_far_or_into_another_sign(text: str, by: float) -> None:
    assert with_step(text.encode(), len(text) - len(text.lstrip("ab =-")), len(text), by) is None
