"""What merges and grafts brought, counted from histories, and which strategies an agent may use."""

from __future__ import annotations

import pytest
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


def test_rounding_is_no_gain() -> None:
    run = RecordedHistory(agents=AGENTS)
    seed = run.add(1.0)
    a, b = (run.add(value, seed) for value in (2.0, 3.0))
    run.add(3.0 + 1e-15, b, a, strategy="fitter")
    run.add(3.0 + 1e-15, b, a, operator="graft", strategy="fitter")
    found = merge_statistics(run.history)
    assert [(each["better"], each["gain"]) for each in found["strategies"]] == [(0, 0.0), (0, 0.0)]
    assert found["steps"][0]["helped"] == 0


def test_a_step_that_helps_on_many_backgrounds_is_a_cause() -> None:
    run = RecordedHistory(agents=AGENTS)
    seed = run.add(1.0)
    edge, luck = (run.add(value, seed) for value in (2.0, 3.0))
    for number in range(4):
        background = run.add(float(number), seed)
        run.add(number + 1.0 + number / 10, background, edge, operator="graft", strategy="fitter")
        run.add(number + (-1.0) ** number, background, luck, operator="graft", strategy="fitter")
    run.add("crashed", background, luck, operator="graft", strategy="random")
    causal, not_causal = sorted(merge_statistics(run.history)["steps"], key=lambda step: not step["causal"])
    assert (causal["commit"], causal["backgrounds"], causal["helped"], causal["causal"]) == (edge, 4, 4, True)
    assert causal["gain"] == pytest.approx(1.15)
    assert causal["interval"] == pytest.approx([0.945, 1.355], abs=0.01), "t(3) = 3.182 times 0.1291 / 2"
    assert (not_causal["commit"], not_causal["helped"], not_causal["causal"]) == (luck, 2, False)


def test_one_background_is_no_proof() -> None:
    run = RecordedHistory(agents=AGENTS)
    seed = run.add(1.0)
    edge, background = (run.add(value, seed) for value in (2.0, 3.0))
    run.add(4.0, background, edge, operator="graft", strategy="fitter")
    run.add(4.5, background, edge, operator="graft", strategy="random")
    (step,) = merge_statistics(run.history)["steps"]
    assert (step["backgrounds"], step["helped"], step["gain"]) == (1, 1, 1.25)
    assert (step["interval"], step["causal"]) == (None, False)


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
