"""A supervisor as a child process of the engine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

from evogit.core import SandboxError
from evogit.sandbox.wire import Wire

PATIENCE = 2.0
"""Seconds for a supervisor to end by itself once its pipe is closed."""
COMPLAINT = 4000
"""Most bytes of stderr that go into a message."""


class JailProcess:
    """Keeps the contract of `Jail`: `supervisor` finds the supervisor's pid once the command runs."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        user: int | None = None,
        pass_fds: Sequence[int] = (),
        supervisor: Callable[[], int | None] = lambda: None,
        cleanup: Callable[[], None] = lambda: None,
    ) -> None:
        self._cleanup = cleanup
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=dict(environment),
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            cleanup()
            raise SandboxError(f"cannot start {command[0]}: {error}") from error
        assert self._process.stdin
        assert self._process.stdout
        self.wire = Wire(self._process.stdin.fileno(), self._process.stdout.fileno())
        pid = supervisor()
        self._supervisor = os.pidfd_open(pid or self._process.pid)

    def complaint(self) -> str:
        """What it wrote to stderr, once it has ended."""
        self._end()
        assert self._process.stderr
        return self._process.stderr.read(COMPLAINT).decode(errors="replace")

    def kill(self) -> None:
        """End the supervisor, everything below it, and what it left; may be called again."""
        if self._supervisor < 0:
            return
        self._end()
        os.close(self._supervisor)
        self._supervisor = -1
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._cleanup()

    def _end(self) -> None:
        """Close its pipe, so that it kills everything below and ends; kill it when it does not."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._supervisor, signal.SIGKILL)
            self._process.wait()
