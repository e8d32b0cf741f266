"""Modules that are imported once, for all candidates of a worker."""

from __future__ import annotations

import contextlib

import pytest

from evogit.core import SandboxError
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import provider

SOURCE = """
import sys

def threads():
    import os
    return len(os.listdir("/proc/self/task"))

def is_there(name):
    return name in sys.modules

def spoil():
    sys.modules["numpy"].pi = 3
    return sys.modules["numpy"].pi

def pi():
    import numpy
    return numpy.pi
"""
FILES = pack({"m.py": SOURCE.encode()})
BUSY = """
import pathlib, sysconfig
text = "import threading, time\\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\\n"
pathlib.Path(sysconfig.get_paths()["purelib"], "busy.py").write_text(text)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
def test_numpy_is_imported_once_without_threads(name):
    with contextlib.closing(provider(name, Environment(packages=("numpy",)))) as sandbox:
        with sandbox.open(FILES, Limits(), ("numpy",)) as session:
            assert session.call("m:is_there", b'{"args":["numpy"]}').value == b"true"
            assert session.call("m:threads", b"{}").value == b"1"
            assert session.call("m:spoil", b"{}").value == b"3"
        with sandbox.open(FILES, Limits(), ("numpy",)) as session:
            assert session.call("m:pi", b"{}").value.startswith(b"3.14159")


@pytest.mark.parametrize("name", [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
def test_a_module_that_is_not_there_is_told_in_a_sentence(name):
    with contextlib.closing(provider(name)) as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.open(FILES, Limits(), ("nmpy",))
    assert "did not start: cannot import nmpy, as sandbox.preload asks: No module" in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.docker
@pytest.mark.slow
def test_a_module_that_starts_threads_is_refused_with_a_sentence():
    environment = Environment(setup=(f"python3 -c '{BUSY}'",))
    with contextlib.closing(provider("docker", environment)) as sandbox:
        with pytest.raises(SandboxError, match=r"importing busy starts threads \(1\).*take it out of preload"):
            sandbox.open(FILES, Limits(), ("busy",))
        with sandbox.open(FILES, Limits()) as session:
            assert session.call("m:is_there", b'{"args":["busy"]}').value == b"false"
