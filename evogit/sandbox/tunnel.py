"""Sockets of this process whose other end is a server in a sandbox."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from typing import Any

from evogit.core import SandboxLostError
from evogit.sandbox.answers import SupervisorAnswer

POLL = 0.01
"""Seconds between two looks at an end that is silent."""
SOON = 0.001
"""Seconds to wait first where bytes are likely to come; then twice as long, and so on."""
CHUNK = 1 << 16


Ask = Callable[[dict[str, Any], bytes], SupervisorAnswer]
"""Sends a request to the supervisor and takes its answer."""


def carried(tunnel: int, ask: Ask) -> socket.socket:
    """A connected socket; a thread carries its bytes through the supervisor's tunnel of this number, and back."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_carry, args=(tunnel, ask, ours), daemon=True).start()
    return theirs


def _carry(tunnel: int, ask: Ask, ours: socket.socket) -> None:
    """Until both ends are through, in lock step; one that speaks is likely to get an answer, so it is waited for."""
    reading, ended, full, wait = True, False, False, 0.0
    with ours, contextlib.suppress(OSError, SandboxLostError):  # of a loss, the session tells at its end
        while not ended:
            ready, _, _ = select.select([ours] if reading and not full else [], [], [], 0 if wait else POLL)
            data = ours.recv(CHUNK) if ready else b""
            wait = SOON if data else wait
            reading = reading and not (ready and not data)
            request = {"do": "exchange", "tunnel": tunnel, "wait": wait, "last": not reading}
            answer = ask(request, data)
            ours.sendall(answer.parts[0])
            ended, full = answer.ended or bool(answer.failure), answer.full
            wait = SOON if answer.parts[0] else 2 * wait if wait < POLL else 0.0
