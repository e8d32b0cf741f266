"""What was taken over from candidates that an agent was shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.breeding.inspirations import Inspirations
from evogit.history import History
from evogit.repository.journal_records import decode, encode
from evogit.testing import RecordedRun

SEED = "def solve(points):\n    return [0.0 for _ in points]\n"
RELAX = """\
def relax(points, radii, rate):
    for step in range(MAX_STEPS):
        forces = [push(each, points, radii) for each in points]
        points = [move(each, force, rate) for each, force in zip(points, forces)]
    return points
"""
SWEEP = """\
def sweep(points):
    borders = [min(x, y, 1.0 - x, 1.0 - y) for x, y in points]
    return [shrink(border, index) for index, border in enumerate(borders)]
"""
HOP = "def hop(points, scale):\n    return [jitter(each, scale * temperature()) for each in points]\n"


class Family:
    """Children of one seed, and what a new child of it has of them."""

    def __init__(self, folder: Path) -> None:
        self.run = RecordedRun(folder)
        self.seed = self.run.add_files({"a.py": SEED.encode()}, value=1.0)

    def child(self, text: str, *parents: str) -> str:
        return self.run.add_files({"a.py": text.encode()}, *(parents or (self.seed,)), value=2.0)

    def of(self, files: dict[str, str], *shown: str, parents: tuple[str, ...] = ()) -> tuple[str, ...]:
        repository, history = self.run.repository, self.run.history
        tree = repository.trees.write(
            repository.tree_of(self.seed), {path: text.encode() for path, text in files.items()}
        )
        return Inspirations(repository, history).of(tree, parents or (self.seed,), shown)


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path / "repo")


def test_what_was_copied_is_found_and_what_was_only_shown_is_not(family: Family) -> None:
    relaxed, swept = family.child(SEED + RELAX), family.child(SWEEP + SEED)
    assert family.of({"a.py": SEED + RELAX + HOP}, relaxed, swept) == (relaxed,)
    assert family.of({"a.py": SWEEP + SEED + RELAX}, swept, relaxed) == (relaxed, swept)
    assert family.of({"a.py": SEED + HOP}, relaxed, swept) == ()
    assert family.of({"a.py": SEED + RELAX}) == ()


def test_another_file_and_other_indentation_hide_nothing(family: Family) -> None:
    relaxed = family.child(SEED + RELAX)
    moved = "class Relaxed:\n" + "".join(f"    {line}\n" for line in RELAX.splitlines())
    assert family.of({"a.py": SEED, "b.py": moved}, relaxed) == (relaxed,)


def test_lines_belong_to_the_oldest_that_has_them(family: Family) -> None:
    relaxed = family.child(SEED + RELAX)
    copied = family.child(SEED + RELAX + HOP)
    assert family.of({"a.py": SEED + RELAX + SWEEP}, copied, relaxed) == (relaxed,)
    assert family.of({"a.py": SEED + RELAX + HOP + SWEEP}, copied, relaxed) == (relaxed, copied)
    assert family.of({"a.py": SEED + RELAX + SWEEP}, copied) == (copied,)


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (f"import math\n{SEED}{RELAX}", f"import math\n{SEED}{SWEEP}"),
        (SEED + RELAX, SEED + SWEEP + "    return points\n"),
        (f"RATE = 0.25\n{SEED}", f"RATE = 0.25\n{SEED}"),
        (SEED + RELAX.splitlines(keepends=True)[0], SEED.replace("0.0", "1.0")),
    ],
    ids=["an import", "a common line", "a number", "nothing"],
)
def test_what_two_may_write_by_chance_is_no_inspiration(family: Family, theirs: str, mine: str) -> None:
    assert family.of({"a.py": mine}, family.child(theirs)) == ()


def test_what_a_parent_has_is_from_the_parent(family: Family) -> None:
    relaxed = family.child(SEED + RELAX)
    shown = family.child(SEED + RELAX + HOP)
    assert family.of({"a.py": SEED + RELAX + SWEEP}, shown, parents=(relaxed,)) == ()
    swept = family.child(SEED + SWEEP)
    assert family.of({"a.py": SEED + RELAX + SWEEP}, shown, parents=(swept, relaxed)) == ()


def test_a_journal_without_inspirations_reads_as_before_and_one_with_them_names_known_candidates(
    family: Family,
) -> None:
    run = family.run
    shown, brought = family.child(SEED + RELAX), family.child(SEED + SWEEP)
    child = run.propose(family.seed, shown=(shown, brought, "f" * 40), inspirations=(brought, "f" * 40))
    again = History("r")
    again.extend(run.entries)
    for history in (run.history, again):
        assert history.shown == {child: (shown, brought)}
        assert history.inspirations == {child: (brought,)}
        assert history.origins(child) == (family.seed, brought)
        assert history.origins(shown) == (family.seed,)
    told = [encode(entry.event, entry.seq) for entry in run.entries]
    assert ["shown" in each for each in told] == [entry.event is run.entries[-1].event for entry in run.entries]
    assert [decode(each)[0] for each in told] == [entry.event for entry in run.entries]
