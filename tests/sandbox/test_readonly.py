"""What programs must not change stays as it is, whatever they try, and is whole for the next one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from evogit.core import BaseFiles, Files, SandboxError
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import covered, pack
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Sandbox
from tests.sandbox.test_workers import archive

PROGRAM = """
import os, shutil, subprocess

def attempt(what):
    def path(name): return "tests/" + name
    def write(name):
        with open(path(name), "w") as file: file.write("forged")
    def replace(name):
        write("mine")
        os.replace(path("mine"), path(name))
    def swap(*names):
        for name in names:
            shutil.move(name, name + ".old")
            os.makedirs("tests/hidden", exist_ok=True)
            write("hidden/test.py")
    def link(name):
        os.rename(path(name), "elsewhere")
        os.symlink("/tmp", path(name))
    def chmod(name):
        os.chmod(path(name), 0o777)
        write(name)
    def hard(name):
        os.link(path(name), "linked")
        with open("linked", "a") as file: file.write("forged")
    ways = {
        "rewrite": lambda: write("hidden/test.py"),
        "rewrite a file": lambda: write("one_test.py"),
        "rewrite a program": lambda: write("hidden/deep/run.sh"),
        "chmod": lambda: chmod("hidden/test.py"),
        "chmod a folder": lambda: (os.chmod(path("hidden"), 0o777), write("hidden/new")),
        "remove": lambda: os.unlink(path("hidden/test.py")),
        "remove a file": lambda: os.unlink(path("one_test.py")),
        "replace": lambda: replace("hidden/test.py"),
        "replace a file": lambda: replace("one_test.py"),
        "add": lambda: write("hidden/conftest.py"),
        "add deep": lambda: write("hidden/deep/conftest.py"),
        "move the folder": lambda: link("hidden"),
        "move the folder above": lambda: swap("tests"),
        "move the whole": lambda: swap(os.getcwd()),
        "move the place": lambda: swap(os.path.dirname(os.getcwd())),
        "hard link": lambda: hard("one_test.py"),
        "hard link into a folder of ours": lambda: (os.link(path("one_test.py"), path("linked")), write("linked")),
        "truncate": lambda: os.truncate(path("one_test.py"), 0),
        "times": lambda: os.utime(path("one_test.py"), (1, 1)),
        "remount": lambda: subprocess.run(["mount", "-o", "remount,rw", path("hidden")], check=True),
        "unmount": lambda: subprocess.run(["umount", path("hidden")], check=True),
        "move and remove": lambda: (os.makedirs("x"), os.rename("tests", "x/tests")),
        "a namespace": lambda: subprocess.run(["unshare", "-Urm", "umount", path("hidden")], check=True),
        "remove all": lambda: shutil.rmtree("tests"),
    }
    try:
        ways[what]()
    except (OSError, shutil.Error, subprocess.CalledProcessError) as error:
        return type(error).__name__
    return ""

def look(top):
    found = {}
    for at, folders, names in os.walk(top):
        for name in names:
            place = os.path.join(at, name)
            found[place] = open(place).read() + " x" * os.access(place, os.X_OK)
    return found

def work(top):
    os.mkdir("tests/mine")
    for name in ("tests/mine/a", "tests/visible_test.py", "tests/b", "c"):
        with open(name, "w") as file: file.write("mine")
    os.rename("tests/b", "tests/mine/b")
    shutil.move("tests/mine/a", "moved")
    os.unlink("tests/visible_test.py")
    return sorted(os.listdir("tests/mine"))

def leave(top):
    for at in ("..", ".", "tests", "../tmp"):
        os.makedirs(at + "/left/a/b/c", exist_ok=True)
        os.symlink("/etc", at + "/left/a/link")
        os.symlink("left", at + "/beside")
        os.mkfifo(at + "/pipe")
        with open(at + "/file", "w") as file: file.write("left")
        os.chmod(at + "/file", 0)
        os.chmod(at + "/left/a/b", 0o1777)
        os.chmod(at + "/left/a", 0)
    with open("/proc/1/stat") as file:
        return file.read().split()[21]
"""
HIDDEN = {
    "tests/hidden/test.py": "hidden",
    "tests/hidden/deep/run.sh": "echo x",
    "tests/hidden/link": "-> test.py",
    "tests/one_test.py": "one",
}
BASE = BaseFiles(
    "readonly",
    archive({"m.py": PROGRAM, "tests/visible_test.py": "visible", **HIDDEN}),
    ("tests/hidden", "tests/one_test.py"),
)
SEEN = {
    "tests/hidden/test.py": "hidden",
    "tests/hidden/deep/run.sh": "echo x",
    "tests/hidden/link": "hidden",
    "tests/one_test.py": "one",
    "tests/visible_test.py": "visible",
}
READONLY = Files(pack({}), (), BASE)
ATTACKS = [line.split('"')[1] for line in PROGRAM.splitlines() if '": lambda' in line]


Jail = tuple[Sandbox, Files]


JAILS = [
    "bubblewrap",
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("runsc", marks=[pytest.mark.docker, pytest.mark.slow]),
]


@pytest.fixture(scope="module", params=JAILS)
def jail(request: pytest.FixtureRequest) -> Iterator[Jail]:
    """A provider, and files with as much read-only as it can hold: in gVisor no single file."""
    gvisor = request.param == "runsc"
    sandbox = provider("docker", Environment(runtime="runsc")) if gvisor else provider(request.param)
    folder = Files(pack({}), (), BaseFiles("folder", BASE.archive, ("tests/hidden",)))
    yield sandbox, folder if gvisor else READONLY
    sandbox.close()


def ask(sandbox: Sandbox, files: Files, *calls: tuple[str, str]) -> list[Any]:
    """What comes of each function with its argument, one after the other in one session."""
    found = []
    with sandbox.open(files, Limits()) as session:
        for function, argument in calls:
            reply = session.call(f"m:{function}", json.dumps({"args": [argument]}).encode())
            assert not reply.failure, reply.detail
            found.append(json.loads(reply.value))
    return found


def test_no_attack_changes_what_is_readonly(jail: Jail) -> None:
    sandbox, files = jail
    assert files.base
    kept = {path: text for path, text in SEEN.items() if covered(path, files.base.readonly)}
    calls = [call for attack in ATTACKS for call in (("attempt", attack), ("look", "tests"))]
    said_and_seen = ask(sandbox, files, *calls)
    for attack, said, seen in zip(ATTACKS, said_and_seen[::2], said_and_seen[1::2], strict=True):
        assert {path: seen.get(path) for path in kept} == kept, attack
        assert not [path for path in seen if path.startswith("tests/hidden/") and path not in kept], attack
        assert said or attack.startswith("hard link") or files is not READONLY, attack
    assert ask(sandbox, files, ("look", "tests")) == [SEEN]


@pytest.mark.parametrize("jail", JAILS[:2], indirect=True)
def test_the_same_attacks_succeed_where_nothing_is_readonly(jail: Jail) -> None:
    free = Files(pack({}), (), BaseFiles("free", BASE.archive))
    for attack in ("rewrite", "add", "move the folder above"):
        said, seen = ask(jail[0], free, ("attempt", attack), ("look", "tests"))
        assert (said, seen == SEEN) == ("", False), attack


@pytest.mark.parametrize("jail", JAILS[:2], indirect=True)
def test_what_is_beside_it_can_be_changed(jail: Jail) -> None:
    sandbox, files = jail
    changed = Files(archive({"tests/visible_test.py": "mine", "tests/hidden2": "x"}), (), files.base)
    with_changes = {**SEEN, "tests/visible_test.py": "mine", "tests/hidden2": "x"}
    assert ask(sandbox, changed, ("look", "tests"), ("work", "tests")) == [with_changes, ["b"]]
    assert ask(sandbox, files, ("look", "tests")) == [SEEN]


@pytest.mark.docker
def test_what_a_program_leaves_beside_it_is_removed_and_the_worker_stays() -> None:
    sandbox = provider("docker")
    left = [ask(sandbox, READONLY, ("look", "tests"), ("leave", "")) for _ in range(3)]
    assert left == [[SEEN, left[0][1]]] * 3
    sandbox.close()


@pytest.mark.docker
@pytest.mark.slow
def test_gvisor_does_not_promise_what_it_cannot_hold() -> None:
    sandbox = provider("docker", Environment(runtime="runsc"))
    with pytest.raises(SandboxError, match=r"in the place of tests/one_test.py, .*: withhold its whole folder"):
        sandbox.open(READONLY, Limits())


def test_files_that_would_replace_it_are_refused() -> None:
    sandbox = provider("bubblewrap")
    for path in ("tests", "tests/hidden", "tests/hidden/test.py", "tests/hidden/new", "tests/one_test.py/a"):
        for files in (Files(archive({path: "-> /tmp"}), (), BASE), Files(pack({}), (path,), BASE)):
            with pytest.raises(SandboxError, match="expected no change to what is read-only, got one of"):
                sandbox.open(files, Limits())


@pytest.mark.slow
def test_without_isolation_it_is_only_a_hint() -> None:
    sandbox = provider("none")
    said, seen = ask(sandbox, READONLY, ("attempt", "chmod"), ("look", "tests"))
    assert (said, seen["tests/hidden/test.py"]) == ("", "forged x")
