"""Curves of a bench as pictures, where matplotlib is there (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evogit.bench.comparison import Findings
from evogit.bench.methods import is_control
from evogit.review.figures import COLOURS, new_figure, saved
from evogit.stats.paired_tests import tail

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = ("-", "--", "-.", ":")
"""Controls are told apart by their dashes, too; other methods have a solid, thicker line."""

RESAMPLES = 2000
"""Bootstrap resamples of a band, whose ends are not read to three digits."""

GAP = 0.048
"""Least distance between two labels, as a share of the height."""


def pictures(findings: Findings) -> dict[str, bytes]:
    """The curves of one task, by the ending of the file's name: `svg` and `png`. Equal runs give equal files.

    Raises:
        NotFoundError: matplotlib is not installed.
    """
    with new_figure(8, 4.8) as figure:
        _draw(figure.subplots(), findings)
        return {kind: saved(figure, kind) for kind in ("svg", "png")}


def _draw(axes: Axes, findings: Findings) -> None:
    ends: dict[str, tuple[float, str]] = {}
    for i, (name, runs) in enumerate(findings.curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        mean, low, high = _band(runs, findings.evaluations)
        x = range(1, findings.evaluations + 1)
        own = not is_control(name)
        axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0, step="post")
        axes.plot(
            *(x, mean),
            color=colour,
            linestyle="-" if own else DASHES[i % len(DASHES)],
            linewidth=2.4 if own else 1.4,
            zorder=4 if own else 3,
            drawstyle="steps-post",
        )
        ends[name] = mean[-1], colour
    _frame(axes, findings)
    bottom, top = axes.get_ylim()
    for name, y in _spread({name: end for name, (end, _) in ends.items()}, (top - bottom) * GAP).items():
        weight = "normal" if is_control(name) else "bold"
        axes.annotate(
            name,
            (findings.evaluations, y),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=ends[name][1],
            fontweight=weight,
            annotation_clip=False,
        )


def _frame(axes: Axes, findings: Findings) -> None:
    """What is said around the curves."""
    axes.set_xlim(1, findings.evaluations)
    axes.margins(y=0.04)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=3)
    axes.set_xlabel("evaluations")
    axes.set_ylabel(f"best so far (seed 0, {'best known' if findings.top_known else 'best seen'} 1)")
    axes.set_title(findings.task, loc="left", fontweight="bold")
    axes.set_title(
        f"{findings.metric} on {findings.split}; mean of {len(findings.seeds)} runs, 95 % interval",
        loc="right",
        fontsize=8.5,
    )


def _spread(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Heights for labels that do not overlap, each as near to its own as pushing the crowded ones apart allows."""
    names = sorted(heights, key=lambda name: heights[name])
    groups: list[tuple[float, list[str]]] = []
    for name in names:
        centre, group = heights[name], [name]
        while groups and centre - groups[-1][0] < gap * (len(group) + len(groups[-1][1])) / 2:
            other, members = groups.pop()
            centre = (centre * len(group) + other * len(members)) / (len(group) + len(members))
            group = members + group
        groups.append((centre, group))
    return {name: centre + gap * (i - (len(group) - 1) / 2) for centre, group in groups for i, name in enumerate(group)}


def _band(runs: Sequence[Sequence[float]], evaluations: int) -> tuple[list[float], list[float], list[float]]:
    """Return the mean curve and its bootstrap percentile interval (Efron & Tibshirani, 1993), by evaluation.

    A run that ended early stays where it ended.
    """
    import numpy as np

    values = np.asarray([[*run[:evaluations], *[run[-1]] * (evaluations - len(run))] for run in runs])
    picks = np.random.default_rng(0).integers(len(runs), size=(RESAMPLES, len(runs)))
    weights = np.stack([(picks == i).sum(axis=1) for i in range(len(runs))], axis=1) / len(runs)
    beyond = tail(len(runs))
    low, high = np.quantile(weights @ values, (beyond, 1 - beyond), axis=0)
    return values.mean(axis=0).tolist(), low.tolist(), high.tolist()
