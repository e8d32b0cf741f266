"""Why a run ended, in words."""

from __future__ import annotations

from evogit.core import Stopped

HOW = {
    "interrupted": "interrupted; nothing is lost",
    "asked": "stopped on request",
    "best-known": "reached the best possible value",
    "exhausted": "200 moves in a row made nothing new",
    "error": "failed",
}


def how_ended(stopped: Stopped | None) -> str:
    """What ended a run; empty: it works, or that was not journalled."""
    return HOW.get(stopped.reason, f"reached: {stopped.reason}") if stopped else ""
