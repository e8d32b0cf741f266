"""What the program uses: CPU, memory, disk and tasks of all its processes, read from /proc."""

import contextlib
import ctypes
import functools
import os
import signal
import time

from jail_bytes import CHUNK, JAILED, read_exactly
from jail_files import walk

CORES = os.cpu_count() or 1
SECOND, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")  # in ticks, in bytes
MOST_SHARED = 4  # times the limit: memory above that counts in every process, however many share it
MOST_TEXT = 16 << 20  # bytes of a table of sockets, which has a line of 150 for each
SETTLING = 50  # looks, of 10 us each, at a process that has replied
RARELY = 100  # times what it takes to read tables of sockets go by until they are read again
SOCKET = 208 << 10  # bytes of kernel memory that a socket can hold with the buffers it is born with
EMPTY = ("02", "0A")  # states of TCP: still connecting, listening
SLACK = 0.02  # seconds of CPU by which the coarsest clock may be ahead
MAPPED, SHARED_OUT = ("RssFile", "RssShmem"), ("Pss_Anon", "SwapPss")  # fields of `status` and `smaps_rollup`
TABLES = ("VmPTE",)  # page tables, which no process shares with another
KCMP, SAME_MEMORY = {"x86_64": 312, "aarch64": 272}.get(os.uname().machine, -1), 1  # of kcmp(2)
libc = ctypes.CDLL(None)


class Meter:
    """Adds up CPU seconds, bytes of memory and disk, and tasks of all processes of the session, from /proc.

    `disks` are the file systems that it writes to, or one folder. `killed`: the kernel ended one for lack of memory.
    `highest` is the most memory that a command had which failed, when that may have been between two looks.
    """

    def __init__(self, *disks):
        self.disks = disks
        self.own_disk = os.path.ismount(disks[0])
        self.killed = False
        self.highest = 0
        self.mapped = mapped_by("self")
        self.first_disk = self.first_inodes = 0
        self.memory = self.tasks = self.disk = self.inodes = 0
        self.cpu = self.reaped = self.lost = self.cost = 0.0
        self.taken = self.looked = time.monotonic()
        self.counted_once = self.lowest = 0
        self.sockets = Sockets()
        self.count_again = 0.0

    def due(self, tick):
        """When to sample next; sampling takes at most about a tenth of a core."""
        return self.taken + max(tick, 10 * self.cost)

    def sample(self, memory_limit=0):
        """Read everything. CPU never falls: what vanished with an auto-reaped child is carried on as `lost`.

        Nor does it grow by more than all cores gave: a child that ends while we look may count in its parent as well.
        """
        began = time.process_time()  # not by the wall clock: on a busy machine we would look away for long
        looked = time.monotonic()
        processes = descendants()
        total = self.reaped + sum(cpu_of(pid, fields) for pid, fields in processes.items())
        self.lost = max(self.lost, self.cpu - total)
        self.cpu = min(total + self.lost, self.cpu + CORES * (time.monotonic() - self.looked) + SLACK)
        self.looked = looked
        self.tasks = sum(int(fields[17]) for fields in processes.values())
        self.disk, self.inodes = self.written()
        self.memory = self._total(processes, self._resident, memory_limit)
        self.taken = time.monotonic()
        self.cost = time.process_time() - began
        if memory_limit < self.memory <= MOST_SHARED * memory_limit:
            self.memory = self._shared_counted_once(processes, self.memory, memory_limit)
        else:
            self.count_again = 0.0

    def ended_for_memory(self):
        """Whether the kernel has ended a process of the session for lack of memory, as far as can be known."""
        return self.killed

    def failed(self, peak):
        """Take note of a command that has failed; its peak of memory may be that of us, whose fork it was."""
        if peak > kilobytes(read_text("/proc/self/status"), ("VmHWM",)):
            self.highest = max(self.highest, peak - self.mapped)

    def look_back(self):
        """Take note of the peaks of those that still run."""
        peaks = (kilobytes(read_text(f"/proc/{pid}/status"), ("VmHWM",)) for pid in descendants())
        self.highest = max(self.highest, max(peaks, default=0) - self.mapped)

    def _total(self, processes, memory, limit):
        total = sum(memory(pid, fields) for pid, fields in processes.items())
        if self.own_disk:
            total += self.disk
            total += self.sockets.memory(read_text, limit - total)
        return total

    def _shared_counted_once(self, processes, resident, limit):
        """Slow to find out: only when what came since the last time could be too much, and now and then."""
        began, self.lowest = time.monotonic(), min(self.lowest, resident)
        if began >= self.count_again or self.counted_once + resident - self.lowest > limit:
            self.counted_once = min(resident, self._total(processes, self._proportional, limit))
            self.lowest = resident
            ended = time.monotonic()
            self.count_again = ended + 10 * (ended - began)
        return self.counted_once + resident - self.lowest

    @functools.cached_property
    def resident(self):
        """The fields of a process's status that are memory of its own."""
        if "RssAnon" not in read_text("/proc/self/status"):  # gVisor: with what processes share since a fork
            return ("VmRSS",)
        return ("RssAnon", "VmSwap", "VmPTE", *(() if self.own_disk else ("RssShmem",)))

    def _resident(self, pid, fields):
        """Private memory of a process; memory shared through files of the sandbox's own disk is counted there.

        Remembers how much of files it has in memory, since what the kernel says of its peak has them in it.
        """
        texts = texts_of(pid, fields, "status")
        self.mapped = max(self.mapped, *(kilobytes(text, MAPPED) for text in texts), 0)
        return max((kilobytes(text, self.resident) for text in texts), default=0)

    def _proportional(self, pid, fields):
        """Private memory with the pages that processes share since a fork divided among them."""
        if libc.syscall(KCMP, pid, int(fields[1]), SAME_MEMORY, 0, 0) == 0:  # between vfork and exec
            return 0
        texts = texts_of(pid, fields, "smaps_rollup")
        shared_out = max((kilobytes(text, SHARED_OUT) for text in texts), default=0)
        if not shared_out:
            return self._resident(pid, fields)
        return shared_out + max((kilobytes(text, TABLES) for text in texts_of(pid, fields, "status")), default=0)

    def begin(self):
        """Count from now on: what is there was given to the session."""
        self.first_disk = self.first_inodes = 0
        self.first_disk, self.first_inodes = self.written()

    def written(self):
        """Bytes and files that the session wrote."""
        if self.own_disk:
            sizes, files = map(sum, zip(*map(used, self.disks), strict=True))
        else:
            all_sizes = [disk_size(f"{top}/{name}") for top, _, names in walk(self.disks[0]) for name in names]
            sizes, files = sum(all_sizes), len(all_sizes)
        return sizes - self.first_disk, files - self.first_inodes


class Sockets:
    """What the sockets of the sandbox can hold in the kernel, and what TCP holds above that.

    A table of connections takes the kernel milliseconds, as it goes through those of the whole machine. So it is read
    where there are any, whenever their buffers could be too much, and else now and then.
    """

    def __init__(self):
        self.queued = 0
        self.read_again = 0.0

    def memory(self, read, room):
        """Bytes, exact where they may be more than `room`; `read` takes a small file's text."""
        lines = [line.split() for line in read("/proc/net/sockstat").splitlines()]
        if not lines or lines[0][2] == "0":
            return 0
        lines += [line.split() for line in read("/proc/net/sockstat6").splitlines()]
        tables = {line[0][:-1].lower(): int(line[2]) for line in lines if line[0] in ("TCP:", "TCP6:")}
        most = sum(tables.values()) * self.buffers
        self.queued, born = min(self.queued, most), int(lines[0][2]) * SOCKET
        if most and (born + most > room or time.monotonic() >= self.read_again):
            began = time.process_time()
            texts = (read_text(f"/proc/net/{name}", MOST_TEXT) for name, connections in tables.items() if connections)
            self.queued = min(most, sum(queues(text, self.buffers) for text in texts))
            self.read_again = time.monotonic() + RARELY * (time.process_time() - began)
        return born + self.queued

    @functools.cached_property
    def buffers(self):
        """The most bytes that the buffers of one connection can hold, infinite where the kernel does not say."""
        sizes = [read_text(f"/proc/sys/net/ipv4/tcp_{name}mem").split() for name in "rw"]
        asked = [
            read_text(f"/proc/sys/net/core/{name}mem_max").split() for name in "rw"
        ]  # of which a program gets twice
        if not all(sizes):
            return float("inf")
        return sum(max(int(size[-1]), 2 * int(most[0]) if most else 0) for size, most in zip(sizes, asked, strict=True))


def queues(text, most):
    """Bytes that wait in the connections of a table, `most` in each.

    The kernel subtracts two numbers that change meanwhile. A connection that is being opened has set one of them, to
    anything; elsewhere the difference may be a little below 0, which is written as nearly 4 GB.
    """
    rows = [row.split()[3:5] for row in text.split("\n") if ":" in row]
    sizes = [int(size, 16) for state, both in rows if state not in EMPTY for size in both.split(":")]
    return sum(min(size, most) for size in sizes if size < 1 << 31)


def used(disk):
    """Bytes and files on a file system."""
    about = os.statvfs(disk)
    return (about.f_blocks - about.f_bfree) * about.f_frsize, about.f_files - about.f_ffree


def descendants():
    """Pid -> fields of /proc/PID/stat from the state on, of all processes below this one, orphans included.

    In a jail these are all others: gVisor gives orphans to the first process, which need not be this one.
    """
    known, children = {}, {}
    ours = {"1", str(os.getpid())} if JAILED else set()
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib is slow to import
        if name not in ours and (line := read_text(f"/proc/{name}/stat")):
            known[int(name)] = fields = line[line.rindex(")") + 2 :].split()
            children.setdefault(int(fields[1]), []).append(int(name))
    if JAILED:
        return known
    found, todo = {}, [os.getpid()]
    while todo:
        below = children.pop(todo.pop(), [])
        found.update((pid, known[pid]) for pid in below)
        todo += below
    return found


def kill_others():
    """Kill every process of the session, zombies too; whether there was one."""
    found = 0
    for pid in (-1,) if JAILED else descendants():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            found += 1
    return found > 0


def await_end():
    """Wait until a process has ended that we have killed."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # others are not ours to wait for
        time.sleep(0.0005)


def cpu_of(pid, fields):
    """Seconds of CPU of a process, by its CPU clock (in nanoseconds), and of those it has waited for (in ticks)."""
    try:
        own = time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED of linux/posix-timers.h
    except OSError:
        own = (int(fields[11]) + int(fields[12])) / SECOND
    return own + (int(fields[13]) + int(fields[14])) / SECOND


def settle(pid):
    """Wait until a process that has replied sleeps: the kernel counts its CPU then, or else within a tick (4 ms).

    One that goes on with something is not waited for: what it uses is the next request's.
    """
    for _ in range(SETTLING):
        state = read_text(f"/proc/{pid}/stat").rpartition(")")[2][1:2]
        if state != "R":
            return
        os.sched_yield()


def mapped_by(pid):
    """Bytes of files that a process has in its memory; 0 when it is gone, and in gVisor."""
    fields = read_text(f"/proc/{pid}/statm").split()
    return int(fields[2]) * PAGE if fields else 0


def texts_of(pid, fields, file):
    """A process's file as text; those of all its threads when the first one has ended before the rest."""
    if fields[0] != "Z" or int(fields[17]) < 2:
        return [read_text(f"/proc/{pid}/{file}")]
    return [read_text(f"/proc/{pid}/task/{thread}/{file}") for thread in entries(f"/proc/{pid}/task")]


def kilobytes(text, names):
    """The sum of these fields of a file of /proc, in bytes; 0 for those that are not there.

    The last field of a name is the kernel's: what comes before may be in the name of the process.
    """
    found = (text.rpartition(f"\n{name}:") for name in names)
    return sum(int(rest.split(None, 1)[0]) << 10 for _, is_there, rest in found if is_there)


def entries(folder):
    """The names in a folder of /proc; none when the process is gone."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - pathlib is slow to import
    except OSError:
        return []


def read_text(path, most=0):
    """A file of /proc as text, one that is not small up to `most` bytes; empty when the process is gone or hides it."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return (read_exactly(fd, most) if most else os.read(fd, CHUNK)).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def disk_size(path):
    """Bytes that a file takes on disk; 0 when it is gone."""
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0
