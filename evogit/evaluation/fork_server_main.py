"""The fork server: a process with one thread that has imported what evaluators need, and forks one for each request.

Each request is an environment and a list of cores, with three descriptors: one for stdin and stdout, one for stderr,
one to tell the id of the new process and how it ended. A forked process goes on as `evaluator_main`.
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
from typing import Any

from evogit.evaluation import evaluator_main

LONGEST = 1 << 20
"""Bytes of a request, more than an environment may have."""


def main() -> None:
    """Fork until the process that started us is gone; in a forked process, evaluate."""
    gc.freeze()  # what was imported stays: nobody need look for garbage there, at the end least of all
    server = os.getpid()
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        gc.enable()
        evaluator_main.main(server)


def _serve(requests: socket.socket) -> bool:
    """Whether this is a forked process; the server itself ends here."""
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    wakes, woken = socket.socketpair()
    for end in (wakes, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    tellers: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, wakes], [], [])
        if wakes in ready:
            wakes.recv(1024)
            _tell_of_ends(tellers)
        if requests in ready:
            request, descriptors, _, _ = socket.recv_fds(requests, LONGEST, 3)
            if not request:
                os._exit(0)  # all that was forked is killed with us
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number in [requests.detach(), wakes.detach(), woken.detach(), *tellers.values()]:
                    os.close(number)
                _become(json.loads(request), *descriptors)
                return True
            tellers[pid] = descriptors.pop()
            for number in descriptors:
                os.close(number)


def _tell_of_ends(tellers: dict[int, int]) -> None:
    """Tell how each forked process ended that did."""
    for pid in [*tellers]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            teller = tellers.pop(pid)
            with contextlib.suppress(OSError):  # nobody waits for it any more
                os.write(teller, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(teller)


def _become(request: Mapping[str, Any], pipe: int, prints: int, teller: int) -> None:
    """Take on what a process that was started anew would have."""
    os.setsid()
    for number in (0, 1):
        os.dup2(pipe, number)
    os.dup2(prints, 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["cores"]:
        os.sched_setaffinity(0, request["cores"])
    os.write(teller, b"%10d" % os.getpid())
    for number in (pipe, prints, teller):
        os.close(number)
