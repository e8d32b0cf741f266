"""What a control group counts, a container's or a worker's: all processes, also those that came and went unseen."""

import contextlib
import os
import time

from jail_meter import Meter, descendants, mapped_by

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
ENTER = "enter "  # how the names of files begin by which a group is entered
OURS = 2  # processes: the container's first one, and that of the session
MOST_TEXT = 1 << 14  # bytes of such a file


class Counters:
    """The numbers of the control group that we are in; each file is opened once, which is half of what it costs."""

    def __init__(self, names):
        self.names = names
        self.opened = {}
        self.files = {file for file, _, _ in names.values()}

    def text(self, path):
        """What is in a file now, empty where there is none."""
        try:
            if path not in self.opened:
                self.opened[path] = os.open(path, os.O_RDONLY)
            return os.pread(self.opened[path], MOST_TEXT, 0).decode()
        except OSError:
            return ""

    def one(self, name):
        """One number by its name above."""
        file, field, unit = self.names[name]
        return number(self.text(f"{ROOT}/{file}").split(), field) * unit

    def read(self):
        """All numbers by the names above, in seconds, bytes or pieces."""
        words = {file: self.text(f"{ROOT}/{file}").split() for file in self.files}
        return {name: number(words[file], field) * unit for name, (file, field, unit) in self.names.items()}


def enter(opened):
    """Move into the group that the host made, by its files for that, and close them."""
    for name in [name for name in opened if name.startswith(ENTER)]:
        fd = opened.pop(name)
        os.write(fd, b"0")
        os.close(fd)


def given(opened):
    """The counters whose files the host has opened for us, by their names in a container; None where there are none."""
    if not opened:
        return None
    found = Counters(VERSION_2 if f"{ROOT}/memory.current" in opened else VERSION_1)
    found.opened.update(opened)
    return found


def number(words, field):
    """The number after a field's name, or the only one."""
    return int(words[words.index(field) + 1] if field else words[0])


class CgroupMeter(Meter):
    """Reads the counters, less what they were when the session began and what the supervisor itself uses."""

    def __init__(self, counters, *disks):
        super().__init__(*disks)
        self.counters = counters
        self.begin()

    def begin(self):
        """Count from now on."""
        super().begin()
        self.first_cpu = self.first_memory = 0
        self.first_cpu, self.first_memory, counted = self.now(0)
        self.first_killed = counted["killed"]

    def sample(self, memory_limit=0):
        """Read everything."""
        began = time.process_time()
        cpu, memory, counted = self.now(memory_limit)
        self.cpu, self.memory = max(self.cpu, cpu), max(0, memory)
        self.tasks = counted["tasks"] - OURS
        self.killed = counted["killed"] > self.first_killed
        self.mapped = max(self.mapped, *map(mapped_by, descendants()), 0)
        self.disk, self.inodes = self.written()
        self.taken = time.monotonic()
        self.cost = time.process_time() - began

    def ended_for_memory(self):
        """Whether the kernel has ended a process of the session for lack of memory."""
        return self.counters.one("killed") > self.first_killed

    def now(self, memory_limit):
        """CPU of all but us, memory, and the counters. Reading our own clock first brings the group's up to date.

        Memory is without what the kernel keeps of files and can give back, but with those that are in memory.
        Version 1 does not count what waits in sockets.
        """
        ours, counted = time.process_time(), self.counters.read()
        memory = counted["memory"] - max(0, counted["cache"] - counted["shared"])
        if self.counters.names is VERSION_1:
            memory += self.sockets.memory(self.counters.text, memory_limit - memory + self.first_memory)
        return counted["cpu"] - ours - self.first_cpu, memory - self.first_memory, counted


def counters():
    """The counters of this container, None where it has none that can be read (gVisor, unusual hosts)."""
    for names in (VERSION_1, VERSION_2):
        with contextlib.suppress(IndexError, ValueError):
            found = Counters(names)
            found.read()
            return found
    return None
