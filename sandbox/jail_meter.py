"""What the program uses: CPU, memory, disk and tasks of all its processes, read from /proc."""

import os
import time

from jail_bytes import CHUNK

SECOND = os.sysconf("SC_CLK_TCK")  # in ticks


class Meter:
    """Adds up CPU seconds, bytes of memory and disk, and tasks of all processes of the session, from /proc."""

    def __init__(self, box):
        self.box = box
        self.own_disk = os.path.ismount(box)
        self.memory = self.tasks = self.disk = self.inodes = 0
        self.cpu = self.reaped = self.lost = self.taken = self.cost = 0.0

    def due(self, tick):
        """When to sample next; sampling takes at most about a tenth of a core."""
        return self.taken + max(tick, 10 * self.cost)

    def sample(self, memory_limit=0):
        """Read everything. CPU never falls: what vanished with an auto-reaped child is carried on as `lost`."""
        began = time.monotonic()
        processes = descendants()
        total = self.reaped + sum(cpu_of(pid, fields) for pid, fields in processes.items())
        self.lost = max(self.lost, self.cpu - total)
        self.cpu = total + self.lost
        self.tasks = sum(int(fields[17]) for fields in processes.values())
        self.disk, self.inodes = self._written()
        self.memory = self._total(processes, self._resident)
        if self.memory > memory_limit > 0:
            self.memory = min(self.memory, self._total(processes, self._proportional))
        self.taken = time.monotonic()
        self.cost = self.taken - began

    def _total(self, processes, memory):
        return sum(map(memory, processes)) + self.disk * self.own_disk

    def _resident(self, pid):
        """Private memory of a process; memory shared through files of the sandbox's own disk is counted there."""
        fields = ("RssAnon", "VmSwap", "VmPTE") if self.own_disk else ("RssAnon", "RssShmem", "VmSwap", "VmPTE")
        return kilobytes(f"/proc/{pid}/status", fields)

    def _proportional(self, pid):
        """Private memory with the pages that processes share since a fork divided among them (slow to find out)."""
        return kilobytes(f"/proc/{pid}/smaps_rollup", ("Pss_Anon", "SwapPss")) or self._resident(pid)

    def _written(self):
        if self.own_disk:
            disk = os.statvfs(self.box)
            return (disk.f_blocks - disk.f_bfree) * disk.f_frsize, disk.f_files - disk.f_ffree
        sizes = [disk_size(f"{top}/{name}") for top, _, names in os.walk(self.box) for name in names]
        return sum(sizes), len(sizes)


def descendants():
    """Pid -> fields of /proc/PID/stat from the state on, of all processes below this one, orphans included."""
    known, children = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib is slow to import
        if line := read_text(f"/proc/{name}/stat"):
            known[int(name)] = fields = line[line.rindex(")") + 2 :].split()
            children.setdefault(int(fields[1]), []).append(int(name))
    found, todo = {}, [os.getpid()]
    while todo:
        below = children.pop(todo.pop(), [])
        found.update((pid, known[pid]) for pid in below)
        todo += below
    return found


def cpu_of(pid, fields):
    """Seconds of CPU of a process, by its CPU clock (in nanoseconds), and of those it has waited for (in ticks)."""
    try:
        own = time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED of linux/posix-timers.h
    except OSError:
        own = (int(fields[11]) + int(fields[12])) / SECOND
    return own + (int(fields[13]) + int(fields[14])) / SECOND


def kilobytes(path, names):
    """The sum of these fields of a file of /proc, in bytes; 0 where it cannot be read."""
    fields = (line.split() for line in read_text(path).splitlines())
    return sum(int(field[1]) << 10 for field in fields if field[0][:-1] in names)


def read_text(path):
    """A small file of /proc as text; empty when the process is gone or hides it."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(fd, CHUNK).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def disk_size(path):
    """Bytes that a file takes on disk; 0 when it is gone."""
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0
