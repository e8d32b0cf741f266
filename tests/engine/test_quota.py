"""Limits are kept by what is in flight, not by what is done."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evogit.config.run_settings import RunLimits
from evogit.core import Metric
from evogit.engine.quota import EXHAUSTED_AFTER, Quota
from evogit.events import Duplicate, FailedProposal, Spent
from evogit.testing import RecordedHistory


class Journal(RecordedHistory):
    """A history whose candidates are named by a digit; the seed is 0."""

    def __init__(self, best_known: float | None = None, seed: float = 9.0, *, bound: bool = False) -> None:
        metric = Metric(name="m", direction="minimize", primary=True, best_known=best_known, bound=bound)
        super().__init__(engine="me", metrics=(metric,))
        self.born("0")
        self.judge("0", seed)

    def born(self, name: str, engine: str = "me") -> None:
        parents = () if name == "0" else ("0" * 40,)
        self.propose(*parents, candidate=name * 40, engine=engine, move=int(name, 16))

    def judge(self, name: str, value: float | None) -> None:
        self.evaluate(name * 40, "evaluator-error" if value is None else value)

    def fail(self) -> None:
        self.append(FailedProposal(engine="me", move=1, agent="a1", parents=(), reason="x"))


def test_evaluations_in_flight_here_and_pending_elsewhere_count_before_they_end() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 2, RunLimits(evaluations=4))
    assert [quota.reserve("a1") for _ in range(4)] == [True, True, True, False], "the seed was one"
    quota.release("a1", new_tree=False)
    journal.born("7", engine="other")
    assert not quota.reserve("a1"), "another engine has the last place"
    assert quota.over() is None
    for name in "123":
        journal.born(name)
        journal.judge(name, 5.0)
    assert quota.over() == "evaluations"


def test_an_error_of_the_evaluator_uses_up_nothing() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 1, RunLimits(evaluations=2))
    journal.born("1")
    journal.judge("1", None)
    assert quota.over() is None
    journal.judge("1", 3.0)
    assert quota.over() == "evaluations"


def test_the_last_check_sees_what_other_engines_took_meanwhile() -> None:
    journal = Journal()
    quotas = [
        Quota(journal.history, "me", 1, RunLimits(evaluations=3)),
        Quota(journal.history, "me", 1, RunLimits(proposals=2)),
    ]
    assert all(quota.reserve("a1") for quota in quotas)
    journal.born("1", engine="other")
    assert not any(quota.full() for quota in quotas)
    journal.born("2", engine="other")
    assert all(quota.full() for quota in quotas)


def test_proposals_count_whether_usable_or_not_and_the_run_waits_for_the_last() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 2, RunLimits(proposals=2))
    assert [quota.reserve("a1") for _ in range(3)] == [True, True, False]
    for _ in range(2):
        journal.fail()
        quota.proposed()
    assert quota.over() is None, "their results are not applied yet"
    for agent in ("a1", "a2"):
        quota.release(agent, new_tree=False)
    assert quota.over() == "proposals"


def test_moves_that_the_end_of_a_run_cut_off_before_a_model_was_asked_use_up_no_proposal() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 1, RunLimits(proposals=2))
    ended = FailedProposal(engine="me", move=1, agent="a1", parents=(), reason="the run ends", ended=True)
    for _ in range(3):
        journal.append(ended)
    assert quota.over() is None
    assert journal.history.counts.charged == 0
    journal.append(Spent(engine="me", move=2, agent="a1", model="m", prompt=9, completion=9))
    journal.append(replace(ended, move=2))
    assert journal.history.counts.charged == 1, "it was asked and paid"


def test_more_of_a_move_is_counted_as_far_as_every_limit_has_room_and_given_back() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 3, RunLimits(evaluations=8, proposals=5))
    assert quota.reserve("a1")
    assert quota.more(3) == 2, "a2 and a3 come first"
    assert quota.reserve("a2")
    assert quota.more(3) == 0
    assert quota.reserve("a3")
    assert not quota.reserve("a1")
    journal.born("1")
    quota.proposed()
    journal.judge("1", 5.0)
    quota.release("a1", new_tree=True, more=2, unused=2)
    assert quota.reserve("a1")
    assert quota.more(9) == 1


@pytest.mark.parametrize(("strategy", "reached"), [("fitter", None), ("pieces", None), ("model", "proposals")])
def test_a_merge_that_asked_nobody_and_made_nothing_uses_up_no_proposal(strategy: str, reached: str | None) -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 1, RunLimits(proposals=1))
    journal.append(Duplicate(engine="me", move=1, agent="a1", first="0" * 40, operator="merge", strategy=strategy))
    assert quota.over() == reached
    journal.born("1")
    assert quota.over() == "proposals"


@pytest.mark.parametrize(("value", "reached"), [(2.0, None), (1.0, "target"), (0.5, "target")])
def test_the_target_is_reached_by_what_is_as_good(value: float, reached: str | None) -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 1, RunLimits(target=1.0))
    journal.born("1")
    journal.judge("1", value)
    assert quota.over() == reached


@pytest.mark.parametrize(
    ("value", "seed", "bound", "beyond", "reached"),
    [
        (3.5, 9.0, True, False, None),
        (3.0, 9.0, True, False, "best-known"),
        (3.0, 9.0, True, True, None),
        (2.0, 3.0, True, False, None),
        (3.0, 9.0, False, False, None),
        (2.0, 9.0, False, False, None),
    ],
)
def test_a_bound_ends_a_run_that_did_not_begin_there_and_a_reference_ends_none(
    value: float, seed: float, bound: bool, beyond: bool, reached: str | None
) -> None:
    journal = Journal(best_known=3.0, seed=seed, bound=bound)
    quota = Quota(journal.history, "me", 1, RunLimits(beyond=beyond))
    journal.born("1")
    journal.judge("1", value)
    assert quota.over() == reached


def test_rounding_is_no_progress() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 1, RunLimits(patience=2))
    for name, value in (("1", 9.0 - 1e-14), ("2", 9.0 - 3e-14)):
        journal.born(name)
        journal.judge(name, value)
    assert (quota.over(), journal.history.best) == ("patience", "0" * 40)


def test_a_slow_agent_gets_its_chance_before_the_run_is_exhausted() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 2)

    def barren(agent: str, times: int) -> None:
        for _ in range(times):
            assert quota.reserve("a1")
            quota.release(agent, new_tree=False)

    barren("quick", 5 * EXHAUSTED_AFTER)
    assert quota.over() is None
    barren("slow", 1)
    assert quota.over() == "exhausted"
    assert quota.reserve("a1")
    quota.release("slow", new_tree=True)
    assert quota.over() is None


def test_who_was_refused_comes_before_those_who_had_a_place_however_often_these_ask() -> None:
    journal = Journal()
    quota = Quota(journal.history, "me", 3, RunLimits(evaluations=3))
    assert [quota.reserve(agent) for agent in ("a1", "a2", "a3")] == [True, True, False]
    quota.release("a1", new_tree=False)
    assert [quota.reserve(agent) for agent in ("a1", "a3")] == [False, True], "a3 had waited"
    quota.release("a3", new_tree=False)
    assert [quota.reserve(agent) for agent in ("a3", "a1")] == [False, True]
    for agent in ("a1", "a2"):
        quota.release(agent, new_tree=False)
    assert [quota.reserve(agent) for agent in ("a1", "a2", "a3", "a1")] == [True, False, True, False]
