"""Sandboxes made by Docker: one hardened container per worker, and in it one user per session."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal

from evogit.content import content
from evogit.core import BaseFiles, SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.archive import entries_of
from evogit.sandbox.cache import Say
from evogit.sandbox.cores import exclusive_core
from evogit.sandbox.docker.daemon import (
    ANSWER,
    GVISOR,
    PATIENCE,
    AwayError,
    check_daemon,
    connect,
    connect_again,
    patiently,
    plainly,
)
from evogit.sandbox.docker.images import build_image
from evogit.sandbox.docker.options import container_options
from evogit.sandbox.docker.owners import clean, labels
from evogit.sandbox.docker.socket import address, knock
from evogit.sandbox.docker.worker import DockerWorker, remove
from evogit.sandbox.gpus import lender
from evogit.sandbox.pool import MOST_SESSIONS, Pool, WorkerStart, no_gpus
from evogit.sandbox.seccomp import compile_filter
from evogit.sandbox.supervisor import program

logger = logging.getLogger(__name__)


class Docker:
    """The provider `docker`: warm containers that give each session a user and a folder of its own."""

    name = "docker"

    def __init__(
        self,
        environment: Environment | None = None,
        say: Say = logger.warning,
        patience: float = PATIENCE,
        *,
        worked: bool = False,
    ) -> None:
        """Find the daemon and the image, which is built if it is not there, and remove what dead engines left.

        Args:
            environment: what programs need.
            say: is told what takes time.
            patience: seconds that the daemon may be away between two sessions, as when it is restarted.
            worked: whether it was there before, and may be away now.

        Raises:
            SandboxError: when there is no daemon, or it cannot give what is asked for.
        """
        self._environment = environment or Environment()
        self._patience = patience
        self.timing: Literal["counted", "sampled"] = "sampled" if self._environment.runtime else "counted"
        self._client = connect_again(patience) if worked else connect()
        self._left_behind: list[str] = []
        patiently(self._check, patience if worked else 0.0)
        self._image = build_image(self._client, self._environment, say)
        folder = content("sandbox")
        self._program = program(folder)
        self._filter = compile_filter(folder / "seccomp.json")
        self._core = exclusive_core() if self._environment.exclusive else None
        sessions = 1 if self._environment.isolation == "fresh" else MOST_SESSIONS
        self._pool = Pool(
            self._spawn,
            self._filter,
            sessions,
            network=self._environment.network,
            cpus=self._environment.cpus,
            gpus=self._gpus if self._environment.gpus else no_gpus,
        )
        self.open = self._pool.open

    def _gpus(self) -> AbstractContextManager[Sequence[str]]:
        """Those of a session: what its evaluation has already, or others that are free."""
        return lender().lent(self._environment.gpus, logger.warning, equal=self._environment.exclusive)

    def image(self) -> str:
        """A digest of what programs find inside: system, interpreter, libraries, supervisor."""
        parts = [self._image.digest, self._program.hex(), self._filter.hex(), self._environment.runtime]
        return f"docker:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"

    def close(self) -> None:
        """End the idle workers; a daemon that is there removes what it could not, or was not asked to in time."""
        self._pool.close()
        for remove_some in (self._remove_left_behind, lambda: clean(self._client)):
            with contextlib.suppress(AwayError, SandboxError):  # the next engine tries again, and says what is wrong
                remove_some()

    def _check(self) -> None:
        """Refuse a daemon that cannot do it, and remove what dead engines left there."""
        check_daemon(self._client, self._environment)
        clean(self._client)

    def _spawn(self, start: WorkerStart) -> DockerWorker:
        return patiently(lambda: self._start(start), self._patience)

    def _start(self, start: WorkerStart) -> DockerWorker:
        if self._environment.runtime == GVISOR and start.base and (single := _single_file(start.base)):
            raise SandboxError(
                f"gVisor cannot keep a program from putting a file of its own in the place of {single}, which is to be "
                "read-only: withhold its whole folder (FOLDER/**), or take sandbox.runtime out"
            )
        named = f" with the GPUs {', '.join(start.gpus)}" if start.gpus else ""
        with plainly(f"start a container{named}"):
            knock(address(), ANSWER)
            self._remove_left_behind()
            options = container_options(
                self._client, start, image=self._image, wanted=self._environment, labels=labels(), core=self._core
            )
            return DockerWorker(self._client, options, self._program, self._left_behind.append)

    def _remove_left_behind(self) -> None:
        """Remove what could not be removed while the daemon was away."""
        while self._left_behind and remove(self._client, self._left_behind[-1]):
            self._left_behind.pop()


def _single_file(base: BaseFiles) -> str | None:
    """A file of the base that is to be read-only without its folder: gVisor lets others be renamed over it."""
    entries, _ = entries_of(base.archive) if base.readonly else ([], b"")
    return next((path for path, kind, *_ in entries if kind != "folder" and path in base.readonly), None)
