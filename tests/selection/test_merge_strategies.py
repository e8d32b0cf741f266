"""What merges and grafts brought, counted from histories, and which strategies an agent may use."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from evogit.core import Entry, Evaluated, Evaluation, Event, Metric, Proposed, RunStarted
from evogit.history import History
from evogit.review.reporting import merge_statistics
from evogit.selection.merge_strategies import SETTLED_HERE, STRATEGIES, available

START: dict[str, Any] = {
    "task": "",
    "task_digest": "",
    "evaluator": "v",
    "provider": "",
    "image": "",
    "population": "",
    "editable": (),
    "metrics": (Metric(name="m", direction="maximize", primary=True),),
    "split": "train",
}


class Run:
    def __init__(self, **settings: Any) -> None:
        self.history = History("r")
        self.seq = 0
        self.apply(RunStarted(engine="e", agents=("a1", "a2", "a3"), settings=settings, **START))
        self.seed = self.add("mutation", "", (), 1.0)

    def apply(self, event: Event) -> None:
        self.seq += 1
        self.history.apply(Entry(id=f"{self.seq:x}", host="h", seq=self.seq, time=0, event=event))

    def propose(self, operator: Any, strategy: str, parents: tuple[str, ...], conflicts: int = 0) -> str:
        commit = f"{len(self.history.phylogeny):040x}"
        kind = operator if parents else "seed"
        born: dict[str, Any] = {"candidate": commit, "tree": commit, "parents": parents, "conflicts": conflicts}
        self.apply(Proposed(engine="e", move=self.seq, agent="a1", operator=kind, strategy=strategy, **born))
        return commit

    def judge(self, commit: str, value: float | None) -> None:
        ok = Evaluation(status="ok", metrics={"m": value}, evaluator="v") if value is not None else None
        self.apply(Evaluated(candidate=commit, evaluation=ok or Evaluation(status="crashed", evaluator="v")))

    def add(
        self, operator: str, strategy: str, parents: tuple[str, ...], value: float | None, conflicts: int = 0
    ) -> str:
        commit = self.propose(operator, strategy, parents, conflicts)
        self.judge(commit, value)
        return commit


def test_merges_are_counted_by_strategy() -> None:
    run = Run()
    a, b = (run.add("mutation", "", (run.seed,), value) for value in (2.0, 3.0))
    run.add("merge", "fitter", (b, a), 4.0)
    run.add("merge", "fitter", (b, a), 2.5, conflicts=3)
    run.add("merge", "random", (b, a), None, conflicts=1)
    run.add("merge", "exchange", (b, a), 9.0)
    run.propose("merge", "fitter", (b, a))
    fitter, chance = merge_statistics(run.history)["strategies"]
    assert fitter == {
        "operator": "merge", "strategy": "fitter", "made": 2, "clean": 1, "valid": 2, "better": 1, "gain": 0.25
    }  # fmt: skip
    assert (chance["made"], chance["clean"], chance["valid"], chance["gain"]) == (1, 0, 0, None)


def test_rounding_is_no_gain() -> None:
    run = Run()
    a, b = (run.add("mutation", "", (run.seed,), value) for value in (2.0, 3.0))
    run.add("merge", "fitter", (b, a), 3.0 + 1e-15)
    run.add("graft", "fitter", (b, a), 3.0 + 1e-15)
    found = merge_statistics(run.history)
    assert [(each["better"], each["gain"]) for each in found["strategies"]] == [(0, 0.0), (0, 0.0)]


def test_only_who_asks_a_model_may_let_one_decide() -> None:
    population = [{"kind": "mutator", "count": 2}, {"kind": "editor", "model": "m", "count": 1}]
    run = Run(population=population)
    assert [available(run.history, agent) for agent in ("a1", "a2", "a3", "human")] == [
        SETTLED_HERE,
        SETTLED_HERE,
        STRATEGIES,
        SETTLED_HERE,
    ]
    started = run.history.started
    assert started
    run.apply(replace(started, engine="f", agents=("a3",), settings={}))
    assert available(run.history, "a3") == SETTLED_HERE, "the last start counts"
