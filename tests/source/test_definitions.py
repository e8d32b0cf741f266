"""Modules merged by whole definitions."""

from __future__ import annotations

import pytest

from evogit.source.definitions import merge_definitions

BASE = '''\
"""Doc."""
import os

N = 1


def f():
    return 1


# what g is for
@staticmethod
def g():
    return 1


class C(object):
    x = 1

    def a(self):
        return 1

    @property
    def p(self):
        return 1

    @p.setter
    def p(self, value):
        pass


if __name__ == "__main__":
    f()
'''


def edit(*changes: tuple[str, str], of: str = BASE) -> bytes:
    for old, new in changes:
        assert old in of
        of = of.replace(old, new, 1)
    return of.encode()


def merged(fitter: bytes, other: bytes) -> tuple[str, int]:
    found = merge_definitions(BASE.encode(), fitter, other)
    assert found is not None
    return found[0].decode(), found[1]


DOUBLE = ("def f():\n    return 1", "def f():\n    a = 2\n    return a")
TRIPLE = ("def f():\n    return 1", "def f():\n    return 3")


def test_what_only_one_side_changed_is_as_it_has_it() -> None:
    fitter, other = (
        edit(DOUBLE, ("N = 1", "N = 5")),
        edit(("@staticmethod\ndef g():\n    return 1", "def g(k):\n    return k")),
    )
    assert merged(fitter, other) == (edit(DOUBLE, ("N = 1", "N = 5"), of=other.decode()).decode(), 0)


def test_of_what_both_changed_the_fitter_one_is_taken_whole() -> None:
    assert merged(edit(DOUBLE), edit(TRIPLE)) == (edit(DOUBLE).decode(), 1)
    assert merged(edit(TRIPLE), edit(DOUBLE)) == (edit(TRIPLE).decode(), 1)


def test_of_a_class_members_count() -> None:
    fitter, other = (
        edit(("x = 1", "x = 2"), ("(object)", "")),
        edit(("def a(self):\n        return 1", "def a(self):\n        return 9")),
    )
    assert merged(fitter, other) == (
        edit(
            ("x = 1", "x = 2"), ("(object)", ""), ("def a(self):\n        return 1", "def a(self):\n        return 9")
        ).decode(),
        0,
    )


def test_bases_of_a_class_that_both_changed_are_a_conflict() -> None:
    fitter, other = (
        edit(("(object)", "(int)"), ("x = 1", "x = 2")),
        edit(("(object)", "(str)"), ("return 1", "return 9")),
    )
    text, conflicts = merged(fitter, other)
    assert conflicts == 1
    assert "class C(int):\n    x = 2" in text


def test_new_ones_of_both_stand_where_they_stood() -> None:
    fitter = edit(("import os\n", "import os\nimport re\n"), ("# what g", "def mine():\n    pass\n\n\n# what g"))
    other = edit(("import os\n", "import os\nimport sys\n"), ("# what g", "def its():\n    pass\n\n\n# what g"))
    text, conflicts = merged(fitter, other)
    assert conflicts == 0
    assert text.index("import re") < text.index("N = 1")
    assert text.index("import sys") < text.index("N = 1")
    assert text.index("def f") < text.index("def its") < text.index("# what g")
    assert text.index("def f") < text.index("def mine") < text.index("# what g")


def test_deleted_here_and_changed_there_is_the_fitter_sides_choice() -> None:
    gone = edit(("def f():\n    return 1\n\n\n", ""))
    assert merged(gone, edit(DOUBLE)) == (gone.decode(), 1)
    assert merged(edit(DOUBLE), gone) == (edit(DOUBLE).decode(), 1)
    assert merged(edit(("N = 1", "N = 2")), gone) == (edit(("N = 1", "N = 2"), of=gone.decode()).decode(), 0)


def test_a_statement_that_both_changed_is_not_there_twice() -> None:
    text, conflicts = merged(edit(("    f()\n", "    f(1)\n")), edit(("    f()\n", "    f(2)\n")))
    assert (text.count("__main__"), conflicts) == (1, 1)
    assert "f(1)" in text


@pytest.mark.parametrize("bad", [b"def f(:\n", b"\xff\xfe", b"a\0b", b"(" * 500 + b")" * 500])
def test_what_cannot_be_read_gives_nothing(bad: bytes) -> None:
    assert merge_definitions(b"", bad, b"a = 1\n") is None
    assert merge_definitions(b"", b"a = 1\n", bad) is None


def test_a_result_that_would_not_compile_gives_nothing() -> None:
    base = b"class A:\n    def x(self): pass\n    def y(self): pass\n"
    assert (
        merge_definitions(
            base, base.replace(b"    def x(self): pass\n", b""), base.replace(b"    def y(self): pass\n", b"")
        )
        is None
    )


def test_lines_that_hold_several_statements_and_odd_line_ends() -> None:
    base = b"a = 1; b = 2\r\n\x0cdef f(): return 1\r\n"
    found = merge_definitions(base, base.replace(b"b = 2", b"b = 3"), base.replace(b"return 1", b"return 5"))
    assert found == (b"a = 1; b = 3\r\n\x0cdef f(): return 5\r\n", 0)


@pytest.mark.parametrize(
    "change",
    [
        DOUBLE,
        ("import os\n", ""),
        ("N = 1\n\n\ndef f", "N = 1\n\ndef f"),
        ("# what g is for\n", ""),
        ("    x = 1\n\n", ""),
        ('if __name__ == "__main__":\n', "else_ = 1\n\nif else_:\n"),
        ("def f():\n    return 1\n\n\n", "\n\n"),
    ],
)
def test_what_one_side_alone_changed_is_byte_for_byte_as_it_is_there(change: tuple[str, str]) -> None:
    changed = edit(change)
    assert merged(changed, BASE.encode()) == (changed.decode(), 0)
    assert merged(BASE.encode(), changed) == (changed.decode(), 0)
