"""The ideas of a run: what counts as one, as a repeat, and how each is told."""

from __future__ import annotations

import pytest

from evogit.events import Duplicate, FailedProposal
from evogit.history.counts import TUNING
from evogit.history.ideas import NO_CHANGE, Idea, by_family, ideas
from evogit.testing import RecordedHistory


def ledger(lab: RecordedHistory) -> dict[str, Idea]:
    return {idea.title: idea for idea in ideas(lab.history)}


@pytest.fixture
def lab() -> RecordedHistory:
    mutators = {"population": [{"kind": "editor", "model": "m", "count": 1}, {"kind": "mutator", "count": 1}]}
    return RecordedHistory(agents=("a1", "a2"), settings=mutators)


def test_an_idea_is_told_by_its_best_try_with_all_of_its_moves(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    first = lab.add(2.0, seed, title="Cool more slowly", family="annealing", reason="It freezes too early.")
    lab.add("crashed", first, title="Cool more slowly!", family="annealing")
    second = lab.add(2.5, seed, title="cool MORE slowly", family="annealing", reason="So it can climb.")
    (idea,) = ideas(lab.history)
    assert (idea.title, idea.candidate, idea.score, idea.gain) == ("cool MORE slowly", second, 2.5, 1.5)
    assert (idea.tries, idea.moves, idea.reason, idea.outcome) == (3, (1, 2, 3), "So it can climb.", "better")
    assert idea.certain


def test_titles_that_share_most_words_are_one_idea_in_their_family_alone(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    for family, title in (
        ("grid", "Sort points into a grid of cells"),
        ("grid", "Sort points into grid cells"),
        ("grid", "Look up neighbours in a hash table"),
        ("sweep", "Sort points into the grid of a sweep"),
        ("sweep", "Sort points into a grid of cells"),
    ):
        lab.add(1.0, seed, title=title, family=family)
    assert [idea.tries for idea in ideas(lab.history)] == [3, 1, 1]
    assert list(by_family(ideas(lab.history))) == ["grid", "sweep"]


def test_a_repeat_counts_unless_its_author_says_how_it_differs(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    lab.add(1.5, seed, title="Two passes", family="passes")
    lab.add(1.4, seed, title="Two passes", family="passes", differs="after the sort")
    lab.add(1.3, seed, title="Two passes", family="passes")
    for number in range(3):
        lab.add(1.0 + number, seed, title=f"SIZE {number}", family=TUNING)
    assert {title: idea.repeats for title, idea in ledger(lab).items()} == {"Two passes": 1, "SIZE 2": 0}


def test_replies_of_no_use_and_known_trees_are_tries_of_ideas_too(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    lab.append(
        FailedProposal(engine="e", move=1, agent="a1", parents=(seed,), reason="no match", title="Sort", family="sort")
    )
    assert ledger(lab)["Sort"].outcome == "unusable: no match"
    made = lab.add(0.5, seed, title="Sort once", family="sort", move=2)
    lab.append(Duplicate(engine="e", move=3, agent="a1", first=made, parents=(seed,), title="Sort", family="sort"))
    lab.append(FailedProposal(engine="e", move=4, agent="a1", parents=(seed,), reason="no reply"))
    told = ledger(lab)
    assert (told["Sort"].outcome, told["Sort"].moves) == ("worse", (1, 3))
    assert told.keys() == {"Sort", "Sort once"}


def test_a_change_that_leaves_its_parent_as_it_is_does_not_take_the_parents_gain(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    parent = lab.add(3.0, seed, title="Sort once")
    for move, first in ((2, parent), (3, seed)):
        lab.append(Duplicate(engine="e", move=move, agent="a1", first=first, parents=(parent,), title=f"Hoist {move}"))
    lab.append(Duplicate(engine="e", move=4, agent="a1", first=parent, parents=(seed,), title="Sort it one time"))
    told = ledger(lab)
    for title in ("Hoist 2", "Hoist 3"):
        idea = told[title]
        assert (idea.candidate, idea.score, idea.gain, idea.outcome) == ("", None, None, NO_CHANGE)
    assert (told["Sort it one time"].candidate, told["Sort it one time"].gain) == (parent, 2.0)


def test_the_candidates_of_all_tries_are_an_ideas(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    made = [lab.add(value, seed, title="Sort once") for value in (3.0, 2.0)]
    (idea,) = ideas(lab.history)
    assert (idea.candidate, idea.candidates) == (made[0], tuple(made))


def test_steps_of_mutators_merges_and_commits_of_people_are_no_ideas(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    editor = lab.add(1.5, seed, title="an idea")
    mutant = lab.add(1.6, seed, title="tune SIZE 3 -> 4", agent="a2")
    lab.add(1.7, editor, mutant, title="merge")
    lab.add(1.8, seed, title="mine", agent="human", engine="", operator="human")
    assert ledger(lab).keys() == {"an idea"}


def test_ideas_of_pruned_candidates_are_withdrawn_and_come_back(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    lab.add(1.2, seed, title="Print a table")
    cheat = lab.add(9.0, seed, title="Print a table")
    only = lab.add(8.0, cheat, title="Print a constant")
    decision = lab.decide("prune", cheat, only)
    assert [(idea.title, idea.score, idea.tries) for idea in ideas(lab.history)] == [("Print a table", 1.2, 1)]
    lab.decide("undo", undoes=decision)
    assert [idea.score for idea in ideas(lab.history)] == [9.0, 8.0]


def test_what_later_moves_brought_is_left_out_where_only_the_past_may_count(lab: RecordedHistory) -> None:
    seed = lab.add(1.0)
    lab.add(1.2, seed, title="early")
    lab.add(1.3, seed, title="late")
    assert [idea.title for idea in ideas(lab.history, until=1)] == ["early"]


def test_an_outcome_within_noise_is_not_certain() -> None:
    lab = RecordedHistory(repeats=2)
    seed = lab.add(1.0)
    child = lab.add(1.05, seed, title="a little better")
    for commit, values in ((seed, (1.2, 0.9)), (child, (1.0, 1.2))):
        for repeat, value in enumerate(values, 1):
            lab.evaluate(commit, value, repeat=repeat)
    (idea,) = ideas(lab.history)
    assert idea.outcome == "within noise"
    assert not idea.certain
