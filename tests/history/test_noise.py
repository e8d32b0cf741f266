"""What a noisy run believes: means, intervals, who may be the best, and candidates that fail now and then."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evogit.core import Cost, Evaluation, Metric, Status
from evogit.events import Decision, RunStarted
from evogit.history import History
from evogit.history.leaders import contender, doubtful, is_clock_bound, tied, to_repeat, undecided
from evogit.history.scores import Scores, together
from evogit.stats.scales import LOG
from evogit.testing import RecordedHistory, run_started

METRIC = Metric(name="m", direction="maximize", primary=True)


class Noisy(RecordedHistory):
    """A run of one-letter candidates, whose would-be bests are evaluated twice more; `s` is the seed."""

    def __init__(self, repeats: int = 2) -> None:
        super().__init__(metrics=(METRIC,), repeats=repeats)
        self.start = run_started(metrics=(METRIC,))

    def judged(
        self, name: str, *values: float | Status, split: str = "train", begin: int = 0, cost: Cost | None = None
    ) -> None:
        """The candidate is evaluated so often, with these values or failures; born first if need be."""
        if name not in self.history.phylogeny:
            self.propose(*("s" if name != "s" else ""), candidate=name)
        for repeat, value in enumerate(values, start=begin):
            self.evaluate(name, value, split=split, repeat=repeat, cost=cost or Cost())


@pytest.fixture
def run() -> Noisy:
    run = Noisy()
    run.judged("s", 1.0, 2.0, 3.0)
    return run


def test_the_fitness_is_the_mean_and_has_an_interval(run: Noisy) -> None:
    history = run.history
    assert (history.fitness("s"), history.best) == (2.0, "s")
    assert history.interval("s") == pytest.approx((2 - 2.484, 2 + 2.484), abs=0.01)
    assert (history.counts.evaluated, history.counts.repeated) == (1, 2)


def test_nothing_is_known_of_the_noise_before_the_first_repeat_and_exact_scores_have_none() -> None:
    run, exact = Noisy(), Noisy(repeats=0)
    run.judged("s", 1.0)
    run.judged("a", 9.0)
    assert run.history.interval("s") == (-math.inf, math.inf)
    assert not run.history.surely_fitter("a", "s")
    assert run.history.no_worse("s", "a")
    exact.judged("s", 1.0)
    exact.judged("a", 1.1)
    assert exact.history.interval("s") == (1.0, 1.0)
    assert exact.history.surely_fitter("a", "s")
    assert not exact.history.no_worse("s", "a")


def test_a_lucky_one_is_no_record_before_it_is_believed(run: Noisy) -> None:
    run.judged("a", 9.0)
    assert (run.history.best, run.history.records) == ("s", ["s"])
    run.judged("a", 1.0, 1.0, begin=1)
    assert (run.history.best, run.history.records) == ("a", ["s", "a"]), "3.67 after all repeats"
    run.judged("b", 4.0, 3.0)
    assert run.history.best == "a", "one repeat is left, and the difference is within the noise"


def test_who_is_surely_better_is_believed_early_and_whoever_falls_back_is_the_best_no_more(run: Noisy) -> None:
    run.judged("a", 50.0, 51.0)
    assert run.history.best == "a"
    run.judged("a", -160.0, begin=2)
    assert (run.history.best, run.history.records) == ("s", ["s", "a"])


def test_pruning_and_undoing_leave_the_records_of_a_noisy_run(run: Noisy) -> None:
    run.judged("a", 50.0, 51.0, 50.0)
    run.judged("b", 90.0, 91.0, 90.0)
    run.judged("c", 70.0, 71.0, 70.0)
    assert run.history.records == ["s", "a", "b"]
    pruned = run.append(Decision(kind="prune", by="Ada", candidates=("b",)))
    run.judged("d", 60.0, 61.0, 60.0)
    assert (run.history.best, run.history.records) == ("c", ["s", "a", "b"])
    run.append(Decision(kind="undo", by="Ada", undoes=pruned))
    run.judged("e", 65.0)
    assert (run.history.best, run.history.records) == ("b", ["s", "a", "b"])


def test_the_best_is_judged_again_before_a_contender_that_is_known_better() -> None:
    run = Noisy(repeats=3)
    run.judged("s", 1.0, 2.0, 3.0, 2.0)
    run.judged("a", 50.0, 51.0)
    run.judged("b", 52.0, 51.0)
    assert (run.history.best, contender(run.history), to_repeat(run.history)) == ("a", "b", "b")
    run.judged("b", 51.0, begin=2)
    assert (run.history.best, contender(run.history), to_repeat(run.history)) == ("a", "b", "a")
    run.judged("a", 50.0, begin=2)
    assert to_repeat(run.history) == "b"


def test_a_candidate_that_fails_now_and_then_is_flaky_and_neither_best_nor_parent(run: Noisy) -> None:
    run.judged("a", 50.0, 51.0, "evaluator-error")
    assert run.history.best == "a"
    run.judged("a", "crashed", begin=2)
    told = run.history.evaluation("a")
    assert told
    assert (told.status, told.metrics, run.history.best, run.history.fitness("a")) == ("flaky", {}, "s", None)
    assert told.reason.startswith("failed 1 of 3 times (crashed")
    assert (run.history.counts.failed, run.history.counts.evaluated) == (1, 2)
    run.history.heads["a1"] = "a"
    assert run.history.head("a1") == "s"


def test_repeats_are_told_as_one_with_means_of_what_all_have_and_what_they_cost() -> None:
    one = Evaluation(
        status="ok", metrics={"m": 1.0, "n": 5.0}, cases={"x": {"m": 1.0}}, cost=Cost(wall=1, cpu=2, memory=30)
    )
    more: dict[str, Any] = {"metrics": {"m": 3.0}, "cases": {"x": {"m": 3.0}, "y": {"m": 9.0}}}
    other = Evaluation(status="ok", repeat=1, cost=Cost(wall=2, cpu=3, memory=20), cached=True, **more)
    told = together([one, other, Evaluation(status="evaluator-error", repeat=2, cost=Cost(wall=99))])
    assert (told.metrics, told.cases) == ({"m": 2.0}, {"x": {"m": 2.0}})
    assert (told.cost, told.cached, told.repeat) == (Cost(wall=3, cpu=5, memory=30), False, 0)


def test_a_pruned_best_gives_way_and_comes_back(run: Noisy) -> None:
    run.judged("a", 50.0, 51.0, 50.0)
    decision = run.append(Decision(kind="prune", by="Ada", candidates=("a",)))
    assert run.history.best == "s"
    run.append(Decision(kind="undo", by="Ada", undoes=decision))
    assert (run.history.best, run.history.records) == ("a", ["s", "a"])


def test_noise_that_was_measured_stays_when_the_task_says_nothing_of_it_any_more(run: Noisy) -> None:
    run.judged("a", 9.0)
    run.append(run.start)
    assert (run.history.best, contender(run.history), run.history.repeats) == ("s", "a", 3)


def test_repeats_end_once_those_of_the_seed_agree() -> None:
    run = Noisy(repeats=2)
    run.judged("s", 1.0, 1.0)
    assert run.history.repeats == 2
    run.judged("s", 1.0, begin=2)
    run.judged("a", 2.0)
    run.judged("b", 2.0 + 1e-9)
    assert (run.history.repeats, run.history.best, run.history.records) == (0, "b", ["s", "a", "b"])
    assert (contender(run.history), tied(run.history), run.history.interval("b")) == (None, [], (2 + 1e-9, 2 + 1e-9))
    run.judged("b", 2.5, begin=1)
    assert (run.history.repeats, run.history.best, contender(run.history)) == (2, "b", "b"), "another value: noise"
    assert run.history.interval("a") != (2.0, 2.0)


def test_a_best_that_differs_makes_a_run_noisy_that_was_thought_exact() -> None:
    run = Noisy(repeats=0)
    run.judged("s", 1.0)
    run.judged("a", 3.0)
    run.judged("b", 2.9)
    run.judged("a", 2.8, begin=1)
    assert (run.history.repeats, run.history.best, contender(run.history)) == (3, "a", "a"), "it stays the best so far"
    assert not run.history.surely_fitter("a", "b")
    run.judged("c", 9.0)
    assert (run.history.best, contender(run.history)) == ("a", "c")
    run.judged("c", 9.1, begin=1)
    assert run.history.best == "c"
    flaky = Noisy(repeats=0)
    flaky.judged("s", 1.0)
    flaky.judged("a", 3.0, "crashed")
    assert (flaky.history.repeats, flaky.history.best) == (3, "s")


def test_the_best_of_an_imported_run_is_the_fittest_though_some_were_measured_twice() -> None:
    run = Noisy(repeats=0)
    about = {name: getattr(run.start, name) for name in run.start.__struct_fields__}
    run.history = History("r")
    run.append(RunStarted(**about | {"provider": "OpenEvolve", "parts": {"evaluator": "OpenEvolve"}}))
    run.judged("s", 1.0)
    run.judged("a", 2.0, 2.5)
    run.judged("b", 9.0)
    assert (run.history.best, run.history.repeats) == ("b", 0)


def test_one_repeat_is_obeyed_and_nothing_is_better_then() -> None:
    run = Noisy(repeats=1)
    run.judged("s", 1.0, 1.1)
    for name, value in (("a", 50.0), ("b", 80.0), ("c", 99.0)):
        run.judged(name, value, value + 0.1)
    run.judged("d", "crashed")
    assert (run.history.repeats, run.history.best) == (1, "c")
    assert not run.history.surely_fitter("c", "s")
    assert run.history.surely_fitter("s", "d")
    assert sorted(tied(run.history)) == ["a", "b", "s"]
    assert undecided(run.history) is None, "more evaluations would not tell them apart"


def clock(share: float, cpu: float = 6.0, wall: float = 6.0) -> Cost:
    return Cost(cpu=cpu, wall=wall, call_cpu=cpu, call_wall=wall, call_share=share)


@pytest.mark.parametrize(
    ("costs", "bound"),
    [
        ([clock(0.75), clock(0.74, 5.9), clock(0.76, 6.05)], True),
        ([clock(0.75, 2.0), clock(0.74, 3.0), clock(0.76, 6.05)], True),
        ([clock(0.75, wall=6.4), clock(0.74, 5.9, 9.0), clock(0.76, 6.05, 15.0)], True),
        ([clock(0.75), clock(0.74, 3.0, 3.0), clock(0.76, 9.0, 9.0)], False),
        ([clock(0.05), clock(0.05), clock(0.05)], False),
        ([Cost(), Cost(), Cost()], False),
    ],
)
def test_a_search_that_a_clock_ends_is_doubted_until_two_of_its_bests_came_out_alike(
    costs: list[Cost], bound: bool
) -> None:
    run = Noisy(repeats=0)
    run.judged("s", 0.0)
    for number, (name, cost) in enumerate(zip("cba", costs, strict=True)):
        run.judged(name, float(number + 1), cost=cost)
    assert (doubtful(run.history) == "a", is_clock_bound(run.history, "a")) == (bound, bound)
    if bound:
        run.judged("a", 3.0, begin=1, cost=costs[-1])
        assert doubtful(run.history) is None
        run.judged("d", 4.0, 4.0, cost=costs[-1])
        run.judged("e", 5.0, cost=costs[-1])
        assert (run.history.best, doubtful(run.history)) == ("e", None)
        run.judged("e", 4.0, begin=1, cost=costs[-1])
        assert run.history.repeats == 3


def test_a_scale_that_the_task_declares_later_is_taken_over(run: Noisy) -> None:
    run.judged("a", 50.0, 51.0, 50.0)
    before = run.history.interval("a")
    about = {name: getattr(run.start, name) for name in run.start.__struct_fields__} | {"repeats": 2}
    run.append(RunStarted(**about | {"metrics": (replace(METRIC, scale="log"),)}))
    low, high = run.history.interval("a") or (0.0, 0.0)
    assert (run.history.metric.noise, run.history.scores.scale) == ("log", LOG)
    assert high / 50.3 == pytest.approx(50.3 / low, rel=0.01)
    assert (low, high) != before
    run.append(RunStarted(**about))
    assert run.history.interval("a") == before


judgings = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 3),
        st.floats(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["crashed", "timeout"]),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(judgings)
def test_what_is_kept_equals_what_is_computed_anew(found: list[tuple[str, int, float | str]]) -> None:
    scores, latest = Scores(METRIC, "train", repeats=2), dict[tuple[str, int], Evaluation]()
    for name, repeat, value in found:
        ok = not isinstance(value, str)
        status: Any = "ok" if ok else value
        latest[name, repeat] = Evaluation(status=status, metrics={"m": float(value)} if ok else {}, repeat=repeat)
        scores.record(name, latest[name, repeat])
    anew = Scores(METRIC, "train", repeats=2)
    for (name, _), evaluation in sorted(latest.items()):
        anew.record(name, evaluation)
    for name in "abc":
        assert scores.evaluation(name) == anew.evaluation(name)
        assert scores.estimate(name) == anew.estimate(name)
        assert (scores.margin(name), scores.repeated(name)) == (anew.margin(name), anew.repeated(name))
