"""Why a run ended, in one line."""

from __future__ import annotations

from evogit.cli.lines.view import first_line
from evogit.core import Stopped
from evogit.review.json_records import how_ended


def ended_because(stopped: Stopped | None) -> str:
    """Why a run ended, in one line; None: that was not journalled."""
    if stopped is None:
        return "not stopped cleanly; nothing that was journalled is lost"
    told = f": {first_line(stopped.detail)}" if stopped.reason == "error" else ""
    return how_ended(stopped) + told
