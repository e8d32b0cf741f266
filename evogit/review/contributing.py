"""Contributions of agents, models and operators: the candidates they made and the money they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from evogit.core import Candidate, Evaluation
from evogit.history import History, Spending
from evogit.review.runs import agents, kinds
from evogit.review.spending import added, spending_by_model

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Deed:
    """What can be told of a proposal, whether a candidate came of it or not."""

    agent: str
    model: str
    operators: tuple[str, ...]
    """The operator with each way in which it was done; one of several edits counts for each of them."""


def _deed(agent: str, model: str, operator: str, strategy: str) -> Deed:
    ways = dict.fromkeys(way.partition("@")[0] for way in strategy.split("+") if way)
    return Deed(agent, model, tuple(f"{operator} ({way})" for way in ways) or (operator,))


Grouping = Callable[[Deed], Iterable[str]]
"""To which groups a proposal belongs."""


@dataclass(slots=True)
class Contribution:
    """What came of a group's proposals.

    `improved` are candidates that are fitter than all their parents, beyond noise where scores are noisy; `records`
    were the best when they were evaluated; `best_step` is the largest gain over the fittest parent.
    """

    proposals: int = 0
    candidates: int = 0
    valid: int = 0
    improved: int = 0
    records: int = 0
    best_step: float | None = None
    spent: Spending = field(default_factory=Spending)

    @property
    def dollars(self) -> float | None:
        """What models were paid; None where a price is not known."""
        return None if self.spent.unpriced else self.spent.dollars

    @property
    def dollars_per_improvement(self) -> float | None:
        """None if unknown: nothing improved, no model was asked or a price is not known."""
        return self.dollars / self.improved if self.improved and self.spent.calls and self.dollars is not None else None

    def add(self, other: Contribution) -> None:
        """Count what came of others, too; what was spent stays."""
        for key in ("proposals", "candidates", "valid", "improved", "records"):
            setattr(self, key, getattr(self, key) + getattr(other, key))
        if other.best_step is not None:
            self.best_step = max(other.best_step, self.best_step or 0.0)

    def record(self, name: str) -> Record:
        """As JSON has it."""
        counted = {key: getattr(self, key) for key in ("proposals", "candidates", "valid", "improved", "records")}
        money = {key: getattr(self, key) for key in ("best_step", "dollars", "dollars_per_improvement")}
        return {"name": name, **counted, **money, "calls": self.spent.calls, "tokens": self.spent.tokens}


def contributions(history: History) -> dict[str, list[Record]]:
    """All agents in the order of their names, and models and operators, those that brought most first."""
    by_agent, by_model = dict[str, Spending](), spending_by_model(history)
    for (agent, _), spent in history.spent_by.items():
        by_agent[agent] = added(by_agent.get(agent, Spending()), spent)
    done = _by_deed(history)
    found = _grouped(done, lambda deed: [deed.agent], by_agent)
    models = _grouped(done, lambda deed: [deed.model] if deed.model else [], by_model)
    operators = _grouped(done, lambda deed: deed.operators, _by_operator(history))
    known = kinds(history)
    names = dict.fromkeys([*agents(history), *found])
    return {
        "agents": [{**found.get(name, Contribution()).record(name), "kind": known.get(name, "")} for name in names],
        "operators": _ranked(operators),
        "models": _ranked(models),
    }


def _by_deed(history: History) -> dict[Deed, Contribution]:
    """What came of proposals that have all in common that can be told of them."""
    found: dict[Deed, Contribution] = {}
    records = set(history.records)
    wrote = history.authors.wrote
    for candidate in history.phylogeny:
        if candidate.parents:
            model = wrote.get(candidate.commit, "")
            deed = _deed(candidate.agent, model, candidate.operator, candidate.strategy)
            _count(history, candidate, found.setdefault(deed, Contribution()), records)
    for key, times in history.authors.barren.items():
        found.setdefault(_deed(*key), Contribution()).proposals += times
    return found


def _grouped(done: dict[Deed, Contribution], group: Grouping, spent: dict[str, Spending]) -> dict[str, Contribution]:
    found = {name: Contribution(spent=each) for name, each in spent.items()}
    for deed, contribution in done.items():
        for name in group(deed):
            found.setdefault(name, Contribution()).add(contribution)
    return found


def _count(history: History, candidate: Candidate, row: Contribution, records: set[str]) -> None:
    step = gain(history, candidate.commit)
    row.proposals += 1
    row.candidates += 1
    row.valid += _valid(history, candidate)
    row.records += candidate.commit in records
    if step is not None and step <= 0:  # as nearly always
        return
    row.improved += improves(history, candidate)
    if step is not None:
        row.best_step = max(step, row.best_step or 0.0)


def _by_operator(history: History) -> dict[str, Spending]:
    """What models were asked by moves of each operator; those whose end is not known are left out."""
    spent: dict[str, Spending] = {}
    for effort in history.authors.efforts.values():
        if (done := effort.done) is None:
            continue
        for name in _deed(done.agent, effort.model, done.operator, done.strategy).operators:
            for each in effort.spent.values():
                spent[name] = added(spent.get(name, Spending()), each)
    return spent


def _ranked(found: dict[str, Contribution]) -> list[Record]:
    def rank(name: str) -> tuple[int, int, int]:
        return -found[name].records, -found[name].improved, -found[name].candidates

    return [found[name].record(name) for name in sorted(found, key=rank)]


def _valid(history: History, candidate: Candidate) -> bool:
    """Whether its last evaluation was ok; as a rule its fitness tells, and nothing more needs to be looked up."""
    if (known := history.fitness(candidate.commit) is not None) or not history.former(candidate.commit):
        return known
    evaluation = last_evaluation(history, candidate)
    return evaluation is not None and evaluation.ok


# --- one candidate ------------------------------------------------------------------------------------------------


def last_evaluation(history: History, candidate: Candidate) -> Evaluation | None:
    """The last evaluation of a candidate, whatever the task was like then."""
    return history.evaluation(candidate.commit) or history.former(candidate.commit)


def improves(history: History, candidate: Candidate) -> bool:
    """Whether it is fitter than all its parents, beyond noise where scores are noisy; rounding is not a gain."""
    commit = candidate.commit
    return all(
        history.surely_fitter(commit, parent) and history.gain(commit, parent) != 0 for parent in candidate.parents
    )


def gain(history: History, commit: str) -> float | None:
    """How much better a candidate is than its fittest valid parent; negative when worse, None if unknown."""
    scores = history.scores
    value = scores.fitness(commit)
    if value is None:
        return None
    known = map(scores.fitness, history.phylogeny[commit].parents)
    return min([scores.metric.gain(value, each) for each in known if each is not None], default=None)
