"""Packages for sandboxes: real pip, wheels made by hand."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.cache import cache_folder, locked
from evogit.sandbox.packages import Platform, Progress, digest_of, lease, packages_folder, remove_folders

from .wheels import only_from, write_wheel

HERE = sys.version_info[:2]
TINY = Environment(packages=("tiny_wheel", "apt:gcc"))
BUILDING = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
DEBIAN = Platform(version=(3, 11), machine="x86_64", libc="glibc 2.36")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and an index of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_wheel(tmp_path / "wheels", "tiny_wheel", "ANSWER = 42\n")
    only_from(tmp_path / "wheels", monkeypatch)
    return tmp_path / "cache" / "evogit"


@pytest.mark.slow
def test_a_folder_is_made_once_named_by_its_content_and_kept_while_it_is_used(cache: Path, tmp_path, monkeypatch):
    said: list[str] = []
    folder = packages_folder(TINY, HERE, say=said.append)
    assert folder
    first, last = said
    assert "installing tiny_wheel" in first
    assert re.search(r"installed 1 package, [\d.]+ MB", last)
    (tmp_path / "wheels" / "tiny_wheel-1.0-py3-none-any.whl").unlink()
    assert packages_folder(TINY, HERE, say=said.append) == folder
    assert len(said) == 2
    assert folder.parent == cache / "packages"
    assert folder.name == digest_of(folder)
    assert not (folder / "bin").exists()  # its first line would be this machine's Python
    assert all(path.stat().st_mode & 0o004 and path.stat().st_mtime == 0 for path in (folder, *folder.rglob("*")))
    command = [sys.executable, "-I", "-c", "import sys; sys.path.append(sys.argv[1]); import tiny_wheel as t; print(t)"]
    assert str(folder) in subprocess.run([*command, folder], capture_output=True, text=True, check=True).stdout
    check_that_clean_leaves_what_is_needed_or_in_use(folder, tmp_path)
    write_wheel(tmp_path / "wheels", "tiny_wheel", "ANSWER = 43\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    other = packages_folder(TINY, HERE)
    assert other
    assert other.name != folder.name


@pytest.mark.slow
def test_a_dependency_that_would_be_built_is_not(tmp_path: Path) -> None:
    """pip builds what a wheel names by its address, `--only-binary` or not."""
    sources, canary = tmp_path / "sources", tmp_path / "canary"
    sources.mkdir()
    (sources / "pyproject.toml").write_text(BUILDING)
    (sources / "backend.py").write_text(f"open({str(canary)!r}, 'w')\n")
    write_wheel(tmp_path / "wheels", "needy", "", needs=f"sources @ {sources.as_uri()}")
    with pytest.raises(SandboxError, match="pip cannot get"):
        packages_folder(Environment(packages=("needy",)), HERE)
    assert not canary.exists()
    plain = [sys.executable, "-m", "pip", "install", "--target", tmp_path / "site", "--only-binary=:all:", "needy"]
    subprocess.run(plain, capture_output=True, check=False)
    assert canary.exists()


@pytest.mark.slow
def test_a_module_that_was_just_unpacked_is_not_pips_own(tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "compileall", f"open({str(tmp_path / 'canary')!r}, 'w')\n")
    write_wheel(tmp_path / "wheels", "glob", f"open({str(tmp_path / 'canary')!r}, 'w')\n")
    folder = packages_folder(Environment(packages=("compileall", "glob")), HERE)
    assert folder
    assert (folder / "glob.py").exists()
    assert not (tmp_path / "canary").exists()


def check_that_clean_leaves_what_is_needed_or_in_use(folder: Path, tmp_path: Path) -> None:
    """And that equal packages have equal digests, as what was removed is made again."""
    write_wheel(tmp_path / "wheels", "other", "")
    write_wheel(tmp_path / "wheels", "tiny_wheel", "ANSWER = 42\n")
    other = Environment(packages=("other",))
    with lease(folder):
        assert list(remove_folders([])) == []
    again = packages_folder(TINY, HERE)
    assert again == folder
    assert list(remove_folders([Environment(), other, TINY])) == []
    [(name, size)] = remove_folders([other])
    assert name == folder.name
    assert size > 0
    assert not folder.exists()


@pytest.mark.slow
def test_wheels_must_fit_the_image_not_this_machine(tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "elsewhere", "", platform="manylinux_2_17_aarch64")
    environment = Environment(packages=("elsewhere",))
    arm = Platform(version=(3, 12), machine="aarch64", libc="glibc 2.28")
    assert packages_folder(environment, (3, 12), platform=arm)
    for platform in (DEBIAN, Platform(version=(3, 12), machine="aarch64", libc="musl")):
        with pytest.raises(SandboxError, match=r"pip cannot get sandbox.packages \(elsewhere\) as wheels"):
            packages_folder(environment, (3, 12), platform=platform)


@pytest.mark.slow
def test_nothing_is_built_here(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with tarfile.open(tmp_path / "wheels" / "sourced-1.0.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "setup.py", "sourced-1.0/setup.py")
    with pytest.raises(SandboxError, match="No matching distribution found for sourced"):
        packages_folder(Environment(packages=("sourced",)), HERE)
    assert not (tmp_path / "ran").exists()


INSTALL = """
import sys
from evogit.sandbox import Environment
from evogit.sandbox.packages import packages_folder
packages_folder(Environment(packages=("slow",)), sys.version_info[:2])
"""


@pytest.mark.slow
def test_pip_ends_with_a_killed_installation_whose_rest_the_next_one_removes(cache: Path, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as index:  # an index that never answers
        monkeypatch.setenv("PIP_NO_INDEX", "0")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index.getsockname()[1]}/simple")
        installer = subprocess.Popen([sys.executable, "-P", "-c", INSTALL])
        asking, _ = index.accept()
        with asking:
            assert asking.recv(1)
            [folder] = (cache / "packages").glob(".new-*")
            (folder / "site" / "half").write_bytes(bytes(1000))
            only_from(tmp_path / "wheels", monkeypatch)
            assert packages_folder(TINY, HERE)
            assert folder.exists(), "an installation that goes on is left alone"
            installer.send_signal(signal.SIGKILL)
            installer.wait()
            asking.settimeout(60)
            while asking.recv(1 << 16):  # pip's end of the connection is closed with its process
                pass
    said: list[str] = []
    assert packages_folder(TINY, HERE, say=said.append)
    assert [*(cache / "packages").glob(".new-*")] == []
    assert len(said) == 1


def test_leftovers_go_with_what_no_task_needs(cache: Path) -> None:
    assert packages_folder(Environment(packages=("apt:gcc",)), HERE) is None
    assert not cache.exists()
    (cache / "packages" / ".new-abc" / "site").mkdir(parents=True)
    (cache / "packages" / ".new-abc" / "site" / "half").write_bytes(bytes(1000))
    assert list(remove_folders([])) == [(".new-abc", 1000)]
    assert list(remove_folders([])) == []


def test_a_disk_is_not_filled(cache: Path) -> None:
    with pytest.raises(SandboxError, match=r"no room to install tiny_wheel: .* free .*evogit clean.*XDG_CACHE_HOME"):
        packages_folder(TINY, HERE, free=1 << 60)
    assert [*(cache / "packages").glob(".new-*")] == []


def test_what_is_large_is_named_before_it_comes() -> None:
    said: list[str] = []
    progress = Progress(said.append, free=0, gpus=False)
    for line in (
        "  Downloading http://somewhere/simple/torch-2.5.1-cp311-cp311-manylinux1_x86_64.whl (906.4 MB)",
        "Downloading tiny-1.0-py3-none-any.whl (12 kB)",
        "Downloading big-1.0-py3-none-any.whl.metadata (906.4 MB)",
        "  Using cached nvidia_cublas-12.4-py3-none-manylinux2014_x86_64.whl (1.4 GB)",
    ):
        progress.read(line)
    assert ["torch-2.5.1" in said[0], "0.9 GB" in said[0]] == [True, True]
    assert ["nvidia_cublas" in said[1], "1.4 GB" in said[1], "2.3 GB so far" in said[1]] == [True, True, True]
    assert len(said) == 2
    for gpus in (False, True):  # torch brings what no sandbox without a GPU uses
        said.clear()
        Progress(said.append, free=0, gpus=gpus).begin(["numpy", "torch>=2"], DEBIAN)
        assert any("PyTorch" in text for text in said) != gpus


def test_only_names_are_packages_and_a_cache_must_be_writable(tmp_path: Path, monkeypatch) -> None:
    for name in ("./here", "--index-url=x", "a @ git+https://b/c", "a/b", "", "-r x"):
        with pytest.raises(SandboxError, match="expected sandbox.packages to name packages"):
            packages_folder(Environment(packages=(name,)), HERE)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SandboxError, match=r"cannot keep sandbox.packages in .*XDG_CACHE_HOME"):
        packages_folder(TINY, HERE)


def test_the_second_process_waits_and_says_so() -> None:
    said, entered = threading.Event(), threading.Event()

    def second() -> None:
        with locked("x", lambda _: said.set()):
            entered.set()

    thread = threading.Thread(target=second)
    with locked("x", pytest.fail):
        thread.start()
        assert said.wait(10)
        assert not entered.wait(0.05)
    thread.join()
    assert entered.is_set()


def test_the_cache_of_root_is_not_in_its_home(monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    at_home = cache_folder().is_relative_to(Path.home())
    assert at_home == (os.geteuid() != 0)
