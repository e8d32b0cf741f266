"""Two candidates side by side, metric by metric, on the run's split and on the holdout."""

from __future__ import annotations

from rich.text import Text

from evogit.cli.lines.view import SHORT, View
from evogit.cli.terminal import table
from evogit.cli.text import change, count, number, percent
from evogit.core import Metric
from evogit.history import History
from evogit.history.leaders import contender, tied
from evogit.review import gap_closed
from evogit.review.decimals import decimals
from evogit.review.gains import relative

NAMED = 3
"""Candidates that are named of those which cannot be told apart from the best."""


def versus(view: View, a: str, b: str, names: tuple[str, str]) -> list[Text]:
    """A table with a line per metric: the value of `a`, of `b`, and the change, for each split of both."""
    history = view.history
    splits = [split for split in dict.fromkeys((history.split, "holdout")) if _judged(history, split, a, b)]
    if not splits or history.started is None:
        return [Text("neither has a valid evaluation", "dim")]
    metrics = sorted(history.started.metrics, key=lambda metric: not metric.primary)
    above = [Text("")] + [Text(cell, "dim") for split in splits for cell in ("", split, "")]
    heads = [Text("")] + [Text(cell, "dim") for _ in splits for cell in (*names, "change")]
    rows = [_row(view, metric, splits, a, b) for metric in metrics]
    return table([above, heads, *rows], "l" + "rrr" * len(splits))


def best_against_seed(view: View) -> list[Text]:
    """The best against the seed, its ties, and how much of the gap to the best known value is closed."""
    history = view.history
    if history.best is None or history.seed is None:
        return [Text("no valid candidate yet", "dim")]
    lines = [*versus(view, history.seed, history.best, ("seed", "best")), *_ties(history)]
    share = gap_closed(history, history.best)
    if share is not None:
        known = f"{history.metric.best_known:.10g}"
        lines.append(Text.assemble((percent(share), "bold"), f" of the gap to the best known {known} is closed"))
    return lines


def _ties(history: History) -> list[Text]:
    """Candidates that may be better, or are not worse than the best beyond noise."""
    near, doubted = tied(history), contender(history)
    if doubted and doubted != history.best:
        return [Text(f"{doubted[:SHORT]} seems better, but was not evaluated often enough to be believed", "yellow")]
    if not near:
        return []
    more = f" and {count(len(near) - NAMED, 'other')}" if near[NAMED:] else ""
    return [Text(f"tied with {', '.join(commit[:SHORT] for commit in near[:NAMED])}{more}: within the noise", "yellow")]


def _judged(history: History, split: str, *commits: str) -> bool:
    return any((found := history.evaluation(commit, split)) is not None and found.ok for commit in commits)


def _row(view: View, metric: Metric, splits: list[str], a: str, b: str) -> list[Text]:
    history = view.history
    cells = [Text(metric.name, "bold" if metric.primary else "")]
    for split in splits:
        old, new = _value(history, a, split, metric.name), _value(history, b, split, metric.name)
        margins = [history.scores.margin(commit, split, metric.name) for commit in (a, b)]
        places = decimals(old, new, margins=margins)
        for commit, value, style in ((a, old, ""), (b, new, "bold" if metric.primary else "")):
            cells.append(Text(number(value, places) + view.give(commit, places, split, metric.name), style))
        cells.append(_change(metric, old, new, places))
    return cells


def _change(metric: Metric, old: float | None, new: float | None, places: int) -> Text:
    if old is None or new is None:
        return Text("")
    style = "green" if metric.better(new, old) else "red" if metric.better(old, new) else "dim"
    share = relative(new, old)
    return Text(change(new - old, places) + (f" ({share})" if share else ""), style)


def _value(history: History, commit: str, split: str, metric: str) -> float | None:
    evaluation = history.evaluation(commit, split)
    return evaluation.metrics.get(metric) if evaluation and evaluation.ok else None
