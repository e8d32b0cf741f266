from __future__ import annotations

import random

from evogit.agents import OperatorCredit
from evogit.breeding.credit import OPERATOR_WINDOW, OperatorCredits
from evogit.core import Entry, Evaluated, Evaluation, Event, Metric, Proposed
from evogit.history import History
from evogit.testing import run_started


class Bred:
    """A history of candidates that each say how they were made."""

    def __init__(self) -> None:
        self.history = History("r")
        self.add(run_started(metrics=(Metric(name="m", direction="maximize", primary=True),)))
        self.seed = self.born(0.0, "")

    def add(self, event: Event) -> None:
        self.history.apply(
            Entry(id=f"{self.history.seq:040x}", host="h", seq=self.history.seq + 1, time=0, event=event)
        )

    def born(self, value: float | None, strategy: str, parent: str = "") -> str:
        commit = f"{len(self.history.phylogeny):040x}"
        self.add(
            Proposed(
                engine="e",
                move=len(self.history.phylogeny),
                candidate=commit,
                tree=commit,
                parents=(parent,) if parent else (),
                agent="a1",
                operator="mutation" if parent else "seed",
                strategy=strategy,
            )
        )
        metrics = {} if value is None else {"m": value}
        self.add(
            Evaluated(
                candidate=commit, evaluation=Evaluation(status="crashed" if value is None else "ok", metrics=metrics)
            )
        )
        return commit


def test_each_way_is_counted_and_pays_where_the_child_is_better_than_its_parent() -> None:
    run = Bred()

    better = run.born(1.0, "perturb_number@0.01+swap_name", run.seed)
    run.born(1.0, "perturb_number@0.1", better)
    run.born(None, "swap_name", better)
    run.born(2.0, "", run.seed)

    assert OperatorCredits().of(run.history) == {
        "perturb_number": OperatorCredit(2, 1),
        "perturb_number@0.01": OperatorCredit(1, 1),
        "perturb_number@0.1": OperatorCredit(1, 0),
        "swap_name": OperatorCredit(2, 1),
    }


def test_what_paid_long_ago_is_forgotten() -> None:
    run = Bred()
    run.born(1.0, "swap_name", run.seed)
    for _ in range(OPERATOR_WINDOW):
        run.born(0.0, "swap_call", run.seed)

    assert OperatorCredits().of(run.history) == {"swap_call": OperatorCredit(OPERATOR_WINDOW, 0)}


def test_candidates_that_wait_for_their_evaluation_teach_nothing() -> None:
    run = Bred()
    run.add(
        Proposed(
            engine="e",
            move=1,
            candidate="f" * 40,
            tree="f" * 40,
            parents=(run.seed,),
            agent="a1",
            operator="mutation",
            strategy="swap_name",
        )
    )

    assert OperatorCredits().of(run.history) == {}


def test_credit_that_is_kept_up_to_date_is_what_one_look_at_all_finds() -> None:
    run, credits = Bred(), OperatorCredits()
    rng = random.Random(1)
    commits = [run.seed]
    for number in range(2 * OPERATOR_WINDOW):
        way = rng.choice(["swap_name", "swap_call", "perturb_number@0.1"])
        commits.append(run.born(rng.choice([None, 0.0, rng.random()]), way, rng.choice(commits)))
        if number % 7 == 0:  # judged again, which moves the mean
            again = Evaluation(status="ok", metrics={"m": 2.0}, repeat=1)
            run.add(Evaluated(candidate=rng.choice(commits), evaluation=again))
        if number % 5 == 0:
            assert credits.of(run.history) == OperatorCredits().of(run.history)
