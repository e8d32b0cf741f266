"""What a hostile candidate may leave behind for the next one in the same worker. Each function runs in the sandbox.

`surroundings` is what the next one looks at: every place and property through which something could reach it.
"""

# ruff: noqa: PTH100, PTH101, PTH102, PTH103, PTH104, PTH108, PTH109, PTH110, PTH115, PTH118, PTH120, PTH123, PTH208, PTH211, SIM115

import builtins
import ctypes
import fcntl
import gc
import json
import os
import random
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
TABLES = ("sysvipc/shm", "sysvipc/sem", "sysvipc/msg", "net/unix", "net/tcp", "net/tcp6", "net/udp", "net/raw")
ATTRIBUTES = (
    "attr/current", "autogroup", "clear_refs", "comm", "coredump_filter", "fd/0", "fd/1", "fd/2", "loginuid", "mem",
    "oom_score_adj", "projid_map", "sched", "setgroups", "timens_offsets", "timerslack_ns", "uid_map",
)  # fmt: skip
MAPS = ("projid_map", "uid_map", "gid_map", "setgroups", "timens_offsets", "loginuid", "attr/current")
STATUS = ("Umask", "Groups", "SigBlk", "SigIgn", "CapEff", "NoNewPrivs", "Seccomp_filters", "Cpus_allowed")


def attempt(action, *args):
    try:
        return action(*args)
    except (OSError, ValueError) as error:
        return f"refused: {getattr(error, 'errno', error)}"


def write(path, data):
    """Without a buffer, so that a refusal is seen."""
    fd = os.open(path, os.O_WRONLY)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def read(path):
    return open(path, errors="replace").read()


def status(process):
    lines = [line.partition(":\t") for line in read(f"/proc/{process}/status").splitlines()]
    return {name: value for name, _, value in lines if name in STATUS}


def rows(table):
    found = attempt(read, f"/proc/{table}")
    return found if found.startswith("refused") else len(found.splitlines())


def folders_in_reach():
    """Every folder of the file system, outside of /proc and the candidate's own, that it may write to."""
    own = os.path.dirname(os.getcwd())
    for top, below, _ in os.walk("/"):
        below[:] = [name for name in below if os.path.join(top, name) not in ("/proc", "/sys", "/usr", own)]
        if os.access(top, os.W_OK):
            yield top


def surroundings():
    own = os.path.dirname(os.getcwd())
    return {
        "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
        "files": {top: sorted({*os.listdir(top)} - {own.rpartition("/")[2]}) for top in folders_in_reach()},
        "shared": [attempt(os.listdir, place) for place in ("/dev/shm", "/dev/mqueue", "/dev/pts")],
        "box": sorted(os.listdir(own)),
        "work": sorted(os.listdir()),
        "home": [os.listdir(os.environ[name]) for name in ("HOME", "TMPDIR")],
        "tables": [rows(table) for table in TABLES],
        "limits": [attempt(resource.getrlimit, kind) for kind in range(16)],
        "ours": status("self"),
        "theirs": [status(os.getppid()), attempt(status, "1")],
        "priority": [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), read("/proc/1/oom_score_adj")],
        "environment": sorted(set(os.environ) - {"HOME", "TMPDIR"}),
        "descriptors": sorted(attempt(os.readlink, f"/proc/self/fd/{fd}").split(":")[0] for fd in range(64)),
        "modules": sorted(sys.modules),
        "names": [len(vars(builtins)), len(vars(json)), len(vars(random)), sys.path[:1] == [os.getcwd()], hash("x")],
        "namespace": {name: attempt(read, f"/proc/self/{name}") for name in MAPS},
        "host": [socket.gethostname(), os.getloadavg() != (), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL],
    }  # fmt: skip


def honest(a, b):
    return a + b


def worker():
    """What is the same for all candidates of one worker."""
    space = "user" if os.getppid() == 1 and os.access("/supervisor", os.F_OK) else "pid"
    return os.readlink(f"/proc/self/ns/{space}")


# --- memory ---


def say(secret):
    print("output", secret)
    print("complaint", secret, file=sys.stderr)
    return "reply " + secret


def memory():
    """Every readable mapping of this process."""
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as content:
        for line in maps:
            fields = line.split()
            first, last = (int(place, 16) for place in fields[0].split("-"))
            if "r" in fields[1] and not fields[-1].startswith("[v"):
                try:
                    content.seek(first)
                    yield content.read(last - first) or b""
                except (OSError, ValueError):
                    continue


def find(first, rest):
    """How often a text is in memory, which is given in two parts so that it is not there because of us."""
    found = 0
    for piece in memory():
        place = piece.find(rest.encode())
        while place >= 0:
            found += piece[place - 1 : place] == first.encode()
            place = piece.find(rest.encode(), place + 1)
    return found


def find_while_fed(item):
    """Items to come are like this one, but for the first digit."""
    return [find(str(digit), str(item)[1:]) for digit in (1, 2, 3) if str(digit) != str(item)[0]]


def random_numbers():
    import random

    return [random.random(), random.getrandbits(64), os.urandom(8).hex()]


# --- files ---


def plant_everywhere():
    planted = []
    for folder in folders_in_reach():
        for name in ("planted", "x" * 255, "new\nline", "-rf", ".gone-0", "sitecustomize.py"):
            attempt(lambda path=f"{folder}/{name}": planted.append(open(path, "w").write("x")))
    return len(planted)


def plant_in_shared_memory():
    for place in ("/dev/shm", "/dev/mqueue", "/var/tmp", "/run", "/run/lock", "/dev", "/sys/fs/cgroup"):
        attempt(lambda path=f"{place}/planted": open(path, "w").write("x"))


def dig_deep():
    for _ in range(20_000):
        os.mkdir("d")
        os.chdir("d")
    return "dug"


def forbid_everything():
    for number in range(100):
        os.makedirs(f"a{number}/b/c")
        open(f"a{number}/b/c/file", "w").close()
        for folder in (f"a{number}/b/c", f"a{number}/b", f"a{number}"):
            os.chmod(folder, 0)
    os.chmod("..", 0)
    os.chmod(".", 0)


def make_immutable():
    """FS_IOC_SETFLAGS: immutable, append only, no dump."""
    file = open("file", "w")
    return [attempt(fcntl.ioctl, file, 0x40086602, struct.pack("l", flags)) for flags in (0x10, 0x20)]


def many_files():
    for number in range(60_000):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))


def strange_files():
    os.mkfifo("fifo")
    socket.socket(socket.AF_UNIX).bind("socket")
    for number in range(1000):
        attempt(os.link, "fifo", f"hard{number}")
    os.symlink("loop", "loop")
    os.symlink("/proc/1/root", "up")
    with open(b"\xff\xfe\n\x80" + b"z" * 250, "w") as file:
        file.truncate(1 << 40 if resource.getrlimit(resource.RLIMIT_FSIZE)[0] < 0 else 1 << 20)
    open("set", "w").close()
    attempt(os.chmod, "set", 0o7777)
    return [attempt(os.mknod, "device", 0o666 | stat.S_IFCHR, os.makedev(1, 1)), attempt(os.chown, "set", 0, 0)]


def move_the_box_away():
    box = os.path.dirname(os.getcwd())
    os.rename("../work", "../elsewhere")
    os.symlink("/", "../work")
    return attempt(os.rename, box, box + "-away")


def keep_unlinked_files():
    """In a cycle of sockets that hold each other: only the kernel's garbage collector finds them."""
    ours, theirs = socket.socketpair()
    file = open("file", "w")
    file.write("x" * 1_000_000)
    file.flush()
    os.unlink("file")
    for end in (ours, theirs):
        socket.send_fds(end, [b"x"], [ours.fileno(), theirs.fileno(), file.fileno()])


# --- processes ---


def child(body):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                body()
            finally:
                os._exit(0)
        os._exit(0)


def leave_daemons():
    def stay():
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        time.sleep(1000)

    def stop():
        os.kill(os.getpid(), signal.SIGSTOP)

    def lose_the_first_thread():
        import threading

        threading.Thread(target=time.sleep, args=(1000,)).start()
        libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)

    for body in (stay, stop, lose_the_first_thread):
        child(body)


def leave_zombies():
    for _ in range(12):
        if os.fork() == 0:
            os._exit(143)


def multiply_until_killed():
    """A fork bomb that begins after the reply: whoever kills one of its processes finds two others."""

    def multiply():
        time.sleep(0.01)
        while True:
            try:
                os.fork()
            except OSError:
                continue

    child(multiply)


def wait_for_the_next():
    """Try to put something into every folder that appears."""

    def wait():
        top = os.path.dirname(os.path.dirname(os.getcwd()))
        while True:
            for name in os.listdir(top):
                attempt(lambda path=f"{top}/{name}/work/planted": open(path, "w").close())

    child(wait)


# --- the kernel's memory ---


def leave_sockets():
    server = socket.create_server(("127.0.0.1", 4000))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 4000))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0planted")
    client = socket.create_connection(("127.0.0.1", 4000))
    peer, _ = server.accept()
    peer.close()  # so that its side waits for a minute to be forgotten
    client.close()


def lock_files():
    for path in ("/usr/bin/env", "/etc/passwd", sys.executable):
        file = os.open(path, os.O_RDONLY)
        attempt(fcntl.flock, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        attempt(fcntl.lockf, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        attempt(fcntl.fcntl, file, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def leave_messages():
    queue = libc.mq_open(b"/planted", os.O_CREAT | os.O_RDWR, 0o666, None)
    memory = libc.shmget(4711, 4096, 0o1666)
    semaphore = libc.semget(4711, 1, 0o1666)
    key = libc.syscall(248, b"user", b"planted", b"x", 1, -3)
    return [queue, memory, semaphore, key]


def open_terminals():
    import pty

    return [attempt(pty.openpty) and 1 for _ in range(50)]


# --- the worker's own state ---


def change_what_children_inherit():
    os.umask(0o777)
    for kind in range(16):
        if kind != resource.RLIMIT_DATA:
            attempt(resource.setrlimit, kind, (1, 1))
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    attempt(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})
    attempt(write, "/proc/self/oom_score_adj", b"0")
    attempt(os.nice, 5)
    libc.prctl(15, b"planted", 0, 0, 0)


def change_the_supervisors():
    found = []
    for process in (1, os.getppid()):
        found += [attempt(os.sched_setaffinity, process, {min(os.sched_getaffinity(0))})]
        for number in signal.Signals:  # in bubblewrap they may be sent, and the first process of a jail gets none
            attempt(os.kill, process, number)
        found += [attempt(os.setpriority, os.PRIO_PROCESS, process, 19)]
        found += [attempt(resource.prlimit, process, kind, (0, 0)) for kind in range(16)]
        found += [attempt(write, f"/proc/{process}/{name}", b"1") for name in ATTRIBUTES]
    return [one for one in found if not str(one).startswith("refused")]


def change_the_pipes():
    for fd in range(64):
        attempt(fcntl.fcntl, fd, 1031, 1 << 20)  # F_SETPIPE_SZ
        attempt(fcntl.fcntl, fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
        attempt(fcntl.fcntl, fd, fcntl.F_SETOWN, os.getppid())
        attempt(fcntl.fcntl, fd, 10, signal.SIGTERM)  # F_SETSIG
        attempt(fcntl.fcntl, fd, fcntl.F_SETFL, fcntl.FASYNC)
    frame = struct.pack(">II", 32, 0) + b'{"closed": true, "unfit": ""}   '
    for process in ("self", "1", os.getppid()):
        for fd in range(64):
            for mode in (os.O_RDWR, os.O_WRONLY):
                pipe = attempt(lambda p=process, n=fd, m=mode: os.open(f"/proc/{p}/fd/{n}", m | os.O_NONBLOCK))
                if isinstance(pipe, int) and fd > 2:
                    attempt(os.write, pipe, frame)


def write_the_maps():
    """Whatever a namespace can be told once, in every form that the kernel takes."""
    word = "".join(f"{number} {number * 3 + 7} 1\n" for number in range(0, 100, 10)).encode()
    found = []
    for process in ("self", os.getppid(), 1):
        for name in ("projid_map", "uid_map", "gid_map"):
            for content in (word, b"5 77 1\n", b"0 0 1\n", b"0 1000 1\n"):
                found += [attempt(write, f"/proc/{process}/{name}", content)]
        found += [attempt(write, f"/proc/{process}/setgroups", each) for each in (b"allow", b"deny")]
        found += [attempt(write, f"/proc/{process}/timens_offsets", b"monotonic 86400 0\n")]
    return found


def write_the_audit_id():
    """Whoever is the first to set it gets the next number of the machine, which is then the next candidate's clue."""
    return attempt(write, "/proc/self/loginuid", b"1000")


def write_switches_of_the_kernel():
    """Those of network, processes, users and files that a namespace has of its own, and those of the machine."""
    found = []
    for top, _, names in os.walk("/proc/sys"):
        for name in names:
            path = f"{top}/{name}"
            value = attempt(read, path)
            if not value.startswith("refused"):
                found += [path] * (attempt(write, path, value.encode() or b"1") == len(value.encode() or b"1"))
    return found


def name_the_host():
    found = [libc.sethostname(b"planted", 7), libc.setdomainname(b"planted", 7)]
    return [*found, socket.gethostname(), read("/proc/sys/kernel/domainname")]


def change_what_is_imported():
    sys.modules["random"].seed(1)
    json.dumps = builtins.len = lambda *args, **kwargs: "planted"
    builtins.planted = sys.modules["planted"] = sys
    sys.path.insert(0, "/tmp")
    os.environ["LD_PRELOAD"] = "/tmp/planted.so"
    gc.disable()


def install_a_filter():
    """Let every later system call fail: harmless for anybody else."""
    program = struct.pack("<HBBI", 0x06, 0, 0, 0x00050001)
    code = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
    child(lambda: libc.prctl(22, 2, filters, 0, 0))


def ask_to_be_woken():
    """Pressure triggers make the kernel look at the load of the whole machine."""
    found = [attempt(os.open, f"/proc/pressure/{kind}", os.O_RDWR) for kind in ("cpu", "memory", "io")]
    return [attempt(os.write, fd, b"some 1000000 2000000\0") for fd in found if isinstance(fd, int)]


def open_every_device():
    for top, _, names in os.walk("/dev"):
        for name in names:
            fd = attempt(os.open, f"{top}/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
            if isinstance(fd, int):
                attempt(fcntl.ioctl, fd, 0x5412, b"x")  # TIOCSTI
                select.select([], [fd], [], 0)


# --- ways to be tried again for nothing ---


def exit_like_a_stopped_container():
    os._exit(143)


def orphans_that_exit_like_it():
    for _ in range(5):
        child(lambda: os._exit(143))
    time.sleep(0.1)
    os._exit(143)


def sibling_of_the_supervisor():
    """CLONE_PARENT with SIGTERM as the signal that the parent gets at its end."""
    if libc.syscall(56, 0x8000 | signal.SIGTERM, 0, 0, 0, 0) == 0:
        libc.syscall(60, 0)
    time.sleep(0.1)
    return "alive"


def orphan_with_a_signal():
    """A process whose parent gets SIGTERM at its end; by then that is the first process, or the supervisor."""
    if os.fork() == 0:
        for _ in range(3):
            if libc.syscall(56, signal.SIGTERM, 0, 0, 0, 0) == 0:
                time.sleep(0.05)
                libc.syscall(231, 0)
        os._exit(0)
    time.sleep(0.3)
    return "alive"


def signal_everybody():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        attempt(os.killpg, 1, number)
        for process in range(1, 40):
            if process != os.getpid():
                attempt(os.kill, process, number)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_IGN)
            attempt(os.kill, -1, number)
    return "alive"


def be_spared_when_memory_runs_out():
    """Be the last that the kernel kills, and use more between two looks at us than the whole worker may."""
    attempt(write, "/proc/self/oom_score_adj", b"0")
    for _ in range(8):
        if os.fork() == 0:
            kept = bytearray(b"x") * 150_000_000
            time.sleep(10)
            os._exit(len(kept) % 2)
    time.sleep(10)
