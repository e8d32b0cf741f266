"""What merges and grafts brought, counted from histories, and which strategies an agent may use."""

from __future__ import annotations

from msgspec.structs import replace

from evogit.review.reporting import merge_statistics
from evogit.selection.merge_strategies import SETTLED_HERE, STRATEGIES, available
from evogit.testing import RecordedHistory

AGENTS = ("a1", "a2", "a3")


def test_merges_are_counted_by_strategy() -> None:
    run = RecordedHistory(agents=AGENTS)
    seed = run.add(1.0)
    a, b = (run.add(value, seed) for value in (2.0, 3.0))
    run.add(4.0, b, a, strategy="fitter")
    run.add(2.5, b, a, strategy="fitter", conflicts=3)
    run.add("crashed", b, a, strategy="random", conflicts=1)
    run.add(9.0, b, a, strategy="exchange")
    run.propose(b, a, strategy="fitter")
    fitter, chance = merge_statistics(run.history)["strategies"]
    assert fitter == {
        "operator": "merge", "strategy": "fitter", "made": 2, "clean": 1, "valid": 2, "better": 1, "gain": 0.25
    }  # fmt: skip
    assert (chance["made"], chance["clean"], chance["valid"], chance["gain"]) == (1, 0, 0, None)


def test_only_who_asks_a_model_may_let_one_decide() -> None:
    population = [{"kind": "mutator", "count": 2}, {"kind": "editor", "model": "m", "count": 1}]
    run = RecordedHistory(agents=AGENTS, settings={"population": population})
    assert [available(run.history, agent) for agent in ("a1", "a2", "a3", "human")] == [
        SETTLED_HERE,
        SETTLED_HERE,
        STRATEGIES,
        SETTLED_HERE,
    ]
    started = run.history.started
    assert started
    run.append(replace(started, engine="f", agents=("a3",), settings={}))
    assert available(run.history, "a3") == SETTLED_HERE, "the last start counts"
