"""The pieces of a file are the file, whatever stands in it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evogit.source import MAX_SOURCE_BYTES
from evogit.source.definitions import LINE, statements, syntax
from evogit.source.pieces import WHOLE, split

SAMPLE = b"""\
# about it
import os
import sys
A = 1
B: int = 2

@cached
# why
def f(x):
    return x

class C:
    pass

if A:
    B = 3; A = 4
A = 5; print(A)
# the end
"""

LINES = st.sampled_from(
    [
        *(
            "A = 1",
            "B: int = 2",
            "A += 1",
            "x = 1; y = 2;",
            "def f(): return 1",
            "class C:",
            "    pass",
            "@f",
            "'''",
            '"""',
        ),
        *(
            "# note",
            "",
            "\f",
            "\ufeff",
            "(",
            ")",
            "\\",
            "if A: pass",
            "else: pass",
            "é = 'ß'",
            "\0",
            "import os",
            "\x85",
        ),
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", ""])


def whole_parse(content: bytes) -> list[int]:
    """Line feeds in each piece, as parsing the module in one go tells them."""
    try:
        groups = statements(syntax(content.decode()).body)
    except (SyntaxError, ValueError):
        groups = []
    lines = LINE.findall(content.decode(errors="replace"))
    ends = [0, *(group[-1].end_lineno or 0 for group in groups[:-1]), len(lines)]
    return ["".join(lines[start:end]).count("\n") for start, end in pairwise(ends)]


def test_a_module_goes_by_its_names_with_what_stands_above_them() -> None:
    found = split("a.py", SAMPLE)
    assert list(found) == ["import", "import#2", "A", "B", "f", "C", "if", "assign"]
    assert found["f"] == "\n@cached\n# why\ndef f(x):\n    return x\n"
    assert found["assign"] == "A = 5; print(A)\n# the end\n"
    assert "".join(found.values()).encode() == SAMPLE


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.txt", SAMPLE),
        ("py", SAMPLE),
        ("a.py/data", SAMPLE),
        ("a.py", b""),
        ("a.py", b"# nothing\n"),
        ("a.py", b"def f(:\n"),
        ("a.py", b"A = '\xe4'\n"),
        ("a.py", b"\xef\xbb\xbfA = 1\n"),
        ("a.py", b"A = 1\0\n"),
        ("a.py", b"A = 1\n" * (MAX_SOURCE_BYTES // 6 + 1)),
    ],
)
def test_what_is_no_module_that_can_be_parsed_is_one_piece(path: str, content: bytes) -> None:
    assert list(split(path, content)) == [WHOLE]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.binary(max_size=8), st.sampled_from(["a.py", "b.pyi", "c"]))
@example([("A = 1", "\r\n"), ("\f", "\r\n"), ("B = 2", "")], b"", "a.py")
@example([("x = 1 \\", "\r\n"), ("import os", "\r\n")], b"", "a.py")
@example([("if A: pass", "\n"), ("\\", "\n"), ("else: pass", "\n")], b"", "a.py")
@example([("x = 1 \\", "\n"), ("", "\n"), ("y = 2", "\n")], b"", "a.py")
@example([("A = 1", "\n"), ("B = 2", "\n")], b"\xff\n", "a.py")
def test_pieces_join_to_the_file(lines: list[tuple[str, str]], rest: bytes, path: str) -> None:
    content = "".join(line + end for line, end in lines).encode() + rest
    found = split(path, content)
    assert "".join(found.values()).encode(errors="surrogateescape") == content
    if path != "c":
        assert [text.count("\n") for text in found.values()] == whole_parse(content)


@pytest.mark.parametrize(
    "nested", ["(" * 30_000, "-" * 60_000 + "1", "x" + ".a" * 30_000, "[" * 90 + "]" * 90, "a=" * 30_000 + "1"]
)
@pytest.mark.slow
def test_a_hostile_module_is_taken_as_it_is(nested: str) -> None:
    assert "".join(split("a.py", nested.encode()).values()) == nested
