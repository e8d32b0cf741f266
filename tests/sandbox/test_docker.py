"""What Docker's containers hold beyond the contract, which test_conformance.py has."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import docker
import pytest

from evogit.core import BaseFiles, Files, SandboxError, SandboxLostError
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.docker.daemon import connect
from evogit.sandbox.docker.provider import Docker
from evogit.sandbox.docker.socket import address
from evogit.sandbox.docker.worker import BORN, MACHINE, MARK, PROCESS, clean, labels, remove
from evogit.sandbox.providers import provider, self_check
from evogit.sandbox.session import Session
from tests.clock import wait_until

from .own_daemon import own_daemon

pytestmark = pytest.mark.docker

HELLO = pack({"m.py": b"def hello(): return 'hello'"})


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Docker]:
    found = Docker()
    yield found
    found.close()


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    found = connect()
    yield found
    found.close()


def ask(session: Session, function: str, *args: Any) -> Any:
    reply = session.call(f"m:{function}", json.dumps({"args": args}).encode())
    assert not reply.failure, reply.detail
    return json.loads(reply.value)


def containers(client: docker.DockerClient, pid: int) -> list[str]:
    """Those that a process of ours made."""
    found = client.containers.list(all=True, filters={"label": f"{PROCESS}={pid}"}, ignore_removed=True)
    return [container.id for container in found]


def mine(client: docker.DockerClient) -> set[str]:
    return set(containers(client, os.getpid()))


# --- what a program finds -----------------------------------------------------------------------------------------


def test_a_program_can_write_to_the_box_and_nowhere_else(sandbox):
    source = """
import os
def writable():
    for top, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if not os.path.islink(f"{top}/{name}") and f"{top}{name}" != "/proc"]
        paths = [top] + [f"{top}/{name}" for name in files]
        yield from (path for path in paths if os.path.lexists(path) and os.access(path, os.W_OK))
def found():
    return [path for path in writable() if not path.startswith(("/tmp", "/dev/pts/ptmx"))
            and not (os.path.dirname(path) == "/dev" and not os.path.isfile(path))]
"""
    with sandbox.open(pack({"m.py": source.encode()}), Limits()) as session:
        assert ask(session, "found") == []


def test_a_program_has_no_rights_and_two_filters(sandbox):
    source = "def status(): return dict(line.split(':', 1) for line in open('/proc/self/status'))"
    with sandbox.open(pack({"m.py": source.encode()}), Limits()) as session:
        status = {name: value.strip() for name, value in ask(session, "status").items()}
    assert [int(status[f"Cap{name}"], 16) for name in ("Inh", "Prm", "Eff", "Amb")] == [0, 0, 0, 0]
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Groups"] == ""
    assert len(set(status["Uid"].split())) == 1
    assert 1 << 24 <= int(status["Uid"].split()[0]) < 1 << 30


def test_nothing_of_the_users_docker_configuration_comes_in(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text('{"proxies": {"default": {"httpProxy": "http://user:secret@proxy:1"}}}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    sandbox = Docker()
    with sandbox.open(pack({"m.py": b"import os\ndef names(): return sorted(os.environ)"}), Limits()) as session:
        assert not [name for name in ask(session, "names") if "proxy" in name.lower()]
    sandbox.close()


def test_an_image_s_volume_is_no_place_to_write(client, tmp_path):
    (tmp_path / "Dockerfile").write_text(f"FROM {Docker()._image.name}\nRUN mkdir -m 777 /data\nVOLUME /data\n")
    client.images.build(path=str(tmp_path), tag="evogit-test:volume", network_mode="none", rm=True)
    sandbox = Docker(Environment(image="evogit-test:volume"))
    try:
        source = "import os\ndef found(): return os.path.isdir('/data'), os.access('/data', os.W_OK)"
        with sandbox.open(pack({"m.py": source.encode()}), Limits()) as session:
            assert ask(session, "found") == [True, False]
    finally:
        sandbox.close()
        client.images.remove("evogit-test:volume")


@pytest.mark.slow
def test_large_things_cross(sandbox):
    """The daemon cuts them into small pieces; those of a quadratic wire would take minutes."""
    limits = Limits(wall=60, cpu=60, reply=1 << 27, memory=1 << 30)
    with sandbox.open(pack({"m.py": b"def echo(text): return text"}), limits) as session:
        assert ask(session, "echo", "x" * (64 << 20)) == "x" * (64 << 20)


# --- warm and fresh -----------------------------------------------------------------------------------------------


def test_sessions_share_a_container_until_it_is_told_to_be_fresh(client):
    seen: dict[str, list[set[str]]] = {}
    others = mine(client)
    for isolation in ("warm", "fresh"):
        sandbox = Docker(Environment(isolation=isolation))
        for _ in range(2):
            with sandbox.open(HELLO, Limits()) as session:
                assert ask(session, "hello") == "hello"
                seen.setdefault(isolation, []).append(mine(client) - others)
        sandbox.close()
    assert seen["warm"][0] == seen["warm"][1]
    assert not seen["fresh"][0] & seen["fresh"][1]
    assert [len(found) for found in (*seen["warm"], *seen["fresh"])] == [1, 1, 1, 1]


def test_a_base_is_there_and_the_next_session_sees_it_unchanged(sandbox):
    source = b"def read(): return open('data').read()\ndef spoil(): open('data', 'w').write('spoilt')"
    base = BaseFiles("test", pack({"data": b"of the base", "m.py": source}))
    for _ in range(2):
        with sandbox.open(Files(pack({"other.py": b""}), (), base), Limits()) as session:
            assert ask(session, "read") == "of the base"
            ask(session, "spoil")


def test_close_leaves_no_container(client):
    others, sandbox = mine(client), Docker()
    sandbox.open(HELLO, Limits()).close()
    assert mine(client) != others
    sandbox.close()
    assert mine(client) == others


# --- who is to blame ----------------------------------------------------------------------------------------------

ATTACKS = {
    "signals": "for pid in (1, -1): [attempt(os.kill, pid, number) for number in range(1, 65)]",
    "many small hogs": "while len(hog) < 40: hog.append(bytearray(8 << 20)) if os.fork() else hog.clear()",
    "one unwilling hog": """
    open('/proc/self/oom_score_adj', 'w').write('500')
    while True: hog.append(bytearray(1 << 22))""",
    "forks": "while True: attempt(os.fork)",
    "disk": "while True: open(f'/tmp/{os.urandom(8).hex()}', 'wb').write(bytes(1 << 20))",
    "inodes": "while True: open(f'/tmp/{os.urandom(8).hex()}', 'wb')",
    "streams": "[attempt(os.write, attempt(os.open, f'/proc/1/fd/{fd}', os.O_WRONLY), b'x') for fd in range(64)]",
    "output": "while True: attempt(os.write, 1, bytes(1 << 16)), attempt(os.write, 2, bytes(1 << 16))",
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_program_can_have_itself_tried_again(sandbox, attack):
    """Whatever it does, the sandbox counts as brought down by it, or is not brought down: never as lost."""
    source = f"""
import os
hog = []
def attempt(action, *args):
    try: return action(*args)
    except (OSError, TypeError, RecursionError): pass
def f():
    {ATTACKS[attack]}
"""
    limits = Limits(memory=128 << 20, disk=32 << 20)
    with sandbox.open(pack({"m.py": source.encode()}), limits) as session:
        session.call("m:f", b"{}", wall=3)
        session.run(["true"])
    with sandbox.open(HELLO, limits) as session:
        assert ask(session, "hello") == "hello"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to kill what is in a container as the kernel does")
def test_a_container_that_the_kernel_kills_is_out_of_memory(sandbox, client):
    with sandbox.open(HELLO, Limits()) as session:
        ask(session, "hello")
        for container in mine(client):
            os.kill(client.api.inspect_container(container)["State"]["Pid"], signal.SIGKILL)
        wait_until(lambda: not mine(client))  # the kernel ends what else is in there by and by
        reply = session.call("m:hello", b"{}")
    assert reply.failure == "out-of-memory"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_container_that_somebody_ends_is_lost(sandbox, client, end):
    session = sandbox.open(HELLO, Limits())
    ask(session, "hello")
    for container in mine(client):
        getattr(client.api, end)(container)
    with pytest.raises(SandboxLostError, match="stopped from outside"):
        session.call("m:hello", b"{}")
    session.close()
    with sandbox.open(HELLO, Limits()) as session:
        assert ask(session, "hello") == "hello"


# --- what is left -------------------------------------------------------------------------------------------------

ENGINE = """
import sys
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.docker.provider import Docker
session = Docker().open(pack({"m.py": b"def f():\\n    while True: pass"}), Limits(wall=600, cpu=600))
print("open", flush=True)
session.call("m:f", b"{}")
"""


def test_a_killed_engine_leaves_no_container(client):
    engine = subprocess.Popen([sys.executable, "-c", ENGINE], stdout=subprocess.PIPE)
    assert engine.stdout
    with engine, engine.stdout:
        assert engine.stdout.readline() == b"open\n"
        time.sleep(0.3)
        assert len(containers(client, engine.pid)) == 1
        engine.send_signal(signal.SIGKILL)
    wait_until(lambda: not containers(client, engine.pid))


REFUSED = b'HTTP/1.1 500 Busy\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{"message":"busy"}'


class Between(socketserver.BaseRequestHandler):
    """Passes on what client and daemon say, but for the first answers to who wants a container: it hangs up instead.

    The first who want to have one removed it refuses.
    """

    def handle(self) -> None:
        creating = False
        with socket.socket(socket.AF_UNIX) as daemon, suppress(ConnectionError):
            daemon.connect(self.server.daemon)
            while True:
                for sender in select.select([self.request, daemon], [], [])[0]:
                    piece = sender.recv(1 << 16)
                    creating |= sender is self.request and b"/containers/create" in piece
                    if sender is self.request and piece.startswith(b"DELETE ") and self.server.refusals:
                        self.server.refusals -= 1
                        self.request.sendall(REFUSED)
                        continue
                    if not piece or (creating and sender is daemon and self.server.interruptions):
                        self.server.interruptions -= bool(piece)
                        return
                    (daemon if sender is self.request else self.request).sendall(piece)


@pytest.fixture
def between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Stands between us and the daemon."""
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "d.sock"), Between) as server:
        server.daemon, server.interruptions, server.refusals, server.daemon_threads = address(), 0, 0, True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d.sock")
        yield server
        server.shutdown()


def test_a_container_that_nobody_was_told_of_is_removed(sandbox, client, between):
    others, between.interruptions = mine(client), 1
    with closing(Docker()) as ours, ours.open(HELLO, Limits()) as session:
        assert ask(session, "hello") == "hello"
        assert len(mine(client) - others) == 1
    assert between.interruptions == 0
    assert mine(client) == others


@pytest.mark.skipif(os.geteuid() != 0, reason="starting a daemon needs root")
def test_one_that_the_daemon_does_not_remove_keeps_no_other(between):
    """On a daemon of its own, as other tests clean the shared one."""
    dead = {**labels(), BORN: "1"}
    with own_daemon() as daemon, closing(docker.DockerClient(base_url=f"unix://{daemon.socket}")) as client:
        image = client.images.list()[0].id
        made = {client.api.create_container(image, ["true"], labels=dead)["Id"] for _ in range(3)}
        between.daemon, between.refusals = str(daemon.socket), 1
        with closing(connect()) as ours:
            with pytest.raises(SandboxError, match="cannot remove the container .*busy"):
                clean(ours)
            assert len(made & {each["Id"] for each in client.api.containers(all=True)}) == 1
            clean(ours)
        assert not client.api.containers(all=True)


def test_only_containers_of_dead_processes_are_removed(sandbox, client):
    alive = {**labels(), "evogit.test": "1"}
    dead = {**alive, BORN: "1"}
    rebooted = {**alive, MACHINE: "another-boot pid:[1]"}
    elsewhere = {**alive, MACHINE: alive[MACHINE].split()[0] + " pid:[1]", BORN: "1"}

    def left() -> set[str]:
        found = client.containers.list(all=True, filters={"label": [MARK, "evogit.test"]}, ignore_removed=True)
        return {container.id for container in found}

    telling = "import json; from evogit.sandbox.docker.worker import labels; print(json.dumps(labels()))"
    with subprocess.Popen([sys.executable, "-c", telling], stdout=subprocess.PIPE) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # over, and nobody has asked how it ended
        assert ended.stdout
        not_asked = {**alive, **json.load(ended.stdout)}
        made = [
            client.api.create_container(sandbox._image.id, ["true"], labels=each)["Id"]
            for each in (alive, dead, rebooted, elsewhere, not_asked)
        ]
        try:
            provider("docker").close()
            wait_until(lambda: left() == {made[0], made[3]})
        finally:
            for container in made:
                remove(client, container)


# --- what it is asked for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (Environment(gpus=1), "sandbox.gpus needs Docker's support for GPUs"),
        (Environment(cpus=4096), "sandbox.cpus asks for more cores than this machine has"),
    ],
)
def test_what_the_daemon_cannot_give_is_named(environment, sentence, client):
    others, sandbox = mine(client), Docker(environment)
    with pytest.raises(SandboxError, match=sentence):
        sandbox.open(HELLO, Limits())
    assert mine(client) == others


def test_a_runtime_that_is_not_there_is_named():
    with pytest.raises(SandboxError, match=r"sandbox.runtime = nosuch is not registered.*runc"):
        Docker(Environment(runtime="nosuch"))  # type: ignore[arg-type]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_exclusive_sessions_have_one_core(client):
    sandbox = Docker(Environment(exclusive=True))
    source = b"import os\ndef cores(): return sorted(os.sched_getaffinity(0))"
    with sandbox.open(pack({"m.py": source}), Limits()) as session:
        assert ask(session, "cores") == [max(os.sched_getaffinity(0))]
    sandbox.close()


def test_cores_are_shared_by_all_processes(sandbox):
    source = """
import multiprocessing, time
def spin(until):
    while time.monotonic() < until: pass
def f():
    workers = [multiprocessing.Process(target=spin, args=(time.monotonic() + 0.8,)) for _ in range(4)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
"""
    with sandbox.open(pack({"m.py": source.encode()}), Limits()) as session:
        reply = session.call("m:f", b"{}")
    assert not reply.failure, reply.detail
    assert reply.usage.cpu < 1.3 * reply.usage.wall


def test_auto_prefers_docker():
    sandbox = provider("auto")
    assert sandbox.name == "docker"
    sandbox.close()


def test_self_check_says_how_it_counts():
    rows = {what: (well, said) for what, well, said in self_check("docker")}
    assert all(well for well, _ in rows.values()), rows
    assert "counted by a cgroup" in rows["limits"][1] or "sampled" in rows["limits"][1]
    assert rows["Docker"][1].startswith("Engine ")
