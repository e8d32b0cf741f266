"""Several changes in one candidate: only what is evaluated apart, and nothing that is known."""

from __future__ import annotations

import pytest

from evogit.agents import Proposal
from evogit.breeding.combined_changes import DRAWN, packed
from evogit.repository import Repository
from tests.selection.grown import FLAT, SEED, Grown, constant


class Nest(Grown):
    """A, B and X are known to move the cases a, b and x, on the seed and in this order."""

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        for name, case in (("A", "a"), ("B", "b"), ("X", "x")):
            self.grow(constant(name, 1), FLAT | {case: 1.0}, 0)

    def propose(self, *changes: dict[str, bytes | None], parent: int = 0) -> Proposal:
        """Of proposals that are made one after the other, those that one candidate tries."""
        packing = self.linkage.packing(self.history, self.ids[parent])
        assert packing is not None
        proposals = (
            Proposal(changes=each, title=f"change {number}", strategy=f"way{number}+way")
            for number, each in enumerate(changes)
        )
        return packed(proposals, self.content(self.history.phylogeny[self.ids[parent]].tree), packing)

    def made(self, *changes: dict[str, bytes | None], parent: int = 0) -> dict[str, bytes | None]:
        return dict(self.propose(*changes, parent=parent).changes)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("packing") / "r")


@pytest.fixture
def nest(repository: Repository) -> Nest:
    return Nest(repository)


def test_changes_that_are_judged_apart_are_one_candidate(nest: Nest) -> None:
    found = nest.propose(constant("A", 5), constant("X", 5))
    assert found.changes == {**constant("A", 5), **constant("X", 5)}
    assert found.title == "change 0 (+1 apart)"
    assert found.strategy == "way0+way+way1", "no more ways than are learnt from"


def test_two_pieces_of_a_file_are_put_together_in_it(nest: Nest) -> None:
    both = SEED["one.py"].replace(b"A = 0", b"A = 5").replace(b"B = 0", b"B = 6")
    assert nest.made(constant("A", 5), constant("B", 6)) == {"one.py": both}
    assert nest.made(constant("B", 6), constant("A", 5)) == {"one.py": both}


def test_what_shares_a_piece_or_a_case_is_left_for_another_time(nest: Nest) -> None:
    assert nest.made(constant("A", 5), constant("A", 6), constant("X", 5)) == {**constant("A", 5), **constant("X", 5)}
    nest.grow(constant("Y", 1), {"a": 1.0, "b": 0.0, "x": 1.0}, 0)
    assert nest.made(constant("Y", 5), constant("A", 5), constant("X", 5)) == constant("Y", 5)


def test_a_file_that_changes_as_a_whole_is_shared_with_nobody(nest: Nest) -> None:
    renamed = {"one.py": SEED["one.py"].replace(b"A", b"AA")}
    gone: dict[str, bytes | None] = {"one.py": None}
    for whole in (renamed, gone):
        assert nest.made(constant("A", 5), whole) == constant("A", 5)
        assert nest.made(whole, constant("A", 5)) == whole


def test_what_nobody_knows_goes_alone(nest: Nest) -> None:
    new: dict[str, bytes | None] = {"new.py": b"N = 1\n"}
    assert nest.made(new, constant("A", 5)) == new
    assert nest.made(constant("A", 5), new) == constant("A", 5)
    everything = {**constant("A", 5), **constant("X", 5), "one.py": SEED["one.py"].replace(b" = 0", b" = 5")}
    assert nest.made(everything, constant("X", 6)) == everything, "it has a say in all cases"


def test_versions_that_were_judged_are_not_judged_again(nest: Nest) -> None:
    assert nest.made(constant("A", 1), constant("X", 1), constant("B", 9)) == constant("B", 9)
    two = {"one.py": SEED["one.py"].replace(b"A = 0", b"A = 1").replace(b"B = 0", b"B = 9")}
    assert nest.made(constant("A", 0), two, parent=1) == two, "the first one is as the seed has it"
    assert nest.made(constant("A", 1)) == constant("A", 1), "nothing else came"
    nest.grow(constant("B", 2), {"a": 1.0, "b": 1.0, "x": 0.0}, 0)
    assert nest.made(constant("A", 1), constant("B", 9)) == constant("B", 9)


def test_what_else_has_a_say_in_the_same_cases_makes_a_version_new(nest: Nest) -> None:
    nest.grow(constant("Y", 1), FLAT | {"x": 1.0}, 0)
    other = nest.grow(constant("Y", 4), FLAT | {"x": 4.0}, 0)
    both = {"two.py": b"X = 1\nY = 4\n"}
    assert nest.made(both, parent=other) == both
    assert nest.made(both, constant("A", 9), parent=other) == {**both, **constant("A", 9)}


def test_from_a_parent_without_a_value_one_change_is_tried_at_a_time(nest: Nest) -> None:
    invalid = nest.grow({}, None, 0)
    assert nest.linkage.packing(nest.history, nest.ids[invalid]) is None


def test_no_more_is_drawn_than_there_is_room_for(nest: Nest) -> None:
    changes = iter([Proposal(changes=constant("A", 1), title="")] * (DRAWN + 5))
    packing = nest.linkage.packing(nest.history, nest.ids[0])
    assert packing is not None
    packed(changes, SEED, packing)
    assert len(list(changes)) == 5


def test_no_more_at_once_than_is_likely_to_be_valid(nest: Nest) -> None:
    for number in range(6):
        nest.grow({"one.py": SEED["one.py"] + b"#%d" % number}, None, 0)
    packing = nest.linkage.packing(nest.history, nest.ids[0])
    assert packing is not None
    assert packing.most < 4
    while packing and packing.most > 2:
        nest.grow({"one.py": SEED["one.py"] + b"#%d" % len(nest.ids)}, None, 0)
        packing = nest.linkage.packing(nest.history, nest.ids[0])
    assert nest.made(constant("A", 5), constant("X", 5), constant("B", 5)) == {**constant("A", 5), **constant("X", 5)}
