"""What a container's control group counts: all its processes, also those that came and went unseen."""

import contextlib
import os
import time

from jail_meter import Meter, socket_memory

ROOT = "/sys/fs/cgroup"
VERSION_1 = {
    "cpu": ("cpuacct/cpuacct.usage", "", 1e-9),
    "memory": ("memory/memory.usage_in_bytes", "", 1),
    "cache": ("memory/memory.stat", "total_cache", 1),
    "shared": ("memory/memory.stat", "total_shmem", 1),
    "killed": ("memory/memory.oom_control", "oom_kill", 1),
    "tasks": ("pids/pids.current", "", 1),
}
VERSION_2 = {
    "cpu": ("cpu.stat", "usage_usec", 1e-6),
    "memory": ("memory.current", "", 1),
    "cache": ("memory.stat", "file", 1),
    "shared": ("memory.stat", "shmem", 1),
    "killed": ("memory.events", "oom_kill", 1),
    "tasks": ("pids.current", "", 1),
}
OURS = 2  # processes: the container's first one, and that of the session
MOST_TEXT = 1 << 14  # bytes of such a file


class Counters:
    """The numbers of the control group that we are in, by the names above; each file is opened once."""

    def __init__(self, names):
        self.names = names
        self.files = {file: os.open(f"{ROOT}/{file}", os.O_RDONLY) for file, _, _ in names.values()}

    def __getitem__(self, name):
        """One number, in seconds, bytes or pieces."""
        file, field, unit = self.names[name]
        words = os.pread(self.files[file], MOST_TEXT, 0).split()
        return int(words[words.index(field.encode()) + 1] if field else words[0]) * unit


class CgroupMeter(Meter):
    """Reads the counters, less what they were when the session began and what the supervisor itself uses."""

    def __init__(self, counters, *disks):
        super().__init__(*disks)
        self.counters = counters
        self.first_cpu, self.first_memory, self.first_killed = 0.0, 0, counters["killed"]
        self.begin()

    def begin(self):
        """Count from now on."""
        super().begin()
        self.first_cpu = self.first_memory = 0
        self.first_cpu, self.first_memory = self.cpu_now(), self.memory_now()

    def sample(self, memory_limit=0):
        """Read everything."""
        began = time.monotonic()
        self.cpu = max(self.cpu, self.cpu_now())
        self.memory = max(0, self.memory_now())
        self.tasks = self.counters["tasks"] - OURS
        self.killed = self.counters["killed"] > self.first_killed
        self.disk, self.inodes = self.written()
        self.taken = time.monotonic()
        self.cost = self.taken - began

    def cpu_now(self):
        """Seconds used by all but us. Reading our own clock first brings the group's up to date."""
        ours = time.process_time()
        return self.counters["cpu"] - ours - self.first_cpu

    def memory_now(self):
        """Bytes, without what the kernel keeps of files and can give back, but with those that are in memory.

        Version 1 does not count what waits in sockets.
        """
        counters = self.counters
        sockets = socket_memory() if counters.names is VERSION_1 else 0
        return counters["memory"] - max(0, counters["cache"] - counters["shared"]) + sockets - self.first_memory


def counters():
    """The counters of this container, None where it has none that can be read (gVisor, unusual hosts)."""
    for names in (VERSION_1, VERSION_2):
        with contextlib.suppress(OSError, ValueError):
            found = Counters(names)
            for name in names:
                found[name]
            return found
    return None
