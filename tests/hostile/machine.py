"""What a hostile candidate may do to the machine, and to what the machine remembers. Runs inside the sandbox.

A function returns what it got hold of, or "refused"; those that fill something stop at what is harmless.
"""

# ruff: noqa: PTH123, PTH116, SIM115

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import resource
import select
import signal
import socket
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PRIVATE, SHARED, VALIDATED, FIXED, ANONYMOUS, HUGE = 2, 1, 3, 0x10, 0x20, 0x40000
FAILED = ctypes.c_void_p(-1).value
PROGRAM = os.path.realpath("/usr/bin/env")


def attempt(action, *args):
    try:
        action(*args)
    except (OSError, ValueError):
        return "refused"
    return "done"


def system_call(number, *args):
    result = libc.syscall(ctypes.c_long(number), *args)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "done"


def mapped(flags, fd=-1, length=1 << 21):
    found = libc.mmap(None, length, 3, flags, fd, 0)
    return "refused" if found in (None, FAILED) else "done"


# --- what the host has in memory of its files ---


def drop_pages():
    """Whether a page that nobody maps is read anew once advice has dropped it: then it costs a major fault."""
    with open(PROGRAM, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.read()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as view:
            view[size - 1]
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt > before


def ask_for_pages():
    """Ways to ask whether a page is in memory, or to have it paged out."""
    buffer = ctypes.create_string_buffer(4096)
    with open(PROGRAM, "rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as view:
        return {
            "nowait": attempt(os.preadv, file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT),
            "page out": attempt(view.madvise, 21),
            "cold": attempt(view.madvise, 20),
            "mincore": system_call(27, ctypes.addressof(buffer) & ~4095, ctypes.c_size_t(4096), buffer),
            "cachestat": system_call(451, file.fileno(), buffer, buffer, 0),
        }


# --- what a machine has little of ---


def reserved_pages():
    """Huge pages, of the usual size and of named sizes, and shared memory by its newer flag."""
    return [
        mapped(PRIVATE | ANONYMOUS | HUGE),
        mapped(PRIVATE | ANONYMOUS | HUGE | 21 << 26),
        mapped(PRIVATE | ANONYMOUS | HUGE | 30 << 26, length=1 << 30),
        mapped(VALIDATED | ANONYMOUS),
    ]


def files_control():
    """Larger pipes, leases, and being told what others read (directory notification)."""
    reading, writing = os.pipe()
    folder = os.open("/usr/bin", os.O_RDONLY)
    own = os.open("own", os.O_RDWR | os.O_CREAT)
    return [
        attempt(fcntl.fcntl, writing, 1031, 1 << 20),
        attempt(fcntl.fcntl, reading, 1031, 4096),
        attempt(fcntl.fcntl, folder, 1026, 0x80000001),
        attempt(fcntl.fcntl, own, 1024, fcntl.F_RDLCK),
    ]


def queued_signals(most=2_000):
    signal.pthread_sigmask(signal.SIG_BLOCK, [40])
    queued = 0
    while queued < most and libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(1)) == 0:
        queued += 1
    return queued


def timers(most=2_000):
    made, timer = 0, ctypes.c_void_p()
    while made < most and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
        made += 1
    return made


def raise_the_limit_of_signals():
    kept = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
    return attempt(resource.setrlimit, resource.RLIMIT_SIGPENDING, (kept + 1, kept + 1))


def old_calls(times=50):
    """32-bit system calls, which must fail, not end the program: each end is a line in the host's log."""
    if platform.machine() != "x86_64":
        return ["ENOSYS"]
    code = mmap.mmap(-1, 4096, flags=PRIVATE | ANONYMOUS, prot=7)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\x48\x98\xc3")  # mov eax, 20 (getpid); int 0x80; cdqe; ret
    call = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return sorted({errno.errorcode.get(-call(), "done") for _ in range(times)})


def keep_siblings_idle():
    """A cookie of core scheduling keeps the other thread of a core idle while we run."""
    return libc.prctl(62, 1, 0, 0, 0) == 0


def reach_other_cores():
    """Cores that we can get onto."""
    attempt(os.sched_setaffinity, 0, range(os.cpu_count() or 1))
    return sorted(os.sched_getaffinity(0))


# --- memory that a sum over processes forgets ---


def map_a_file_everywhere(pages=60_000):
    """A page of a file every 2 MiB: a page table each, 235 MiB of them."""
    fd = os.open(PROGRAM, os.O_RDONLY)
    for page in range(pages):
        found = libc.mmap(0x100000000000 + (page << 21), 4096, 1, PRIVATE | FIXED, fd, 0)
        if found in (None, FAILED):
            break
        ctypes.string_at(found, 1)
    time.sleep(1)
    return "done"


def several(body, processes):
    """Have processes fill something, and keep it."""
    for _ in range(processes):
        if os.fork() == 0:
            try:
                body()
                time.sleep(30)
            finally:
                os._exit(0)
    time.sleep(30)
    return "done"


def watches():
    ends = [end for _ in range(60) for end in os.pipe()]
    for _ in range(120):
        watch = select.epoll()
        KEPT.append(watch)
        for end in ends:
            watch.register(end)


KEPT = []


def watch_everything():
    return several(watches, 30)


def look_up_names(count=600_000):
    """Each name that is not there is remembered by the kernel, in its own memory."""
    fresh = os.urandom(100).hex()
    for number in range(count):
        with contextlib.suppress(OSError):
            os.stat(f"/usr/share/{fresh}{number}")
    return "done"


def pipes_in_flight():
    """Full pipes whose ends are only in messages that nobody reads: no process has them open."""
    held = 0
    for _ in range(40):
        one, other = socket.socketpair()
        KEPT.extend((one, other))
        for _ in range(40):
            reading, writing = os.pipe()
            os.set_blocking(writing, False)
            with contextlib.suppress(BlockingIOError):
                while os.write(writing, bytes(65536)):
                    pass
            try:
                socket.send_fds(one, [b"x"], [reading, writing])
                held += 1
            except OSError:
                return held
            finally:
                os.close(reading)
                os.close(writing)
    return held


def swarm(children=60, seconds=0.005):
    """Work in children that nobody waits for, beside an open socket."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    KEPT.append(socket.create_server(("127.0.0.1", 0)))
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            until = time.thread_time() + seconds
            while time.thread_time() < until:
                pass
            os._exit(0)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return "done"


# --- neighbours ---


def sessions(count=12):
    """Busy processes with sessions of their own, to each of which a desktop's kernel gives a share."""
    for _ in range(count):
        if os.fork() == 0:
            os.setsid()
            while True:
                pass
    return "started"


def work(seconds=0.3):
    """How many times the wall clock of its CPU some work takes."""
    began, until = time.monotonic(), time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return (time.monotonic() - began) / seconds


def honest(a, b):
    return a + b
