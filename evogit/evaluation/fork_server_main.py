"""The fork server: a process with one thread that has imported what evaluators need, and forks one for each request.

Each request is an environment, with three descriptors: one for stdin and stdout, one for stderr, one to tell the id of
the new process and how it ended. A forked process goes on as `evaluator_main`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping

from evogit.evaluation import evaluator_main

LONGEST = 1 << 20
"""Bytes of a request, more than an environment may have."""


def main() -> None:
    """Fork until the process that started us, the second argument, is gone; in a forked process, evaluate."""
    gc.freeze()  # what was imported stays: nobody need look for garbage there, at the end least of all
    server = os.getpid()
    if _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])):
        gc.enable()
        evaluator_main.main(server)


def _serve(requests: socket.socket, engine: int) -> bool:
    """Whether this is a forked process; the server itself ends here."""
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    wakes, woken = socket.socketpair()
    for end in (wakes, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    gone = _end_of(engine)
    looked = select.poll()
    for descriptor in (requests.fileno(), wakes.fileno(), gone):
        if descriptor >= 0:
            looked.register(descriptor, select.POLLIN)
    tellers: dict[int, int] = {}
    while True:
        ready = {descriptor for descriptor, _ in looked.poll()}
        if wakes.fileno() in ready:
            wakes.recv(1024)
            _tell_of_ends(tellers)
        if gone in ready:
            os._exit(0)  # all that was forked is killed with us
        if requests.fileno() in ready:
            request, descriptors, _, _ = socket.recv_fds(requests, LONGEST, 3)
            if not request:
                os._exit(0)
            if _fork(tellers, *descriptors):
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                ours = [requests.detach(), wakes.detach(), woken.detach(), gone, *tellers.values()]
                for number in filter(lambda number: number >= 0, ours):
                    os.close(number)
                _become(json.loads(request), *descriptors)
                return True
            for number in descriptors:
                os.close(number)


def _fork(tellers: dict[int, int], _: int, prints: int, teller: int) -> bool:
    """Whether this is the new process; elsewhere it is noted who will hear of its end, or told why there is none."""
    try:
        pid = os.fork()
    except OSError as error:
        os.write(prints, f"{error}\n".encode())
        return False
    if pid:
        tellers[pid] = os.dup(teller)
    return not pid


def _end_of(engine: int) -> int:
    """A descriptor that can be read once the engine is gone, however many have a copy of its end of the socket.

    -1 where the kernel has none; the socket tells it then.
    """
    gone = -1
    with contextlib.suppress(OSError, AttributeError):
        gone = os.pidfd_open(engine)
    if os.getppid() != engine:
        os._exit(0)
    return gone


def _tell_of_ends(tellers: dict[int, int]) -> None:
    """Tell how each forked process ended that did."""
    for pid in [*tellers]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            teller = tellers.pop(pid)
            with contextlib.suppress(OSError):  # nobody waits for it any more
                os.write(teller, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(teller)


def _become(environment: Mapping[str, str], pipe: int, prints: int, teller: int) -> None:
    """Take on what a process that was started anew would have."""
    os.setsid()
    for number in (0, 1):
        os.dup2(pipe, number)
    os.dup2(prints, 2)
    coerced = os.environ.get("LC_CTYPE")  # which Python sets where there is no LANG
    os.environ.clear()
    os.environ.update(environment if coerced is None else {"LC_CTYPE": coerced, **environment})
    os.write(teller, b"%d\n" % os.getpid())
    for number in (pipe, prints, teller):
        os.close(number)
