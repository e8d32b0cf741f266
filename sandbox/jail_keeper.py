"""The processes of a session: started, fed, measured, held to the limits all the time, and killed."""

import os
import select
import sys
import time

from jail_bytes import HOST_GONE, Broken
from jail_meter import await_end, kill_others, settle
from jail_program import Capture, Process
from jail_tunnel import Tunnels
from jail_waits import Waits
from jail_words import excess

TICK, IDLE_TICK = 0.01, 0.05  # seconds between two looks at what the program uses, during requests and between them


class Keeper:
    """Keeps what a session runs within the limits."""

    def __init__(self, place):
        self.place = place
        self.meter = place.meter
        self.limits = place.start.limits
        self.processes = {}
        self.alive = False
        self.program = self.broken = None
        self.waits = Waits(place.start.cpus)
        self.paid = self.began = self.followed = self.told_wait = 0.0
        self.peak = 0
        self.cpu = self.limits["cpu"]
        self.wall = self.limits["wall"]
        self.doing = "before the first call"
        self.captures = self.stdout, self.stderr = self.new_captures()
        self.tunnels = Tunnels()

    def new_captures(self):
        """Room for stdout and stderr."""
        return Capture(self.limits["output"]), Capture(self.limits["output"])

    def start(self, body, stdout, stderr):
        """Fork a process of the program; before the first one there is nothing to look at."""
        if not self.alive:
            self.meter.taken = time.monotonic()
        process = Process(body, self.folder, self.limits, stdout, stderr, self.place.become)
        self.processes[process.pid] = process
        return process

    def await_request(self):
        """Keep the limits until the host wants something."""
        try:
            while not self.turn(self.meter.due(IDLE_TICK) if self.alive else None, select.POLLIN):
                self.look(self.meter.due(IDLE_TICK))
        except Broken as broken:
            self.broken = broken
            self.kill_all()
            select.select([0], [], [])

    def follow(self, process, finished):
        """Keep the limits until something is finished or the process has ended."""
        deadline = self.began + self.wall
        while not finished() and process.status is None:
            late = time.monotonic() >= deadline
            self.turn(min(deadline, self.due()))
            if late and not finished() and process.status is None:  # what has come meanwhile came in time
                raise Broken("timeout", f"killed after {self.wall:g} s of wall clock {self.doing}")
            self.look(self.due())
        self.followed = time.monotonic()
        process.drain()
        settle(process.pid)
        self.look()

    def due(self):
        """When to look next for one who waits: a tick after the request began, never later than without any."""
        return max(self.meter.due(TICK), min(self.began + TICK, self.meter.due(IDLE_TICK)))

    def turn(self, until, request=0):
        """Move data until there is none or it is time; true when the host wants something (a POLLIN `request`)."""
        poll, owners = select.poll(), {}
        poll.register(0, request)
        for owner in (*self.processes.values(), self.tunnels):
            for fd, events in owner.interests().items():
                poll.register(fd, events)
                owners[fd] = owner
        wait = None if until is None else max(0.0, until - time.monotonic()) * 1000
        events = dict(poll.poll(wait))
        hint = events.pop(0, 0)
        for fd in events:
            owners[fd].move(fd)
        self.reap()
        if hint and not hint & select.POLLIN:  # the host has gone
            sys.exit(HOST_GONE)
        return bool(hint)

    def reap(self):
        """Collect ended processes, orphans of the program included, with their CPU time; false when none is left."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.alive = False
                return False
            if pid == 0:
                self.alive = True
                return True
            self.meter.reaped += used.ru_utime + used.ru_stime
            if process := self.processes.pop(pid, None):
                process.end(status)
                if status and process is not self.program:  # a call tells itself that it was refused memory
                    self.meter.failed(used.ru_maxrss << 10)
                self.program = None if process is self.program else self.program

    def look(self, due=0.0):
        """Compare what the session uses with its limits when it is due, or now; raises Broken."""
        meter, limits = self.meter, self.limits
        if any(capture.full for capture in self.captures):
            raise Broken("output-limit", f"wrote more than {limits['output']} bytes of output {self.doing}")
        if time.monotonic() < due:
            return
        meter.sample(limits["memory"])
        self.peak = max(self.peak, meter.memory, meter.highest)
        if meter.taken >= self.waits.due:
            self.waits.look(meter.cpu)
        if broken := excess(meter, meter.cpu - self.paid, {**limits, "cpu": self.cpu}, self.doing):
            raise broken

    def kill_all(self):
        """Kill every process of the session, and measure what is left to be paid."""
        self.end_all()
        self.meter.highest = 0
        self.meter.sample()

    def end_all(self):
        """Kill every process of the session and wait until none is left."""
        for process in self.processes.values():
            process.drain()
        while kill_others():
            await_end()
            self.reap()
        self.reap()
