"""Lines that come back after an ancestor took them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.core import Candidate
from evogit.events import Entry, Proposed
from evogit.history import History
from evogit.history.readded_lines import FARTHEST, Readded
from evogit.repository import Repository


class Lineage:
    """Candidates, each bred from the one before; a text is the program."""

    def __init__(self, folder: Path, *texts: str) -> None:
        self.repository = Repository.create(folder)
        self.history = History("r")
        before: tuple[str, ...] = ()
        for number, text in enumerate(texts):
            tree = self.repository.trees.write(None, {"a.py": text.encode(), "hidden": text.encode()})
            commit = self.repository.commit(tree, before, author="a1", time=number, title="t", trailers={})
            operator = "mutation" if before else "seed"
            about = {"candidate": commit, "tree": tree, "parents": before, "agent": "a1", "operator": operator}
            event = Proposed(engine="e", move=number, **about)  # type: ignore[arg-type]
            self.history.apply(Entry(id="", host="h", seq=number + 1, time=0, event=event))
            before = (commit,)

    def of_last(self) -> dict[int, int]:
        """Number of the ancestor -> lines."""
        candidates: list[Candidate] = list(self.history.phylogeny)
        found = Readded(self.repository, self.history, lambda path: path == "a.py").by(candidates[-1])
        return {self.history.phylogeny[commit].number: lines for commit, lines in found.items()}


FIRST, SECOND, THIRD = "first = polish(points)\n", "second = grow(points)\n", "third = 3 * radius\n"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([FIRST + SECOND, FIRST, FIRST + THIRD, FIRST + SECOND + THIRD], {1: 1}),
        ([FIRST + SECOND, FIRST, "", FIRST + SECOND], {2: 1, 1: 1}),
        ([FIRST, FIRST + SECOND, FIRST, FIRST + "    " + SECOND], {2: 1}),
        ([FIRST + SECOND + THIRD, SECOND + THIRD + FIRST, FIRST + SECOND + THIRD], {}),
        ([FIRST, FIRST + "else:\n", FIRST, FIRST + "else:\n"], {}),
        ([FIRST, FIRST + SECOND], {}),
        ([FIRST], {}),
        ([FIRST + SECOND, FIRST, FIRST + SECOND, FIRST, FIRST + SECOND], {3: 1}),
    ],
)
def test_what_came_back_is_told_with_the_ancestor_that_removed_it(
    tmp_path: Path, texts: list[str], found: dict[int, int]
) -> None:
    assert Lineage(tmp_path / "r", *texts).of_last() == found


def test_only_close_ancestors_are_looked_at(tmp_path: Path) -> None:
    middle = [FIRST + f"x{i} = {i} * radius\n" for i in range(FARTHEST + 1)]
    assert Lineage(tmp_path / "r", FIRST + SECOND, FIRST, *middle, FIRST + SECOND).of_last() == {}
