from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evogit.content import content
from evogit.core import SandboxError, UsageError
from evogit.sandbox import Environment, provider_names
from evogit.sandbox.interpreter import environment
from evogit.sandbox.providers import isolating, kinds, provider, self_check
from evogit.sandbox.seccomp import compile_filter
from tests.clock import wait_until
from tests.conftest import NOWHERE

ENGINE = """
import time
from evogit.sandbox.archive import pack
from evogit.sandbox import Limits
from evogit.sandbox.providers import provider
session = provider("none").open(pack({"m.py": b"def who(): return 1"}), Limits())
print(session.call("m:who", b"{}").value.decode(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def no_docker(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", NOWHERE)


def test_auto_is_bubblewrap_without_docker_and_never_none(monkeypatch, tmp_path, no_docker):
    assert provider("auto").name == "bubblewrap"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"sudo apt-get install bubblewrap.*no Docker daemon answers at /"):
        provider("auto")


def test_auto_does_not_take_a_bubblewrap_that_fails(monkeypatch, no_docker):
    with tempfile.TemporaryDirectory() as name:  # from where programs may be run, as they may not from everywhere
        broken = Path(name) / "bwrap"
        broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        broken.chmod(0o755)
        Path(name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{name}:/usr/bin:/bin")
        with pytest.raises(SandboxError, match=r"no sandbox works here.*sudo sysctl -w kernel\.apparmor_restrict"):
            provider("auto")


@pytest.mark.parametrize("order", ["/usr/local/bin:/usr/bin", "/usr/bin:/usr/local/bin"])
def test_programs_find_tools_in_the_order_of_the_users_path(monkeypatch, order):
    monkeypatch.setenv("PATH", f"/home/me/bin:{order}:/bin")
    first, *others = environment(Path("/usr/bin/python3"), "/box", "/programs")["PATH"].split(":")
    assert (first, others[:3]) == ("/programs", [*order.split(":"), "/bin"])
    assert "/home/me/bin" not in others
    own = environment(Path("/opt/python/bin/python3"), "/box", "/programs")["PATH"]
    assert own.startswith(f"/opt/python/bin:/programs:{order}:")


@pytest.mark.slow
def test_auto_does_not_wait_for_ever_for_a_daemon_that_hangs(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{tmp_path}/docker.sock")
        silent.listen()
        assert provider("auto").name == "bubblewrap"


def test_only_sockets_of_this_machine_are_taken_for_docker(monkeypatch, caplog):
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(SandboxError, match="expected DOCKER_HOST to name a socket of this machine"):
        provider("docker")
    assert provider("auto").name == "bubblewrap"
    assert "using bubblewrap, as expected DOCKER_HOST" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("image", "python:3.12"),
        ("setup", ("true",)),
        ("packages", ("apt:no-such-package",)),
        ("runtime", "runsc"),
        ("gpus", 1),
        ("cpus", 2.0),
    ],
)
@pytest.mark.parametrize("name", ["bubblewrap", "none", "auto"])
def test_what_only_docker_has_is_refused_elsewhere(no_docker, name, key, value):
    with pytest.raises(SandboxError, match=f"sandbox.{key}.* needs Docker"):
        provider(name, Environment(**{key: value}))


def test_what_this_machine_has_of_debian_is_in_its_sandboxes(no_docker):
    provider("bubblewrap", Environment(packages=("apt:bubblewrap",))).close()
    with pytest.raises(SandboxError, match=r"apt:no-such in .* \(apt-get install no-such\), needs Docker"):
        provider("bubblewrap", Environment(packages=("apt:bubblewrap", "apt:no-such")))


def test_other_names_are_refused_and_none_warns(caplog):
    with pytest.raises(UsageError):
        provider("jail")
    provider("none")
    assert "without any isolation" in caplog.text


def test_what_an_engine_without_isolation_left_goes_when_it_is_killed(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, env=environment) as engine:
        assert engine.stdout
        assert engine.stdout.readline() == b"1\n"
        assert [*tmp_path.glob("evogit-none-*/work/m.py")]
        engine.send_signal(signal.SIGKILL)
    wait_until(lambda: not [*tmp_path.iterdir()])


def test_self_check_tells_isolation_from_none(no_docker):
    assert all(ok for _, ok, _ in self_check("bubblewrap"))
    checks = {name: (ok, sentence) for name, ok, sentence in self_check("none")}
    assert checks["isolation"][0] is False
    assert tempfile.gettempdir() in checks["isolation"][1]
    [(what, ok, sentence)] = self_check("docker")
    assert (what, ok) == ("sandbox", False)
    assert "no Docker daemon answers" in sentence
    assert "systemctl start docker" in sentence


@pytest.mark.parametrize(("machine", "ptrace"), [("x86_64", 101), ("aarch64", 117)])
def test_filter_has_the_numbers_of_its_machine(machine, ptrace):
    code = compile_filter(content("sandbox") / "seccomp.json", machine)
    lines = list(struct.iter_unpack("<HBBI", code))
    assert (0x15, 0, 1, ptrace) in lines
    assert len(lines) < 4096
    assert lines[-1] == (0x06, 0, 0, 0x7FFF0000)


def test_unknown_machine_is_refused():
    with pytest.raises(SandboxError, match="expected one of the machines"):
        compile_filter(content("sandbox") / "seccomp.json", "vax")


def test_each_provider_has_a_file_of_its_name_and_auto_takes_none_without_isolation():
    assert set(provider_names()) == {"auto", *kinds()}
    assert all(kinds()[name].rank for name in isolating())
    assert not any(kind.rank for kind in kinds().values() if not kind.isolates)
