"""Layers: what a task's `prepare` makes of the seed, once, for all candidates to start from."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator

from msgspec.structs import asdict

from evogit.config import Task
from evogit.core import BaseFiles, EvaluatorError, Files, SandboxError
from evogit.evaluation.program import CandidateFailedError, Program
from evogit.sandbox import Limits, PreparingLimits
from evogit.sandbox.archive import pack
from evogit.sandbox.cache import cache_folder, locked
from evogit.sandbox.session import Sandbox

logger = logging.getLogger(__name__)

LONGEST = 3600.0
"""Seconds of wall clock and of CPU for `prepare`, and for each of its commands."""
MOST = 2 << 30
"""Bytes of a layer."""
HOME = ".evogit-home"
"""The folder among the files that is the home of `prepare`, and of all that starts from what it leaves: package
managers install there, and keep what they built."""

Prepare = Callable[[Program], object]


def layer(task: Task, prepare: Prepare, base: BaseFiles, sandbox: Sandbox) -> BaseFiles:
    """Return the seed's files after `prepare`, cached for the user; `sandbox` has a network if the task wants one.

    Raises:
        EvaluatorError: when `prepare` fails on the seed.
        SandboxError: when the sandbox does.
    """
    about = [base.id, task.evaluator_digest, sandbox.image(), asdict(task.limits), task.environment.described]
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    file = cache_folder() / "layers" / f"{key}.tar"
    with locked(f"layer-{key}", logger.warning):
        if not file.is_file():
            longest = {"wall": LONGEST, "cpu": LONGEST, "total": LONGEST}
            longer = PreparingLimits(**{**asdict(task.limits), **longest})
            logger.warning("preparing the seed, once for all candidates (up to an hour)")
            archive = _prepared(prepare, base, sandbox, longer)
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
                temporary.write(archive)
            os.replace(temporary.name, file)  # noqa: PTH105 - the name of a temporary file is a text
        os.utime(file)  # it was used
        return BaseFiles(key, file.read_bytes(), base.readonly)


def remove_layers(unused: float) -> Iterator[tuple[str, int]]:
    """Remove what was prepared and not used for so many seconds: the name and bytes of each."""
    for file in sorted((cache_folder() / "layers").glob("*.tar")):
        about = file.stat()
        if time.time() - about.st_mtime >= unused:
            file.unlink()
            yield file.stem, about.st_size


def _prepared(prepare: Prepare, base: BaseFiles, sandbox: Sandbox, limits: Limits) -> bytes:
    with sandbox.open(Files(pack({f"{HOME}/.keep": b""}), (), base), limits) as session:
        try:
            prepare(Program(session))
        except CandidateFailedError as failure:
            log = f"\n{failure.log}" if failure.log else ""
            raise EvaluatorError(f"prepare() failed on the seed: {failure.reason}{log}") from failure
        reply, archive = session.pack(MOST)
    if reply.failure:
        raise SandboxError(f"cannot keep what prepare() made: {reply.detail}")
    return archive
