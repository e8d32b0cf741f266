"""Faults of the Docker daemon: each is told in one sentence, and none is taken for the program's."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evogit.core import SandboxError, SandboxLostError
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.docker.daemon import connect
from evogit.sandbox.docker.provider import Docker

from .own_daemon import OwnDaemon, own_daemon

HELLO = pack({"m.py": b"import time\ndef hello(pause=0): time.sleep(pause); return 'hello'"})

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else or to start a daemon")


@contextlib.contextmanager
def listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


@contextlib.contextmanager
def somebody_else() -> Iterator[None]:
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


# --- a daemon that is no use --------------------------------------------------------------------------------------


def test_a_daemon_that_does_not_run_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d.sock")
    for _ in range(2):
        with pytest.raises(SandboxError, match=r"no Docker daemon answers at .*d.sock .*start it \(systemctl start"):
            Docker()
        with listening(tmp_path / "d.sock") if not (tmp_path / "d.sock").exists() else contextlib.nullcontext():
            pass  # leaves the socket's file behind, as a killed daemon does


@needs_root
def test_a_user_who_may_not_use_it_is_told_how_to(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/d.sock")
        with listening(Path(folder, "d.sock")):
            Path(folder, "d.sock").chmod(0o660)
            with (
                somebody_else(),
                pytest.raises(SandboxError, match=r"may not use the Docker daemon.*usermod -aG docker"),
            ):
                Docker()


class OldDaemon(http.server.BaseHTTPRequestHandler):
    """Answers as Docker Engine 18.06 did."""

    def do_GET(self) -> None:
        body = json.dumps({"ApiVersion": "1.38", "MinAPIVersion": "1.12", "Version": "18.06.3-ce"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "client"

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_daemon_that_is_too_old_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d.sock")
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "d.sock"), OldDaemon) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(SandboxError, match=r"API 1.40 \(19.03\) or newer .*got 1.38; update it"):
                Docker()
        finally:
            server.shutdown()
            thread.join()


# --- a daemon of our own, to be mistreated ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> Iterator[OwnDaemon]:
    with own_daemon() as daemon:
        yield daemon


@pytest.fixture
def sandbox(own: OwnDaemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[Docker]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{own.socket}")
    found = Docker(patience=20.0)
    yield found
    found.close()
    client = connect()
    assert client.containers.list(all=True, ignore_removed=True) == []  # a killed daemon may list what is gone
    client.close()


@needs_root
@pytest.mark.docker
@pytest.mark.slow
class TestOwnDaemon:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
    @pytest.mark.parametrize("busy", [True, False], ids=["in a call", "between calls"])
    def test_a_daemon_that_goes_away_takes_no_blame_to_the_program(self, own, sandbox, number, busy):
        with sandbox.open(HELLO, Limits(wall=280)) as session:
            session.call("m:hello", b"{}")
            ending = threading.Timer(0.3, own.end, [number])
            ending.start()
            if not busy:
                ending.join()
            with pytest.raises(SandboxLostError):
                session.call("m:hello", b'{"args": [250]}')
            ending.join()
        starting = threading.Timer(1.0, own.start)
        starting.start()
        with sandbox.open(HELLO, Limits()) as session:  # waits for it
            assert session.call("m:hello", b"{}").value == b'"hello"'
        starting.join()

    def test_a_daemon_that_hangs_takes_no_blame_to_the_program(self, own, sandbox):
        with sandbox.open(HELLO, Limits()) as session:
            session.call("m:hello", b"{}")
            with own.frozen(), pytest.raises(SandboxLostError, match="did not answer in 10 s"):
                session.call("m:hello", b"{}", wall=1)
        with sandbox.open(HELLO, Limits()) as session:
            assert session.call("m:hello", b"{}").value == b'"hello"'

    def test_a_daemon_that_stays_away_is_told_after_a_while(self, own, monkeypatch):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{own.socket}")
        sandbox = Docker(patience=1.0)
        own.end(signal.SIGTERM)
        with pytest.raises(SandboxError, match="the Docker daemon has been away for 1 s .*start it again, then go on"):
            sandbox.open(HELLO, Limits())
        own.start()

    def test_who_begins_while_a_daemon_that_worked_is_away_waits_for_it(self, own, sandbox):
        own.end(signal.SIGTERM)
        starting = threading.Timer(1.0, own.start)
        starting.start()
        with contextlib.closing(Docker(patience=20.0, worked=True)) as again, again.open(HELLO, Limits()) as session:
            assert session.call("m:hello", b"{}").value == b'"hello"'
        starting.join()

    def test_a_worker_that_waited_over_a_restart_is_replaced(self, own, sandbox):
        sandbox.open(HELLO, Limits()).close()
        own.end(signal.SIGKILL)
        own.start()
        with contextlib.suppress(SandboxLostError):  # before it is known to be gone; engines ask again
            sandbox.open(HELLO, Limits()).close()
        with sandbox.open(HELLO, Limits()) as session:
            assert session.call("m:hello", b"{}").value == b'"hello"'

    def test_a_full_disk_is_told_and_nothing_is_left(self, own, sandbox):
        with own.full_disk(), pytest.raises(SandboxError, match="the disk of the Docker daemon is full; make room"):
            sandbox.open(HELLO, Limits())
        with sandbox.open(HELLO, Limits()) as session:
            assert session.call("m:hello", b"{}").value == b'"hello"'

    def test_an_image_that_is_missing_is_told(self, sandbox):
        with pytest.raises(SandboxError, match="there is no image nosuch/image:1"):
            Docker(Environment(image="nosuch/image:1"))

    def test_an_image_that_is_removed_meanwhile_is_told(self, own, sandbox):
        client = connect()
        name = sandbox._image.name
        archive = b"".join(client.images.get(name).save(named=name))
        client.images.remove(name, force=True)
        try:
            with pytest.raises(SandboxError, match="its image is gone; `evogit doctor build` makes it again"):
                sandbox.open(HELLO, Limits())
        finally:
            client.images.load(archive)
            client.close()
