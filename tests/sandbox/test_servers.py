"""Candidates that are servers: an evaluator's client speaks to them, and they have no network else."""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from evogit.content import content
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.program import CandidateFailedError, Program
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.session import Sandbox
from tests.clock import PATIENCE, wait_until
from tests.conftest import TOML

SERVER = b"""\
import http.server

class Mirror(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0
    def do_POST(self):
        Mirror.count += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", len(body))
        self.send_header("Count", Mirror.count)
        self.end_headers()
        self.wfile.write(body[::-1])

print("up", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Mirror).serve_forever()
"""
TALKER = b"""\
import socket, sys, time
server = socket.create_server(("127.0.0.1", 8000))
connection, _ = server.accept()
connection.sendall(b"welcome")
said, kept = connection.recv(100), []
while True:
    if sys.argv[1] == "flood": connection.sendall(b"x" * 1000000)
    elif sys.argv[1] == "grow":
        kept.append(b"x" * 1000000)
        time.sleep(0.0005)
    elif sys.argv[1] == "hang": time.sleep(60)
    else: sys.exit()
"""
HASTY = b"""\
import socket
server = socket.create_server(("127.0.0.1", 8000))
while True: server.accept()[0].close()
"""


@pytest.fixture(autouse=True)
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The machine's own port where there is no sandbox, which only one test at a time can have."""
    with (tmp_path_factory.getbasetemp().parent / "port-8000.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def program(sandbox: Sandbox) -> Iterator[Program]:
    files = pack({"server.py": SERVER, "talker.py": TALKER, "m.py": b"def add(a, b): return a + b\n"})
    with sandbox.open(files, Limits(wall=60, cpu=60, total=280, memory=200 << 20)) as session:
        yield Program(session)


def post(client: http.client.HTTPConnection, body: bytes) -> tuple[bytes, str | None]:
    client.request("POST", "/", body)
    answer = client.getresponse()
    return answer.read(), answer.headers["Count"]


def add_until_it_fails(program: Program) -> None:
    wait_until(lambda: program.call("m:add", [1, 1]).value != 2)


def test_a_server_keeps_its_state_between_requests_and_calls(program: Program) -> None:
    program.start(["python3", "server.py"])
    client = http.client.HTTPConnection("candidate")
    client.sock = program.connect(8000)
    assert post(client, b"abc") == (b"cba", "1")
    assert program.call("m:add", [2, 3]).value == 5
    large = bytes(range(256)) * 4000
    assert post(client, large) == (large[::-1], "2")
    other = http.client.HTTPConnection("candidate")
    other.sock = program.connect(8000)
    assert post(other, b"") == (b"", "3")
    assert post(client, b"z") == (b"z", "4")
    client.close()
    other.close()
    assert program.cost.cpu > 0.01


def test_nothing_that_listens_is_the_candidates_failure(program: Program) -> None:
    program.start(["false"])
    with pytest.raises(CandidateFailedError, match="nothing listens on port 8000 after 0.3 s"):
        program.connect(8000, timeout="300ms")


def test_the_server_may_speak_first_and_end_the_stream(program: Program) -> None:
    program.start(["python3", "talker.py", "end"])
    with program.connect(8000) as stream:
        assert stream.recv(100) == b"welcome"
        stream.sendall(b"hello")
        stream.settimeout(PATIENCE)
        assert stream.recv(100) == b""


def test_a_flood_waits_for_its_reader(program: Program) -> None:
    program.start(["python3", "talker.py", "flood"])
    with program.connect(8000) as stream:
        assert stream.recv(7) == b"welcome"
        stream.sendall(b"go")
        time.sleep(0.3)
        assert program.call("m:add", [1, 1]).value == 2
        assert program.cost.memory < 120 << 20


def test_a_limit_that_the_server_breaks_ends_the_session(program: Program) -> None:
    program.start(["python3", "talker.py", "grow"])
    with program.connect(8000) as stream:
        stream.recv(7)
        stream.sendall(b"grow")
        with pytest.raises(CandidateFailedError, match="memory") as failed:
            add_until_it_fails(program)
        assert failed.value.status == "out-of-memory"


@pytest.mark.slow
def test_whoever_waits_for_a_silent_server_waits_no_longer_than_a_session_may_take(sandbox: Sandbox) -> None:
    with sandbox.open(pack({"talker.py": TALKER}), Limits(wall=5, total=5)) as session:
        program = Program(session)
        program.start(["python3", "talker.py", "hang"])
        with program.connect(8000) as stream:
            stream.settimeout(PATIENCE)
            assert stream.recv(7) == b"welcome"
            stream.sendall(b"and now?")
            assert stream.recv(1) == b""
        with pytest.raises(CandidateFailedError, match="took 5 s in all"):
            program.connect(8000)


@pytest.mark.slow
def test_connections_that_have_ended_are_no_memory_of_the_session(sandbox: Sandbox) -> None:
    with sandbox.open(pack({"hasty.py": HASTY}), Limits(memory=24 << 20)) as session:
        program = Program(session)
        program.start(["python3", "hasty.py"])
        for _ in range(100):  # each open socket counts as 0.2 MiB
            with program.connect(8000) as stream:
                assert stream.recv(1) == b""


@pytest.mark.slow
def test_what_a_server_does_not_take_waits_at_the_client(program: Program) -> None:
    program.start(["python3", "talker.py", "hang"])
    with program.connect(8000) as stream:
        stream.settimeout(0.5)
        with pytest.raises(TimeoutError):
            stream.sendall(bytes(300 << 20))
    assert program.call("m:add", [1, 2]).value == 3
    assert program.cost.memory < 120 << 20


SPEAKS = """\
import http.client
from evogit import Case

def evaluate(program, split):
    program.start(["python3", "program.py"])
    client = http.client.HTTPConnection("candidate")
    client.sock = program.connect(8000)
    client.request("GET", "/")
    yield Case("answered", score=client.getresponse().status)
"""
LISTENS = """\
import socket
connection, _ = socket.create_server(("127.0.0.1", 8000)).accept()
connection.recv(1000)
"""
SILENT = LISTENS + "import time; time.sleep(3600)\n"
GROWS = LISTENS + "kept = []\nwhile True: kept.append(b'x' * 1000000)\n"


@pytest.mark.parametrize(
    ("server", "timeout", "status", "reason"),
    [
        (LISTENS, "60s", "crashed", "server did not do its part: RemoteDisconnected"),
        pytest.param(SILENT, "4s", "timeout", "server did not do its part: TimeoutError", marks=pytest.mark.slow),
        (GROWS, "60s", "out-of-memory", "of memory"),
    ],
)
async def test_a_server_that_fails_its_client_fails(tiny, server: str, timeout: str, status: str, reason: str) -> None:
    toml = TOML.replace('splits = ["smoke", "train", "holdout"]\ngate.smoke = "score > -1e9"\n', "")
    task = tiny(evaluate=SPEAKS, toml=toml.replace('timeout = "60s"', f'timeout = "{timeout}"') + 'memory = "100m"\n')
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        evaluation, _ = await evaluator.evaluate("tree", pack({"program.py": server.encode()}), split="train")
    assert evaluation.status == status
    assert reason in evaluation.reason


STEALTHY = b"""\
import socket, sys, time
connection, _ = socket.create_server(("127.0.0.1", 8000)).accept()
connection.sendall(b"welcome")
connection.recv(100)
time.sleep(0.3)
kept = []
try:
    while True: kept.append(b"x" * 1000000)
except MemoryError:
    kept.clear()
    if sys.argv[1] == "survives": connection.close(), time.sleep(60)
    raise
"""


@pytest.mark.slow
@pytest.mark.parametrize("then", ["ends", "survives"])
def test_memory_that_nobody_saw_in_use_is_why_a_server_failed(then: str) -> None:
    bubblewrap = Bubblewrap(counted=False)
    with closing(bubblewrap), bubblewrap.open(pack({"s.py": STEALTHY}), Limits(memory=100 << 20)) as session:
        program = Program(session)
        program.start(["python3", "s.py", then])
        with program.connect(8000) as stream:
            assert stream.recv(7) == b"welcome"
            stream.sendall(b"go")
            time.sleep(0.1)
            with unwatched():
                time.sleep(1)
            assert stream.recv(1) == b""
        failed = program.broken_off(ConnectionError("it went away"))
    assert failed
    assert failed.status == "out-of-memory"
    assert re.fullmatch(r"(had|used) 1\d\d MiB of memory (before it failed )?in the server", failed.reason)


@pytest.mark.slow
def test_files_that_a_command_maps_are_not_its_memory(sandbox: Sandbox) -> None:
    maps = b"""\
import mmap, os, sys, time
paths = {line.split()[-1] for line in open("/proc/self/maps") if " /" in line}
file, kept = open(max(paths, key=os.path.getsize), "rb"), []
while sum(map(len, kept)) < 200 << 20:
    kept.append(mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | mmap.MAP_POPULATE, prot=mmap.PROT_READ))
time.sleep(0.5)
sys.exit(3)
"""
    with sandbox.open(pack({"maps.py": maps}), Limits(memory=100 << 20)) as session:
        done = session.run(["python3", "maps.py"])
    assert (done.code, done.breach) == (3, None), done.stderr


@contextmanager
def unwatched() -> Iterator[None]:
    """While it lasts, supervisors do nothing: a busy machine, as it were."""
    supervisors = [int(each.name) for each in Path("/proc").glob("[0-9]*") if is_supervisor(int(each.name))]
    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in supervisors:
            os.kill(pid, signal.SIGCONT)


def is_supervisor(pid: int) -> bool:
    """Whether a process is one, and below us."""
    first = pid
    with suppress(OSError):
        while b"jail_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return first != pid == os.getpid()
    return False


ALONE = """\
import fcntl, socket, struct, sys
sys.path.insert(0, sys.argv[1])
from jail_tunnel import Tunnels
open("/proc/sys/net/ipv4/ip_local_port_range", "w").write("40000 40001")
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sh", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
    any.bind(("127.0.0.1", 0))
    print([Tunnels().connect(port) for port in (40000, 40001) * 4])
    any.listen()
    print(Tunnels().connect(any.getsockname()[1]) is None)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network of its own")
def test_nobody_is_taken_for_the_server_that_is_waited_for():
    """A connection to a port where nobody listens is one to itself where the kernel gives it just that port."""
    command = ["unshare", "--net", sys.executable, "-c", ALONE, str(content("sandbox"))]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.stdout.split("\n")[:2], said.stderr) == ([str([None] * 8), "False"], "")
