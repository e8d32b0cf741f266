"""Gathers what a brief tells besides the code: how the parent was judged, where it comes from, what was tried."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evogit.agents import Background, Relative
from evogit.config import Task
from evogit.core import Candidate
from evogit.history import History
from evogit.repository import EXECUTABLE, FILE, Repository

CLOSE = 3
"""Ancestors and siblings, the nearest ones, whose diffs are shown."""

MOST = 12
"""Ancestors, siblings and failures that are told of."""


def background(
    repository: Repository, task: Task, history: History, parent: Candidate, others: Sequence[str] = ()
) -> Background:
    """What is known about `parent`; `others` says what other agents are at, one line each."""
    entries = {
        entry.path: entry
        for entry in repository.trees.entries(parent.tree)
        if entry.mode in (FILE, EXECUTABLE) and task.is_visible(entry.path)
    }
    children = [history.phylogeny[child] for child in history.phylogeny.children(parent.commit)]
    failures = [event.reason for event in history.failures if parent.commit in event.parents]
    log, feedback = _evidence(repository, history, parent)
    return Background(
        task=task.name,
        metrics=tuple(sorted(task.metrics, key=lambda metric: not metric.primary)),
        split=history.split,
        editable=task.editable,
        sizes={path: repository.trees.size(entry.blob) for path, entry in entries.items()},
        read=lambda path: repository.trees.blob(entries[path].blob),
        evaluation=history.evaluation(parent.commit),
        feedback=feedback,
        log=log,
        seed_metrics=_metrics(history, history.seed),
        best_metrics=_metrics(history, history.best),
        guidance=tuple(history.guidance),
        lineage=_relatives(repository, history, history.phylogeny.lineage(parent.commit)),
        siblings=_relatives(repository, history, children),
        failures=tuple(dict.fromkeys(failures))[-MOST:],
        others=tuple(others),
        inside=history.started is not None and history.started.judged == "inside",
    )


def _metrics(history: History, commit: str | None) -> dict[str, float]:
    evaluation = history.evaluation(commit) if commit else None
    return dict(evaluation.metrics) if evaluation else {}


def _relatives(repository: Repository, history: History, candidates: Sequence[Candidate]) -> tuple[Relative, ...]:
    """The last of them, oldest first; the very last ones with their diffs."""
    told, shown = candidates[-MOST:], {candidate.commit for candidate in candidates[-CLOSE:]}
    return tuple(
        Relative(
            candidate=each,
            evaluation=history.evaluation(each.commit),
            diff=repository.diff(each.parents[0], each.commit) if each.commit in shown and each.parents else "",
        )
        for each in told
    )


def _evidence(repository: Repository, history: History, parent: Candidate) -> tuple[str, dict[str, str]]:
    """What the evaluator said of the parent as a whole, and by case; nothing when the evidence is gone."""
    tree = history.evidence.get(parent.commit, "")
    if not tree or not repository.trees.exists(tree):
        return "", {}
    files = repository.trees.files(tree, lambda path: path in ("log", "feedback.json"))
    return files.get("log", b"").decode(errors="replace"), json.loads(files.get("feedback.json", b"{}"))
