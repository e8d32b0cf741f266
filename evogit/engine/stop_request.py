"""The request that a run ends: why, how fast, and when what is still in flight is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from evogit.agents.population import Models
from evogit.core import StopReason
from evogit.llm import Account, Model, Question, RunEndsError

T = TypeVar("T")

HURRIED: tuple[StopReason, ...] = ("interrupted", "asked", "minutes")
"""Reasons for which a run ends without evaluating what people added at the last moment."""

CALLS = 5.0
"""Seconds that calls of models have to come back once a person wants the run to end."""

ALL = 30.0
"""Seconds that all else has, evaluations above all; what is left is for the next start."""

LEFT = "what was in flight is left for the next start"


class StopRequest:
    """Whether one engine is to end. The first reason stays.

    Attributes:
        asked: why, and a detail; None while the run goes on.
        over: set once nothing new begins.
        silent: set once no model is asked any more.
        hurry: set once nothing is evaluated again.
        dropped: set once no reply of a model is waited for.
        ended: set once nothing is waited for.
    """

    def __init__(self, *, deterministic: bool) -> None:
        self.asked: tuple[StopReason, str] | None = None
        self.over = asyncio.Event()
        self.silent = asyncio.Event()
        self.hurry = asyncio.Event()
        self.dropped = asyncio.Event()
        self.ended = asyncio.Event()
        self._deterministic = deterministic
        self._timers: list[asyncio.TimerHandle] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """The run begins, in the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def ask(self, reason: StopReason, detail: str = "", *, after_calls: bool = False) -> None:
        """Let what has begun end and begin nothing new.

        No model is asked again after a lost attempt; only where a limit ends a deterministic run what began goes on.
        With `after_calls` calls of models in flight, and evaluations, are waited for to their end; a later request
        without it gives them up. Any thread may ask.
        """
        self.asked = self.asked or (reason, detail)
        here = None
        with suppress(RuntimeError):  # no loop runs in this thread
            here = asyncio.get_running_loop()
        if self._loop and here is not self._loop:
            with suppress(RuntimeError):  # the loop is closed: the run ended by itself
                self._loop.call_soon_threadsafe(partial(self.ask, reason, detail, after_calls=after_calls))
            return
        self.over.set()
        if reason in ("interrupted", "asked"):
            self.hurry.set()
            if not after_calls:
                self._give_up(CALLS, ALL)
        if reason in HURRIED or not self._deterministic:
            self.silent.set()

    def end_within(self, seconds: float, grace: float) -> None:
        """Have all be over after so many seconds from now, of which `grace` are for what has begun by then."""
        self._later(seconds - grace, lambda: self.ask("minutes"))
        self._give_up(seconds - grace / 2, seconds)

    def _give_up(self, calls: float, rest: float) -> None:
        self._later(calls, self.dropped.set)
        self._later(rest, self.ended.set)

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # asked before there is a loop: whoever runs it has begun nothing
            self._timers.append(asyncio.get_running_loop().call_later(max(0.0, seconds), act))

    def close(self) -> None:
        """Forget what was to happen later."""
        for timer in self._timers:
            timer.cancel()

    def heeded(self, models: Models) -> Models:
        """The same models, whose replies are not waited for once the run is to end."""
        return lambda name: HeededModel(models(name), self)

    async def reply(self, asking: Coroutine[Any, Any, T]) -> T:
        """What a model replies.

        Raises:
            RunEndsError: it was not waited for.
        """
        replied = await _unless(self.dropped, asking)
        if replied is None:
            raise RunEndsError("the run ends, so the reply was not waited for")
        return replied[0]

    async def done(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether work was done before nothing is waited for any more; what it waits for is broken off then."""
        return await _unless(self.ended, work) is not None


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> tuple[T] | None:
    """What comes of work, None if the event came first; then it is cancelled, and clears up after itself."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return (working.result(),)
        return None
    finally:
        waiting.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
            _ = working.cancelled() or working.exception()  # of what is given up nobody asks how it ended


class HeededModel:
    """A model whose reply is not waited for once a run is to end; what it may cost is charged."""

    def __init__(self, model: Model, stopping: StopRequest) -> None:
        self._model = model
        self._stopping = stopping
        self.name = model.name
        self.price = model.price
        self.context = model.context

    async def ask(self, question: Question, account: Account) -> str:
        """The text of the reply.

        Raises:
            RunEndsError: the run ends before it came.
        """
        return await self._stopping.reply(self._model.ask(question, account))
