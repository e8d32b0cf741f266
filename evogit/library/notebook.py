"""A run in a few lines of text, and as HTML for notebooks; what models wrote is escaped in both."""

from __future__ import annotations

import html as markup
from collections.abc import Iterator, Sequence

from evogit.history import History
from evogit.history.standing import compare, decimals, places, standing, value_of, way
from evogit.library.curve import svg
from evogit.repository import Repository
from evogit.review.json_records import how_ended
from evogit.review.reporting import remarks
from evogit.text import measured, one_line

SUSPICIOUS = 8
"""Valid candidates that are all worth the same, from which on that is told."""

LATEST = 12
"""Steps of the way to the best that are shown, the last ones."""


def summary(repository: Repository, history: History) -> str:
    """What came of a run, in a few lines."""
    counts = history.counts
    lines = [f"{history.run}: {counts.evaluated} evaluations, {counts.failed} failed, {_ended(history)}"]
    lines += [f"  {name}: {seed} -> {best} ({gain})" for name, seed, best, gain in _rows(history)]
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
        "<table><tr><th></th><th>seed</th><th>best</th><th>gain</th></tr>"
        f"{''.join(_cells(row) for row in _rows(history))}</table>"
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


def _rows(history: History) -> Iterator[tuple[str, str, str, str]]:
    """Name, the seed's and the best one's value, and the gain, by each metric and split."""
    scores, pair = history.scores, (history.seed or "", history.best or "")
    for split in dict.fromkeys((history.split, "holdout")) if history.started else ():
        for metric in history.started.metrics if history.started else ():
            values = [value_of(scores, commit, split, metric) for commit in pair]
            if values == [None, None]:
                continue
            margins = [scores.margin(commit, split, metric.name) for commit in pair]
            ranks = metric.primary and split == history.split
            digits = places(history) if ranks else decimals(*values, margins=margins)
            compared = compare(scores, history.best or "", history.seed or "", split, metric)
            seed, best = (measured(*each, digits) for each in zip(values, margins, strict=True))
            name = metric.name if split == history.split else f"{metric.name} ({split})"
            yield name, seed, best, compared.words(digits) if compared else "-"


def _steps(history: History) -> Iterator[tuple[str, ...]]:
    digits = places(history)
    for each, compared in (way(history, history.best) if history.best else [])[-LATEST:][::-1]:
        known = standing(history, each.commit)
        gain = compared.text(digits) if compared else ""
        yield measured(known.score, known.margin, digits), gain, each.commit[:7], each.agent, each.title


def _cells(texts: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<td style="text-align:left">{_safe(text)}</td>' for text in texts) + "</tr>"


def _safe(text: str, limit: int = 100) -> str:
    return markup.escape(one_line(text, limit))
