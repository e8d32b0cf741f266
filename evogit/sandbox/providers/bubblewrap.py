"""Sandboxes made by bubblewrap: unprivileged namespaces, a read-only system, one writable tmpfs, a seccomp filter."""

from __future__ import annotations

import json
import os
import random
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Literal

from evogit.content import PACKAGE, content
from evogit.core import EvoGitError, SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.archive import disk_of
from evogit.sandbox.cache import cache_folder
from evogit.sandbox.cgroups import TASKS, Group, groups, room
from evogit.sandbox.cores import exclusive_core, pinned
from evogit.sandbox.interpreter import NAMES_OF_PYTHON, Interpreter, choose, environment, prepare
from evogit.sandbox.packages import lease, packages_folder
from evogit.sandbox.pool import MOST_SESSIONS, JailProcess, Pool, WorkerStart
from evogit.sandbox.providers import Provider
from evogit.sandbox.seccomp import compile_filter
from evogit.sandbox.session import Sandbox

CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_DAC_OVERRIDE")
"""What the supervisor needs to mount, to switch on a loopback interface and to lay files over others."""
SLACK = 1 << 20  # bytes above what is needed, for small files and folders
USERS = range(1 << 24, 1 << 30)  # user ids of a root engine's sandboxes: above those of people, services and containers
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")  # not /dev/zero: no limit sees its shared mappings
SYSTEM = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/R/Renviron", "/etc/R/ldpaths")
"""What libraries and programs below /usr need from /etc."""
TOPS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")  # links into /usr, or folders beside it
RESOLVING = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/ssl")  # what programs need of /etc to use a network
PROGRAMS = "/programs"  # a folder with the interpreter by its usual names
ACCOUNTS = {
    "/etc/passwd": b"root:x:0:0::/root:/bin/sh\nbox:x:1000:1000::/box/home:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    "/etc/group": b"root:x:0:\nbox:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
}

SOURCES = ("/usr/src", "/usr/local/src")  # folders of projects, which no program needs
MAX_POINTER_CHARS = 8192  # of a `.git` file, which names a folder
INDISPENSABLE = ("/usr/bin", "/usr/lib")  # paths that every program needs


class Bubblewrap(Provider):
    """The provider `bubblewrap`: warm workers that give each session new namespaces."""

    name = "bubblewrap"
    title = "bubblewrap"
    rank = 2
    supports = frozenset({"links"})

    @classmethod
    def start(cls, wanted: Environment, private: Sequence[Path] | None, *, worked: bool) -> Sandbox:
        """Return a sandbox from whose programs `private` folders are hidden."""
        return cls(wanted, private=private)

    def __init__(
        self,
        environment: Environment | None = None,
        rng: random.Random | None = None,
        private: Sequence[Path] | None = None,
        *,
        counted: bool = True,
    ) -> None:
        """Prepare for this machine; `rng` chooses users for root, `private` is hidden. Raises SandboxError."""
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SandboxError(
                "bubblewrap is not installed: sudo apt-get install bubblewrap (Debian, Ubuntu), "
                "sudo dnf install bubblewrap (Fedora)"
            )
        self._bwrap = bwrap
        self._environment = environment or Environment()
        self._rng = rng or random.SystemRandom()
        self._privileged = os.geteuid() == 0
        folder = content("sandbox")
        self._python = prepare(*choose(privileged=self._privileged), folder)
        places = [Path("/usr"), *self._python.folders, *map(Path, TOPS)]
        own = [PACKAGE, *map(Path, SOURCES), *persons(os.environ)]
        for name in ("tasks", "sandbox"):
            with suppress(EvoGitError):
                own.append(content(name))
        self._hidden = covered(
            [place for place in places if not place.is_symlink()],
            projects([Path.cwd()] if private is None else private),
            own,
            self._python.path.parent.parent,
            privileged=self._privileged,
        )
        self._packages = packages_folder(self._environment, self._python.version)
        if self._packages:  # kept as long as we are, since a provider can be used again once it was closed
            weakref.finalize(self, lease(self._packages).close)
        self._core = exclusive_core() if self._environment.exclusive else None
        self._groups = groups() if counted else None
        self.timing: Literal["counted", "sampled"] = "counted" if self._groups else "sampled"
        sessions = 1 if self._environment.isolation == "fresh" else MOST_SESSIONS
        self._pool = Pool(
            self._spawn,
            compile_filter(folder / "seccomp.json", pinned=self._core is not None),
            sessions,
            network=self._environment.network,
        )
        self.open = self._pool.open
        self.close = self._pool.close

    def image(self) -> str:
        """A digest of what programs find inside: interpreter, libraries, supervisor."""
        return f"{self.name}:{self._python.digest[:32]}" + (f"+{self._packages.name[:32]}" if self._packages else "")

    def _spawn(self, start: WorkerStart) -> JailProcess:
        data = [*self._python.modules.values(), *ACCOUNTS.values()]
        with ExitStack() as stack, pinned(self._core) if self._core is not None else nullcontext():
            fds = []
            for piece in data:  # in memory: files on a disk took a tenth of a sandbox's start
                file = stack.enter_context(os.fdopen(os.memfd_create("evogit"), "w+b"))
                file.write(piece)
                file.seek(0)
                fds.append(file.fileno())
            group = self._group(start)
            opened = stack.enter_context(group.opened()) if group else {}
            command = [self._bwrap, *self._shared(), *_arguments(self._python, start, fds, self._hidden)]
            return JailProcess(
                [*command, json.dumps(opened)] if opened else command,
                environment={},
                user=self._rng.choice(USERS) if self._privileged else None,
                pass_fds=[*fds, *opened.values()],
                cleanup=group.remove if group else lambda: None,
                ran_out=group.ran_out if group else lambda: False,
            )

    def _group(self, start: WorkerStart) -> Group | None:
        """A group for a worker, where there are any. Raises SandboxError when none can be made any more."""
        if not self._groups:
            return None
        limits = start.limits
        cores = os.sched_getaffinity(0) if self._core is None else [self._core]
        try:
            memory = room(limits, start.base, preloads=bool(start.preload))
            return self._groups.make(memory, limits.processes + TASKS, cores)
        except OSError as error:
            raise SandboxError(f"cannot make a control group for a sandbox any more: {error}") from error

    def _shared(self) -> Iterator[str]:
        """What sessions have of the host besides the system: Python packages, and for `prepare` perhaps its network."""
        yield from ("--unshare-all", "--clearenv")
        if self._environment.network:
            yield "--share-net"
            for path in RESOLVING:
                yield from ("--ro-bind-try", path, path)
        for link in self._environment.links:
            path, _, leads = link.partition("=")
            yield from ("--symlink", f"/box/work/{leads}", path)
        if self._packages:
            yield from ("--ro-bind", str(self._packages), "/packages", "--setenv", "PYTHONPATH", "/packages")


def _arguments(python: Interpreter, start: WorkerStart, data: list[int], hidden: Sequence[Path]) -> Iterator[str]:
    """Yield bubblewrap's command line; `data` are the descriptors of supervisor and accounts, in this order.

    The supervisor makes namespaces in a user namespace of its own, and gives that right up in each. It ends when its
    pipe is closed: with `--die-with-parent`, bubblewrap's inner half waits forever if its outer half ends during setup.
    """
    fds = map(str, data)
    yield from ("--new-session", "--as-pid-1")
    for capability in CAPABILITIES:
        yield from ("--cap-add", capability)
    yield from ("--uid", "1000", "--gid", "1000", "--hostname", "box")
    for name, value in environment(python.path, "/box", PROGRAMS).items():
        yield from ("--setenv", name, value)
    for name in NAMES_OF_PYTHON:
        yield from ("--symlink", str(python.path), f"{PROGRAMS}/{name}")
    yield from _system(python, hidden)
    for path in (*(f"/supervisor/{name}.pyc" for name in python.modules), *ACCOUNTS):
        yield from ("--perms", "0444", "--file", next(fds), path)
    yield from ("--proc", "/proc", "--dir", "/box", "--symlink", "box/tmp", "/tmp")
    if start.base:
        yield from ("--perms", "0755", "--size", str(disk_of(start.base.archive)[0] + SLACK), "--tmpfs", "/under")
    yield from ("--remount-ro", "/", "--chdir", "/box", "--")
    yield from (str(python.path), "-s", "-S", "-B", "/supervisor/jail_main.pyc", "namespaces", "/box")


def _system(python: Interpreter, hidden: Sequence[Path]) -> Iterator[str]:
    """The read-only part: the host's /usr, the interpreter where it is elsewhere, and a few devices."""
    for path in ("/usr", *SYSTEM, *map(str, python.folders)):
        yield from ("--ro-bind-try", path, path)
    for name in TOPS:
        if Path(name).is_symlink():
            yield from ("--symlink", str(Path(name).readlink()), name)
        else:
            yield from ("--ro-bind-try", name, name)
    prefix = python.path.parent.parent
    for folder in hidden:
        yield from ("--size", "4096", "--tmpfs", str(folder))
        for part in (prefix / "bin", prefix / "lib") if prefix.is_relative_to(folder) else ():
            yield from ("--ro-bind", str(part), str(part))
        yield from ("--remount-ro", str(folder))
    for device in DEVICES:
        yield from ("--dev-bind", device, device)
    yield from ("--symlink", "/box/shm", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd")


def projects(places: Iterable[Path]) -> Iterator[Path]:
    """These folders, and the repositories that they lie in: the tops of their trees, and what Git keeps of them."""
    for place in {Path.resolve(each) for each in places}:
        yield place
        for top in (place, *place.parents):
            marker = top / ".git"
            if os.path.exists(marker):  # noqa: PTH110 - a folder above may be closed to us
                yield top
                if marker.is_file():
                    with marker.open(errors="replace") as file:
                        named = file.read(MAX_POINTER_CHARS).partition("gitdir:")[2].strip()
                    folder = (top / named).resolve()
                    yield from [folder, *([folder.parent.parent] if folder.parent.name == "worktrees" else [])]
                break


def persons(environ: Mapping[str, str]) -> Iterator[Path]:
    """A person's own: home, settings, state and caches."""
    yield cache_folder().resolve()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        if folder := environ.get(name):
            yield Path(folder).resolve()
    if named := environ.get("EVOGIT_SETTINGS"):
        yield Path(named).resolve().parent


def covered(
    roots: Iterable[Path], private: Iterable[Path], own: Iterable[Path], prefix: Path, *, privileged: bool
) -> list[Path]:
    """Return the folders to cover below the `roots` that sandboxes see; none lies below another.

    `private` projects must be covered, `own` folders below a root only; a `privileged` sandbox runs as another user.
    Raises SandboxError: a project holds what every program needs.
    """
    roots, private, system = list(roots), list(private), [Path(each) for each in INDISPENSABLE]
    for folder in private:
        held = [each for each in system if each.is_relative_to(folder)] or [prefix] * (folder == prefix)
        if held and (folder / ".git").exists():
            raise SandboxError(
                f"bubblewrap cannot keep {folder} from programs, which need {held[0]}; "
                "move the repository to a folder of its own, or use --sandbox docker"
            )
    hidden = {each for each in private if each != prefix} | {each for each in own if not prefix.is_relative_to(each)}
    reached = [
        each
        for each in sorted(hidden)
        if any(each.is_relative_to(root) for root in roots)
        and os.path.isdir(each)  # noqa: PTH112 - what we may not look at is not there for programs either
        and not any(part.is_relative_to(each) for part in system)
        and not (privileged and any(not os.stat(above).st_mode & 0o001 for above in each.parents))  # noqa: PTH116 - fast
    ]
    return [each for each in reached if not any(other in each.parents for other in reached)]
