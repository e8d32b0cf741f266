"""What the processes of a system use: CPU and memory of the whole tree, sandboxes and workers included."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Meter:
    """Readings of a process, all that it started, and all in its session; CPU that it had is never lost again."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self.cpu = 0.0
        self.memory = 0.0

    def read(self, memory: bool = False) -> None:
        """Read; memory (megabytes, shared pages divided by who shares them) takes longer."""
        ticks, found = 0, self._processes()
        for fields in found.values():
            ticks += sum(map(int, fields[11:15]))
        self.cpu = max(self.cpu, ticks / TICKS)
        if memory:
            self.memory = max(self.memory, sum(map(proportional, found)))

    def processes(self) -> list[int]:
        """Those that are there."""
        return [*self._processes()]

    def _processes(self) -> dict[int, list[str]]:
        every = {}
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it may just have ended
                every[int(place.name)] = (place / "stat").read_text().rpartition(")")[2].split()
        found = {pid: each for pid, each in every.items() if pid == self._leader or int(each[3]) == self._leader}
        while more := {pid: each for pid, each in every.items() if int(each[1]) in found and pid not in found}:
            found |= more
        return found


def proportional(pid: int) -> float:
    """The proportional set size of a process in megabytes; 0 once it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
