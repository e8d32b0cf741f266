from __future__ import annotations

import pytest

from evogit.agents import FileContents
from evogit.agents.mutation.mutator import mutate
from evogit.source.marks import blocks, keeps_marks, may_change

MARKED = b"""\
A = 1.5
# EVOLVE-BLOCK-START
B = 2.5
# EVOLVE-BLOCK-END
C = 3.5
    // EVOLVE-BLOCK-START (more)
D = 4.5
    // EVOLVE-BLOCK-END
"""


def test_what_stands_between_marks_may_change() -> None:
    assert [MARKED[start:end] for start, end in blocks(MARKED)] == [b"B = 2.5\n", b"D = 4.5\n"]
    place = MARKED.index(b"2.5")
    assert may_change(MARKED, place, place + 3)
    assert not may_change(MARKED, 0, 1)
    assert may_change(b"no marks\n", 0, 1)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (MARKED, MARKED.replace(b"2.5", b"7\nE = 8"), True),
        (MARKED, MARKED.replace(b"3.5", b"7"), False),
        (MARKED, MARKED.replace(b"# EVOLVE-BLOCK-END\n", b""), False),
        (MARKED, None, False),
        (b"no marks\n", b"", True),
        (b"# EVOLVE-BLOCK-END\nx\n# EVOLVE-BLOCK-START\n", b"y", True),
        (b'say("EVOLVE-BLOCK-START")\n', b"y", True),
    ],
)
def test_what_stands_outside_of_marks_stays(old: bytes, new: bytes | None, kept: bool) -> None:
    assert keeps_marks(old, new) is kept


def test_the_mutator_edits_between_marks_alone() -> None:
    files: FileContents = {"main.py": MARKED.replace(b"    //", b"#")}
    for seed in range(60):
        assert keeps_marks(files["main.py"], mutate(files, {}, seed).changes["main.py"])
