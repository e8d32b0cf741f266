"""Where an engine leaves questions that its caller answers, in whatever order and whenever they like."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from evogit.core import UsageError


@dataclass(eq=False, kw_only=True)
class OpenQuestion:
    """What an engine waits for. `reads` makes of what the caller says what the engine needs; it may refuse."""

    reads: Callable[[object], Any] = field(repr=False)


class Desk:
    """Questions of one engine, which may be left from its loop and answered from another thread.

    The queue is written in C: a Ctrl-C that comes while `queue.Queue` takes its lock leaves it locked for ever.
    """

    def __init__(self) -> None:
        self._new: queue.SimpleQueue[OpenQuestion | None] = queue.SimpleQueue()
        self._open: dict[OpenQuestion, tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = {}
        self._taken: set[OpenQuestion] = set()
        self._told: WeakSet[OpenQuestion] = WeakSet()

    # --- in the engine's loop -----------------------------------------------------------------------------------

    async def answer(self, question: OpenQuestion) -> Any:
        """Leave a question, and wait for what is said to it."""
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        self._open[question] = loop, waiting
        self._new.put(question)
        try:
            return await waiting
        finally:
            self._open.pop(question, None)

    async def close(self) -> None:
        """There will be no question any more."""
        self._new.put(None)

    # --- in the caller's thread -----------------------------------------------------------------------------------

    @property
    def unanswered(self) -> int:
        """How many questions were taken and wait for an answer; one that nobody has seen yet is none of them."""
        return sum(question in self._open for question in self._taken)

    def take(self, seconds: float) -> OpenQuestion | None:
        """The next question that is still open, waited for so long; None at the end.

        Raises:
            queue.Empty: none came.
        """
        while True:
            question = self._new.get(timeout=seconds)
            if question is None:
                self._new.put(None)  # so that whoever asks again hears it, too
                return None
            if question in self._open:
                self._taken.add(question)
                return question

    def tell(self, question: OpenQuestion, said: object) -> None:
        """Answer a question; one that the run gave up meanwhile is answered in vain.

        Raises:
            UsageError: it makes no sense as an answer, and the question stays open; or the question had its answer.
        """
        if not isinstance(question, OpenQuestion):
            raise UsageError(f"expected what ask() gave, and then what you say to it, got {question!r:.100}")
        if question in self._told:
            raise UsageError(f"this question was answered before, and the first answer counts: {question!r:.200}")
        answer = question.reads(said)
        self._told.add(question)
        self._taken.discard(question)
        found = self._open.pop(question, None)
        if found is None:
            return
        loop, waiting = found

        def settle() -> None:
            if not waiting.done():
                waiting.set_result(answer)

        with suppress(RuntimeError):  # the loop is closed: the run ended by itself
            loop.call_soon_threadsafe(settle)
