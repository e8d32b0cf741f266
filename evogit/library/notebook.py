"""A run in a few lines of text, as HTML for notebooks, and a line per new best; what models wrote is escaped."""

from __future__ import annotations

import html as markup
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from evogit.events import Entry, Evaluated
from evogit.history import History
from evogit.history.standing import compare, decimals, places, standing, value_of, way
from evogit.repository import Repository
from evogit.review.json_records import how_ended
from evogit.review.reporting import remarks
from evogit.text import measured, number, one_line

SUSPICIOUS = 8  # valid candidates that are all worth the same, from which on that is told

LATEST = 12  # steps of the way to the best that are shown, the last ones


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


def html(repository: Repository, history: History) -> str:
    """Return the same with the steps that led to the best value."""
    counts = history.counts
    head = f"{counts.evaluated} evaluations, {counts.failed} failed, {_ended(history)}"
    notes = "".join(f"<div>{_safe(remark, 300)}</div>" for remark in told(history))
    return (
        f"<div><b>{_safe(history.run)}</b> · {_safe(head)}"
        "<table><tr><th></th><th>seed</th><th>best</th><th>gain</th></tr>"
        f"{''.join(_cells(row) for row in _rows(history))}</table>"
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


# --- while it runs -------------------------------------------------------------------------------------------------


class Progress:
    """An `Observer` that prints each new best of a run."""

    def __init__(self, history: History, evaluations: int | None, stream: TextIO) -> None:
        """`evaluations` is how many there will be at most, None where something else ends the run."""
        self._history = history
        self._of = f" of {evaluations:,}" if evaluations else ""
        self._stream = stream
        self._best = history.best

    def entry(self, entry: Entry) -> None:
        """Print it if it made a new best."""
        history = self._history
        if not isinstance(entry.event, Evaluated) or history.best in (None, self._best):
            return
        self._best = history.best
        best = history.phylogeny[history.best or ""]
        value = number(history.fitness(best.commit), places(history))
        print(
            f"{history.run} {history.counts.evaluated:,}{self._of}: {history.metric.name} {value}  "
            f"{best.commit[:7]} {one_line(best.title)}",
            file=self._stream,
            flush=True,
        )

    def activity(self, agent: str, doing: str) -> None:
        """Ignore what agents do."""


def stream_of_person() -> TextIO | None:
    """Return the display of progress, a terminal or a notebook; None if there is none."""
    if "ipykernel" in sys.modules:
        return sys.stdout
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
