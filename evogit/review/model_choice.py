"""Which of several models the agents of a run ask next, and why."""

from __future__ import annotations

import math
from typing import Any

from evogit.history import History
from evogit.review.spending import last_start

Record = dict[str, Any]


def choices(history: History) -> list[Record]:
    """For each kind of agent of the last start that has several models: how these stand, the next one first."""
    specs = last_start(history).get("population", ())
    asked = [(str(spec.get("kind")), tuple(str(spec.get("model", "")).split(","))) for spec in specs]
    several = dict.fromkeys((kind, models) for kind, models in asked if len(models) > 1)
    if not several:
        return []
    from evogit.agents.model_agent import scores  # agents take a while to load, and few runs have several models
    from evogit.breeding.model_credit import merits

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
                "doubt": _finite(told[model].doubt),
                "cheap": told[model].cheap,
                "score": _finite(told[model].total),
            }
            for model in ranked
        ]
        found.append({"kind": kind, "models": rows})
    return found


def _finite(value: float) -> float | None:
    """As JSON has it: None where nothing is known."""
    return value if math.isfinite(value) else None
