"""Measures the time for which threads of a session were ready to run and had no core, as the scheduler counts it."""

import os
import time

from jail_meter import descendants, entries, read_text

FIRST, EVERY, RARELY = 0.25, 0.1, 20  # seconds until the first look, between looks; times what a look costs


class Waits:
    """Adds up the seconds by which a session is late because other processes had the cores.

    The second number of /proc/PID/task/TID/schedstat is what a thread has waited. Threads that wait for each other say
    nothing of the machine: so of each interval no more counts than `cores` had left of it. Where several threads run
    at a time, their waiting delays the session by its share alone. gVisor has no such file: then this stays 0.
    """

    def __init__(self, cores):
        self.cores = min(cores or len(os.sched_getaffinity(0)), len(os.sched_getaffinity(0)))
        self.threads = {}
        self.seconds = self.cpu = 0.0
        self.taken = time.monotonic()
        self.due = self.taken + FIRST

    def look(self, cpu):
        """Take in what the threads that are alive have waited since the last look; `cpu` is what all used by now."""
        began, now = time.process_time(), time.monotonic()
        threads = {thread: waited(thread) for pid in descendants() for thread in threads_of(pid)}
        wait = sum(max(0.0, seconds - self.threads.get(thread, 0.0)) for thread, seconds in threads.items())
        self.seconds += delay(wait, cpu - self.cpu, now - self.taken, self.cores)
        self.threads, self.cpu, self.taken = threads, cpu, now
        self.due = now + max(EVERY, RARELY * (time.process_time() - began))


def delay(wait, cpu, span, cores):
    """Seconds that a session lost in a `span`, whose threads waited for `wait` and ran for `cpu` of it."""
    if span <= 0:
        return 0.0
    lost = min(wait, max(0.0, cores * span - cpu))
    return lost / max(1.0, (lost + cpu) / span)


def threads_of(pid):
    """The folders of a process's threads; none when it is gone."""
    return [f"/proc/{pid}/task/{thread}" for thread in entries(f"/proc/{pid}/task")]


def waited(thread):
    """Seconds that a thread was ready to run and did not; 0 when it is gone, or where the kernel does not count."""
    fields = read_text(f"{thread}/schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) == 3 else 0.0
