"""Curves of a bench as pictures, where matplotlib is there (the extra `bench`)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evogit.bench.comparison import Findings
from evogit.bench.methods import is_control
from evogit.core import NotFoundError
from evogit.stats.paired_tests import tail

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""Told apart by colour-blind people (Okabe & Ito, 2008, without its yellow, which is too light for lines); the last
one is for an eighth method."""

DASHES = ("-", "--", "-.", ":")
"""Controls are told apart by their dashes, too; other methods have a solid, thicker line."""

RESAMPLES = 2000
"""Resamples of the bands, whose ends are not read to three digits."""

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

GAP = 0.048
"""Least distance between two labels, as a share of the height."""


def pictures(findings: Findings) -> dict[str, bytes]:
    """The curves of one task, by the ending of the file's name: `svg` and `png`. Equal runs give equal files.

    Raises:
        NotFoundError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NotFoundError(
            f"no pictures: expected matplotlib ({error}); install the extra `bench`: pip install 'evogit[bench]'"
        ) from error
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.8), layout="constrained")
        _draw(figure.subplots(), findings)
        return {"svg": _saved(figure, "svg", {"Date": None}), "png": _saved(figure, "png", {"Software": None})}


def _saved(figure: Figure, kind: str, metadata: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=160, metadata=metadata)
    return out.getvalue()


def _draw(axes: Axes, findings: Findings) -> None:
    ends: dict[str, tuple[float, str]] = {}
    for i, (name, runs) in enumerate(findings.curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        mean, low, high = _band([_whole(run, findings.evaluations) for run in runs])
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


def _whole(run: Sequence[float], evaluations: int) -> list[float]:
    """One value for each evaluation; a run that ended early stays where it ended."""
    used = list(run[:evaluations])
    return used + [used[-1]] * (evaluations - len(used))


def _band(runs: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float]]:
    """The mean curve and its bootstrap percentile interval, evaluation by evaluation (Efron & Tibshirani, 1993)."""
    import numpy as np

    values = np.asarray(runs)
    picks = np.random.default_rng(0).integers(len(runs), size=(RESAMPLES, len(runs)))
    weights = np.stack([(picks == i).sum(axis=1) for i in range(len(runs))], axis=1) / len(runs)
    beyond = tail(len(runs))
    low, high = np.quantile(weights @ values, (beyond, 1 - beyond), axis=0)
    return values.mean(axis=0).tolist(), low.tolist(), high.tolist()


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
