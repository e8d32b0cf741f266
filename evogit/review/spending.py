"""What a run may use and what it used: the limits of its last start, and what models were asked and paid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import add, attrgetter
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from evogit.config.custom_classes import code_claim, is_own
from evogit.config.run_settings import AgentSpec, RunLimits, Settings, Total
from evogit.core import host_of
from evogit.history import History, Spending
from evogit.history.counts import CallCost
from evogit.repository import Repository
from evogit.text import one_line
from evogit.trust import Claim

NAME_CHARS, ROLE_CHARS = 80, 300  # characters of an engine's name and of a role that are shown: a stranger's choice
FEW = 100  # mutators of somebody else's start that are taken over unasked


class Use(Struct, frozen=True):
    """How much of a limit is used up."""

    what: Total
    used: float
    most: float
    held: float = 0.0
    """How much of what is used is set aside for calls in flight, and for those of engines that were killed."""

    @property
    def share(self) -> float:
        """Of one."""
        return self.used / self.most


def last_start(history: History) -> Mapping[str, Any]:
    """The settings that the run was started with last; empty before the first start."""
    return next((each.settings for each in reversed(history.engines.values())), {})


def last_settings(history: History) -> Settings:
    """The same, as settings; what older versions did not tell is as by default."""
    told = dict(last_start(history))
    population = tuple(AgentSpec.of(spec) for spec in told.pop("population", ()))
    settings = Settings.of(told)
    return replace(settings, population=population) if population else settings


def last_limits(history: History) -> RunLimits:
    """The limits that the run was started with last; none before the first start."""
    return RunLimits.of(last_start(history))


class EarlierStarts(Struct, frozen=True):
    """The settings of earlier starts of a run that a new start may take over.

    `last` are those of the user's last start here, with what they `agreed` to, or else of anybody's; `asking` those of
    the user's last start that asks models, whose limits and consent hold on. `foreign` is the claim that the agents of
    `last` are trusted, if others made it; its effect is the name of the engine.
    """

    last: Mapping[str, Any] = field(default_factory=dict)
    agreed: Sequence[str] = ()
    asking: Mapping[str, Any] = field(default_factory=dict)
    foreign: Claim | None = None

    @classmethod
    def of(cls, repository: Repository | None, history: History, run: str = "") -> EarlierStarts:
        """Return those of a run; journals come from anybody, so they speak for the user only if the user made them.

        `run` is the run that made them, if `history` is that of a fork to come.
        """
        run = run or history.run
        starts = [*reversed(history.engines.values())]
        if repository is None or not starts:
            return cls()

        def asks(settings: Mapping[str, Any]) -> bool:
            return bool(settings.get("panel")) or any(spec.get("model") for spec in settings.get("population", ()))

        own = [each.settings for each in starts if repository.trust.accepts(repository.keys.start(run, each))]
        if own:
            return cls(own[0], own[0].get("agreed", ()), next(filter(asks, own), {}))
        engine = repr(one_line(starts[0].engine, NAME_CHARS))
        return cls(starts[0].settings, foreign=repository.keys.start(run, starts[0], "settings", engine))

    def claims(self, *, agents: bool, selector: bool) -> Iterator[Claim]:
        """Yield what the user must trust before the agents or the selector of a foreign start are taken over.

        Each file of code is a claim of its own, about this file as it is. Raises UsageError: a file that the start
        names cannot be read, or its path is not whole.
        """
        if self.foreign is None:
            return
        specs = [AgentSpec.of(spec) for spec in self.last.get("population", ())] if agents else []
        if any(spec.kind != "mutator" for spec in specs) or sum(spec.count for spec in specs) > FEW:
            roles = "".join(f"; {spec.role}: {one_line(spec.words, ROLE_CHARS)}" for spec in specs if spec.role)
            named = ", ".join(map(str, specs)) + roles
            effect = f"the run goes on with agents {named}, as started elsewhere by {self.foreign.effect}"
            yield replace(self.foreign, effect=effect)
        for kind in dict.fromkeys(spec.kind for spec in specs if is_own(spec.kind)):
            yield code_claim(kind, f"an agent that {self.foreign.effect} chose")
        if selector and is_own(code := str(self.last.get("selector", ""))):
            yield code_claim(code, f"the selector that {self.foreign.effect} chose")


def used(history: History, limit: Total, *, held: bool = True) -> float:
    """How much of what a limit is on the run has used so far; `held`: with what is set aside for calls in flight."""
    spent, counts = history.committed() if held else history.spent, history.counts
    return {
        "dollars": spent.dollars,
        "tokens": spent.tokens,
        "calls": spent.charged,
        "proposals": counts.charged,
        "evaluations": counts.evaluated,
    }[limit]


def uses(history: History, limits: RunLimits) -> list[Use]:
    """What is used of every limit on totals that there is, the one that is nearest to its end first."""
    totals = ((what, used(history, what), most) for what, most in limits.totals.items() if most is not None)
    shares = [Use(what, now, most, now - used(history, what, held=False)) for what, now, most in totals]
    return sorted(shares, key=lambda use: -use.share)


def spending_by_model(history: History) -> dict[str, Spending]:
    """What each model was asked and paid, by all agents together."""
    models: dict[str, Spending] = {}
    for (_, model), spending in history.spent_by.items():
        models[model] = added(models.get(model, Spending()), spending)
    return models


_AMOUNTS = attrgetter(*(each.name for each in fields(Spending)))


def added(one: Spending, other: Spending) -> Spending:
    """The sum of both."""
    return Spending(*map(add, _AMOUNTS(one), _AMOUNTS(other)))


class Costs(Struct, frozen=True):
    """The costs of calls of models, by how certain they are.

    Attributes:
        answered: the calls of this run whose cost the endpoint reported; its own log has the same sum.
        in_flight: the calls under way, and the most that they may cost.
        at_most: the calls of this run that may be billed though no reply came: it took too long, or the engine died.
        inherited: all calls that the run had made from which this one was forked.
    """

    answered: CallCost
    in_flight: CallCost
    at_most: CallCost
    inherited: CallCost

    @property
    def calls(self) -> int:
        """All of them."""
        return self.answered.calls + self.in_flight.calls + self.at_most.calls + self.inherited.calls

    @classmethod
    def of(cls, history: History, repository: Repository | None = None) -> Costs:
        """Return the costs of a run; without its repository no engine counts as killed."""
        flying, lost, before = Spending(), Spending(), history.inherited
        alive = repository.engines(history.run).alive() if repository and history.reserved else []
        for event in history.reserved.values():
            here = repository is not None and host_of(event.engine) == repository.host
            (lost if here and event.engine not in alive else flying).hold(event)
        return cls(
            answered=history.spent.answered - before.answered,
            in_flight=flying.answered,
            at_most=history.spent.uncertain - before.uncertain + lost.answered,
            inherited=before.answered + before.uncertain,
        )


def spending_record(repository: Repository, history: History) -> dict[str, Any]:
    """What models were asked and paid, in all and by agent and model, and the limits of the last start."""
    by = [{"agent": agent, "model": model, **_record(each)} for (agent, model), each in history.spent_by.items()]
    costs = to_builtins(Costs.of(history, repository))
    return {**_record(history.spent), **costs, "limits": last_limits(history).totals, "by": by}


def _record(spending: Spending) -> dict[str, Any]:
    tokens = ("prompt", "cached", "completion", "tokens")
    names = ("calls", "failed", *tokens, "dollars", "unpriced", "broken", "broken_dollars")
    return {name: getattr(spending, name) for name in names}


Record = dict[str, Any]


def choices(history: History) -> list[Record]:
    """For each kind of agent of the last start that has several models: how these stand, the next one first."""
    specs = last_start(history).get("population", ())
    asked = [(str(spec.get("kind")), tuple(str(spec.get("model", "")).split(","))) for spec in specs]
    several = dict.fromkeys((kind, models) for kind, models in asked if len(models) > 1)
    if not several:
        return []
    from evogit.agents.model_agent import scores  # agents take a while to load, and few runs have several models
    from evogit.breeding.credit import merits

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    known = merits(history)
    found: list[Record] = []
    for kind, models in several:
        told = scores(models, known)
        ranked = sorted(models, key=lambda model: -told[model].total)
        rows = [
            {
                "name": model,
                "moves": known[model].moves if model in known else 0.0,
                "gain": told[model].gain,
                "doubt": finite(told[model].doubt),
                "cheap": told[model].cheap,
                "score": finite(told[model].total),
            }
            for model in ranked
        ]
        found.append({"kind": kind, "models": rows})
    return found
