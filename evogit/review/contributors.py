"""Contributions of agents, models and operators: the candidates they made and the money they cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from evogit.core import Candidate
from evogit.history import History, Spending
from evogit.history.standing import last_evaluation, standing, way
from evogit.review.runs import agents, kinds
from evogit.review.spending import added, spending_by_model

Record = dict[str, Any]

Group = TypeVar("Group", bound=Hashable)


class Deed(Struct, frozen=True):
    """What can be told of a proposal, whether a candidate came of it or not."""

    agent: str
    kind: str
    """What the agent was then."""
    model: str
    operators: tuple[str, ...]
    """The operator with each way in which it was done; one of several edits counts for each of them."""


_VALUE = re.compile(r"@[^+]*")

COUNTS = ("proposals", "candidates", "valid", "improved", "records")
"""The counts of a group."""


def _operators(operator: str, ways: str) -> tuple[str, ...]:
    return tuple(f"{operator} ({way})" for way in dict.fromkeys(ways.split("+")) if way) or (operator,)


@dataclass(slots=True)
class Contribution:
    """What came of a group's proposals.

    `improved` are candidates that are better than the fittest one that they come from, or the first valid ones of
    their line; `records` were the best when they were evaluated; `best_step` is the largest gain of those that are
    better. `gained` is the sum of its steps beyond noise along the way to the best, in the primary metric's unit;
    several ways of a step share it.
    """

    proposals: int = 0
    candidates: int = 0
    valid: int = 0
    improved: int = 0
    records: int = 0
    best_step: float | None = None
    gained: float = 0.0
    spent: Spending = field(default_factory=Spending)

    @property
    def dollars(self) -> float | None:
        """Dollars for answered calls of models; None if a price is not known."""
        return None if self.spent.unpriced else self.spent.answered.dollars

    @property
    def dollars_per_improvement(self) -> float | None:
        """None if unknown: nothing improved, no model was asked or a price is not known."""
        return self.dollars / self.improved if self.improved and self.spent.calls and self.dollars is not None else None

    def add(self, other: Contribution, share: float = 1.0) -> None:
        """Count what came of others, too, with a share of what they gained; what was spent stays."""
        self.gained += other.gained * share
        for key in COUNTS:
            setattr(self, key, getattr(self, key) + getattr(other, key))
        if other.best_step is not None:
            self.best_step = max(other.best_step, self.best_step or 0.0)

    def record(self, name: str) -> Record:
        """As JSON has it."""
        keys = (*COUNTS, "best_step", "gained", "dollars", "dollars_per_improvement")
        told = {key: getattr(self, key) for key in keys}
        return {"name": name, **told, "calls": self.spent.calls, "tokens": self.spent.answered.tokens}


def contributions(history: History) -> dict[str, list[Record]]:
    """All agents by name and by what they were then; models, operators and roles, the most telling first.

    Roles, as kinds of agents, only where some have one.
    """
    past = history.past_kinds()
    done = _by_deed(history, past)
    spent: dict[tuple[str, str], Spending] = {}
    for (_, engine, agent), effort in history.authors.efforts.items():
        for each in effort.spent.values():
            by = agent, past.get((engine, agent), "")
            spent[by] = added(spent.get(by, Spending()), each)
    found = _grouped(done, lambda deed: [(deed.agent, deed.kind)], spent)
    models = _grouped(done, lambda deed: [deed.model] if deed.model else [], spending_by_model(history))
    specs = (spec for started in history.engines.values() for spec in started.settings.get("population", ()))
    has_roles, paid_kinds = any(spec.get("role") for spec in specs), dict[str, Spending]()
    for (_, kind), spending in spent.items():
        if has_roles and kind:
            paid_kinds[kind] = added(paid_kinds.get(kind, Spending()), spending)
    roles = _grouped(done, lambda deed: [deed.kind] if deed.kind in paid_kinds else [], paid_kinds)
    by_operator: dict[str, Spending] = {}
    cached = cache(_operators)
    for effort in history.authors.efforts.values():
        operation = effort.done
        for name in cached(operation.operator, _without_values(operation.strategy)) if operation else ():
            for each in effort.spent.values():
                by_operator[name] = added(by_operator.get(name, Spending()), each)
    operators = _grouped(done, lambda deed: deed.operators, by_operator)
    order = agents(history)
    active = {agent for agent, _ in found}
    idle = [(agent, kind) for agent, kind in kinds(history).items() if agent not in active]
    idle += [(agent, "") for agent in order if agent not in active and agent not in dict(idle)]
    place = {name: number for number, name in enumerate(dict.fromkeys([*order, *sorted(active)]))}
    who = sorted([*found, *idle], key=lambda each: place[each[0]])
    return {
        "agents": [{**found.get(each, Contribution()).record(each[0]), "kind": each[1]} for each in who],
        "operators": _ranked(operators),
        "models": _ranked(models),
        "roles": _ranked(roles),
    }


def _by_deed(history: History, past: Mapping[tuple[str, str], str]) -> dict[Deed, Contribution]:
    found: dict[Deed, Contribution] = {}
    wrote, records = history.authors.wrote, set(history.records)
    path = way(history, history.best) if history.best else ()
    steps = {each.commit: step.gain for each, step in path if step and step.verdict != "within noise"}

    @cache  # many have the same, and to put it into words takes longer than to count
    def row_of(engine: str, agent: str, model: str, operator: str, ways: str) -> Contribution:
        deed = Deed(agent, past.get((engine, agent), ""), model, _operators(operator, ways))
        return found.setdefault(deed, Contribution())

    for each in history.phylogeny:
        if each.parents:
            commit, ways = each.commit, _without_values(each.strategy)
            row = row_of(each.engine, each.agent, wrote.get(commit, ""), each.operator, ways)
            _count(history, each, row)
            row.records += commit in records
            row.gained += steps.get(commit, 0.0)
    for (engine, agent, model, operator, strategy), times in history.authors.barren.items():
        row_of(engine, agent, model, operator, _without_values(strategy)).proposals += times
    return found


def _without_values(strategy: str) -> str:
    """A strategy without what its ways say of themselves (`number@0.3`), of which there are as many as proposals."""
    return _VALUE.sub("", strategy) if "+" in strategy else strategy.partition("@")[0]


def _grouped(
    done: dict[Deed, Contribution], groups: Callable[[Deed], Iterable[Group]], spent: Mapping[Group, Spending]
) -> dict[Group, Contribution]:
    found = {name: Contribution(spent=each) for name, each in spent.items()}
    for deed, contribution in done.items():
        names = list(groups(deed))
        for name in names:
            found.setdefault(name, Contribution()).add(contribution, 1 / len(names))
    return found


def _count(history: History, candidate: Candidate, row: Contribution) -> None:
    row.proposals += 1
    row.candidates += 1
    known = standing(history, candidate.commit)
    if known.score is None:  # then it improves on nothing
        former = last_evaluation(history, candidate) if history.former(candidate.commit) else None
        row.valid += former is not None and former.ok  # before the task changed
        return
    row.valid += 1
    row.improved += known.origin is None or known.verdict == "better"
    if known.gain and known.verdict == "better":
        row.best_step = max(known.gain, row.best_step or 0.0)


def _ranked(found: dict[str, Contribution]) -> list[Record]:
    def rank(name: str) -> tuple[int, int, int]:
        return -found[name].records, -found[name].improved, -found[name].candidates

    return [found[name].record(name) for name in sorted(found, key=rank)]
