"""What each agent of a run was: the kind and the models that a start named for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evogit.history.history import History


def past_kinds(history: History) -> dict[tuple[str, str], str]:
    """What each agent was under each engine, in the order of the engines: a fork may give a name to another kind.

    (Engine, agent) -> `mutator`, `editor@MODEL`, `FILE.py:Name`.
    """
    known: dict[tuple[str, str], str] = {}
    for engine, started in history.engines.items():
        population = started.settings.get("population", ())
        each = [_kind(spec) for spec in population for _ in range(spec.get("count", 1))]
        known.update({(engine, agent): kind for agent, kind in zip(started.agents, each, strict=False)})
    return known


def _kind(spec: Mapping[str, Any]) -> str:
    return f"{spec.get('kind')}@{spec['model']}" if spec.get("model") else str(spec.get("kind"))
