"""What a run may use and what it used: the limits of its last start, and what models were asked and paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from operator import add, attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evogit.config.run_settings import AgentSpec, RunLimits, Settings, Total
from evogit.history import History, Spending


class Use(Struct, frozen=True):
    """How much of a limit is used up."""

    what: Total
    used: float
    most: float

    @property
    def share(self) -> float:
        """Of one."""
        return self.used / self.most


def last_start(history: History) -> Mapping[str, Any]:
    """The settings that the run was started with last; empty before the first start."""
    started = list(history.engines.values())
    return started[-1].settings if started else {}


def last_settings(history: History) -> Settings:
    """The same, as settings; what older versions did not tell is as by default."""
    told = dict(last_start(history))
    population = tuple(AgentSpec(**spec) for spec in told.pop("population", ()))
    settings = Settings.of(told)
    return replace(settings, population=population) if population else settings


def last_limits(history: History) -> RunLimits:
    """The limits that the run was started with last; none before the first start."""
    return RunLimits.of(last_start(history))


def last_asking_start(history: History) -> Mapping[str, Any]:
    """The settings of the last start whose agents or judges ask models; empty where there was none."""
    settings = (started.settings for started in reversed(history.engines.values()))
    return next((each for each in settings if _asks(each)), {})


def _asks(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("panel")) or any(spec.get("model") for spec in settings.get("population", ()))


def used(history: History, limit: Total) -> float:
    """How much of what a limit is on the run has used so far, what is set aside for questions in flight included."""
    spent, counts = history.committed(), history.counts
    return {
        "dollars": spent.dollars,
        "tokens": spent.tokens,
        "proposals": counts.charged,
        "evaluations": counts.evaluated,
    }[limit]


def uses(history: History, limits: RunLimits) -> list[Use]:
    """What is used of every limit on totals that there is, the one that is nearest to its end first."""
    shares = [Use(what, used(history, what), most) for what, most in limits.totals.items() if most is not None]
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


def spending_record(history: History) -> dict[str, Any]:
    """What models were asked and paid, in all and by agent and model, and the limits of the last start."""
    by = [{"agent": agent, "model": model, **_record(each)} for (agent, model), each in history.spent_by.items()]
    return {**_record(history.spent), "limits": last_limits(history).totals, "by": by}


def _record(spending: Spending) -> dict[str, Any]:
    tokens = ("prompt", "cached", "completion", "tokens")
    names = ("calls", "failed", *tokens, "dollars", "unpriced", "broken", "broken_dollars")
    return {name: getattr(spending, name) for name in names}
