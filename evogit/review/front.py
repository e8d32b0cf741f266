"""The front of a run that searches over several metrics, with what is known of it on the holdout."""

from __future__ import annotations

from typing import Any

from evogit.core import Metric
from evogit.history import History
from evogit.stats.hypervolume import hypervolume


def front_record(history: History) -> dict[str, Any] | None:
    """The unbeaten and their hypervolume, with the seed as reference; None with a single objective.

    A hypervolume is in the product of the metrics' units, and what is not better than the seed in all of them adds
    nothing; None where the seed has no value, or finding it takes too long.
    """
    from evogit.selection.objectives import front, several  # with the selectors: seldom asked

    if history.started is None or not several(history):
        return None
    metrics, commits = history.started.metrics, front(history)
    members = [
        {"commit": commit, "metrics": _values(history, commit), "holdout": _values(history, commit, "holdout")}
        for commit in commits
    ]
    return {
        "objectives": [{"name": metric.name, "direction": metric.direction} for metric in metrics],
        "hypervolume": _volume(history, metrics, commits),
        "holdout_hypervolume": _volume(history, metrics, commits, "holdout"),
        "members": members,
    }


def _values(history: History, commit: str, split: str | None = None) -> dict[str, float] | None:
    found = history.evaluation(commit, split)
    return dict(found.metrics) if found and found.ok else None


def _volume(
    history: History, metrics: tuple[Metric, ...], commits: list[str], split: str | None = None
) -> float | None:
    known = [_values(history, commit, split) for commit in (history.seed or "", *commits)]
    seed, *others = [_point(metrics, values) if values else None for values in known]
    points = [each for each in others if each is not None]
    return hypervolume(points, seed) if seed and points else None


def _point(metrics: tuple[Metric, ...], values: dict[str, float]) -> list[float] | None:
    """The values such that more is better; None where one is missing."""
    if any(metric.name not in values for metric in metrics):
        return None
    return [metric.sign * values[metric.name] for metric in metrics]
