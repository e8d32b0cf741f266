from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

import evogit
from evogit.content import content
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap, covered
from evogit.sandbox.session import Session
from tests.clock import wait_until

SOURCE = b"""
import os, time
def who(): return os.readlink("/proc/self/ns/pid")
def nap(): time.sleep(60)
"""
GREEDY = b"""
import os, signal, time
def eat():
    with open("/proc/self/oom_score_adj", "w") as file: file.write("0")
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))
    while not told: time.sleep(0.01)
    for _ in range(6):
        if os.fork() == 0:
            kept = b"x" * 50_000_000
            signal.pause()
    signal.pause()
"""
FILES = pack({"m.py": SOURCE})
ENGINE = """
import time
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap
session = Bubblewrap().open(pack({"m.py": %r}), Limits())
print(session.call("m:who", b"{}"). value.decode(), flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def bubblewrap() -> Iterator[Bubblewrap]:
    found = Bubblewrap()
    yield found
    found.close()


@pytest.fixture
def session(bubblewrap: Bubblewrap) -> Iterator[Session]:
    with bubblewrap.open(FILES, Limits()) as session:
        yield session


def inhabitants(namespace: str) -> dict[int, int]:
    """Host pid -> pid inside, of the living processes of a namespace."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text()
            if str((process / "ns/pid").readlink()) == namespace and "State:\tZ" not in status:
                found[int(process.name)] = int(status.split("NSpid:")[1].splitlines()[0].split()[-1])
        except OSError:
            continue
    return found


def waiting(namespace: str) -> list[int]:
    """Those of a namespace that wait for SIGUSR1."""
    bit = 1 << (signal.SIGUSR1 - 1)
    texts = {pid: Path(f"/proc/{pid}/status").read_text() for pid in inhabitants(namespace)}
    return [pid for pid, text in texts.items() if int(text.split("SigCgt:")[1].split()[0], 16) & bit]


def soon(happened: Callable[[], bool]) -> bool:
    """Whether something happens, given the time that a busy machine takes."""
    wait_until(happened)
    return True


def end_soon(namespace: str, there: dict[int, int]) -> bool:
    """Whether those who are there end; the number of their namespace may be another's by then."""
    return soon(lambda: not there.keys() & inhabitants(namespace).keys())


def holders(folder: Path) -> Iterator[Path]:
    """Processes with an open file of a folder: what bubblewrap is given comes in such files."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(fd.readlink()).startswith(str(folder)) for fd in (process / "fd").iterdir()):
                yield process


def namespace_of(session: Session) -> str:
    return str(json.loads(session.call("m:who", b"{}").value))


def first_process(session: Session) -> int:
    return next(outer for outer, inner in inhabitants(namespace_of(session)).items() if inner == 1)


def test_close_leaves_no_process(bubblewrap):
    session = bubblewrap.open(FILES, Limits())
    namespace = namespace_of(session)
    there = inhabitants(namespace)
    assert len(there) == 2
    session.close()
    assert end_soon(namespace, there)  # its first process has said that all others are gone, and ends


def test_sessions_have_namespaces_and_users_of_their_own(bubblewrap, session):
    with bubblewrap.open(FILES, Limits()) as other:
        processes = [Path(f"/proc/{first_process(one)}") for one in (session, other)]
        namespaces = [{name: (p / "ns" / name).readlink() for name in ("net", "ipc", "user", "mnt")} for p in processes]
        assert all(namespaces[0][name] != namespaces[1][name] for name in namespaces[0])
        if os.geteuid() == 0:
            users = {int((p / "status").read_text().split("Uid:")[1].split()[0]) for p in processes}
            assert len(users) == 2
            assert min(users) > 1 << 20


def test_killed_engine_takes_its_jails_along():
    engine = subprocess.Popen([sys.executable, "-c", ENGINE % SOURCE], stdout=subprocess.PIPE)
    with engine:
        assert engine.stdout
        namespace = json.loads(engine.stdout.readline())
        there = inhabitants(namespace)
        assert there
        engine.kill()
    assert end_soon(namespace, there)


OPENS = """
import os, sys
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap
for _ in sys.stdin:
    if engine := os.fork():
        os.waitpid(engine, 0)
        continue
    with Bubblewrap().open(pack({"m.py": %r}), Limits()) as session:
        session.call("m:who", b"{}")
    print(os.getpid(), flush=True)
    while True: Bubblewrap().open(pack({}), Limits()).close()
"""
"""One engine after another, each a fork of a process that has imported what they need."""


@pytest.mark.slow
def test_engine_killed_while_it_opens_sessions_leaves_none(tmp_path):
    command = [sys.executable, "-c", OPENS % SOURCE]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as engines:
        assert engines.stdin
        assert engines.stdout
        for number in range(30):
            engines.stdin.write(b"next\n")
            engines.stdin.flush()
            engine = int(engines.stdout.readline())
            time.sleep(0.05 + 0.003 * (number % 20))
            os.kill(engine, signal.SIGKILL)
        engines.stdin.close()
    assert soon(lambda: not [*holders(tmp_path)])


def test_killed_supervisor_is_the_programs_crash(session):
    os.kill(first_process(session), signal.SIGKILL)
    reply = session.call("m:who", b"{}")
    assert reply.failure == "crashed"
    assert "brought its sandbox down" in reply.detail
    assert session.call("m:who", b"{}").detail == "the program brought its sandbox down"
    assert session.run(["true"]).signal == signal.SIGKILL


def test_a_supervisor_that_the_kernel_ends_for_lack_of_memory_is_the_programs_use_of_it(bubblewrap):
    """It is the kernel's first choice, and need not be quick enough to see a limit broken: here it stands still."""
    if bubblewrap.timing == "sampled":
        pytest.skip("no control groups can be had here")
    with (
        bubblewrap.open(pack({"m.py": GREEDY + SOURCE}), Limits(memory=100 << 20)) as session,
        ThreadPoolExecutor() as own,
    ):
        namespace, supervisor = namespace_of(session), first_process(session)
        call = own.submit(session.call, "m:eat", b"{}")
        wait_until(lambda: waiting(namespace))
        (program,) = waiting(namespace)
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(program, signal.SIGUSR1)
        reply = call.result()
    assert (reply.failure, reply.detail) == ("out-of-memory", "the kernel killed the sandbox for lack of memory")


@pytest.mark.slow
def test_supervisor_that_stops_answering_is_a_timeout(session):
    os.kill(first_process(session), signal.SIGSTOP)
    reply = session.call("m:nap", b"{}", wall=0.1)
    assert (reply.failure, reply.detail) == ("timeout", "the sandbox stopped answering and was killed")


@pytest.mark.skipif(os.geteuid() != 0, reason="then every other test runs without root")
def test_engine_without_root():
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        package = Path(evogit.__file__).parent
        shutil.copytree(package / "sandbox", folder / "evogit/sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(content("sandbox"), folder / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("core.py", "content.py", "lazy_exports.py", "subprocesses.py", "text.py"):
            shutil.copy(package / name, folder / "evogit")
        shutil.copytree(Path(msgspec.__file__).parent, folder / "msgspec")
        program = ENGINE.replace("time.sleep(60)", "session.close()") % SOURCE
        done = subprocess.run(
            ["/usr/bin/python3", "-B", "-c", program],
            cwd=folder, env={"PATH": "/usr/bin:/bin"}, user=65534, group=65534, extra_groups=[], capture_output=True,
        )  # fmt: skip
    assert done.stderr == b""
    assert done.stdout.startswith(b'"pid:[')


def test_evogit_itself_is_hidden_from_programs():
    package = Path(evogit.__file__).parent
    own, prefix = [package, content("tasks"), content("sandbox")], Path("/usr")
    assert set(covered([package.parent], [], own, prefix, privileged=False)) == set(own)
    assert covered([Path("/no/such/folder")], [], own, prefix, privileged=False) == []
