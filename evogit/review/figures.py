"""Figures on paper: their style and colours, and the files they are saved as."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evogit.core import NotFoundError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""Colours for colour-blind readers (Okabe & Ito, 2008, without its yellow, which is too light for lines); the last
one is for an eighth method."""

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
"""The formats of figures."""

UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure, in inches, with our style and without any `matplotlibrc`.

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
    """Return the figure as a file of one of KINDS; equal figures give equal files."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # names in other scripts
        figure.savefig(out, format=kind, dpi=160, metadata=UNDATED[kind])
    return out.getvalue()
