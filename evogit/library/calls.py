"""Calls of functions beside an event loop: in processes forked from this one, or in threads that can be given up."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

LIBC = ctypes.CDLL(None)

DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2): a child does not outlive the thread that forked it

MOST = 1 << 24  # bytes of an answer; who says more has said nothing


async def in_fork(function: Callable[[], object]) -> Any:
    """What a function returns, as JSON has it; when this is cancelled, its process and what that started are killed.

    Raises:
        EndedError: the process ended without an answer.
    """
    reading, writing = os.pipe()
    child = _forked(function, writing)
    os.close(writing)
    try:
        answer = await _line(reading)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not answer.endswith(b"\n"):
        raise EndedError(status)
    return json.loads(answer)


class EndedError(Exception):
    """A process ended without an answer."""

    def __init__(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        super().__init__(f"its process ended {how}, and said nothing")


def _forked(function: Callable[[], object], writing: int) -> int:
    """The id of a child that calls a function, writes what it returns as a line, and ends."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # else the child has what waits there, too
    with warnings.catch_warnings():  # of other threads, which the child does without
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        with suppress(PermissionError, ProcessLookupError):  # it did so itself, or is gone
            os.setpgid(child, child)
        return child
    code = 1
    try:
        os.setpgid(0, 0)  # so that Ctrl-C is not for it, and that all it starts can be killed
        if hasattr(LIBC, "prctl"):  # else this is not Linux
            LIBC.prctl(DEATH_SIGNAL, signal.SIGKILL)
        said = json.dumps(function()).encode() + b"\n"
        sys.stdout.flush()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(said)
        code = 0
    finally:
        os._exit(code)


async def _line(reading: int) -> bytes:
    loop, done, found = asyncio.get_running_loop(), asyncio.Event(), bytearray()

    def read() -> None:
        more = os.read(reading, 1 << 16)
        found.extend(more)
        if not more or more.endswith(b"\n") or len(found) > MOST:
            done.set()

    loop.add_reader(reading, read)
    try:
        await done.wait()
    finally:
        loop.remove_reader(reading)
    return bytes(found)


# --- threads: Python has no other way to end a function ------------------------------------------------------------


class GivenUpError(BaseException):
    """Raised inside a function that nobody waits for any more; not an `Exception`, so that few catch it."""


async def in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own and return its result; if cancelled, abandon the function.

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
