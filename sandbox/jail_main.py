"""The first process of a sandbox: starts the untrusted program, measures it, limits it, and speaks for it.

The host writes requests to stdin and reads replies from stdout. Whatever the program writes is only ever its value,
its output or a file that was asked for. Runs on the sandbox's own interpreter (Python >= 3.11) with the standard
library alone; README.md has the protocol.
"""

import contextlib
import errno
import importlib
import os
import select
import signal
import sys
import time

from jail_bytes import LENGTH, Broken, receive, send
from jail_files import read_files, unpack, write_files
from jail_meter import Meter, descendants
from jail_program import (
    JAILED,
    NO_DISK,
    NO_JSON,
    NO_MEMORY,
    SET_CHILD_SUBREAPER,
    SET_DUMPABLE,
    VALUE,
    Capture,
    Process,
    answer_calls,
    command,
    prctl,
)

PROTOCOL = 1
TICK, IDLE_TICK = 0.01, 0.05  # seconds between two looks at what the program uses, during requests and between them
LONGEST_DETAIL = 4000  # characters; the host takes no header of more than 64 KiB
INODES = 65_536  # files and folders allowed at least, whatever the disk limit


class Supervisor:
    """Answers the host's requests one after another, and keeps the limits all the time."""

    def __init__(self, box):
        self.box, self.meter = box, Meter(box)
        self.processes, self.alive = {}, False
        self.program = self.broken = self.unfit = None
        self.paid = self.began = 0.0
        self.peak = self.calls = self.runs = 0
        self.doing = "before the first call"

    def serve(self):
        """Answer requests until the host closes the pipe."""
        send({"protocol": PROTOCOL})
        self.open(*receive())
        while True:
            self.await_request()
            header, body = receive()
            self.began, self.cpu, self.wall = time.monotonic(), header["cpu"], header["wall"]
            self.captures = self.stdout, self.stderr
            send(*(self.call if header["do"] == "call" else self.run)(header, body))
            self.broken = None

    def open(self, header, body):
        """Unpack the candidate's files and import the modules that its processes find ready."""
        self.limits = header["limits"]
        self.cpu = self.limits["cpu"]
        self.captures = self.stdout, self.stderr = self.new_captures()
        for name in ("work", "tmp", "shm", "home"):
            os.mkdir(f"{self.box}/{name}")  # noqa: PTH102 - pathlib is slow to import
        self.folder = os.open(f"{self.box}/work", os.O_RDONLY | os.O_DIRECTORY)
        try:
            unpack(self.folder, header["files"], body)
        except (OSError, ValueError) as error:  # such as a name too long: the first request will say so
            full = getattr(error, "errno", 0) == errno.ENOSPC
            self.unfit = Broken("disk-limit" if full else "crashed", f"its files cannot be unpacked: {error}")
        add_libraries()
        for name in header["preload"]:
            importlib.import_module(name)
        send({"opened": True})

    def new_captures(self):
        """Room for stdout and stderr."""
        return Capture(self.limits["output"]), Capture(self.limits["output"])

    # --- requests -------------------------------------------------------------------------------------------------

    def call(self, header, body):
        """Have the program's process call a function; the answer's body is the value and the new output."""
        self.calls += 1
        self.doing = f"in call {self.calls}"
        value, failure = b"", {}
        try:
            value = self.value_of_call(header["fresh"], body)
        except Broken as broken:
            failure = self.fail(broken)
        parts = value, self.stdout.news(), self.stderr.news()
        return {**failure, **self.usage(), "sizes": list(map(len, parts))}, b"".join(parts)

    def value_of_call(self, fresh, body):
        """The JSON text of the value; raises Broken where there is none."""
        self.check_broken()
        if fresh:
            self.kill_all()
        program = self.program = self.program or self.start(answer_calls, *self.captures)
        program.drain()
        if program.answer.data:
            raise Broken("invalid", f"wrote to the reply channel before it was asked {self.doing}")
        program.send(LENGTH.pack(len(body)) + body)
        self.follow(program, program.replied)
        if not program.replied():
            raise Broken("crashed", f"{ending(program.status)} before replying {self.doing}")
        kind, content = program.take_reply(self.limits["reply"])
        if kind == VALUE:
            return content
        story = content.decode(errors="replace")
        if kind == NO_JSON:
            raise Broken("invalid", f"returned what JSON cannot say {self.doing}: {story}")
        if kind == NO_MEMORY:
            raise Broken(
                "out-of-memory", f"asked for more than {megabytes(self.limits['memory'])} of memory {self.doing}"
            )
        if kind == NO_DISK:
            raise Broken("disk-limit", f"wrote more than {megabytes(self.limits['disk'])} {self.doing}")
        raise Broken("crashed", f"raised {story}")

    def run(self, header, body):
        """Run a command in the work folder; the answer's body is its output and the files asked for."""
        self.runs += 1
        self.doing = f"in run {self.runs}"
        self.captures = stdout, stderr = self.new_captures()
        code, files, failure = None, {}, {}
        try:
            code = self.code_of_run(header, body)
            files = read_files(self.folder, header["out"], self.limits["reply"])
        except Broken as broken:
            code, failure = None, self.fail(broken)
        parts = stdout.news(), stderr.news(), *files.values()
        answer = {"code": code, "out": list(files), "sizes": list(map(len, parts))}
        return {**failure, **answer, **self.usage()}, b"".join(parts)

    def code_of_run(self, header, body):
        """The exit code, negative for a signal, 126 when the run's files cannot be written."""
        self.check_broken()
        try:
            stdin = write_files(self.folder, header["files"], body)
        except OSError as error:
            self.look(now=True)
            self.captures[1].add(f"cannot write the files of the run: {error}\n".encode(errors="replace"))
            return 126
        process = self.start(command(header["argv"]), *self.captures)
        process.send(stdin, last=True)
        self.follow(process, lambda: False)
        return os.waitstatus_to_exitcode(process.status)

    def check_broken(self):
        """Tell of a limit that was broken since the last request, or of files that could not be unpacked."""
        if broken := self.unfit or self.broken:
            raise broken

    def fail(self, broken):
        """End all processes of the session, and say why."""
        self.kill_all()
        return {"failure": broken.failure, "detail": broken.detail[:LONGEST_DETAIL]}

    def usage(self):
        """What the request used, with a clean slate for the next one."""
        cpu, memory = self.meter.cpu - self.paid, self.peak
        self.paid, self.peak = self.meter.cpu, 0
        return {"cpu": cpu, "memory": memory, "wall": time.monotonic() - self.began}

    # --- processes and limits -------------------------------------------------------------------------------------

    def start(self, body, stdout, stderr):
        """Fork a process of the program."""
        process = Process(body, self.folder, self.limits, stdout, stderr)
        self.processes[process.pid] = process
        return process

    def await_request(self):
        """Keep the limits until the host wants something."""
        try:
            while not self.turn(self.meter.due(IDLE_TICK) if self.alive else None, select.POLLIN):
                self.look(IDLE_TICK)
        except Broken as broken:
            self.broken = broken
            self.kill_all()
            select.select([0], [], [])

    def follow(self, process, finished):
        """Keep the limits until something is finished or the process has ended."""
        deadline = self.began + self.wall
        while not finished() and process.status is None:
            if time.monotonic() >= deadline:
                raise Broken("timeout", f"killed after {self.wall:g} s of wall clock {self.doing}")
            self.turn(min(deadline, self.meter.due(TICK)))
            self.look(TICK)
        process.drain()
        self.look(now=True)

    def turn(self, until, request=0):
        """Move data until there is none or it is time; true when the host wants something (a POLLIN `request`)."""
        poll, owners = select.poll(), {}
        poll.register(0, request)
        for process in self.processes.values():
            for fd, events in process.interests().items():
                poll.register(fd, events)
                owners[fd] = process
        wait = None if until is None else max(0.0, until - time.monotonic()) * 1000
        events = dict(poll.poll(wait))
        hint = events.pop(0, 0)
        for fd in events:
            owners[fd].move(fd)
        self.reap()
        if hint and not hint & select.POLLIN:  # the host has gone
            sys.exit()
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
                self.program = None if process is self.program else self.program

    def look(self, tick=0.0, now=False):
        """Compare what the session uses with its limits when it is due, or now; raises Broken."""
        meter, limits = self.meter, self.limits
        if any(capture.full for capture in self.captures):
            raise Broken("output-limit", f"wrote more than {limits['output']} bytes of output {self.doing}")
        if not now and time.monotonic() < meter.due(tick):
            return
        meter.sample(limits["memory"])
        self.peak = max(self.peak, meter.memory)
        if meter.disk > limits["disk"] or meter.inodes > max(INODES, limits["disk"] >> 12):
            raise Broken("disk-limit", f"wrote {megabytes(meter.disk)} in {meter.inodes} files {self.doing}")
        if meter.memory > limits["memory"]:
            raise Broken("out-of-memory", f"used {megabytes(meter.memory)} of memory {self.doing}")
        if meter.tasks > limits["processes"]:
            raise Broken("process-limit", f"had {meter.tasks} processes and threads {self.doing}")
        if meter.cpu - self.paid > self.cpu:
            raise Broken("timeout", f"killed after {self.cpu:g} s of CPU {self.doing}")

    def kill_all(self):
        """Kill every process of the session and wait until none is left."""
        for process in self.processes.values():
            process.drain()
        while self.reap():
            for pid in (-1,) if JAILED else descendants():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.0005)
        self.meter.sample()


def megabytes(size):
    """A size for people."""
    return f"{size / (1 << 20):.0f} MiB"


def ending(status):
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with code {code}"
    names = {int(number): number.name for number in signal.Signals}  # not of all real-time signals
    return f"was killed by {names.get(-code, f'signal {-code}')}"


def add_libraries():
    """Let programs import what is installed for this interpreter, without the cost of `site`."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for folder in (f"{version}/site-packages", f"{version}/dist-packages", "python3/dist-packages"):
        paths = (f"{top}/lib/{folder}" for top in dict.fromkeys((sys.prefix, "/usr/local")))
        sys.path += filter(os.path.isdir, paths)


def volunteer():
    """Be the first that a machine without memory ends, and with us the jail: better than the engine, or a neighbour."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - as above
        file.write("1000")


def main():
    """Serve until the host goes away, and leave no process behind."""
    del sys.path[0]  # our own folder is no place for the candidate to import from
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which the first process of a jail does not get from inside
    if JAILED:
        volunteer()
    prctl(SET_DUMPABLE, 0)
    prctl(SET_CHILD_SUBREAPER, 1)
    supervisor = Supervisor(sys.argv[1])
    try:
        supervisor.serve()
    except BrokenPipeError:
        sys.exit("the host went away")
    finally:
        supervisor.kill_all()


if __name__ == "__main__":
    main()
