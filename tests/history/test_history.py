"""What the journals add up to, as a person would count it."""

from __future__ import annotations

from typing import Any

import pytest

from evogit.core import Evaluation, Metric, NotFoundError, RepositoryError, Status
from evogit.events import Adopted, Decision, Duplicate, Evaluated, FailedProposal, Spent
from evogit.history import History
from evogit.testing import RecordedHistory


class Story(RecordedHistory):
    """A history of one-letter candidates; `s` is the seed."""

    def __init__(self) -> None:
        super().__init__(metrics=(Metric(name="m", direction="maximize", primary=True),))

    def born(self, name: str, parents: str = "", value: float | None = None, agent: str = "a1") -> None:
        self.propose(*(parent * 40 for parent in parents), candidate=name * 40, agent=agent)
        if value is not None:
            self.judged(name, value)

    def judged(self, name: str, value: float | Status, **known: Any) -> None:
        self.evaluate(name * 40, value, **known)

    def decide(self, kind: Any, name: str, **known: Any) -> str:  # type: ignore[override]
        return super().decide(kind, name * 40, **known)

    def undo(self, decision: str) -> str:
        return self.append(Decision(kind="undo", by="Ada", undoes=decision))

    @property
    def best(self) -> str:
        return (self.history.best or "-")[0]

    @property
    def pruned(self) -> str:
        return "".join(sorted(commit[0] for commit in self.history.pruned))


@pytest.fixture
def story() -> Story:
    story = Story()
    story.born("s", value=1.0)
    return story


def test_what_counts_and_as_what(story: Story) -> None:
    story.born("a", "s")
    story.judged("a", "evaluator-error")
    assert (story.history.counts.evaluated, list(story.history.pending)) == (1, ["a" * 40])
    story.judged("a", "timeout")
    story.born("b", "s")
    story.judged("b", 2.0, cached=True)
    story.judged("b", 3.0, split="holdout")
    story.append(Duplicate(engine="e", move=7, agent="a1", first="a" * 40))
    story.append(FailedProposal(engine="e", move=8, agent="a1", parents=(), reason="x"))
    counts = story.history.counts
    assert (counts.evaluated, counts.failed, counts.cached) == (3, 1, 1), "seed, failed and cached; not the holdout"
    assert (counts.proposals, counts.proposed, story.history.moves) == (4, 2, 9)
    assert not story.history.pending


def test_a_move_in_which_no_model_said_anything_uses_up_no_proposal(story: Story) -> None:
    def asked(move: int, failure: str = "", tokens: int = 0) -> None:
        story.append(Spent(engine="e", move=move, agent="a1", model="m", failure=failure, prompt=tokens))

    story.born("s", value=1)
    asked(1, "the endpoint answered 503")
    asked(1, "the endpoint answered 503")
    asked(2, "the endpoint answered 503")
    asked(2, tokens=5)
    asked(3, "broke off", tokens=5)
    for move in (1, 2, 3):
        story.append(FailedProposal(engine="e", move=move, agent="a1", parents=("s" * 40,), reason="nothing"))
    assert (story.history.counts.proposals, story.history.counts.charged) == (2, 2)


def test_a_candidate_that_two_engines_judged_counts_once_and_an_error_takes_nothing_back(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.judged("a", 2.0)
    story.judged("a", "evaluator-error")
    assert story.history.counts.evaluated == 2
    assert story.history.fitness("a" * 40) == 2.0
    assert story.history.judged("a" * 40)
    assert not story.history.judged("a" * 40, "holdout")


def test_of_equals_the_earlier_one_stays_the_best(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.born("b", "a", 2.0)
    story.born("c", "b", 1.5)
    assert story.best == "a"
    assert [commit[0] for commit in story.history.records] == ["s", "a"]


def test_pruning_the_best_and_taking_it_back(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.born("b", "a", 3.0)
    story.adopt("b" * 40)
    decision = story.decide("prune", "b")
    assert (story.best, story.history.head("a1")[0]) == ("a", "a"), "its nearest living ancestor stands in"
    story.undo(decision)
    assert (story.best, story.history.head("a1")[0], story.pruned) == ("b", "b", "")


def test_pruning_and_undoing_change_nothing_of_who_was_the_best_when(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.born("b", "a", 4.0)
    story.born("c", "a", 3.0)
    records = story.history.records
    decision = story.decide("prune", "b")
    assert (story.best, story.history.records) == ("c", records)
    story.undo(decision)
    assert (story.best, story.history.records) == ("b", records)
    assert story.history.course.best == story.history.phylogeny.numbers["b" * 40]


def test_the_best_so_far_never_falls_for_a_pruning_that_was_taken_back(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.born("b", "a", 4.0)
    decision = story.decide("prune", "b")
    ids = story.history.phylogeny.ids
    assert [ids[step.best or 0][0] for step in story.history.best_so_far()][-1] == "a"
    story.undo(decision)
    values = [story.history.fitness(ids[step.best or 0]) for step in story.history.best_so_far()]
    assert values == sorted(values)
    assert values[-1] == 4.0


def test_a_pruned_subtree_takes_later_children_with_it_and_a_single_pruning_does_not(story: Story) -> None:
    story.born("a", "s", 2.0)
    single = story.decide("prune", "a")
    story.born("b", "a", 3.0)
    assert (story.pruned, story.best) == ("a", "b")
    story.undo(single)
    story.decide("prune", "a", subtree=True)
    story.born("c", "b", 4.0)
    assert (story.pruned, story.best) == ("abc", "s")
    assert story.history.head("a9")[0] == "s"


def test_undoing_an_undo_puts_the_decision_in_force_again(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.undo(story.undo(story.decide("promote", "a")))
    assert story.history.promoted == {"a" * 40}


def test_told_again_it_is_the_same_history(story: Story) -> None:
    story.born("a", "s", 2.0)
    story.adopt("a" * 40)
    story.undo(story.decide("prune", "a"))
    story.born("b", "sa", 2.0, agent="a2")
    again = History("r")
    again.extend(story.entries)
    for field in ("best", "records", "heads", "pruned", "counts", "pending", "moves", "seq"):
        assert getattr(again, field) == getattr(story.history, field)


def test_a_run_that_has_not_begun_says_so() -> None:
    for question in (lambda h: h.split, lambda h: h.metric, lambda h: h.head("a1")):
        with pytest.raises(NotFoundError, match="begin it with `evogit run`"):
            question(History("r"))


def test_what_another_journal_would_have_told_is_missed_in_a_sentence(story: Story) -> None:
    with pytest.raises(RepositoryError, match="fetch the missing journal"):
        story.append(Evaluated(candidate="z" * 40, evaluation=Evaluation(status="ok", metrics={"m": 1.0})))


def test_who_claims_to_be_valid_without_a_value_is_not(story: Story) -> None:
    story.born("y", "s")
    story.append(Evaluated(candidate="y" * 40, evaluation=Evaluation(status="ok", metrics={"other": 9.0})))
    assert story.history.fitness("y" * 40) is None
    evaluation = story.history.evaluation("y" * 40)
    assert evaluation
    assert (evaluation.status, evaluation.reason) == ("invalid", "there is no m on record")


def test_a_score_that_is_not_believed_any_more_is_replaced_and_counted_once() -> None:
    story = Story()
    story.born("s", value=1.0)
    story.born("a", "s", 5.0)
    story.born("b", "s", 2.0)
    story.append(Adopted(agent="a1", candidate="a" * 40))
    for value in (1.5, None):
        metrics = {} if value is None else {"m": value}
        how = story.history.started.evaluator if story.history.started else ""
        true = Evaluation(status="crashed" if value is None else "ok", metrics=metrics, evaluator=how)
        story.append(Evaluated(candidate="a" * 40, evaluation=true, instead="the worker gpu1 is not believed any more"))
        assert story.history.fitness("a" * 40) == value
    history = story.history
    assert (history.best, history.records) == ("b" * 40, ["s" * 40, "b" * 40])
    assert (history.counts.evaluated, history.counts.failed) == (3, 1)
    assert history.head("a1") == "s" * 40, "what fails does not breed"
    assert not history.pending
