"""Why a run ended, in words."""

from __future__ import annotations

from evogit.cli.view import first_line
from evogit.core import Stopped

HOW = {
    "interrupted": "interrupted; nothing is lost",
    "asked": "stopped on request",
    "best-known": "reached the best value known from elsewhere; --beyond goes on",
    "exhausted": "200 moves in a row made nothing new",
}


def ended_because(stopped: Stopped | None) -> str:
    """Why a run ended, in words; None: that was not journalled."""
    if stopped is None:
        return "not stopped cleanly; nothing that was journalled is lost"
    if stopped.reason == "error":
        return f"failed: {first_line(stopped.detail)}"
    return HOW.get(stopped.reason, f"reached: {stopped.reason}")
