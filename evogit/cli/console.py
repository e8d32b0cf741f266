"""Rich's console as this program has it."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import Console


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704  # rich would exit; `main` does that for all output alike


def console(stream: TextIO, color: str) -> Console:
    """What writes to a stream; `color` is `auto`, `always` or `never`."""
    plain = color == "never" or (color == "auto" and ("NO_COLOR" in os.environ or not stream.isatty()))
    return _Console(
        file=stream,
        color_system=None if plain else "auto",
        force_terminal=True if color == "always" else None,
        no_color=plain,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
