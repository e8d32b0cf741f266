"""The warm process that runs a task's trusted evaluator, one per slot: `evaluator_process.START`.

It speaks in `frames` over the pipes it was started with. First comes
the task, then one request per evaluation, with a base in between when the candidates' one is new; every case goes
back as it is yielded, then the result. An exception of the evaluator ends the process: its traceback is on stderr, and
the engine starts another one.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from evogit.core import BaseFiles, EvaluatorError, EvoGitError, Files, SandboxError
from evogit.evaluation.frames import KINDS, PREFIX, completed_frame, evaluation_frame, frame
from evogit.evaluation.scorer import Scorer
from evogit.evaluation.task_json import task_of
from evogit.sandbox.cores import exclusive_core, kept_free, turn
from evogit.sandbox.gpus import lender
from evogit.sandbox.providers import provider

logger = logging.getLogger(__name__)

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def main(parent: int) -> None:
    """Serve the engine until it closes our stdin or dies, and with it the fork server, whose id is `parent`."""
    _die_with(parent)
    requests, replies = _claim_pipes()
    lock = threading.Lock()

    def send(message: bytes) -> None:
        with lock:
            replies.write(message)
            replies.flush()

    logging.getLogger("evogit").addHandler(_Teller(send))
    with ExitStack() as stack:
        try:
            scorer, core = _greet(requests, send, stack)
        except EvoGitError as error:
            send(_failure(error))
        else:
            _serve(scorer, core, requests, send)


class _Teller(logging.Handler):
    """Shows a person our warnings, such as of a sandbox that isolates nothing."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        """Send it at once, as what follows may take long."""
        self._send(frame({"warning": record.getMessage()}))


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
                return completed_frame(scorer.run(files, request["run"], request["wall"]))
            return evaluation_frame(*scorer.evaluate(request["split"], request["repeat"], files, request["drawn"]))
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
    """Keep stdin and stdout for the engine alone: what the evaluator prints goes to stderr."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _die_with(parent: int) -> None:
    """Be killed with our parent, even in the middle of an evaluation (Linux; elsewhere stdin ends it in between)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)
