from __future__ import annotations

import struct

import pytest

from evogit.content import content
from evogit.core import SandboxError, UsageError
from evogit.sandbox.providers import provider, self_check
from evogit.sandbox.seccomp import compile_filter


def test_auto_is_bubblewrap_and_never_none(monkeypatch, tmp_path):
    assert provider("auto").name == "bubblewrap"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"apt-get install bubblewrap.*start Docker"):
        provider("auto")


def test_auto_does_not_take_a_bubblewrap_that_fails(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxError, match="no sandbox works here"):
        provider("auto")


def test_other_names():
    with pytest.raises(SandboxError, match="not available in this version"):
        provider("docker")
    with pytest.raises(UsageError, match="expected one of the sandboxes auto, docker, bubblewrap, none, got 'jail'"):
        provider("jail")


def test_none_warns(caplog):
    provider("none")
    assert "without any isolation" in caplog.text


def test_self_check_tells_isolation_from_none():
    assert all(ok for _, ok, _ in self_check("bubblewrap"))
    checks = {name: (ok, sentence) for name, ok, sentence in self_check("none")}
    assert checks["isolation"][0] is False
    assert "/var" in checks["isolation"][1]
    assert self_check("docker") == [
        ("sandbox", False, "the sandbox docker is not available in this version of EvoGit; use bubblewrap")
    ]


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
