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
        ("lr: 0.0003", "lr: 0.00018", "lr: 0.00006"),
        ("y = f(x)-1", "y = f(x)-3", "y = f(x)-5"),
        ("return -2", "return -1", "return 0"),
        ("[1,2,3]", "[1,4,3]", "[1,6,3]"),
        ("n = 12345678901234567890", "n = 12345678901234567999", "n = 12345678901234568108"),
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
        ("chmod 0644", "chmod 0755"),
        ("2026-11-24", "2026-11-27"),
        ("12:30", "12:45"),
        ("x = 1,000", "x = 1,500"),
        ("a = β2", "a = β3"),
        ("", "1"),
    ],
)
def test_any_other_change_is_none_of_one_number(before: str, after: str) -> None:
    assert changed_number(before.encode(), after.encode()) is None


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
    assert with_step(text, len(before), len(text), by) is None
