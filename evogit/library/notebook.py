"""A run in a few lines of text, and as HTML for notebooks; what models wrote is escaped in both."""

from __future__ import annotations

import html as markup
from collections.abc import Iterator, Sequence

from evogit.history import History
from evogit.library.curve import svg
from evogit.repository import Repository
from evogit.review.decimals import places
from evogit.review.ended import how_ended
from evogit.review.reporting import remarks, steps
from evogit.text import one_line

SUSPICIOUS = 8
"""Valid candidates that are all worth the same, from which on that is told."""

LATEST = 12
"""Steps of the way to the best that are shown, the last ones."""


def summary(repository: Repository, history: History) -> str:
    """What came of a run, in a few lines."""
    counts = history.counts
    lines = [f"{history.run}: {counts.evaluated} evaluations, {counts.failed} failed, {_ended(history)}"]
    lines += [f"  {name}: {seed} -> {best}" for name, seed, best in _rows(history)]
    if history.best:
        best = history.phylogeny[history.best]
        lines.append(f"  best {best.commit[:7]} by {one_line(best.agent)}: {one_line(best.title)}")
    lines += [f"  {one_line(remark, 300)}" for remark in told(history)]
    return "\n".join([*lines, f"  in {repository.path}"])


def html(repository: Repository, history: History, curve: Sequence[tuple[int, float]]) -> str:
    """The same with the course of the best value, and the steps that led to it."""
    counts = history.counts
    head = f"{counts.evaluated} evaluations, {counts.failed} failed, {_ended(history)}"
    notes = "".join(f"<div>{_safe(remark, 300)}</div>" for remark in told(history))
    return (
        f"<div><b>{_safe(history.run)}</b> · {_safe(head)}"
        f"<table><tr><th></th><th>seed</th><th>best</th></tr>{''.join(_cells(row) for row in _rows(history))}</table>"
        f"{svg(curve, history.metric.name)}"
        f"<table><tr><th>{_safe(history.metric.name)}</th><th>gain</th><th>candidate</th><th>agent</th><th>step</th></tr>"
        f"{''.join(map(_cells, _steps(history)))}</table>"
        f"{notes}<div>in <code>{_safe(str(repository.path), 300)}</code></div></div>"
    )


def told(history: History) -> list[str]:
    """What to know before the best is trusted, a sentence each."""
    values = [history.fitness(candidate.commit) for candidate in history.phylogeny]
    valid = [value for value in values if value is not None]
    if len(valid) < SUSPICIOUS or len(set(valid)) > 1:
        return remarks(history)
    return [
        f"all {len(valid)} valid candidates have the same score: does evaluate look at its path?",
        *remarks(history),
    ]


def _ended(history: History) -> str:
    return how_ended(history.stopped) or "not ended"


def _rows(history: History) -> Iterator[tuple[str, str, str]]:
    """Name, the seed's and the best one's value of each metric, on the split that ranks and on the holdout."""
    started = history.started
    for split in (history.split, "holdout") if started else ():
        both = [history.evaluation(commit, split) if commit else None for commit in (history.seed, history.best)]
        for metric in started.metrics if started else ():
            old, new = (each.metrics.get(metric.name) if each else None for each in both)
            if old is None and new is None:
                continue
            name = metric.name if split == history.split else f"{metric.name} ({split})"
            yield name, _value(old), _value(new)


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _steps(history: History) -> Iterator[tuple[str, ...]]:
    digits = places(history)
    for step in steps(history, history.best)[-LATEST:][::-1]:
        gained = "" if step["gain"] is None else f"{step['gain']:+,.{digits}f}"
        yield _value(step["value"]), gained, step["commit"][:7], step["agent"], step["title"]


def _cells(texts: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<td style="text-align:left">{_safe(text)}</td>' for text in texts) + "</tr>"


def _safe(text: str, limit: int = 100) -> str:
    return markup.escape(one_line(text, limit))
