"""Where sessions live: what a program may write to, whom it becomes, and how nothing of it stays for the next one.

Three kinds, by how far a worker can go: `users` (a container: an unprivileged user and a folder for each session),
`namespaces` (a user namespace of our own: new namespaces for each session) and `plain` (no isolation: one session).
"""

import contextlib
import os
import signal
import sys
import time

from jail_cgroup import CgroupMeter, counters, given
from jail_files import folders_above, forbid_writing, is_covered, unpack, walk
from jail_kernel import (
    BIND,
    DETACH,
    NEW_NAMESPACES,
    NEW_NETWORK,
    NEW_PROCESSES,
    NO_DEV,
    NO_EXEC,
    NO_SUID,
    PRIVATE,
    READ_ONLY,
    REMOUNT,
    check,
    drop_capabilities,
    install_filter,
    libc,
    mount,
    raise_loopback,
)
from jail_meter import MOST_TEXT, Meter, read_text, used

FOLDERS = ("work", "tmp", "shm", "home")
HOME = ".evogit-home"
"""A home that `prepare` made and left among the files."""
UNDER = "/under"  # in a worker of namespaces: the base, and what sessions lay over it
SLACK = 1 << 20  # bytes that can be written above the disk limit, so that a full disk shows as more than the limit
USERS = range(1 << 24, 1 << 30)  # above those of people, services and the usual id ranges of containers
LONGEST_SWEEP = 5.0  # seconds
SET_DUMPABLE, SET_CHILD_SUBREAPER = 4, 36  # of prctl(2)
CLOSED = 0  # exit code of a session's process
STOPPED = 143  # exit code: somebody outside told us to end, as `docker stop` does; no program can


class Plain:
    """One folder of the host, and no isolation at all."""

    def __init__(self, start, box):
        self.start = start
        self.box = box

    def serve(self, supervise):
        """Serve one session."""
        self.meter = Meter(self.box)
        supervise(self)

    def furnish(self):
        """Make the session's folders, with the base in one of them."""
        for name in FOLDERS:
            os.makedirs(f"{self.box}/{name}", exist_ok=True)  # noqa: PTH103 - pathlib is slow to import
        self.lay_base(f"{self.box}/work")
        self.meter.begin()

    def lay_base(self, work):
        """Put the base there; the program could undo that some of it is read-only."""
        unpack(work, self.start.base, self.start.contents)
        if self.start.readonly:
            forbid_writing(work, self.start.base, self.start.readonly)

    def acting(self):
        """The context in which files of the program are touched."""
        return contextlib.nullcontext()

    def clear(self):
        """Why no other session may follow; empty when one may."""
        return "it is not isolated"

    def become(self):
        """In a new process: be the program, not the supervisor; its home may be among its files, where one lasts."""
        lasting = f"{self.box}/work/{HOME}"
        home = lasting if os.path.isdir(lasting) else f"{self.box}/home"  # noqa: PTH112
        os.environ.update(HOME=home, TMPDIR=f"{self.box}/tmp")


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
        self.empty = [*map(used, self.disks)]
        self.counters = counters()
        self.kept = []

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
        if self.start.readonly:
            with self.ruling():
                self.lay_readonly(f"{self.box}/work", self.start.readonly)
        else:
            os.mkdir(self.box, 0o700)  # noqa: PTH102
        super().furnish()

    def lay_readonly(self, work, roots):
        """As the one whom the program cannot be: lay what it must not change, and make the folders above our own.

        In those it may do what it likes with what is its own, but not with what is ours.
        """
        self.kept = [self.box, work, *(f"{work}/{folder}" for folder in folders_above(roots))]
        for folder in self.kept:
            os.mkdir(folder)  # noqa: PTH102
            os.chmod(folder, 0o1777)  # noqa: PTH101
        unpack(work, self.start.base, self.start.contents, lambda path: is_covered(path, roots))
        for root in roots:
            self.kept += [folder for folder, *_ in walk(f"{work}/{root}")]

    def lay_base(self, work):
        """Put there what is not there yet."""
        laid = self.start.readonly
        unpack(work, self.start.base, self.start.contents, laid and (lambda path: not is_covered(path, laid)))

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

    @contextlib.contextmanager
    def ruling(self):
        """Be root again for a while, in the middle of acting."""
        os.seteuid(0)
        os.setegid(0)
        try:
            yield
        finally:
            os.setegid(self.user)
            os.seteuid(self.user)

    def become(self):
        """Give up every right, for good."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        volunteer()
        os.setresgid(self.user, self.user, self.user)
        os.setresuid(self.user, self.user, self.user)
        super().become()  # whose home root could not see, without its rights over files

    def clear(self):
        """Remove what the session wrote; why the worker is unfit for another one, empty when it is fit."""
        try:
            with self.acting():
                if self.kept:
                    self.sweep_readonly()
                for disk in self.disks:
                    sweep(disk, time.monotonic() + LONGEST_SWEEP)
        except OSError as error:
            return f"what it wrote cannot be removed: {error}"
        if [*map(used, self.disks)] != self.empty or any(map(os.listdir, self.disks)):
            return "something that it wrote is left"
        return "" if not open_sockets() else "connections are left"

    def sweep_readonly(self):
        """Remove our folders, and what the program put into those that it could write to."""
        with self.ruling():
            for folder in self.kept:
                for entry in list(os.scandir(folder)):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)  # noqa: PTH108
        sweep(self.disks[0], time.monotonic() + LONGEST_SWEEP, self.kept)
        with self.ruling():
            for folder in reversed(self.kept):
                os.rmdir(folder)  # noqa: PTH106


class Namespaces(Warm):
    """A user namespace of our own: each session gets new namespaces, and is gone with them."""

    def __init__(self, start, box):
        super().__init__(start, box)
        self.processes = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self.counters = given(start.counted)
        mount("none", "/", "", PRIVATE)
        if start.base:
            for name in ("base", "disk"):
                os.mkdir(f"{UNDER}/{name}")  # noqa: PTH102
            unpack(f"{UNDER}/base", start.base, start.contents)

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
        mount("proc", "/proc", "proc", NO_SUID | NO_DEV | NO_EXEC)
        disk = f"{UNDER}/disk" if self.start.base else self.box
        size = self.start.limits["disk"] + SLACK
        mount("tmpfs", disk, "tmpfs", NO_SUID | NO_DEV, f"size={size},mode=0700")
        if self.start.base:
            self.lay_over_base(disk)
            self.forbid_writing(f"{self.box}/work")
        else:
            self.make_folders(self.box)
        if not self.start.network:
            raise_loopback()
        drop_capabilities()
        libc.prctl(SET_DUMPABLE, 0, 0, 0, 0)
        install_filter(self.start.filter)
        self.meter = CgroupMeter(self.counters, self.box) if self.counters else Meter(self.box)

    def make_folders(self, box):
        """Make the session's folders."""
        for name in FOLDERS:
            os.mkdir(f"{box}/{name}")  # noqa: PTH102

    def lay_over_base(self, disk):
        """Let the program see the base and write above it, to a part of its disk that it cannot reach otherwise."""
        for name in ("box", "upper", "scratch"):
            os.mkdir(f"{disk}/{name}", 0o700 if name == "box" else 0o777)  # noqa: PTH102
        self.make_folders(f"{disk}/box")
        mount(f"{disk}/box", self.box, "", BIND)
        layers = f"lowerdir={UNDER}/base,upperdir={disk}/upper,workdir={disk}/scratch,userxattr"
        mount("overlay", f"{self.box}/work", "overlay", NO_SUID | NO_DEV, layers)
        check(libc.umount2(UNDER.encode(), DETACH), f"hide {UNDER}")

    def forbid_writing(self, work):
        """Let the kernel refuse any change below some paths; folders above them become mounts, which stay in place."""
        for folder in folders_above(self.start.readonly):
            mount(f"{work}/{folder}", f"{work}/{folder}", "", BIND)
        for root in self.start.readonly:
            mount(f"{work}/{root}", f"{work}/{root}", "", BIND)
            mount("", f"{work}/{root}", "", BIND | REMOUNT | READ_ONLY | NO_SUID | NO_DEV)

    def furnish(self):
        """Nothing to make any more."""

    def clear(self):
        """Nothing to remove: it goes with the namespaces."""
        return ""


KINDS = {"plain": Plain, "users": Users, "namespaces": Namespaces}


def seal():
    """Write what can be written once, so that no session can leave word there for the next one.

    The map of project ids is the user namespace's, which all sessions of a worker share; whoever sets an audit user id
    for the first time counts up a number of the machine that it can read.
    """
    for name, content in (("projid_map", b"0 0 4294967295"), ("loginuid", b"%d" % os.getuid())):
        with contextlib.suppress(OSError):  # where we may not, no program may, which is less than we are
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
            try:
                os.write(fd, content)
            finally:
                os.close(fd)


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


def open_sockets():
    """Whether there are connections in our network namespace, those that wait to be forgotten included."""
    if table := read_text("/proc/net/sockstat"):
        lines = [line.split() for line in table.split("\n")]
        return any(line[0] in ("TCP:", "UDP:") and int(line[2]) + int((line + [0] * 7)[6]) for line in lines if line)
    tables = ("tcp", "tcp6", "udp", "udp6")  # gVisor
    return any(len(read_text(f"/proc/net/{table}", MOST_TEXT).split("\n")) > 2 for table in tables)


def sweep(disk, deadline, kept=()):
    """Remove everything below a folder that the user may remove: without recursion, whatever its depth and modes.

    Folders are first moved to the top, then emptied there, so that no path is long. If there are folders to be kept,
    only what is in these is removed.
    """
    todo, spared = [], set(kept)

    def take(folder):
        for entry in list(os.scandir(folder)):
            if entry.path in spared:
                continue
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

    for folder in kept or (disk,):
        take(folder)
    while todo:
        folder = todo.pop()
        take(folder)
        os.rmdir(folder)  # noqa: PTH106
