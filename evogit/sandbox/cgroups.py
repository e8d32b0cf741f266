"""Control groups of our own for bubblewrap's workers: exact CPU, all of the kernel's memory, fair shares, cores.

They can be had by root where the hierarchies are writable, and by anybody in a scope that systemd delegates
(`systemd-run --user --scope -p Delegate=yes evogit ...`). See Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from msgspec import Struct

from evogit.core import BaseFiles
from evogit.sandbox import Limits
from evogit.sandbox.archive import disk_of

ROOT = Path("/sys/fs/cgroup")
NEEDED = {1: ("cpuacct", "cpu", "memory", "pids"), 2: ("cpu", "memory", "pids")}
"""Controllers without which there is no group, by version of the kernel's interface."""
CORES = "cpuset"
COUNTED = {
    1: {
        "cpuacct": ["cpuacct.usage"],
        "memory": ["memory.usage_in_bytes", "memory.stat", "memory.oom_control"],
        "pids": ["pids.current"],
    },
    2: {"memory": ["cpu.stat", "memory.current", "memory.stat", "memory.events", "pids.current"]},
}
"""Files that the supervisor reads, as `sandbox/jail_cgroup.py` knows them."""
KILLS = {1: "memory.oom_control", 2: "memory.events"}  # has a line `oom_kill N`: processes ended for lack of memory
ENTER = "enter "  # how the names of files begin by which a supervisor enters the group
KERNEL = (5, 16)  # since then who has opened such a file decides what may be written to it, not who writes
ENGINE = "evogit-engine"  # the group of a delegated scope's own processes: one with subgroups may have none
OVERHEAD = 64 << 20  # bytes of memory for the supervisor
PRELOADED = 256 << 20  # bytes more where it imports modules beforehand; what it uses is not counted against the program
TASKS = 64  # processes above the limit, for the supervisor, and so that too many show as more than the limit
NUMBERS = count(1)  # of this process's groups
LONGEST_REMOVAL = 0.2  # seconds in which a group must have become empty; else it is removed later


def room(limits: Limits, base: BaseFiles | None, *, preloads: bool) -> int:
    """Return the kernel's limit of a worker in bytes, above the task's; it counts written files and the base, too."""
    files = len(base.archive) + disk_of(base.archive)[0] if base else 0
    return limits.memory + limits.memory // 4 + OVERHEAD + files + PRELOADED * preloads


class Group(Struct, frozen=True):
    """One worker's; `folders` has one of each controller."""

    version: int
    folders: Mapping[str, Path]

    @contextlib.contextmanager
    def opened(self) -> Iterator[dict[str, int]]:
        """Descriptors for a supervisor, by name: files to read, and files by which it enters."""
        counted = COUNTED[self.version]
        with contextlib.ExitStack() as stack:
            files = []
            for controller, name in ((controller, name) for controller, names in counted.items() for name in names):
                shown = ROOT / controller / name if self.version == 1 else ROOT / name  # its path in a container
                files.append((str(shown), stack.enter_context((self.folders[controller] / name).open("rb"))))
            doors = [stack.enter_context((folder / "cgroup.procs").open("wb")) for folder in set(self.folders.values())]
            named = [*files, *((f"{ENTER}{number}", door) for number, door in enumerate(doors))]
            yield {name: file.fileno() for name, file in named}

    def ran_out(self) -> bool:
        """Whether the kernel has ended one of its processes for lack of memory."""
        with contextlib.suppress(OSError):
            words = (self.folders["memory"] / KILLS[self.version]).read_text().split()
            return words[words.index("oom_kill") + 1] != "0"
        return False

    def remove(self) -> None:
        """Remove it once its processes are gone; one that is still busy is left for `Groups.sweep`."""
        until = time.monotonic() + LONGEST_REMOVAL
        for folder in set(self.folders.values()):
            while not _removed(folder) and time.monotonic() < until:
                time.sleep(0.002)


class Groups(Struct, frozen=True):
    """Where groups can be made: a folder of each controller."""

    version: int
    parents: Mapping[str, Path]

    def make(self, memory: int, tasks: int, cores: Iterable[int]) -> Group:
        """A group with these limits: bytes, processes and threads, cores. Raises OSError if the kernel refuses."""
        name = f"evogit-{os.getpid()}-{next(NUMBERS)}"
        group = Group(self.version, {controller: parent / name for controller, parent in self.parents.items()})
        for folder in set(group.folders.values()):
            folder.mkdir()
        try:
            old, place = self.version == 1, group.folders["memory"]
            (place / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(memory))
            (group.folders["pids"] / "pids.max").write_text(str(tasks))
            if cpuset := group.folders.get(CORES):
                if old:
                    (cpuset / "cpuset.mems").write_text((self.parents[CORES] / "cpuset.mems").read_text())
                (cpuset / "cpuset.cpus").write_text(",".join(map(str, cores)))
            with contextlib.suppress(OSError):  # a kernel without swap accounting has no such file
                swap = ("memory.memsw.limit_in_bytes", memory) if old else ("memory.swap.max", 0)
                (place / swap[0]).write_text(str(swap[1]))
        except OSError:
            group.remove()
            raise
        return group

    def sweep(self) -> None:
        """Remove what engines left that were killed."""
        for parent in set(self.parents.values()):
            for folder in parent.glob("evogit-*-*"):
                if not Path("/proc", folder.name.split("-")[1]).exists():
                    _removed(folder)


def groups() -> Groups | None:
    """Where groups can be made on this machine, None where they cannot; tried out."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = {name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")}
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < KERNEL:
            return None
        if (ROOT / "cgroup.controllers").exists():
            found = _unified(ROOT, own.get("", "/"))
        else:  # version 1: a hierarchy of each controller, or of some together
            parents = {}
            for controller in (*NEEDED[1], CORES):
                place = ROOT / controller / own.get(controller, "/").lstrip("/")
                parents[controller] = (place if place.is_dir() else ROOT / controller).resolve()
            found = _usable(1, parents)
        if found:
            found.sweep()
            found.make(1 << 30, TASKS, os.sched_getaffinity(0)).remove()
        return found
    except OSError:
        return None


def _unified(root: Path, own: str) -> Groups | None:
    """Version 2: below the root for root, else in a scope that is delegated to us."""
    if found := _usable(2, _alike(root)):
        return found
    place = root / own.lstrip("/")
    if place.name == ENGINE:
        return _usable(2, _alike(place.parent))
    is_delegated = False
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            is_delegated |= os.getxattr(place, name) == b"1"
    if not is_delegated or not os.access(place, os.W_OK):
        return None
    (place / ENGINE).mkdir(exist_ok=True)
    while pids := (place / "cgroup.procs").read_text().split():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                (place / ENGINE / "cgroup.procs").write_text(pid)
    known = (place / "cgroup.controllers").read_text().split()
    wanted = [f"+{name}" for name in (*NEEDED[2], CORES) if name in known]
    (place / "cgroup.subtree_control").write_text(" ".join(wanted))
    return _usable(2, _alike(place))


def _alike(place: Path) -> dict[str, Path]:
    return dict.fromkeys((place / "cgroup.subtree_control").read_text().split(), place)


def _usable(version: int, parents: Mapping[str, Path]) -> Groups | None:
    wanted: Sequence[str] = NEEDED[version]
    if any(name not in parents or not os.access(parents[name], os.W_OK) for name in wanted):
        return None
    known = {name: place for name, place in parents.items() if name in (*wanted, CORES) and os.access(place, os.W_OK)}
    return Groups(version, known)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # busy
        return False
    return True
