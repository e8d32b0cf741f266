"""The program's processes: how they start, what they are given and what is taken from them."""

import contextlib
import ctypes
import os
import resource
import select
import signal

from jail_bytes import CHUNK, JAILED, LENGTH, Broken
from jail_calls import KINDS

SLACK = 1 << 20  # bytes that can be written above the disk limit, so that a full disk shows as more than the limit
OPEN_FILES = 256  # of each process, unless the limits say more
SIGNALS = 1024  # that wait, timers included: the kernel counts them for each user, in bubblewrap the person's own
FORGED = "wrote to the reply channel itself; only the value that a call returns goes there"
SET_DUMPABLE, SET_CHILD_SUBREAPER = 4, 36  # of prctl(2)
libc = ctypes.CDLL(None)


class Capture:
    """The first `limit` bytes that came out of a pipe; `full` once there were more."""

    def __init__(self, limit):
        self.limit = limit
        self.data = bytearray()
        self.full = False
        self.taken = 0
        self.marked = False

    def add(self, data):
        """Keep what fits."""
        room = self.limit - len(self.data)
        self.full = self.full or len(data) > room
        self.data += data[:room]

    def news(self):
        """What came since the last time, with a marker where it was cut."""
        data, self.taken = bytes(self.data[self.taken :]), len(self.data)
        if self.full and not self.marked:
            data, self.marked = data + b"\n[cut after %d bytes]\n" % self.limit, True
        return data


class Process:
    """A child of the supervisor: a pipe into it, and pipes for its replies, stdout and stderr."""

    def __init__(self, body, folder, limits, stdout, stderr, become):
        pipes = [os.pipe() for _ in range(4)]
        self.pid = os.fork()
        if self.pid == 0:
            become_program(body, folder, limits, pipes, become)
        (into, self.into), (self.reply, reply), (self.out, out), (self.err, err) = pipes
        for fd in (into, reply, out, err):
            os.close(fd)
        for fd in (self.into, self.reply, self.out, self.err):
            os.set_blocking(fd, False)
        self.exit = -1
        with contextlib.suppress(OSError):  # gVisor has none; then closed pipes or the next look tell of the end
            self.exit = os.pidfd_open(self.pid)
        self.answer = Capture(limits["reply"] + LENGTH.size + 1)
        self.reading = {self.out: stdout, self.err: stderr, self.reply: self.answer}
        self.pending = memoryview(b"")
        self.last = False
        self.status = None
        self.asked = False
        self.held = set()

    def send(self, data, last=False):
        """Queue data for the process; after the `last`, its pipe is closed."""
        self.pending = memoryview(data)
        self.last = last
        self.write()

    def write(self):
        """Write what the pipe takes."""
        try:
            while self.pending:
                self.pending = self.pending[os.write(self.into, self.pending[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = memoryview(b"")
        if self.last:
            os.close(self.into)
            self.into = -1

    def read(self, fd):
        """Take what is in a pipe now, and close it when it has ended."""
        try:
            while data := os.read(fd, CHUNK):
                self.reading[fd].add(data)
                if self.reading[fd].full:
                    return
        except BlockingIOError:
            return
        os.close(fd)
        del self.reading[fd]

    def move(self, fd):
        """Write to or read from a pipe that is ready."""
        if fd == self.into:
            self.write()
        elif fd in self.reading:
            self.read(fd)

    def drain(self):
        """Take what is in all pipes now."""
        for fd in list(self.reading):
            self.read(fd)

    def interests(self):
        """File descriptor -> events to poll for."""
        interests = dict.fromkeys(self.reading, select.POLLIN)
        if self.status is None and self.exit >= 0:
            interests[self.exit] = select.POLLIN
        if self.pending:
            interests[self.into] = select.POLLOUT
        return interests

    def reply_size(self):
        """Bytes of the announced reply, None before it is announced."""
        data = self.answer.data
        return LENGTH.unpack_from(data)[0] if len(data) >= LENGTH.size else None

    def replied(self):
        """Whether a whole reply has come, or one that is too large, or something that is no reply of ours."""
        size, come = self.reply_size(), len(self.answer.data)
        if size is None or (size and come <= LENGTH.size):
            return False
        return self.answer.full or size > self.answer.limit or come >= LENGTH.size + size or not self.is_ours()

    def is_ours(self):
        """Whether what came begins as a reply of ours does; what a program prints hardly ever does."""
        return self.answer.data[LENGTH.size :][:1] in KINDS

    def take_reply(self, most):
        """The reply's kind and content; raises Broken when it is not exactly one reply of at most `most` bytes."""
        size, data = self.reply_size(), bytes(self.answer.data)
        ours = size >= 1 and self.is_ours()
        if ours and size > most + 1:
            raise Broken("output-limit", f"replied with {size - 1} bytes, more than the {most} allowed")
        if not ours or len(data) > LENGTH.size + size:
            raise Broken("invalid", FORGED)
        self.answer.data.clear()
        return data[LENGTH.size], data[LENGTH.size + 1 :]

    def end(self, status):
        """Take what is left in the pipes, and close them."""
        self.status = status
        self.drain()
        for fd in (self.into, self.exit, *self.reading):
            if fd >= 0:
                os.close(fd)
        self.into = -1
        self.pending = memoryview(b"")
        self.reading.clear()


def become_program(body, folder, limits, pipes, become):
    """In the new process: give up what is the supervisor's, `become` somebody else, be the program. Never returns."""
    try:
        (into, _), (_, reply), (_, out), (_, err) = pipes
        os.setsid()
        os.fchdir(folder)
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        low, high = sorted((into, reply))
        for first, end in ((3, low), (low + 1, high), (high + 1, CHUNK)):
            os.closerange(first, end)
        restrict(limits)
        become()
        prctl(SET_DUMPABLE, 1)
        body(into, reply)
    finally:
        os._exit(70)


def restrict(limits):
    """Limits that the kernel keeps for each process; wider than the session's, which break first and say so."""
    kinds = {
        resource.RLIMIT_DATA: limits["memory"] + headroom(limits["memory"]),
        resource.RLIMIT_FSIZE: limits["disk"] + SLACK,
        resource.RLIMIT_NOFILE: limits.get("open_files", OPEN_FILES),
    }
    if JAILED:  # outside it would count all processes of the user
        kinds[resource.RLIMIT_NPROC] = limits["processes"] + 16
        with contextlib.suppress(OSError, ValueError):  # gVisor has its own
            limit(resource.RLIMIT_SIGPENDING, SIGNALS)
    for kind, most in kinds.items():
        limit(kind, most)


def headroom(memory):
    """Bytes above the session's limit before the kernel refuses a process more: whoever gets there is to be seen."""
    return memory // 4 + (64 << 20)


def limit(kind, most):
    """Set a limit of the kernel, as far as we may, for this process and those that it starts."""
    allowed = resource.getrlimit(kind)[1]
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(kind, (most, most))


def wake_no_crash_handler():
    """With a core dump of 0 bytes allowed, a handler that the host may have is still fed with all memory."""
    limit(resource.RLIMIT_CORE, 1)


def command(argv, seed):
    """The body of a process that becomes `argv`, with EVOGIT_SEED; as in a shell, 127 or 126 says that it could not."""

    def body(into, reply):
        os.dup2(into, 0)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.environ["EVOGIT_SEED"] = str(seed)
        try:
            os.execvp(argv[0], argv)
        except (OSError, ValueError) as error:
            os.write(2, f"cannot run {argv[0]}: {error}\n".encode(errors="replace"))
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)

    return body


def prctl(option, value):
    """Set an attribute of this process that Python has no function for."""
    libc.prctl(option, value, 0, 0, 0)
