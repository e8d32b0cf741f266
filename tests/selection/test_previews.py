"""What is said of merges by the lines of three versions is what Git makes of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evogit.repository import Repository
from evogit.selection.previews import Previews
from evogit.selection.settlers import settler

from .grown import Grown

LINES = [b"line %d\n" % number for number in range(12)]

Edits = list[tuple[int, str]]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("previews"))


def edited(edits: Edits, who: bytes) -> bytes:
    """The lines with some replaced, removed, or with another one behind them; both sides may do the same."""
    lines = list(LINES)
    for number, how in edits:
        line = {"mine": b"%d by %s\n" % (number, who), "same": b"%d anew\n" % number, "gone": b""}
        lines[number] = LINES[number] + line["mine"] if how == "more" else line[how]
    return b"".join(lines)


edits = st.lists(
    st.tuples(st.integers(0, len(LINES) - 1), st.sampled_from(["mine", "same", "gone", "more"])), min_size=1, max_size=4
)


@given(edits, edits, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_lines_that_a_merge_would_leave_are_foreseen(
    repository: Repository, one: Edits, other: Edits, first_wins: bool
) -> None:
    born = Grown(repository, seed={"notes.txt": b"".join(LINES)})
    values = (2.0, 1.0) if first_wins else (1.0, 2.0)
    sides = [
        born.grow({"notes.txt": edited(each, who)}, {"a": value}, 0)
        for each, who, value in zip((one, other), (b"one", b"other"), values, strict=True)
    ]
    previews = Previews(born.anatomy)
    parents = (born.ids[sides[0]], born.ids[sides[1]])
    merger, trees = repository.merger, [born.commit(number) for number in (0, *sides)]
    wins = "ours" if first_wins else "theirs"
    merged = merger.merge(merger.graft(*trees), settler(merger, "", wins, random.Random(0)))
    made = born.grow({}, {"a": 0.0}, *sides, tree=merged.tree)
    told = previews.expected(born.history, parents, born.ids[0])
    assert previews.is_told(born.history, told)
    assert told == previews.expected(born.history, (born.ids[made], born.ids[made]), born.ids[made])
