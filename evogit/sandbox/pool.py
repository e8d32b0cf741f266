"""Warm workers of one provider: a jail that is up already serves one session after the other."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from evogit.core import BaseFiles, Files, SandboxError, SandboxLostError
from evogit.sandbox import Limits
from evogit.sandbox.answers import clean
from evogit.sandbox.archive import check_readonly, entries_of
from evogit.sandbox.session import GRACE, SILENCE, STARTUP, Jail, Session
from evogit.sandbox.wire import LostError, Wire
from evogit.subprocesses import PIPE, SubprocessError, TimeoutExpired, start

PROTOCOL = 7
MOST_SESSIONS = 500  # sessions that a worker serves, whatever may have gathered in it
Gpus = Callable[[], AbstractContextManager[Sequence[str]]]  # a context with GPUs of its own, by name


def no_gpus() -> AbstractContextManager[Sequence[str]]:
    """For programs that need none."""
    return nullcontext(())


NO_NAMESPACES = ("No permissions to create new namespace", "setting up uid map", "Creating new namespace failed")
"""What bubblewrap says where the kernel lets only root make what it needs."""


NAMESPACES_ADVICE = (
    "; this kernel lets only root make user namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 "
    "(Ubuntu), or sudo sysctl -w kernel.unprivileged_userns_clone=1 (older Debian), or use Docker"
)


class WorkerStart(Struct, frozen=True):
    """What a worker is started with; sessions that want the same can share it."""

    limits: Limits
    preload: tuple[str, ...] = ()
    base: BaseFiles | None = None
    gpus: tuple[str, ...] = ()


class Pool:
    """Opens sessions on warm workers, and replaces those that misbehave, are not clean, or have served enough."""

    def __init__(
        self,
        spawn: Callable[[WorkerStart], Jail],
        seccomp: bytes = b"",
        sessions: int = MOST_SESSIONS,
        *,
        network: bool = False,
        cpus: float = 0.0,
        gpus: Gpus = no_gpus,
    ) -> None:
        """Start with no workers: `spawn` starts a supervisor, which serves `sessions` and shares `cpus` cores (0: all).

        `seccomp` is a filter made by `compile_filter`; `network` is the host's, shared; `gpus` lends GPUs to a context.
        """
        self._spawn, self._seccomp, self._sessions = spawn, seccomp, sessions
        self._network, self._cpus, self._gpus = network, cpus, gpus
        self._idle: list[_Worker] = []

    def open(self, files: bytes | Files, limits: Limits, preload: Sequence[str] = (), *, seed: int = 0) -> Session:
        """Start a session on a worker. Raises SandboxError if none starts, or files change what is read-only."""
        wanted = files if isinstance(files, Files) else Files(files)
        entries, contents = entries_of(wanted.changed)
        if wanted.base and wanted.base.readonly:
            changed = [path for path, kind, *_ in entries if kind != "folder"]
            check_readonly([*changed, *wanted.removed], wanted.base.readonly)
        request = {"do": "open", "removed": list(wanted.removed), "files": entries, "seed": seed}
        lent = ExitStack()

        def release(usable: bool) -> None:
            with lent:
                worker.served += 1
                if usable and worker.served < self._sessions:
                    worker.leave()
                    self._idle.append(worker)
                else:
                    worker.jail.kill()

        with ExitStack() as undo:
            undo.callback(lent.close)
            start = WorkerStart(limits, tuple(preload), wanted.base, tuple(lent.enter_context(self._gpus())))
            worker = self._take(start) or _Worker(self._spawn(start), start, self._seccomp, self._network, self._cpus)
            session = Session(worker.jail, limits, release, (request, contents))
            undo.pop_all()
        return session

    def close(self) -> None:
        """End the idle workers."""
        while self._idle:
            self._idle.pop().jail.kill()

    def _take(self, start: WorkerStart) -> _Worker | None:
        while self._idle:
            worker = self._idle.pop()
            if worker.start == start and worker.served < self._sessions and worker.is_clean():
                return worker
            worker.jail.kill()
        return None


class _Worker:
    """A supervisor that was told what to start with."""

    def __init__(self, jail: Jail, start: WorkerStart, seccomp: bytes, network: bool, cpus: float) -> None:
        """Start a worker. Raises SandboxError if it does not start, SandboxLostError if it was taken away."""
        self.jail = jail
        self.start = start
        self.served = 0
        self._closing = False
        entries, contents = entries_of(start.base.archive) if start.base else ([], b"")
        header = {
            "limits": {**asdict(start.limits), "open_files": start.limits.open_files},
            "preload": start.preload,
            "base": entries,
            "readonly": start.base.readonly if start.base else (),
            "network": network,
            "cpus": cpus,
            "filter": len(seccomp),
        }
        deadline = time.monotonic() + STARTUP
        try:
            hello, _ = jail.wire.receive(0, deadline=deadline)
            if hello.get("protocol") != PROTOCOL:
                raise SandboxError(f"expected a supervisor of protocol {PROTOCOL}, got {hello}; rebuild the sandbox")
            jail.wire.send(header, seccomp + contents, deadline=deadline)
            jail.wire.receive(0, deadline=deadline)
        except (LostError, TimeoutError, ValueError) as error:
            said = self.complaint()
            if isinstance(error, LostError) and not said:  # no program has run there that could have done it
                raise SandboxLostError("the sandbox was ended from outside while it started") from error
            why = said or f"no answer in {STARTUP:g} s"
            why += NAMESPACES_ADVICE if any(words in said for words in NO_NAMESPACES) else ""
            raise SandboxError(f"the sandbox did not start: {why}") from error
        except BaseException:
            jail.kill()
            raise

    def leave(self) -> None:
        """Have the session cleared away, while nothing waits for it."""
        try:
            self.jail.wire.send({"do": "close"}, b"", deadline=time.monotonic() + GRACE)
            self._closing = True
        except (LostError, TimeoutError):
            self._closing = False

    def is_clean(self) -> bool:
        """Whether the last session is gone without a trace."""
        if not self._closing:
            return False
        try:
            answer, _ = self.jail.wire.receive(0, deadline=time.monotonic() + 2 * GRACE)
        except (LostError, TimeoutError, ValueError):
            return False
        return answer.get("closed") is True and answer.get("unfit") == ""

    def complaint(self) -> str:
        """What it had to say when it did not start, if anything; ends it."""
        said = clean(self.jail.complaint()).strip()
        self.jail.kill()
        return said


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
