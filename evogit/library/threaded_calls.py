"""Calls of functions beside an event loop, which can be given up; Python has no other way to end a function."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class GivenUpError(BaseException):
    """Raised inside a function that nobody waits for any more; not an `Exception`, so that few catch it."""


async def in_thread(function: Callable[[], T]) -> T:
    """What a function returns, called in a thread of its own; when this is cancelled, the function is given up.

    `GivenUpError` is raised in it then. What runs in C, such as a sleep, goes on until it ends; the thread is a daemon
    and holds up nobody, not even the end of the program. The function must raise nothing else.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(result: T) -> None:
        if not done.done():
            done.set_result(result)

    def work() -> None:
        with suppress(GivenUpError, RuntimeError):  # the loop is closed where nobody waits any more
            loop.call_soon_threadsafe(deliver, function())

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="evogit-evaluate", daemon=True)
    thread.start()
    try:
        return await done
    finally:
        if not done.done() or done.cancelled():
            _give_up(thread)


def _give_up(thread: threading.Thread) -> None:
    if thread.ident is not None and thread.is_alive():
        number = ctypes.c_ulong(thread.ident)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(GivenUpError))
