"""Figures of runs for a paper: what was reached, and by which lineage."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from evogit.core import NotFoundError, UsageError
from evogit.history import History
from evogit.review.graph import skeleton
from evogit.review.json_records import known_ends
from evogit.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["best", "lineage"]

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""Colours for colour-blind readers (Okabe & Ito, 2008, without its yellow, too light for lines, and with an eighth)."""

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": "#333333",
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "svg.hashsalt": "evogit",
    "svg.fonttype": "none",
    "text.parse_math": False,
}

UNDATED: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}

MAX_LABEL_CHARS = 40
"""Of foreign text: names and titles, made harmless, as SVG may hold no control character."""


def plot(runs: Sequence[History], what: Kind, ending: str) -> bytes:
    """Return a figure as a file with the `ending`; equal runs give equal files.

    Raises NotFoundError: matplotlib is not installed. Raises UsageError: the runs do not fit the figure.
    """
    if what != "best" and len(runs) != 1:
        raise UsageError(f"expected one run to draw {what} of, got {len(runs)}")
    if len({run.metric for run in runs}) > 1:
        raise UsageError("expected runs with one metric, got several: their scores cannot be compared")
    try:
        from matplotlib.figure import Figure
        from matplotlib.style import context
    except ImportError as error:
        raise NotFoundError(
            f"no pictures: expected matplotlib ({error}); install the extra `plot`: pip install 'evogit[plot]'"
        ) from error
    with context(["default", STYLE]), warnings.catch_warnings():  # no `matplotlibrc`
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # names in other scripts
        figure = Figure(figsize=(8, 4.8), layout="constrained")
        axes = figure.subplots()
        axes.set_axisbelow(True)
        if what == "best":
            _best(axes, runs)
        else:
            _lineage(axes, runs[0])
        out = io.BytesIO()
        figure.savefig(out, format=ending, dpi=160, metadata=UNDATED[ending])
        return out.getvalue()


# --- the best so far ------------------------------------------------------------------------------------------------


def _best(axes: Axes, runs: Sequence[History]) -> None:
    for number, run in enumerate(runs):
        _draw_best(axes, run, COLOURS[number % len(COLOURS)])
    metric = runs[0].metric
    if metric.best_known is not None:
        axes.axhline(metric.best_known, color="#888888", linewidth=0.9, linestyle=":", label="best known")
    axes.set_xlabel("evaluations")
    axes.set_ylabel(f"best {one_line(metric.name, MAX_LABEL_CHARS)} so far")
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.legend(frameon=False)


def _draw_best(axes: Axes, history: History, colour: str) -> None:
    ids = history.phylogeny.ids
    points = [(step.evaluations, ids[step.best]) for step in history.best_so_far() if step.best is not None]
    if not points:
        raise UsageError(f"expected an evaluated candidate of the run {history.run}, got none")
    points.append((history.counts.evaluated, points[-1][1]))
    times = [at for at, _ in points]
    known = [history.fitness(best) for _, best in points]
    values = [float("nan") if value is None else value for value in known]
    axes.step(times, values, color=colour, where="post", label=one_line(history.run, MAX_LABEL_CHARS))
    around = [known_ends(history.interval(best)) for _, best in points]
    if any(pair and pair[0] != pair[1] for pair in around):
        low, high = zip(*[pair or (float("nan"),) * 2 for pair in around], strict=True)
        axes.fill_between(times, low, high, color=colour, alpha=0.15, linewidth=0, step="post")


# --- one run --------------------------------------------------------------------------------------------------------


def _lineage(axes: Axes, history: History) -> None:
    moments = history.course.moments
    values = {each: history.fitness(each) for each in skeleton(history) if each in moments}
    place = {each: (moments[each].evaluations, value) for each, value in values.items() if value is not None}
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
