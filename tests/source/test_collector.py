from __future__ import annotations

import pytest

from evogit.source import MAX_SOURCE_BYTES, Kind
from evogit.source.collector import parse
from evogit.source.definitions import compiles
from evogit.source.value_kinds import fits, is_number

MODULE = b'''\
import math

LIMIT = 3
_WIDTHS: list[int] = [1, 2]


class Box:
    """A box."""

    depth = -2.5

    @staticmethod
    def area(width, height=4):
        """The area."""
        if not width:
            return 0

        def scaled(value):
            return value * LIMIT

        total = scaled(width) + math.sqrt(height)  # roughly
        return total


async def main():
    pass
'''


def texts(kind: Kind) -> list[str]:
    source = parse(MODULE)
    assert source
    return [site.text for site in source.sites[kind]]


def test_definitions_have_qualified_names_and_their_own_text() -> None:
    source = parse(MODULE)
    assert source
    found = {each.name: each for each in source.definitions}
    assert [(name, each.kind) for name, each in found.items()] == [
        ("LIMIT", "constant"),
        ("_WIDTHS", "constant"),
        ("Box", "class"),
        ("Box.depth", "constant"),
        ("Box.area", "function"),
        ("Box.area.scaled", "function"),
        ("main", "function"),
    ]
    assert found["LIMIT"].text == b"LIMIT = 3"
    assert found["main"].text == b"async def main():\n    pass"
    assert found["Box.area"].text.startswith(b"def area(")  # the decorator stays outside
    assert [name for name, each in found.items() if each.local] == ["Box.area.scaled"]


def test_numbers_know_their_name_and_sign() -> None:
    source = parse(MODULE)
    assert source
    assert [(site.label, site.text) for site in source.sites["number"]] == [
        ("LIMIT", "3"),
        ("_WIDTHS", "1"),
        ("_WIDTHS", "2"),
        ("depth", "-2.5"),
        ("height", "4"),
        ("", "0"),
    ]


def test_docstrings_annotations_and_decorators_are_no_sites() -> None:
    assert "literal" not in parse(MODULE).sites  # type: ignore[union-attr]
    assert set(texts("name")) == {"width", "height", "value", "LIMIT", "total"}


def test_statements_are_whole_lines_with_their_comments() -> None:
    source = parse(MODULE)
    assert source
    block = next(block for block in source.blocks if block.where == "Box.area")
    lines = [MODULE[each.start : each.end] for each in block.statements]
    assert [each.role for each in block.statements] == ["docstring", "", "", "", "jump"]
    assert lines[3] == b"        total = scaled(width) + math.sqrt(height)  # roughly\n"


def test_a_name_is_known_from_where_it_is_bound() -> None:
    source = parse(MODULE)
    assert source
    assert [name for name, _ in source.bindings["Box.area"]] == ["width", "height", "total"]
    assert dict(source.bindings["Box.area"])["total"] > MODULE.index(b"total =")


def test_what_is_no_python_is_not_parsed() -> None:
    assert parse(b"x = (") is None
    assert parse(b"\xff") is None
    assert parse(b"x = 1\0") is None


def test_nesting_that_would_overflow_the_parser_is_refused_not_fatal() -> None:
    assert parse(b"x = " + b"(" * 100_000 + b"1" + b")" * 100_000) is None
    assert parse(b"x = " + b"a + " * 1_000 + b"1") is None


def test_nested_finally_clauses_are_not_compiled_which_would_take_for_ever() -> None:
    lines = ["x = 1"]
    for _ in range(40):
        lines = ["try:", " x = 1", "finally:", *(f" {line}" for line in lines)]
    assert compiles("\n".join(lines).encode())
    assert not compiles(b"try:\n    x = 1\nfinally:\n")


GUESSED = b"""\
WIDTH = 0.5
COUNT = 8
SIZES = [1, 2]


def f(points, n, x):
    for point in points:
        y = x * WIDTH
    return points[:n], [SIZES[i] for i in range(COUNT)], point
"""


def test_a_name_is_guessed_to_be_a_number_a_count_or_something_with_parts() -> None:
    def fitting(old: str) -> set[str]:
        names = ("WIDTH", "COUNT", "SIZES", "points", "n", "x", "point")
        return {new for new in names if new != old and fits(GUESSED, "f", old, new)}

    assert fitting("n") == {"COUNT", "point"}
    assert fitting("x") == {"WIDTH", "COUNT", "n", "point"}
    assert fitting("points") == {"SIZES", "point"}
    assert not is_number(GUESSED, "f", "SIZES")
    assert is_number(GUESSED, "f", "point")  # nobody knows


@pytest.mark.filterwarnings("error")
def test_guessing_says_nothing_of_escapes_on_the_terminal() -> None:
    assert is_number(b"odd = '\\d'; n = 1\n", "", "n")


def test_nesting_that_is_too_deep_to_guess_leaves_names_unknown() -> None:
    assert fits(b"x = " + b"-" * 900 + b"1\nz = []\n", "", "x", "z") in (True, False)


def test_patterns_are_left_alone_but_not_their_guards() -> None:
    found = parse(b"match a:\n    case " + b"(" * 60 + b"x" + b")" * 60 + b" if x > 2: pass\n")
    assert found
    assert [site.text for site in found.sites["number"]] == ["2"]
    assert [site.text for site in found.sites["condition"]] == ["x > 2"]


PARENTHESES = b"""\
def f(a, b, c):
    if not (a):
        a = ((b)) * (c  # why
            ) and (a) or c
    elif a < (b) is not c not  in (a,): return (1, 2)
    a = 1; b += (2); \\
        c = 3 # both
    return 'a' 'b', '''c''', "d"
"""


def test_what_stands_between_operands_is_read_from_the_text() -> None:
    found = parse(PARENTHESES)
    assert found
    assert [site.text for site in found.sites["operator"]] == ["or", "and", "*", "<", "is not", "not  in", "+="]
    product = "((b)) * (c  # why\n            )"
    assert [site.parts for site in found.sites["binary"]] == [
        (f"{product} and (a)", "c"),
        (product, "(a)"),
        ("(b)", "(c)"),
    ]
    assert [site.parts for site in found.sites["condition"]] == [("(a)",), ()]
    assert [site.text for site in found.sites["literal"]] == ["'''c'''", '"d"']


def test_statements_that_share_a_line_are_one() -> None:
    found = parse(PARENTHESES)
    assert found
    assert [len(block.statements) for block in found.blocks] == [3, 1], "what follows a head in its line is no block"
    assert [each.text for each in found.blocks[0].statements][1:] == [
        "a = 1; b += (2); \\\n        c = 3",
        "return 'a' 'b', '''c''', \"d\"",
    ]


def test_a_module_that_is_too_large_is_not_parsed() -> None:
    assert parse(b"X = 1\n" * (MAX_SOURCE_BYTES // 6))
    assert parse(b"X = 1\n" * (MAX_SOURCE_BYTES // 6 + 1)) is None
