"""Who contributed what: counted entry by entry, and the same as counted from all entries at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from evogit.events import Duplicate, Event, FailedProposal, Proposed, Spent
from evogit.review.contributors import contributions
from evogit.testing import RecordedHistory, run_started
from tests.selection.born import Born


class Told(Born):
    """A history that remembers its events."""

    def append(self, event: Event) -> str:
        self.__dict__.setdefault("events", []).append(event)
        return super().append(event)

    def ask(self, agent: str, move: int, model: str, dollars: float | None = 0.5) -> None:
        self.append(Spent(engine="e", move=move, agent=agent, model=model, prompt=8, completion=2, dollars=dollars))


def by_chance(rng: random.Random) -> Told:
    born = Told(("a1", "a2"))
    born.born(1.0)
    for move in range(1, 40):
        agent, fate, parent = rng.choice(["a1", "a2"]), rng.random(), rng.randrange(len(born.ids))
        for model in rng.choices(["big", "small"], k=rng.choice([0, 0, 1, 2])):
            born.ask(agent, move, model)
        known: dict[str, Any] = {"engine": "e", "move": move, "agent": agent, "parents": (born.ids[parent],)}
        if fate < 0.2:
            born.append(FailedProposal(reason="r", strategy=rng.choice(["", "edit"]), **known))
        elif fate < 0.3:
            born.append(Duplicate(first=born.ids[0], strategy="edit+new", **known))
        elif fate < 0.95:
            commit = f"{rng.getrandbits(160):040x}"
            born.ids.append(commit)
            strategy = rng.choice(["edit", "edit+new", "swap@0.1"])
            born.append(Proposed(candidate=commit, tree=commit, operator="mutation", strategy=strategy, **known))
            born.judge(len(born.ids) - 1, rng.choice([None, float(rng.randrange(5))]))
    return born


def recounted(events: Sequence[Event], model: str) -> tuple[int, int, int]:
    """Proposals, candidates and tokens of a model, from all events."""
    last: dict[tuple[str, int], str] = {}
    found = [0, 0, 0]
    for event in events:
        if isinstance(event, Spent):
            last[event.agent, event.move] = event.model
            found[2] += (event.prompt + event.completion) * (event.model == model)
        elif isinstance(event, Proposed | Duplicate | FailedProposal) and event.operator != "seed":
            mine = last.get((event.agent, event.move)) == model
            found[0] += mine
            found[1] += mine and isinstance(event, Proposed)
    return found[0], found[1], found[2]


def test_what_is_counted_entry_by_entry_is_what_all_entries_say() -> None:
    for seed in range(20):
        born = by_chance(random.Random(seed))
        events = born.__dict__["events"]
        found = contributions(born.history)
        for row in found["models"]:
            assert (row["proposals"], row["candidates"], row["tokens"]) == recounted(events, row["name"])
        assert sum(row["proposals"] for row in found["agents"]) == born.history.counts.proposals
        assert sum(row["tokens"] for row in found["agents"]) == born.history.spent.tokens


def test_money_is_told_for_each_improvement_as_far_as_prices_are_known() -> None:
    born = Told(("a1", "a2", "a3"))
    seed = born.born(1.0)
    born.ask("a1", 1, "big", 0.5)
    better = born.born(2.0, seed)
    born.ask("a1", 2, "big", 0.25)
    born.born(1.5, better)
    born.ask("a2", 3, "odd", None)
    born.born(3.0, better, agent="a2")
    found = contributions(born.history)
    assert [(row["improved"], row["dollars"], row["dollars_per_improvement"]) for row in found["agents"]] == [
        (1, 0.75, 0.75),
        (1, None, None),
        (0, 0.0, None),
    ]
    (operators,) = found["operators"]
    assert (operators["improved"], operators["valid"], operators["calls"]) == (2, 3, 3)


def test_within_the_noise_nothing_is_improved_and_a_merge_must_beat_both() -> None:
    born = Told()
    first, second = born.born(1.0), 0
    second = born.born(5.0, first)
    born.born(3.0, first, second)
    assert contributions(born.history)["agents"][0]["improved"] == 1
    born.history.repeats = born.history.scores.repeats = 2
    born.judge(second, 0.9, repeat=1)
    assert contributions(born.history)["agents"][0]["improved"] == 0


def test_what_was_gained_on_the_way_to_the_best_adds_up_however_it_is_grouped() -> None:
    run = RecordedHistory(agents=("a1", "a2"))
    seed = run.add(1.0)
    left = run.add(1.5, seed, strategy="edit+tune@0.1")
    right = run.add(1.75, seed, agent="a2", strategy="edit")
    run.add(2.5, seed, agent="a2", strategy="edit")  # better than its parent, and no part of the best
    run.add(3.0, right, left, agent="a2", strategy="fitter")
    found = contributions(run.history)
    assert {row["name"]: row["gained"] for row in found["agents"]} == {"a1": 0.0, "a2": 2.0}
    assert {row["name"]: row["gained"] for row in found["operators"]} == {
        "merge (fitter)": 1.25,
        "mutation (edit)": 0.75,
        "mutation (tune)": 0.0,
    }


def test_what_an_agent_did_is_told_of_what_it_was_then() -> None:
    def population(kind: str, model: str = "") -> dict[str, Any]:
        return {"population": [{"kind": kind, "model": model, "count": 1}]}

    run = RecordedHistory(settings=population("editor", "big"))
    seed = run.add(1.0)
    run.append(Spent(engine="e", move=1, agent="a1", model="big", prompt=8, completion=2, dollars=0.5))
    best = run.add(2.0, seed)
    run.append(FailedProposal(engine="e", move=2, agent="a1", parents=(best,), reason="r"))
    run.append(run_started(engine="later", settings=population("mutator")))
    run.add(3.0, best, engine="later")
    known = ("name", "kind", "proposals", "gained", "dollars", "tokens")
    assert [tuple(row[key] for key in known) for row in contributions(run.history)["agents"]] == [
        ("a1", "editor@big", 2, 1.0, 0.5, 10),
        ("a1", "mutator", 1, 1.0, 0.0, 0),
    ]
