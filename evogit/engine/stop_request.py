"""The request that a run ends: why, and how fast."""

from __future__ import annotations

import asyncio

from evogit.core import StopReason

HURRIED: tuple[StopReason, ...] = ("interrupted", "asked", "minutes")
"""Reasons for which a run ends without evaluating what people added at the last moment."""


class StopRequest:
    """Whether one engine is to end. The first reason stays.

    Attributes:
        asked: why, and a detail; None while the run goes on.
        over: set once nothing new begins.
        silent: set once no model is asked any more.
        hurry: set once nothing is evaluated again.
    """

    def __init__(self, *, deterministic: bool) -> None:
        self.asked: tuple[StopReason, str] | None = None
        self.over = asyncio.Event()
        self.silent = asyncio.Event()
        self.hurry = asyncio.Event()
        self._deterministic = deterministic

    def ask(self, reason: StopReason, detail: str = "") -> None:
        """Let what has begun end and begin nothing new.

        No model is asked again after a lost attempt; only where a limit ends a deterministic run what began goes on.
        """
        self.asked = self.asked or (reason, detail)
        self.over.set()
        if reason in ("interrupted", "asked"):
            self.hurry.set()
        if reason in HURRIED or not self._deterministic:
            self.silent.set()
