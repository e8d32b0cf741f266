"""Where sessions live: what a program may write to, whom it becomes, and how nothing of it stays for the next one.

Three kinds, by how far a worker can go: `users` (a container: an unprivileged user and a folder for each session),
`namespaces` (a user namespace of our own: new namespaces for each session) and `plain` (no isolation: one session).
"""

import contextlib
import ctypes
import os
import signal
import struct
import sys
import time

from jail_cgroup import CgroupMeter, counters
from jail_files import unpack
from jail_meter import MOST_TEXT, Meter, read_text, used

FOLDERS = ("work", "tmp", "shm", "home")
SLACK = 1 << 20  # bytes that can be written above the disk limit, so that a full disk shows as more than the limit
USERS = range(1 << 24, 1 << 30)  # above those of people, services and the usual id ranges of containers
LONGEST_SWEEP = 5.0  # seconds
NEW_NAMESPACES, NEW_PROCESSES, NEW_NETWORK = 0x20000 | 0x8000000, 0x20000000, 0x40000000  # of unshare(2): mount, ipc
NO_SUID, NO_DEV, NO_EXEC = 2, 4, 8  # of mount(2)
PRIVATE, DETACH = 1 << 18 | 1 << 14, 2
SET_DUMPABLE, SET_SECCOMP, FILTER_MODE = 4, 22, 2  # of prctl(2)
SET_NO_NEW_PRIVS, SET_CHILD_SUBREAPER = 38, 36
CAPABILITIES = 0x20080522  # version 3 of capset(2)
SET_INTERFACE_FLAGS, UP, INTERNET, DATAGRAM = 0x8914, 1, 2, 2  # of netdevice(7) and socket(2)
CLOSED = 0  # exit code of a session's process
STOPPED = 143  # exit code: somebody outside told us to end, as `docker stop` does; no program can
libc = ctypes.CDLL(None, use_errno=True)


class Plain:
    """One folder of the host, and no isolation at all."""

    def __init__(self, start, box):
        self.start, self.box = start, box

    def serve(self, supervise):
        """Serve one session."""
        self.meter = Meter(self.box)
        supervise(self)

    def furnish(self):
        """Make the session's folders, with the base in one of them."""
        for name in FOLDERS:
            os.mkdir(f"{self.box}/{name}")  # noqa: PTH102 - pathlib is slow to import
        unpack(f"{self.box}/work", self.start.base, self.start.contents)
        self.meter.begin()

    def acting(self):
        """The context in which files of the program are touched."""
        return contextlib.nullcontext()

    def clear(self):
        """Why no other session may follow; empty when one may."""
        return "it is not isolated"

    def become(self):
        """In a new process: be the program, not the supervisor."""
        os.environ.update(HOME=f"{self.box}/home", TMPDIR=f"{self.box}/tmp")


class Warm(Plain):
    """What can serve session after session, each from a process of its own.

    Programs are copies of the supervisor, with all that is in its memory: it must never have served another session.
    """

    def serve(self, supervise):
        """Start one session's process after the other; the next one waits for its host's request."""
        while True:
            session = self.fork()
            if session == 0:
                self.enter(supervise)
                os._exit(CLOSED)
            if code := code_of(session):
                sys.exit(code)

    def fork(self):
        """Start a session's process; in that one, the answer is 0."""
        return os.fork()


class Users(Warm):
    """A container: each session has a user id that nobody else has and a folder that nobody can guess."""

    def __init__(self, start, disk):
        super().__init__(start, "")
        self.disks = disk, *filter(os.path.ismount, ("/dev/shm",))  # gVisor makes one that all users may write to
        signal.signal(signal.SIGTERM, lambda *_: os._exit(STOPPED))
        os.setgroups([])
        install_filter(start.filter)
        self.empty, self.counters = [*map(used, self.disks)], counters()

    def enter(self, supervise):
        """In a child: be a new user's supervisor."""
        libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.user = USERS[int.from_bytes(os.urandom(8), "big") % len(USERS)]
        self.box = f"{self.disks[0]}/{os.urandom(16).hex()}"
        self.meter = CgroupMeter(self.counters, *self.disks) if self.counters else Meter(*self.disks)
        self.link_shared_memory()
        supervise(self)

    def furnish(self):
        """Make the session's folders, with the base in one of them."""
        os.mkdir(self.box, 0o700)  # noqa: PTH102
        super().furnish()

    def link_shared_memory(self):
        """Let /dev/shm be a folder of the session, where the runtime gives us a /dev that we may write to."""
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                os.unlink("/dev/shm")  # noqa: PTH108
            os.symlink(f"{self.box}/shm", "/dev/shm")  # noqa: PTH211

    @contextlib.contextmanager
    def acting(self):
        """Be the session's user for a while; our real user id stays, so that it can do nothing to us."""
        os.setegid(self.user)
        os.seteuid(self.user)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def become(self):
        """Give up every right, for good."""
        super().become()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        volunteer()
        os.setresgid(self.user, self.user, self.user)
        os.setresuid(self.user, self.user, self.user)

    def clear(self):
        """Remove what the session wrote; why the worker is unfit for another one, empty when it is fit."""
        try:
            with self.acting():
                for disk in self.disks:
                    sweep(disk, time.monotonic() + LONGEST_SWEEP)
        except OSError as error:
            return f"what it wrote cannot be removed: {error}"
        if [*map(used, self.disks)] != self.empty or any(map(os.listdir, self.disks)):
            return "something that it wrote is left"
        return "" if not open_sockets() else "connections are left"


class Namespaces(Warm):
    """A user namespace of our own: each session gets new namespaces, and is gone with them."""

    def __init__(self, start, box):
        super().__init__(start, box)
        self.processes = os.open("/proc/self/ns/pid", os.O_RDONLY)
        if start.base:
            unpack("/base", start.base, start.contents)

    def fork(self):
        """Start a session's process, as the first one of a new namespace."""
        check(libc.unshare(NEW_PROCESSES), "a new namespace")
        session = os.fork()
        if session:
            check(libc.setns(self.processes, 0), "our own namespace")
        return session

    def enter(self, supervise):
        """In a child: make the other namespaces, and serve the session."""
        check(libc.unshare(NEW_NAMESPACES if self.start.network else NEW_NAMESPACES | NEW_NETWORK), "new namespaces")
        self.settle()
        supervise(self)

    def settle(self):
        """Furnish the new namespaces, then give up all capabilities and install the filter."""
        size = self.start.limits["disk"] + SLACK
        mount("none", "/", "", PRIVATE)
        mount("proc", "/proc", "proc", NO_SUID | NO_DEV | NO_EXEC)
        mount("tmpfs", self.box, "tmpfs", NO_SUID | NO_DEV, f"size={size},mode=0700")
        self.disks = (self.box,)
        for name in FOLDERS:
            os.mkdir(f"{self.box}/{name}")  # noqa: PTH102
        if self.start.base:
            self.lay_over_base(f"{self.box}/work", size)
        if not self.start.network:
            raise_loopback()
        drop_capabilities()
        libc.prctl(SET_DUMPABLE, 0, 0, 0, 0)
        install_filter(self.start.filter)
        self.meter = Meter(*self.disks)

    def lay_over_base(self, work, size):
        """Let the program see the base and write above it, to a disk that it cannot reach otherwise."""
        mount("tmpfs", "/upper", "tmpfs", NO_SUID | NO_DEV, f"size={size},mode=0700")
        for name in ("upper", "work"):
            os.mkdir(f"/upper/{name}")  # noqa: PTH102
        layers = "lowerdir=/base,upperdir=/upper/upper,workdir=/upper/work,userxattr"
        mount("overlay", work, "overlay", NO_SUID | NO_DEV, layers)
        for folder in ("/upper", "/base"):
            check(libc.umount2(folder.encode(), DETACH), f"hide {folder}")
        self.disks = (self.box, work)

    def furnish(self):
        """Nothing to make any more."""

    def clear(self):
        """Nothing to remove: it goes with the namespaces."""
        return ""


KINDS = {"plain": Plain, "users": Users, "namespaces": Namespaces}


def volunteer():
    """Be the first that a machine without memory ends, and with us the jail: better than the engine, or a neighbour."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(fd, b"1000")
    os.close(fd)


def code_of(pid):
    """Wait for a process, and for orphans that come to us; its exit code, that of a shell when a signal ended it."""
    ended = status = 0
    while ended != pid:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def check(result, what):
    """Raise the error of a failed call of the C library."""
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, options=""):
    """Make a file system appear at a folder."""
    check(libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()), f"mount {target}")


def raise_loopback():
    """Switch on the loopback interface of a new network namespace, without what takes milliseconds to import."""
    any_socket = libc.socket(INTERNET, DATAGRAM, 0)
    check(any_socket < 0, "a socket")
    check(libc.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sh22x", b"lo", UP)), "switch on loopback")
    os.close(any_socket)


def drop_capabilities():
    """Give up every capability of this process."""
    header, nothing = struct.pack("Ii", CAPABILITIES, 0), bytes(24)
    check(libc.capset(header, nothing), "give up capabilities")


def install_filter(program):
    """Have the kernel check every system call from now on; `program` is an array of `struct sock_filter`."""
    if not program:
        return
    code = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    check(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")
    check(libc.prctl(SET_SECCOMP, FILTER_MODE, filters, 0, 0), "filter system calls")


def open_sockets():
    """Whether there are connections in our network namespace, those that wait to be forgotten included."""
    if table := read_text("/proc/net/sockstat"):
        lines = [line.split() for line in table.split("\n")]
        return any(line[0] in ("TCP:", "UDP:") and int(line[2]) + int((line + [0] * 7)[6]) for line in lines if line)
    tables = ("tcp", "tcp6", "udp", "udp6")  # gVisor
    return any(len(read_text(f"/proc/net/{table}", MOST_TEXT).split("\n")) > 2 for table in tables)


def sweep(disk, deadline):
    """Remove everything below a folder that the user may remove: without recursion, whatever its depth and modes.

    Folders are first moved to the top, then emptied there, so that no path is long.
    """
    todo = []

    def take(folder):
        for entry in list(os.scandir(folder)):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108
                continue
            with contextlib.suppress(OSError):
                os.rmdir(entry.path)  # noqa: PTH106 - most are empty
                continue
            os.chmod(entry.path, 0o700)  # noqa: PTH101
            target = f"{disk}/.gone-{os.urandom(8).hex()}"
            os.rename(entry.path, target)  # noqa: PTH104
            todo.append(target)
        if time.monotonic() > deadline:
            raise TimeoutError(f"still {len(todo)} folders after {LONGEST_SWEEP:g} s")

    take(disk)
    while todo:
        folder = todo.pop()
        take(folder)
        os.rmdir(folder)  # noqa: PTH106
