"""Which cases a piece is known to have a say in, and when nothing of that is used."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evogit.repository import Repository
from evogit.repository.trees import EXECUTABLE, GITLINK, LINK
from evogit.selection.anatomy import Anatomy, Piece
from evogit.selection.linkage import MAX_CHANGES, Linkage
from evogit.source.pieces import WHOLE

from .grown import FLAT, SEED, Grown, constant


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("linkage") / "r")


@pytest.fixture
def grown(repository: Repository) -> Grown:
    return Grown(repository)


def apart(grown: Grown) -> Grown:
    """It is known that A moves the case a, X the case x."""
    grown.grow(constant("A", 1), FLAT | {"a": 1.0}, 0)
    grown.grow(constant("X", 1), FLAT | {"x": 1.0}, 0)
    return grown


def test_a_piece_has_a_say_in_the_cases_that_its_changes_moved(grown: Grown) -> None:
    grown.grow(constant("A", 1), FLAT | {"a": 1.0}, 0)
    assert not grown.linkage.follow(grown.history), "one piece alone teaches nothing that could be used"
    grown.grow(constant("X", 1), FLAT | {"x": -1.0}, 0)
    assert grown.linkage.follow(grown.history)
    assert (grown.cases("one.py", "A"), grown.cases("two.py", "X")) == ({"a"}, {"x"})
    assert grown.cases("one.py", "B") == {"a"}, "of a piece that was never changed alone what is known of its file"
    grown.grow(constant("A", 2), FLAT | {"b": 1.0}, 0)
    assert grown.cases("one.py", "A") == {"a", "b"}


def test_of_several_pieces_the_only_unknown_one_accounts_for_what_no_other_one_does(grown: Grown) -> None:
    both = apart(grown).grow({**constant("A", 3), **constant("Y", 3)}, {"a": 1.0, "b": 1.0, "x": 0.0}, 0)
    assert grown.cases("two.py", "Y") == {"b"}
    grown.grow({"one.py": SEED["one.py"].replace(b"B = 0", b"B = 5"), **constant("Y", 4)}, FLAT, both)
    assert grown.cases("one.py", "B") == {"a"}, "nobody knows which of the two moved what"


@pytest.mark.parametrize("path", ["notes.txt", "new.bin", "gone.py"])
def test_a_file_that_is_no_module_or_comes_or_goes_is_one_piece(grown: Grown, path: str) -> None:
    start = grown.grow({"gone.py": b"A = 1\n"}, FLAT, 0)
    change = {"notes.txt": b"+\n", "new.bin": b"\0\xff", "gone.py": None}[path]
    grown.grow({path: change}, FLAT | {"b": 1.0}, start)
    assert grown.cases(path, WHOLE) == {"b"}


@pytest.mark.parametrize("what", ["merge", "invalid", "other cases", "fewer cases", "one case"])
def test_what_tells_nothing_teaches_nothing(grown: Grown, what: str) -> None:
    child: dict[str, Any] = {"cases": FLAT | {"b": 1.0}, "operator": None}
    child |= {"invalid": {"cases": None}, "other cases": {"cases": {"a": 1.0, "b": 0.0, "z": 0.0}}}.get(what, {})
    child |= {"fewer cases": {"cases": {"a": 1.0}}, "merge": {"operator": "merge"}}.get(what, {})
    if what == "one case":
        child["cases"] = {"b": 1.0}
        grown.judge(0, 0.0, cases={"b": 0.0})
    grown.grow(constant("Y", 1), child["cases"], 0, operator=child["operator"])
    assert grown.cases("two.py", "Y") == set()


def test_where_scores_are_noisy_nothing_is_learned(grown: Grown) -> None:
    apart(grown)
    assert grown.linkage.follow(grown.history)
    grown.history.repeats = 2
    assert not grown.linkage.follow(grown.history)
    assert Linkage(grown.anatomy).packing(grown.history, grown.ids[0]) is None


def test_a_changed_task_begins_anew(grown: Grown) -> None:
    apart(grown).change_task()
    assert not grown.linkage.follow(grown.history)
    for number in range(3):
        grown.judge(number, 1.0, cases={"p": float(number == 1), "q": 0.0, "r": float(number == 2)})
    assert (grown.cases("one.py", "A"), grown.cases("two.py", "X")) == ({"p"}, {"r"})


@pytest.mark.slow
def test_the_more_mutations_are_invalid_the_fewer_are_tried_at_once(grown: Grown) -> None:
    apart(grown)
    most = []
    for number in range(40):
        packing = grown.linkage.packing(grown.history, grown.ids[0])
        most.append(packing.most if packing else 1)
        grown.grow(constant("B", number + 1), None, 0)
    assert (most[0], most[-1]) == (MAX_CHANGES, 1)
    assert most == sorted(most, reverse=True)
    assert grown.linkage.packing(grown.history, grown.ids[-1]) is None, "the parent is not valid"


def test_changes_whose_cases_are_unknown_or_all_are_not_put_together(grown: Grown) -> None:
    packing = apart(grown).linkage.packing(grown.history, grown.ids[0])
    assert packing is not None
    one, two, new = Piece("one.py", "A"), Piece("two.py", "X"), Piece("new.py", "Z")
    assert packing.cases({one: "1", two: "2"}) == {"a", "x"}
    assert packing.cases({one: "1", new: "2"}) is None
    assert packing.cases({}) is None
    grown.grow(constant("X", 5), {"a": 1.0, "b": 1.0, "x": 0.0}, 0)
    assert packing.cases({two: "2"}) == {"x"}, "what is learnt later does not matter"
    assert grown.linkage.packing(grown.history, grown.ids[0]) is None, "no two pieces are apart any more"
    grown.grow(constant("Y", 5), FLAT | {"b": 1.0}, 0)
    now = grown.linkage.packing(grown.history, grown.ids[0])
    assert now is not None
    assert now.cases({two: "2"}) is None, "it would be all"


def test_links_submodules_modes_and_large_files_are_whole_pieces(grown: Grown) -> None:
    trees = grown.repository.trees
    blob = trees.write_blob(b"two.py")
    kinds = {
        "link": (LINK, blob),
        "module": (GITLINK, "1" * 40),
        "two.py": (EXECUTABLE, trees.write_blob(SEED["two.py"])),
    }
    for number, (path, entry) in enumerate(kinds.items(), 1):
        case = FLAT | {"abx"[number - 1]: 1.0}
        child = grown.grow({}, case, 0, tree=trees.with_entries(grown.commit(0), {path: entry}))
        assert grown.anatomy.differing(grown.history, grown.ids[0], grown.ids[child]) == {Piece(path, WHOLE)}
        assert grown.cases(path, WHOLE) == {"abx"[number - 1]}
        again = grown.anatomy.tree(grown.history, grown.ids[0], grown.ids[child], {Piece(path, WHOLE)})
        assert again == grown.commit(child)
    packing = grown.linkage.packing(grown.history, grown.ids[0])
    assert packing is not None
    assert not packing.is_known({Piece("one.py", "A"): "?"}, frozenset("abx")), "looks at all of them"


NAMES = ["A", "B", "X", "Y"]
EVENTS = st.one_of(
    st.tuples(
        st.just("child"), st.integers(0, 20), st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=3)
    ),
    st.tuples(st.just("child"), st.integers(0, 20), st.just({"A": 1}) | st.just({"X": 1})),
    st.tuples(st.just("waiting"), st.integers(0, 20)),
    st.tuples(st.just("judge"), st.integers(0, 20), st.integers(0, 3)),
    st.tuples(st.just("broken"), st.integers(0, 20)),
    st.tuples(st.just("holdout"), st.integers(0, 20)),
    st.tuples(st.just("change-task")),
    st.tuples(st.just("ask")),
)


def happen(grown: Grown, event: tuple[Any, ...]) -> None:
    kind, *known = event
    who = known[0] % len(grown.ids) if known else 0
    rng = random.Random(str(event))
    if kind == "child":
        files = grown.content(grown.commit(who))
        lines = {"one.py": files["one.py"].splitlines(True), "two.py": files["two.py"].splitlines(True)}
        places = {"A": ("one.py", 0), "B": ("one.py", 2), "X": ("two.py", 0), "Y": ("two.py", 1)}
        for name, value in known[1].items():
            path, line = places[name]
            lines[path][line] = f"{name} = {value}\n".encode()
        moved = {case: float(rng.randrange(2)) for case in rng.sample("abx", 2)}
        grown.grow(
            {path: b"".join(text) for path, text in lines.items()}, None if rng.random() < 0.2 else FLAT | moved, who
        )
    elif kind == "waiting":
        grown.place(grown.commit(who), who)
    elif kind == "judge":
        grown.judge(who, float(known[1]) or None, cases=FLAT | {"a": float(known[1])})
    elif kind == "broken":
        grown.judge(who, None, status="evaluator-error")
    elif kind == "holdout":
        grown.judge(who, 1.0, split="holdout", cases={"h": 1.0})
    elif kind == "change-task":
        grown.change_task()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(events=st.lists(EVENTS, min_size=8, max_size=30))
def test_what_was_learnt_on_the_way_equals_what_all_of_it_teaches(
    tmp_path_factory: Any, events: list[tuple[Any, ...]]
) -> None:
    folder: Path = tmp_path_factory.getbasetemp() / "learnt"
    grown = Grown(Repository.open(folder) if folder.exists() else Repository.create(folder))
    for event in events:
        happen(grown, event)
        if event[0] == "ask":
            grown.linkage.follow(grown.history)
    anew = Linkage(Anatomy(grown.repository))
    assert grown.linkage.follow(grown.history) == anew.follow(grown.history)
    assert grown.linkage.links == anew.links
    for commit in grown.ids:
        now, then = grown.linkage.packing(grown.history, commit), anew.packing(grown.history, commit)
        assert (now and (now.most, now.links, now.judged)) == (then and (then.most, then.links, then.judged))
