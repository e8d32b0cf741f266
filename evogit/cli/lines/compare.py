"""Two candidates side by side, metric by metric, on the run's split and on the holdout."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from evogit.cli.lines.view import SHORT, STYLES, View, first_line
from evogit.cli.terminal import table
from evogit.cli.text import count, escape, percent
from evogit.core import Candidate, Metric
from evogit.history import History
from evogit.history.leaders import contender, tied
from evogit.history.standing import compare, decimals, gap, value_of
from evogit.review.json_records import front_record

MAX_TIES = 3


def versus(view: View, a: str, b: str, names: tuple[str, str]) -> list[Text]:
    """A table with a line per metric: the value of `a`, of `b`, and what `b` gains, for each split of both."""
    history = view.history
    splits = []
    for split in dict.fromkeys((history.split, "holdout")):
        evaluations = (history.evaluation(commit, split) for commit in (a, b))
        if any(evaluation and evaluation.ok for evaluation in evaluations):
            splits.append(split)
    if not splits or history.started is None:
        return [Text("neither has a valid evaluation", "dim")]
    metrics = sorted(history.started.metrics, key=lambda metric: not metric.primary)
    above = ["", *(cell for split in splits for cell in ("", split, ""))]
    heads = [Text(cell, "dim") for cell in ("", *(*names, "gain") * len(splits))]
    rows = [_row(view, metric, splits, a, b) for metric in metrics]
    return table([heads, *rows], "l" + "rrr" * len(splits), above)


def best_against_seed(view: View) -> list[Text]:
    """The best against the seed, its ties, and how much of the gap to the best known value is closed."""
    history = view.history
    if history.best is None or history.seed is None:
        return [Text("no valid candidate yet", "dim")]
    lines = [*versus(view, history.seed, history.best, ("seed", "best")), *_ties(history)]
    return [*lines, *_gap(view)]


def _gap(view: View) -> list[Text]:
    history = view.history
    found = gap(history, history.best)
    if found is None:
        return []
    known = f"the {'bound' if history.metric.bound else 'best known'} {found.known:.10g}"
    if found.left <= 0:
        return [Text(f"reaches {known}" if not found.left else f"{-found.left:.2g} beyond {known}", "bold")]
    if found.share is None:
        return [Text(f"{found.left:.2g} short of {known}")]
    left = f" of the gap to {known} is closed, {found.left:.2g} is left"
    return [Text.assemble((percent(found.share), "bold"), left)]


def _ties(history: History) -> list[Text]:
    """Candidates that may be better, or are not worse than the best beyond noise."""
    near, doubted = tied(history), contender(history)
    if doubted and doubted != history.best:
        return [Text(f"{doubted[:SHORT]} seems better, but was not evaluated often enough to be believed", "yellow")]
    if not near:
        return []
    more = f" and {count(len(near) - MAX_TIES, 'other')}" if near[MAX_TIES:] else ""
    names = ", ".join(commit[:SHORT] for commit in near[:MAX_TIES])
    return [Text(f"within noise of the best: {names}{more}", "yellow")]


def _row(view: View, metric: Metric, splits: list[str], a: str, b: str) -> list[Text]:
    history = view.history
    cells = [Text(metric.name, "bold" if metric.primary else "")]
    for split in splits:
        values = [value_of(history.scores, commit, split, metric) for commit in (a, b)]
        margins = [history.scores.margin(commit, split, metric.name) for commit in (a, b)]
        ranks = metric.primary and split == history.split
        places = view.places if ranks else decimals(*values, margins=margins)
        for value, margin, style in zip(values, margins, ("", "bold" if metric.primary else ""), strict=True):
            cells.append(Text(view.measured(value, margin, places), style))
        compared = compare(history.scores, b, a, split, metric)
        share = f" ({compared.relative})" if compared and compared.relative else ""
        cells.append(Text(compared.text(places) + share, STYLES[compared.verdict]) if compared else Text(""))
    return cells


def patch_lines(patch: str) -> Iterator[Text]:
    """A patch in Git's colours, its text made harmless."""
    styles = {"+": "green", "-": "red", "@": "cyan", "d": "bold", "i": "bold"}
    for line in patch.split("\n")[:-1] if patch else [" no difference"]:
        style = "bold" if line.startswith(("--- ", "+++ ")) else styles.get(line[:1], "")
        yield Text(escape(line.removesuffix("\r")), style, overflow="ignore")


def change_lines(view: View, old: Candidate, new: Candidate, patch: str) -> list[Text]:
    """Both candidates, their metrics, and the patch from one to the other."""
    metrics = versus(view, old.commit, new.commit, (old.commit[:SHORT], new.commit[:SHORT]))
    return [view.line(old), view.line(new), Text(""), *metrics, Text(""), *patch_lines(patch)]


MAX_MEMBERS = 12


def front_lines(view: View) -> list[Text]:
    """The unbeaten, metric by metric, on the run's split and the holdout; empty with a single objective."""
    found = front_record(view.history)
    if found is None:
        return []
    names = [each["name"] for each in found["objectives"]]
    splits = [("metrics", "")]
    splits += [("holdout", "holdout ")] if any(each["holdout"] for each in found["members"]) else []
    heads, rows = ["front", *(f"{title}{first_line(name)}" for _, title in splits for name in names)], []
    for each in found["members"][:MAX_MEMBERS]:
        values = [(each[split] or {}).get(name) for split, _ in splits for name in names]
        rows.append([each["commit"][:SHORT], *("-" if value is None else f"{value:,.6g}" for value in values)])
    rest = len(found["members"]) - MAX_MEMBERS
    more = [Text(f"and {count(rest, 'more')} unbeaten", "dim")] if rest > 0 else []
    volume, holdout = found["hypervolume"], found["holdout_hypervolume"]
    if volume is not None:
        beside = "" if holdout is None else f", on the holdout {holdout:.6g}"
        more.append(Text(f"hypervolume over the seed {volume:.6g}{beside}"))
    return [Text(""), *table(rows, "l" + "r" * (len(heads) - 1), heads), *more]
