from __future__ import annotations

import random

from evogit.agents import OperatorCredit
from evogit.breeding.credit import OPERATOR_WINDOW, OperatorCredits
from evogit.testing import RecordedHistory


def test_each_way_is_counted_and_pays_where_the_child_is_better_than_its_parent() -> None:
    run = RecordedHistory()
    seed = run.add(0.0)

    better = run.add(1.0, seed, strategy="perturb_number@0.01+swap_name")
    run.add(1.0, better, strategy="perturb_number@0.1")
    run.add("crashed", better, strategy="swap_name")
    run.add(2.0, seed, strategy="")

    assert OperatorCredits().of(run.history) == {
        "perturb_number": OperatorCredit(2, 1),
        "perturb_number@0.01": OperatorCredit(1, 1),
        "perturb_number@0.1": OperatorCredit(1, 0),
        "swap_name": OperatorCredit(2, 1),
    }


def test_what_paid_long_ago_is_forgotten() -> None:
    run = RecordedHistory()
    seed = run.add(0.0)
    run.add(1.0, seed, strategy="swap_name")
    for _ in range(OPERATOR_WINDOW):
        run.add(0.0, seed, strategy="swap_call")

    assert OperatorCredits().of(run.history) == {"swap_call": OperatorCredit(OPERATOR_WINDOW, 0)}


def test_candidates_that_wait_for_their_evaluation_teach_nothing() -> None:
    run = RecordedHistory()
    seed = run.add(0.0)
    run.propose(seed, strategy="swap_name")
    assert OperatorCredits().of(run.history) == {}


def test_credit_that_is_kept_up_to_date_is_what_one_look_at_all_finds() -> None:
    run, credits = RecordedHistory(), OperatorCredits()
    rng, commits = random.Random(1), [run.add(0.0)]
    for number in range(2 * OPERATOR_WINDOW):
        way = rng.choice(["swap_name", "swap_call", "perturb_number@0.1"])
        commits.append(run.add(rng.choice(["crashed", 0.0, rng.random()]), rng.choice(commits), strategy=way))
        if number % 7 == 0:  # judged again, which moves the mean
            run.evaluate(rng.choice(commits), 2.0, repeat=1)
        if number % 5 == 0:
            assert credits.of(run.history) == OperatorCredits().of(run.history)
