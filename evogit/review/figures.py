"""What figures on paper have in common: style, colours, a mean with its band, and how they are saved."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evogit.core import NotFoundError
from evogit.stats.paired_tests import tail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""Told apart by colour-blind people (Okabe & Ito, 2008, without its yellow, which is too light for lines); the last
one is for an eighth method."""

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

KINDS = ("svg", "pdf", "png")
"""What a figure can be saved as."""

UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """An empty figure, in inches, and our style, whatever a `matplotlibrc` of the current folder says.

    Raises NotFoundError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.style import context
    except ImportError as error:
        raise NotFoundError(
            f"no pictures: expected matplotlib ({error}); install the extra `plot`: pip install 'evogit[plot]'"
        ) from error
    with context(["default", STYLE]):
        yield Figure(figsize=(width, height), layout="constrained")


def saved(figure: Figure, kind: str) -> bytes:
    """The file of a figure, one of KINDS; equal figures give equal files."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # names in other scripts
        figure.savefig(out, format=kind, dpi=160, metadata=UNDATED[kind])
    return out.getvalue()


def whole_course(run: Sequence[float], evaluations: int) -> list[float]:
    """One value for each evaluation; a run that ended early stays where it ended."""
    used = list(run[:evaluations])
    return used + [used[-1]] * (evaluations - len(used))


def band(runs: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float]]:
    """The mean curve and its bootstrap percentile interval, evaluation by evaluation (Efron & Tibshirani, 1993)."""
    import numpy as np

    values = np.asarray(runs)
    picks = np.random.default_rng(0).integers(len(runs), size=(RESAMPLES, len(runs)))
    weights = np.stack([(picks == i).sum(axis=1) for i in range(len(runs))], axis=1) / len(runs)
    beyond = tail(len(runs))
    low, high = np.quantile(weights @ values, (beyond, 1 - beyond), axis=0)
    return values.mean(axis=0).tolist(), low.tolist(), high.tolist()
