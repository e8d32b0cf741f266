"""Figures of runs for a paper: what was reached, by which lineage, by which operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from evogit.core import UsageError
from evogit.history import History
from evogit.history.phylogeny import Phylogeny
from evogit.repository import Repository
from evogit.review.contributors import contributions
from evogit.review.figures import COLOURS, band, new_figure, saved, whole_course
from evogit.review.graph import skeleton
from evogit.review.json_records import known_ends
from evogit.review.timeline import TimelinePoint, course, entries_of
from evogit.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["best", "lineage", "shares", "operators"]

Axis = Literal["evaluations", "seconds", "dollars"]

MOST_SHARES = 8
"""Lineages that are told apart."""

SLICES = 60
"""Points of time of which shares are told."""

MOST_BARS = 15

MAX_LABEL_CHARS = 40
"""Of foreign text: names and titles, made harmless, as SVG may hold no control character."""


class PlottedRun:
    """A run with its course."""

    def __init__(self, repository: Repository, name: str) -> None:
        """Read it."""
        entries = entries_of(repository, name)
        self.history = History(name)
        self.history.extend(entries)
        self.moments = [each for each in course(name, entries) if each.candidate]


def plot(runs: Sequence[PlottedRun], what: Kind, axis: Axis, ending: str, *, mean: bool = False) -> bytes:
    """A figure as a file.

    Args:
        runs: what to draw; all but `best` draw one run.
        what: which figure.
        axis: what `best` is drawn against.
        ending: `svg`, `pdf` or `png`.
        mean: whether `best` draws the mean of the runs with its 95 % interval, against evaluations.

    Raises:
        NotFoundError: matplotlib is not installed.
        UsageError: the runs do not fit the figure.
    """
    if what != "best" and len(runs) != 1:
        raise UsageError(f"expected one run to draw {what} of, got {len(runs)}")
    if len({run.history.metric for run in runs}) > 1:
        raise UsageError("expected runs with one metric, got several: their scores cannot be compared")
    if mean and axis != "evaluations":
        raise UsageError(f"expected --against evaluations with --mean, got {axis}")
    with new_figure(8, 4.8) as figure:
        axes = figure.subplots()
        axes.set_axisbelow(True)
        {"best": _best, "lineage": _lineage, "shares": _shares, "operators": _operators}[what](axes, runs, axis, mean)
        return saved(figure, ending)


# --- the best so far ------------------------------------------------------------------------------------------------


def _best(axes: Axes, runs: Sequence[PlottedRun], axis: Axis, mean: bool) -> None:
    if mean:
        _mean(axes, runs)
    else:
        for number, run in enumerate(runs):
            _one(axes, run, axis, COLOURS[number % len(COLOURS)])
    metric = runs[0].history.metric
    if metric.best_known is not None:
        axes.axhline(metric.best_known, color="#888888", linewidth=0.9, linestyle=":", label="best known")
    axes.set_xlabel(axis)
    axes.set_ylabel(f"best {one_line(metric.name, MAX_LABEL_CHARS)} so far")
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.legend(frameon=False)


def _one(axes: Axes, run: PlottedRun, axis: Axis, colour: str) -> None:
    history = run.history
    points = [(x, each) for each in run.moments if each.best and (x := _along(each, axis)) is not None]
    if not points:
        raise UsageError(f"expected known {axis} of the run {history.run}, got none: prices are not known")
    times = [at for at, _ in points]
    values = [_value(history, each) for _, each in points]
    axes.step(times, values, color=colour, where="post", label=one_line(history.run, MAX_LABEL_CHARS))
    around = [known_ends(history.interval(str(each.best))) for _, each in points]
    if any(pair and pair[0] != pair[1] for pair in around):
        low, high = zip(*[pair or (float("nan"),) * 2 for pair in around], strict=True)
        axes.fill_between(times, low, high, color=colour, alpha=0.15, linewidth=0, step="post")


def _value(history: History, moment: TimelinePoint) -> float:
    value = history.fitness(str(moment.best))
    return float("nan") if value is None else value


def _along(moment: TimelinePoint, axis: Axis) -> float | None:
    return {"evaluations": moment.evaluations, "seconds": moment.elapsed / 1000, "dollars": moment.dollars}[axis]


def _mean(axes: Axes, runs: Sequence[PlottedRun]) -> None:
    """Of the values as they were then, run by run."""
    curves = [[each.value for each in run.moments if each.value is not None] for run in runs]
    if len(runs) < 2 or not all(curves):
        raise UsageError(f"expected two or more evaluated runs for a mean, got {sum(map(bool, curves))}")
    most = min(map(len, curves))
    middle, low, high = band([whole_course(curve, most) for curve in curves])
    x = range(1, most + 1)
    axes.fill_between(x, low, high, color=COLOURS[0], alpha=0.15, linewidth=0, step="post")
    axes.step(x, middle, color=COLOURS[0], where="post", label=f"mean of {len(runs)} runs, 95 % interval")


# --- one run --------------------------------------------------------------------------------------------------------


def _lineage(axes: Axes, runs: Sequence[PlottedRun], axis: Axis, mean: bool) -> None:
    """The skeleton: score against evaluations, merges with both edges, the lineage of the best thick."""
    run = runs[0]
    history, at = run.history, {each.candidate: each.evaluations for each in run.moments}
    values = {each: history.fitness(each) for each in skeleton(history) if each in at}
    place = {each: (at[each], value) for each, value in values.items() if value is not None}
    path = {each.commit for each in history.phylogeny.lineage(history.best)} if history.best else set()
    for commit, (x, y) in place.items():
        for number, parent in enumerate(history.phylogeny[commit].parents):
            if parent not in place:
                continue
            main = number == 0 and commit in path and parent in path
            colour = COLOURS[0] if main else "#999999" if number == 0 else COLOURS[1]
            style: dict[str, Any] = {"color": colour, "linewidth": 1.8 if main else 0.8, "zorder": 2 if main else 1}
            axes.plot([place[parent][0], x], [place[parent][1], y], **style)
    agents = {history.phylogeny[each].agent for each in place}
    for number, agent in enumerate(sorted(agents, key=lambda name: (name != "seed", len(name), name))):
        points = [point for each, point in place.items() if history.phylogeny[each].agent == agent]
        colour = COLOURS[number % len(COLOURS)]
        axes.scatter(
            [x for x, _ in points],
            [y for _, y in points],
            s=14,
            color=colour,
            label=one_line(agent, MAX_LABEL_CHARS),
            zorder=3,
        )
    axes.set_xlabel("evaluations")
    axes.set_ylabel(one_line(history.metric.name, MAX_LABEL_CHARS))
    axes.legend(frameon=False, ncols=2)


def _shares(axes: Axes, runs: Sequence[PlottedRun], axis: Axis, mean: bool) -> None:
    """Of the candidates of each slice of time, how many belong to which lineage."""
    run = runs[0]
    phylogeny = run.history.phylogeny
    if not any(phylogeny[each.candidate].parents for each in run.moments):
        raise UsageError(f"expected candidates besides the seed in {run.history.run}, got none")
    founder = lineages(phylogeny, MOST_SHARES)
    born = [founder[each.candidate] for each in run.moments]
    founders = list(dict.fromkeys(founder.values()))
    width = max(len(born) // SLICES, 1)
    slices = [Counter(born[start : start + width]) for start in range(0, len(born), width)]
    rows = [[each[name] / each.total() for each in slices] for name in founders]
    names = [one_line(f"{each[:7]} {phylogeny[each].title}", MAX_LABEL_CHARS) for each in founders]
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(founders))]
    axes.stackplot([width * k for k in range(len(slices))], *rows, labels=names, colors=colours)
    axes.set_xlabel("evaluations")
    axes.set_ylabel("share of candidates, by lineage")
    axes.set_ylim(0, 1)
    axes.set_xlim(0, width * max(len(slices) - 1, 1))
    axes.legend(frameon=False, fontsize=7.5, loc="upper left", bbox_to_anchor=(1, 1), reverse=True)


def lineages(phylogeny: Phylogeny, most: int) -> dict[str, str]:
    """Every candidate with the founder of its lineage, of which there are at most so many.

    The seed is the first founder. Each further one is the candidate that divides a lineage the most evenly into those
    that descend from it by first parents and the rest.
    """
    parent = {each.commit: each.parents[0] if each.parents else None for each in phylogeny}
    founders = {commit for commit, above in parent.items() if above is None}
    while True:
        found, below = dict[str, str](), dict.fromkeys(parent, 1)
        for commit, above in parent.items():
            found[commit] = commit if above is None or commit in founders else found[above]
        for commit, above in reversed(parent.items()):
            if above is not None and commit not in founders:
                below[above] += below[commit]
        evenness = {each: min(below[each], below[found[each]] - below[each]) for each in parent if each not in founders}
        best = max(evenness, key=lambda each: evenness[each], default=None)
        if len(founders) >= most or best is None or evenness[best] <= 1:
            return found
        founders.add(best)


def _operators(axes: Axes, runs: Sequence[PlottedRun], axis: Axis, mean: bool) -> None:
    """What each operator and kind of merge brought on the way to the best."""
    history = runs[0].history
    found = sorted(contributions(history)["operators"], key=lambda each: -abs(each["gained"]))[:MOST_BARS][::-1]
    names = [
        f"{one_line(each['name'], MAX_LABEL_CHARS)}  ({each['improved']} of {each['proposals']})" for each in found
    ]
    merges = [each["name"].startswith(("merge", "graft")) for each in found]
    axes.barh(names, [each["gained"] for each in found], color=[COLOURS[merge] for merge in merges])
    axes.set_xlabel(
        f"{one_line(history.metric.name, MAX_LABEL_CHARS)} gained on the way to the best (better ones of proposals)"
    )
    axes.grid(axis="x", color="#dddddd", linewidth=0.7)
