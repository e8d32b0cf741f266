"""By what numbers candidates can be told apart: the metrics of a task, and how large candidates are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evogit.config import Task
from evogit.core import Metric
from evogit.history import History
from evogit.repository import Repository
from evogit.selection.cells import Trait, untold


def traits_of(task: Task, repository: Repository | None = None) -> Mapping[str, Trait]:
    """What describes candidates of a task, by name; a metric goes before what is built in.

    `size` is the bytes of all files that may be changed, `changed` the lines added to and removed from the seed.
    Without a repository there are names but no values: enough to check what a person asks for.
    """
    known: dict[str, Trait] = {"size": untold, "changed": untold}
    if repository is not None:
        known = {
            "size": partial(_size, task=task, repository=repository),
            "changed": partial(_changed, repository=repository),
        }
    return known | {metric.name: partial(_measured, metric=metric) for metric in task.metrics}


def _measured(history: History, commit: str, metric: Metric) -> float | None:
    evaluation = history.evaluation(commit)
    return evaluation.metrics.get(metric.name) if evaluation else None


def _size(history: History, commit: str, task: Task, repository: Repository) -> float:
    entries = repository.trees.entries(history.phylogeny[commit].tree)
    return sum(repository.trees.size(entry.blob) for entry in entries if task.is_editable(entry.path))


def _changed(history: History, commit: str, repository: Repository) -> float:
    seed = history.phylogeny[history.seed or commit].tree
    lines = repository.line_changes(seed, history.phylogeny[commit].tree)
    return sum(added + removed for _, added, removed in lines)
