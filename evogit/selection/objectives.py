"""Which candidates are unbeaten where a run searches over several metrics at once."""

from __future__ import annotations

import re

from evogit.history import History
from evogit.selection.fronts import Fronts

OVER_METRICS = re.compile(r"(islands:.*\bof=)?pareto\b.*\bover=metrics\b").match
"""Selectors that take every metric of the task for an objective."""


def several(history: History) -> bool:
    """Whether the run was last started to search over several metrics."""
    started = list(history.engines.values())
    selector = str(started[-1].settings.get("selector", "")) if started else ""
    metrics = history.started.metrics if history.started else ()
    return bool(OVER_METRICS(selector)) and len(metrics) > 1 and history.strengths is None


def front(history: History) -> list[str]:
    """The unbeaten, the best by the primary metric first; of those that measure the same the one known longest."""
    fronts = Fronts(1).of(history)
    members = [members[0][1] for members in fronts[0].members.values()] if fronts else []
    sign = history.metric.sign
    return sorted(members, key=lambda commit: (-sign * (history.fitness(commit) or 0.0), commit))
