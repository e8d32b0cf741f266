"""The graph of a run as SVG or PNG, by the code that draws it in a browser."""

from __future__ import annotations

import json
from typing import Literal

from msgspec import Struct, to_builtins

from evogit.core import EvoGitError
from evogit.page.modules import script
from evogit.page.payload import Record

STACK = 16 << 20
"""Bytes for QuickJS's stack: long lineages are sorted and joined."""


class Look(Struct, frozen=True, kw_only=True):
    """How a figure looks; sizes are in pixels of the SVG."""

    width: int = 1200
    height: int = 700
    theme: Literal["light", "dark"] = "light"
    view: Literal["skeleton", "lanes"] = "skeleton"
    axis: Literal["time", "evaluations", "dollars"] = "evaluations"
    scale: str = "score"
    colour: Literal["agent", "operator", "model", "status", "host"] = "agent"
    everything: bool = False


def svg(payload: Record, look: Look) -> str:
    """The graph of a run, of which `payload` is what a browser would be told.

    Raises:
        EvoGitError: QuickJS is not installed.
    """
    try:
        import quickjs
    except ModuleNotFoundError as error:
        raise EvoGitError("drawing needs the package quickjs: pip install 'evogit[web]'") from error
    context = quickjs.Context()
    context.set_max_stack_size(STACK)
    context.eval(script("figure.js"))
    context.set("told", json.dumps(payload, allow_nan=False))
    context.set("look", json.dumps(to_builtins(look)))
    return str(context.eval("figure(JSON.parse(told), JSON.parse(look))"))


def png(payload: Record, look: Look, zoom: float = 2.0) -> bytes:
    """The same as a picture of `zoom` times as many pixels, with the fonts that matplotlib brings.

    Raises:
        EvoGitError: what it needs is not installed.
    """
    drawn = svg(payload, look)
    try:
        import matplotlib
        import resvg_py
    except ModuleNotFoundError as error:
        raise EvoGitError(f"a PNG needs the package {error.name}: pip install 'evogit[plot]'") from error
    fonts = matplotlib.get_data_path() + "/fonts/ttf"
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=zoom, font_dirs=[fonts], sans_serif_family="DejaVu Sans"))
