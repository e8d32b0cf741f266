"""What a bench found as tables for people, as Markdown, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from evogit.bench.comparison import Findings, Interval, Reached, points
from evogit.stats.paired_tests import MARGIN, RESAMPLES

SCHEMA = 2
"""Of bench.json."""


class Table(Struct, frozen=True, kw_only=True):
    """A table with a sentence above it; the first row is its head. `align` has an `l` or `r` for each column."""

    title: str
    align: str
    rows: Sequence[Sequence[str]]


def record(by_task: Sequence[Findings]) -> dict[str, Any]:
    """All of it as data."""
    tasks = [to_builtins(each) for each in by_task]
    for task, each in zip(tasks, by_task, strict=True):
        for name, runs in each.curves.items():
            task["curves"][name] = [[round(value, 6) for value in run] for run in runs]
        for comparison, found in zip(task["comparisons"], each.comparisons, strict=True):
            comparison["verdict"] = found.verdict
    return {"schema": SCHEMA, "margin": MARGIN, "tasks": tasks}


def tables(findings: Findings) -> Iterator[Table]:
    """Those about one task."""
    yield _values(findings)
    yield _work(findings)
    for name, found in (("calls", findings.at_calls), ("tokens", findings.at_tokens)):
        if found:
            yield _at_cost(name, found)
    if findings.comparisons:
        yield _comparisons(findings)


def markdown(by_task: Sequence[Findings], command: str) -> str:
    """Return the page: what was measured and how, and a section for each task."""
    parts = ["# Bench", f"Made by `{command}`.", METHOD]
    for each in by_task:
        parts += [f"## {each.task}", *map(_markdown, tables(each))]
    return "\n\n".join(parts) + "\n"


METHOD = f"""\
Every method had the same number of evaluations; the seed's and failed ones count. Normalised values: the
seed is 0, the best known value (or else the best one seen) is 1. Area: the mean of the normalised best so far over all
evaluations. Intervals: 95 %, {RESAMPLES:,} bootstrap resamples of pairs with equal seeds. p: one-sided paired sign-flip
tests, not corrected within a task; no worse: loses less than {MARGIN:.0%}; worse: the same test the other way."""


def _markdown(table: Table) -> str:
    head, *rows = table.rows
    rule = ["---:" if each == "r" else "---" for each in table.align]
    cells = [[" ".join(text.split()).replace("|", "\\|") for text in row] for row in (head, rule, *rows)]
    return table.title + "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in cells)


# --- the tables of one task ---------------------------------------------------------------------------------------


def _values(findings: Findings) -> Table:
    at = points(findings.evaluations)
    head = ("method", "area [95 %]", "final [95 %]", *(f"at {point}" for point in at))
    rows = [
        (each.method, _interval(each.area), _interval(each.final), *(f"{each.at[point]:.4g}" for point in at))
        for each in findings.results
    ]
    top = f"{'best known' if findings.top_known else 'best seen'} {findings.top:.6g}"
    title = (
        f"{findings.task}: {findings.metric} ({findings.direction}) on {findings.split}, {findings.evaluations} "
        f"evaluations, {len(findings.seeds)} seed{'s' * (len(findings.seeds) > 1)} from {findings.seeds[0]};\n"
        f"seed {findings.seed_value:.6g}, {top}"
    )
    return Table(title=title, align="l" + "r" * (len(at) + 2), rows=[head, *rows])


def _work(findings: Findings) -> Table:
    usual = ("proposals", "failed_proposals", "duplicates", "failed", "seconds")
    extra = {"repeated": "repeats", "tokens": "tokens", "dollars": "dollars"}
    extra = {name: head for name, head in extra.items() if any(getattr(each, name) for each in findings.results)}
    head = ["method", "proposals", "unusable", "duplicates", "failed", "seconds", *extra.values()]
    rows = [
        [
            each.method,
            *(f"{getattr(each, name):.1f}" for name in usual),
            *(f"{getattr(each, name):,.{0 if name == 'tokens' else 2}f}" for name in extra),
            *(each.selector, each.agents),
        ]
        for each in findings.results
    ]
    align = "l" + "r" * (len(head) - 1) + "ll"
    return Table(title="A run on average:", align=align, rows=[[*head, "selector", "agents"], *rows])


def _at_cost(name: str, found: Mapping[str, Mapping[int, Reached]]) -> Table:
    head = ["method", *(f"{cost:,}" for cost in next(iter(found.values())))]
    rows = [
        [
            method,
            *(f"{at.value:.6g}" + (f" ({at.holdout:.6g})" if at.holdout is not None else "") for at in each.values()),
        ]
        for method, each in found.items()
    ]
    title = f"Best after so many {name} of models (on the holdout):"
    return Table(title=title, align="l" + "r" * (len(head) - 1), rows=[head, *rows])


def _comparisons(findings: Findings) -> Table:
    pairs = ("difference [95 %]", "p better", "p no worse", "won-tied-lost")
    rows = [
        (
            *(each.method, each.against, each.verdict),
            f"{each.difference.mean:+.3f} [{each.difference.low:+.3f}, {each.difference.high:+.3f}]",
            f"{each.better:.4f}",
            f"{each.not_inferior:.4f}",
            f"{each.wins}-{each.ties}-{each.losses}",
        )
        for each in findings.comparisons
    ]
    head = ("method", "against", "verdict", *pairs)
    return Table(title="Paired by seed, normalised area:", align="lllrrrr", rows=[head, *rows])


def _interval(found: Interval) -> str:
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
