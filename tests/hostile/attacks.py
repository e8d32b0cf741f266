"""What a hostile candidate may try. Each function runs inside the sandbox; `host` is what it knows of the outside.

A function returns what it got hold of, or "refused".
"""

# ruff: noqa: BLE001, PTH102, PTH104, PTH109, PTH110, PTH115, PTH116, PTH120, PTH123, PTH208, PTH211, SIM115

import ctypes
import errno
import gc
import json
import mmap
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)


def identity():
    return {"namespace": os.readlink("/proc/self/ns/pid"), "box": os.path.dirname(os.getcwd()), "user": os.getuid()}


def honest(a, b):
    return a + b


def attempt(action, *args):
    try:
        return action(*args)
    except OSError as error:
        return "refused" if error.errno else str(error)


def system_call(number, *args):
    result = libc.syscall(number, *args)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "done"


# --- forging the answer ---


def print_result_and_exit(host):
    for fd in (1, 2):
        os.write(fd, b'{"value": 1e9, "failure": ""}\n' + struct.pack(">II", 15, 3) + b'{"sizes":[3]}  999')
    os._exit(0)


def exit_quietly(host):
    os._exit(0)


def real_time_signal(host):
    os.kill(os.getpid(), 40)


def endless_name(host):
    raise type("\x1b[2J" * 20_000, (Exception,), {})


def system_exit(host):
    sys.exit(0)


def write_to_every_pipe(host):
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">II", 2, 0) + b"{}")
        except OSError:
            continue
    return 1


def print_to_every_pipe(host, text="debug: 42\n"):
    for fd in range(3, 64):
        try:
            os.write(fd, text.encode())
        except OSError:
            continue
    return 1


def print_little_to_every_pipe(host):
    return print_to_every_pipe(host, "x")


def reply_in_advance(host):
    def later():
        time.sleep(0.05)
        write_to_every_pipe(host)

    threading.Thread(target=later).start()
    return "armed"


def reply_twice(host):
    os.fork()
    return 1


def close_the_pipes(host):
    os.closerange(3, 64)
    return 1


def patch_the_library(host):
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(time, name, lambda: 0.0)
    time.clock_gettime = resource.getrusage = os.times = lambda *args: 0.0
    return work(host)


def work(host):
    return sum(i * i for i in range(1_000_000)) % 7


def patched_json(text):
    json.dumps = lambda *args, **kwargs: text


def reply_nan(host):
    patched_json("NaN")


def reply_infinity(host):
    patched_json("[1e999]")


def reply_twin_keys(host):
    patched_json('{"score": 1, "score": 2}')


def reply_deep(host):
    patched_json("[" * 100_000 + "]" * 100_000)


def reply_brackets(host):
    patched_json("[" + "[]," * 2_000_000 + "[]]")


def reply_long_number(host):
    patched_json("9" * 100_000)


def reply_pickle(host):
    class Text(str):
        def encode(self):
            return pickle.dumps({"score": 1})

    patched_json(Text())


def reply_equal_to_everything(host):
    class Winner(float):
        __eq__ = __ge__ = __le__ = lambda self, other: True
        __repr__ = __str__ = lambda self: "1e308"

    return [Winner(1), {"score": Winner(2)}]


def reply_an_object(host):
    return type("Winner", (), {"__eq__": lambda self, other: True})()


def escape_codes(host):
    raise ValueError("\x1b]0;owned\x07\x1b[2J\x1b[31m\u202eevil")


# --- looking around ---


def read_secret(host):
    return attempt(lambda: open(host["secret"]).read())


def read_evaluators(host):
    return attempt(lambda: len(os.listdir(host["tasks"])) > 0)


def look_at_host_folders(host):
    return [name for name in ("folder", "tasks") if os.path.exists(host[name])]


def find_docker(host):
    places = "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", host["docker"]
    return [place for place in places if os.path.exists(place)]


def read_engine_environment(host):
    return attempt(lambda: len(open(f"/proc/{host['pid']}/environ").read()) > 0)


def write_outside(host):
    return attempt(lambda: open(host["folder"] + "/planted", "w").write("x"))


def write_to_the_system(host):
    places = ("/", "/usr", "/etc", "/dev", "/proc", "/proc/sys/kernel", "/supervisor", "/lib", "/opt", "/mnt")
    return [place for place in places if os.access(place, os.W_OK)]


def change_the_supervisor(host):
    return [
        attempt(lambda path=path: os.open(path, os.O_RDWR)) for path in ("/supervisor/jail_main.pyc", "/etc/passwd")
    ]


# --- the supervisor and other processes ---


def kill_the_supervisor(host):
    parent = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGSTOP, signal.SIGHUP, signal.SIGPIPE, signal.SIGKILL):
        for process in (1, parent):
            attempt(os.kill, process, number)
    time.sleep(0.2)
    return "alive" if os.getppid() == parent and os.path.exists("/proc/1/stat") else "gone"


def open_the_supervisor(host):
    paths = ("mem", "fd/0", "fd/1", "environ", "maps", "cwd", "root", "ns/net", "syscall", "auxv", "stack")
    places = [f"/proc/{process}/{path}" for process in {1, os.getppid()} for path in paths]
    opened = [place for place in places if attempt(lambda place=place: os.open(place, os.O_RDONLY)) != "refused"]
    return sorted({place.partition("/")[2].split("/", 2)[2] for place in opened})


def trace_the_supervisor(host):
    return system_call(101, 16, 1, 0, 0)


def starve_the_supervisor(host):
    kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS)
    return [attempt(resource.prlimit, 1, kind, (0, 0)) for kind in kinds] + [
        attempt(os.setpriority, os.PRIO_PROCESS, 1, 19)
    ]


def outlive_the_supervisor(host):
    """Which of all processes the kernel ends first when the machine has no memory left."""
    path = "/proc/1/oom_score_adj"
    return [open(path).read().strip(), attempt(lambda: os.open(path, os.O_WRONLY))]


def wake_the_crash_handler(host):
    """With a limit of 1 byte for core dumps the kernel gives them to nobody; with 0 to a program of the host."""
    nothing = struct.pack("QQ", 0, 0)
    return [system_call(160, 4, nothing), system_call(302, 0, 4, nothing, 0)]


def signal_the_engine(host):
    return attempt(os.kill, host["pid"], 0) is None


def leave_a_daemon(host):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "1000"])
        os._exit(0)
    os.wait()
    return "left"


def replace_the_folder(host):
    os.rename(os.getcwd(), os.getcwd() + ".old")
    os.symlink("/proc/1", os.environ["HOME"] + "/../work")
    return "replaced"


# --- using too much ---


def fork_bomb(host):
    while True:
        try:
            os.fork()
        except OSError:
            continue


def quick_fork_bomb(host):
    while True:
        os.fork()


def thread_bomb(host):
    while True:
        threading.Thread(target=time.sleep, args=(60,)).start()


def memory_bomb(host):
    kept = []
    while True:
        kept.append(bytearray(b"x" * 1_000_000))


def memory_in_children(host):
    for _ in range(15):
        if os.fork() == 0:
            kept = bytearray(b"x" * 20_000_000)
            time.sleep(60)
            del kept
    time.sleep(60)


def grow(megabytes):
    kept = [bytearray(b"x" * 1_000_000) for _ in range(megabytes)]
    time.sleep(1)  # the looks of a supervisor on a busy machine are some way apart
    return len(kept)


def memory_behind_a_name(host):
    """The kernel writes a process's name above its memory, on a line of its own for those who split at \\x1c."""
    libc.prctl(15, b"\x1cVmPTE: -999999", 0, 0, 0)
    return grow(170)


def memory_behind_an_ended_thread(host):
    """The kernel shows no memory for a process whose first thread has ended."""
    threading.Thread(target=grow, args=(170,)).start()
    libc.syscall(60, 0)


def memory_behind_sharing(host):
    """Finding out which pages are shared takes long when there are many; then they are shared no more."""
    block = bytearray(b"x" * 50_000_000)
    for _ in range(15):
        if os.fork() == 0:
            time.sleep(0.3)
            for place in range(0, len(block), 4096):
                block[place] = 1
            time.sleep(1)
            os._exit(0)
    time.sleep(2)


def fill(one):
    one.setblocking(False)
    while True:
        try:
            one.send(b"x" * 1_000_000)
        except BlockingIOError:
            return


def sockets_until(make):
    kept = []
    while True:
        try:
            kept += make()
        except OSError:
            time.sleep(0.5)
            return
        for one in kept[-2:]:
            fill(one)


def fill_sockets(host):
    for _ in range(4):
        if os.fork() == 0:
            sockets_until(socket.socketpair)
            os._exit(0)
    for _ in range(4):
        os.wait()


def fill_connections(host):
    server = socket.create_server(("127.0.0.1", 0))
    sockets_until(lambda: (socket.create_connection(server.getsockname()), server.accept()[0]))


def fill_datagrams(host):
    def pair():
        ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        ends[1].bind(("127.0.0.1", 0))
        ends[0].connect(ends[1].getsockname())
        for _ in range(20):  # more than its buffer takes
            ends[0].send(b"x" * 50_000)
        return ends

    for _ in range(4):
        if os.fork() == 0:
            kept, more = [], pair()
            while more != "refused":
                kept += more
                more = attempt(pair)
            time.sleep(0.5)
            os._exit(0)
    for _ in range(4):
        os.wait()


def hidden_kernel_memory(host):
    """Each of these made gigabytes in the kernel that no limit saw."""
    with socket.socket() as one:
        larger = [attempt(one.setsockopt, socket.SOL_SOCKET, kind, 1 << 30) for kind in (7, 8)]
    return {
        "xattr": [system_call(number, b".", b"user.x", b"x", 1, 0) for number in (188, 189, 190)],
        "inotify": [system_call(number, 0) for number in (253, 294)],
        "landlock": [system_call(number, 0, 0, 1) for number in (444, 445, 446)],
        "buffers": larger,
    }


def shared_memory(host):
    try:
        block = mmap.mmap(-1, 200_000_000)
    except PermissionError:
        return "refused"
    for place in range(0, 200_000_000, 4096):
        block[place] = 1
    time.sleep(1)
    return "kept"


def hidden_shared_memory(host):
    try:
        block = mmap.mmap(-1, 200_000_000)
    except PermissionError:
        return "refused"
    for place in range(0, 200_000_000, 1_000_000):
        block[place : place + 1_000_000] = b"x" * 1_000_000
        block.madvise(mmap.MADV_DONTNEED)
    time.sleep(0.05)
    return "hidden"


def mapped_device(host):
    """Pages of such a mapping are shared, and nobody's."""
    try:
        block = mmap.mmap(os.open("/dev/zero", os.O_RDWR), 200_000_000)
    except OSError:
        return "refused"
    for place in range(0, 200_000_000, 4096):
        block[place] = 1
    time.sleep(1)
    return "kept"


def memory_files(host):
    names = {"memfd_create": 319, "memfd_secret": 447, "userfaultfd": 323}
    return {name: system_call(number, b"x", 0) for name, number in names.items()}


def fill_shared_memory(host):
    with open("/dev/shm/big", "wb") as file:
        while True:
            file.write(b"x" * 1_000_000)


def fill_temporary_folder(host):
    while True:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"x" * 100_000)


def fill_and_hide(host):
    """Unlinked files take space all the same."""
    kept = []
    while True:
        kept.append(tempfile.TemporaryFile())
        kept[-1].write(b"x" * 1_000_000)
        kept[-1].flush()


def inode_bomb(host):
    number = 0
    while True:
        os.symlink("x", str(number))
        number += 1


def output_bomb(host):
    while True:
        os.write(1, b"x" * 65536)


def output_after_the_reply(host):
    def later():
        time.sleep(0.05)
        output_bomb(host)

    threading.Thread(target=later).start()
    return "started"


def ignore_signals(host):
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            time.sleep(1)
        except BaseException:
            continue


def stop_itself(host):
    os.kill(os.getpid(), signal.SIGSTOP)


def loop_in_c(host):
    gc.disable()
    return len(str(7 ** (10**9)))


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def busy_children(host):
    for _ in range(4):
        if os.fork() == 0:
            break
    while True:
        pass


def children_that_vanish(host):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(host["children"]):
        if os.fork() == 0:
            burn(host["seconds"])
            os._exit(0)
        try:
            os.wait()
        except ChildProcessError:
            continue
    return "done"


def exhaust_descriptors(host):
    kept = []
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))


# --- ways out ---


def connect_home(host):
    return attempt(lambda: socket.create_connection(("127.0.0.1", host["port"]), timeout=1).close())


def connect_abstract(host):
    return attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + host["abstract"]))


def send_datagram(host):
    sockets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    ends = ("192.0.2.1", 53), ("2001:db8::1", 53)
    return [attempt(one.sendto, b"x", end) for one, end in zip(sockets, ends)]  # noqa: B905


def strange_sockets(host):
    return sorted({str(attempt(lambda f=f: socket.socket(f, socket.SOCK_RAW).close())) for f in (16, 17, 38, 40, 44)})


def system_v_memory(host):
    size, create = 4096, 0o1600
    found = libc.shmget(0, size, create)
    if found >= 0:
        libc.shmctl(found, 0, None)
    return "done" if found >= 0 else "refused"


def kernel_doors(host):
    calls = {
        "io_uring_setup": (425, 1, 0),
        "ptrace": (101, 0, 0, 0, 0),
        "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
        "keyctl": (250, 0, 0),
        "add_key": (248, 0, 0, 0, 0, 0),
        "bpf": (321, 0, 0, 0),
        "perf_event_open": (298, 0, 0, -1, -1, 0),
        "unshare": (272, 0x10000000),
        "clone": (56, 0x10000000 | 17, 0, 0, 0, 0),
        "setns": (308, 0, 0),
        "mount": (165, 0, 0, 0, 0, 0),
        "chroot": (161, b"/box"),
        "pidfd_getfd": (438, 0, 0, 0),
        "open_by_handle_at": (304, 0, 0, 0),
        "personality": (135, 0x0040000),
        "mq_open": (240, b"x", 0, 0, 0),
        "kexec_load": (246, 0, 0, 0, 0),
    }
    return [name for name, call in calls.items() if system_call(*call) != "EPERM"]


def other_tables(host):
    return [system_call(435, 0, 0), system_call(0x40000000 | 39), system_call(451, 0), system_call(9999)]


def resolve_a_name(host):
    try:
        return socket.getaddrinfo("example.org", 80)[0][4][0]
    except OSError:
        return "refused"


def use_setuid_programs(host):
    """Whose rights those programs give us that belong to root."""
    for name in ("su", "mount", "passwd", "newgrp", "chsh", "sudo"):
        path = f"/usr/bin/{name}"
        if os.path.exists(path) and os.stat(path).st_mode & 0o4000 and os.fork() == 0:
            os.execv(path, [name, "-c", "id -u > gained"])
    time.sleep(0.2)
    own = "CapEff:\t0000000000000000" in open("/proc/self/status").read()
    return [os.path.exists("gained") and open("gained").read().strip() == "0", own]


def hide_a_file(host):
    open("hidden-from-neighbours", "w").write("x")
    return os.getcwd()


def find_neighbours(place):
    """Another candidate's file, by its path and by looking everywhere."""
    found = [place] if place != os.getcwd() and os.path.exists(place + "/hidden-from-neighbours") else []
    for top, below, names in os.walk("/"):
        below[:] = [name for name in below if f"{top}/{name}" not in ("//proc", "//sys", "//usr")]
        found += [top for name in names if name == "hidden-from-neighbours"]
    for process in filter(str.isdigit, os.listdir("/proc")):
        path = f"/proc/{process}/cwd/hidden-from-neighbours"
        found += [path] if os.path.exists(path) else []
    return found


def become_root(host):
    text = open("/proc/self/status").read()
    return [attempt(os.setuid, 0), "NoNewPrivs:\t1" in text, "CapEff:\t0000000000000000" in text]
