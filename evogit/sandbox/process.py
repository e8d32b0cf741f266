"""A supervisor as a child process of the engine."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evogit.core import SandboxError
from evogit.sandbox.session import SILENCE
from evogit.sandbox.wire import Wire
from evogit.subprocesses import PIPE, SubprocessError, TimeoutExpired, start

PATIENCE = 2.0  # seconds for a supervisor to end by itself once its pipe is closed
COMPLAINT = 4000  # most bytes of stderr that go into a message


class JailProcess:
    """Keeps the contract of `Jail`: the command is the supervisor, or the parent of it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        user: int | None = None,
        pass_fds: Sequence[int] = (),
        cleanup: Callable[[], None] = lambda: None,
        ran_out: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start the command as `user` (root only) or as ourselves. Raises SandboxError: it cannot be started."""
        self._cleanup = cleanup
        self._ran_out = ran_out
        try:
            self._process = start(
                command,
                env=environment,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                pass_fds=pass_fds,
            )
        except (OSError, SubprocessError) as error:
            cleanup()
            raise SandboxError(f"cannot start {command[0]}: {error}") from error
        assert self._process.stdin
        assert self._process.stdout
        self.wire = Wire(self._process.stdin.fileno(), self._process.stdout.fileno())
        self._gone = False

    def complaint(self) -> str:
        """What it wrote to stderr, once it has ended."""
        self._end()
        assert self._process.stderr
        return self._process.stderr.read(COMPLAINT).decode(errors="replace")

    def autopsy(self) -> tuple[str, str]:
        """The program gets the blame: a supervisor on this machine ends only when something makes it."""
        if self._ran_out():
            return "out-of-memory", "the kernel killed the sandbox for lack of memory"
        return "crashed", "the program brought its sandbox down"

    def silence(self) -> str:
        """The program gets the blame: nothing else is between us and the supervisor."""
        return SILENCE

    def kill(self) -> None:
        """End the supervisor, everything below it, and what it left; may be called again."""
        if self._gone:
            return
        self._gone = True
        self._end()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._cleanup()

    def _end(self) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except TimeoutExpired:
            for stat in Path("/proc").glob("[0-9]*/stat"):  # children are in a session of their own
                with contextlib.suppress(OSError):
                    if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == self._process.pid:
                        os.kill(int(stat.parent.name), signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
