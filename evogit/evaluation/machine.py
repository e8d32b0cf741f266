"""What kind of machine this is, as times that two kinds measured are not compared, and what it has room for."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from msgspec import Struct

from evogit.config import Task
from evogit.sandbox.gpus import alike, gpus, kind

NAMING = ("model name", "CPU implementer", "CPU part", "uarch", "cpu")
"""Lines of /proc/cpuinfo that name a processor, on one architecture or another."""


@cache
def machine(*, with_gpus: bool = False) -> str:
    """The processor's name, such as "x86_64 AMD EPYC 7B13", if it has one; `with_gpus` their model and driver, too."""
    named: dict[str, str] = {}
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in NAMING:
            named.setdefault(name.strip(), value.strip())
    graphics = kind(alike(gpus())) if with_gpus else ""
    return " ".join([os.uname().machine, *(named[name] for name in NAMING if name in named), *filter(None, [graphics])])


def kind_of_machine(task: Task) -> str:
    """Return the kind of machine that times of a task depend on."""
    return machine(with_gpus=task.environment.gpus > 0)


def simultaneous(task: Task, jobs: int) -> int:
    """Return the number of evaluations at a time: one if they measure time; one per GPU if there are enough cores."""
    wanted, known = task.environment, gpus()
    if not wanted.gpus:
        return 1 if wanted.exclusive else jobs
    pool = alike(known) if wanted.exclusive else known
    spare = len(os.sched_getaffinity(0)) - 1 if wanted.exclusive else jobs
    return max(1, min(jobs, spare, len(pool) // wanted.gpus))


class Capacity(Struct, frozen=True):
    """What a machine has for evaluations: cores and graphics processors that a worker may use, bytes of memory."""

    cpus: int
    memory: int
    gpus: int

    @classmethod
    def here(cls) -> Capacity:
        """Return the capacity of this process."""
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return cls(len(os.sched_getaffinity(0)), memory, len(gpus()))

    def lacks(self, task: Task) -> str:
        """What one evaluation of a task wants and is not here, in words; empty if all is."""
        wanted, memory = task.environment, task.limits.memory
        if self.cpus < (cores := math.ceil(wanted.cpus) + wanted.exclusive):
            return f"{cores} cores, and it has {self.cpus}"
        if self.memory < memory:
            return f"{memory >> 20:,} MB of memory, and it has {self.memory >> 20:,}"
        return f"{wanted.gpus} GPUs, and it has {self.gpus}" if self.gpus < wanted.gpus else ""

    def places(self, task: Task) -> int:
        """Evaluations of a task that fit at a time; cores are a person's to share out."""
        room = self.memory // task.limits.memory
        return min(room, self.gpus // task.environment.gpus) if task.environment.gpus else room
