"""Evaluator processes, and the process with one thread that has imported what they need and forks them.

A request to fork is an environment, with three descriptors: one for stdin and stdout, one for stderr, one to report the
id of the new process and how it ended. The new process runs a task's trusted evaluator, and speaks in `frames` over
stdin and stdout. First comes the task, then one request per evaluation, with a base in between when the candidates' one
is new; every case goes back as it is yielded, then the result. An exception of the evaluator ends the process: its
traceback is on stderr, and the engine starts another one.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from evogit.core import BaseFiles, EvaluatorError, EvoGitError, Files, SandboxError
from evogit.evaluation.frames import KINDS, PREFIX, completed_frame, evaluation_frame, frame, task_of
from evogit.evaluation.scorer import Scorer
from evogit.sandbox.cores import exclusive_core, kept_free, turn
from evogit.sandbox.gpus import lender
from evogit.sandbox.providers import provider

logger = logging.getLogger(__name__)

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)

MAX_REQUEST_BYTES = 1 << 20
"""Bytes of a request, more than an environment may have."""


def _evaluate(parent: int) -> None:
    """Serve the engine until it closes our stdin or dies, and with it the fork server, whose id is `parent`."""
    if sys.platform == "linux":  # elsewhere the end of stdin ends us, between evaluations
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)
    requests, replies = _claim_pipes()
    lock = threading.Lock()

    def send(message: bytes) -> None:
        with lock:
            replies.write(message)
            replies.flush()

    warnings = logging.Handler(logging.WARNING)  # such as of a sandbox that isolates nothing
    warnings.emit = lambda record: send(frame({"warning": record.getMessage()}))  # type: ignore[method-assign]
    logging.getLogger("evogit").addHandler(warnings)
    with ExitStack() as stack:
        try:
            scorer, core = _greet(requests, send, stack)
        except EvoGitError as error:
            send(_failure(error))
        else:
            _serve(scorer, core, requests, send)


def _greet(requests: BinaryIO, send: Callable[[bytes], None], stack: ExitStack) -> tuple[Scorer, int | None]:
    """The scorer, and the core that its candidates have for themselves, if they have one."""
    header, _ = _receive(requests) or ({}, b"")
    task = task_of(header["task"])
    if task.evaluator_digest != header["digest"]:
        raise EvaluatorError(f"{task.evaluator_folder} changed since the run started; stop it and start it again")
    if task.environment.exclusive:  # the engine keeps off the core that the provider is to find
        os.sched_setaffinity(0, header["cores"])
    private = [Path(folder) for folder in header["private"]]
    environment = replace(task.environment, network=False)
    sandbox = provider(header["provider"], environment, private, worked=header["worked"])
    stack.callback(sandbox.close)
    core = exclusive_core() if task.environment.exclusive else None
    if core is not None:
        stack.enter_context(kept_free(core))
    scorer = Scorer(task, sandbox, lambda header: send(frame(header)), private)
    wants = {"needs_seed": scorer.needs_seed, "builds_on_seed": scorer.builds_on_seed, "draws": scorer.draws}
    send(frame({"provider": sandbox.name, "image": sandbox.image(), "timing": sandbox.timing, **wants}))
    return scorer, core


def _serve(scorer: Scorer, core: int | None, requests: BinaryIO, send: Callable[[bytes], None]) -> None:
    base: BaseFiles | None = None
    while message := _receive(requests):
        request, body = message
        if "base" in request:
            base = BaseFiles(request["base"], body)
        else:
            files = Files(body, tuple(request["removed"]), base if request["based"] else None)
            send(_answer(scorer, core, request, files))


def _answer(scorer: Scorer, core: int | None, request: Mapping[str, Any], files: Files) -> bytes:
    try:
        with ExitStack() as stack:
            wanted = scorer.task.environment
            if wanted.gpus:  # before the clock of the evaluation starts, as others may have them for long
                stack.enter_context(lender().lent(wanted.gpus, logger.warning, equal=wanted.exclusive))
            if wanted.exclusive:
                stack.enter_context(turn(core, whole=not wanted.gpus))
            elif request.get("alone"):
                with suppress(SandboxError):  # without the lock it is a little less alone
                    stack.enter_context(turn())
            if "run" in request:
                return completed_frame(scorer.run(files, request["run"], request["wall"], request["laid"]))
            how = request["split"], request["repeat"], files, request["drawn"]
            return evaluation_frame(*scorer.evaluate(*how, skip_tests=request["skip_tests"]))
    except SandboxError as error:
        return _failure(error)


def _failure(error: EvoGitError) -> bytes:
    kind = next((kind for kind in KINDS if isinstance(error, kind)), EvoGitError)
    return frame({"error": kind.__name__, "message": str(error)})


def _receive(pipe: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    prefix = pipe.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header, body = PREFIX.unpack(prefix)
    return json.loads(pipe.read(header)), pipe.read(body)


def _claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def main() -> None:
    """Fork until the process that started us, the second argument, is gone; in a forked process, evaluate."""
    gc.freeze()  # what was imported stays: nobody need look for garbage there, at the end least of all
    server = os.getpid()
    if _fork_on_request(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])):
        gc.enable()
        _evaluate(server)


def _fork_on_request(requests: socket.socket, engine: int) -> bool:
    """Return True in a forked process; the server itself ends here."""
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
            request, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
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
    """Return whether this is the new process; the parent notes where to report its end, or reports the error."""
    try:
        pid = os.fork()
    except OSError as error:
        os.write(prints, f"{error}\n".encode())
        return False
    if pid:
        tellers[pid] = os.dup(teller)
    return not pid


def _end_of(engine: int) -> int:
    """Return a descriptor that is readable once the engine is gone; -1 without pidfd (the socket tells it)."""
    gone = -1
    with suppress(OSError, AttributeError):
        gone = os.pidfd_open(engine)
    if os.getppid() != engine:
        os._exit(0)
    return gone


def _tell_of_ends(tellers: dict[int, int]) -> None:
    for pid in [*tellers]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            teller = tellers.pop(pid)
            with suppress(OSError):  # nobody waits for it any more
                os.write(teller, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(teller)


def _become(environment: Mapping[str, str], pipe: int, prints: int, teller: int) -> None:
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
