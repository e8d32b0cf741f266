"""A user stands in a stranger's clone, whose root has a file for every name that a careless child would look for."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import NOWHERE
from tests.plain_git import git
from tests.sandbox.wheels import write_wheel

from .conftest import Cli, Done

MODULES = {
    *sys.stdlib_module_names,
    *("click", "conftest", "docker", "evogit", "matplotlib", "msgspec", "numpy", "pip", "pygit2", "rich", "setuptools"),
    *("sitecustomize", "usercustomize"),
}

PACKAGES = {"asyncio", "concurrent", "encodings", "importlib", "json", "multiprocessing"}

PROGRAMS = (
    *("bwrap", "chmod", "docker", "dpkg-query", "gcc", "git", "ldconfig", "less", "mmdebstrap", "ps", "python"),
    *("python3", "rm", "setpriv", "sh", "squeue", "ssh", "ssh-keygen", "uname"),
)

FILES = {
    "pip.conf": "[global]\nindex-url = file:///nowhere\n",
    "setup.cfg": "[install]\nprefix = /nowhere\n",
    "pyvenv.cfg": "home = /nowhere\n",
    "matplotlibrc": "text.usetex: True\n",
    "value.py": "VALUE = 1\n",
}

INIT = (
    *("init", "--yes", "--name", "mine", "--goal", "More", "--editable", "value.py", "--command", "cat value.py"),
    *("--read", "score=regex:([0-9.]+)", "--maximize", "score"),
)

PIP = "[global]\nno-index = true\nfind-links = {}\n"

BUBBLEWRAP = ("--sandbox", "bubblewrap")


@dataclass
class HostileClone:
    """The clone; everything in its root leaves a canary when it is run or imported."""

    folder: Path
    canaries: Path
    cache: Path
    script: Cli
    env: Mapping[str, str]
    caches: int = field(default=0)

    def write(self) -> None:
        """Make the repository."""
        git(self.folder.parent, "init", "-q", self.folder.name)
        for name in MODULES:
            file = self.folder / (f"{name}/__init__.py" if name in PACKAGES else f"{name}.py")
            file.parent.mkdir(exist_ok=True)
            canary = f"{self.canaries}/{name}.py"
            file.write_text(f"import posix\nposix.close(posix.open({canary!r}, posix.O_CREAT | posix.O_WRONLY))\n")
        for name in PROGRAMS:
            (self.folder / name).write_text(f"#!/bin/sh\n: > {self.canaries}/{name}\nexit 1\n")
            (self.folder / name).chmod(0o755)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", "innocent")

    def trust(self) -> None:
        """Agree to what a gate may ask of a user who stands in somebody else's clone."""

    def evogit(self, *arguments: str, new_cache: bool = False) -> Done:
        """Run a command in the clone, and see that nothing of the clone's was run; with an empty cache, probes are."""
        self.caches += new_cache
        done = self.script(*arguments, cwd=self.folder, **self.env, XDG_CACHE_HOME=str(self.cache / f"{self.caches}"))
        assert sorted(each.name for each in self.canaries.iterdir()) == [], arguments
        return done

    def does(self, *arguments: str, new_cache: bool = False) -> None:
        """The same for a command that must do its work, else the attack has met nothing."""
        done = self.evogit(*arguments, new_cache=new_cache)
        assert done.code == 0, done.err


@pytest.fixture
def clone(tmp_path: Path, script: Cli) -> Iterator[HostileClone]:
    write_wheel(tmp_path / "wheels", "tiny_wheel", "ANSWER = 42\n")
    env = {
        **{"DOCKER_HOST": NOWHERE, "XDG_STATE_HOME": str(tmp_path / "state"), "MPLCONFIGDIR": str(tmp_path / "mpl")},
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    settings = tmp_path / ".config/pip/pip.conf"  # of the user, whose home this is
    settings.parent.mkdir(parents=True)
    settings.write_text(PIP.format(tmp_path / "wheels"))
    (tmp_path / "canaries").mkdir()
    with tempfile.TemporaryDirectory() as cache:
        Path(cache).chmod(0o755)  # where root's sandboxes run as another user
        made = HostileClone(tmp_path / "clone", tmp_path / "canaries", Path(cache), script, env)
        made.write()
        yield made


def begin(clone: HostileClone) -> None:
    """A task and a run of the clone's."""
    clone.does(*INIT, *BUBBLEWRAP, new_cache=True)
    toml = clone.folder / "evogit.toml"
    toml.write_text(toml.read_text().replace("[sandbox]\n", '[sandbox]\npackages = ["tiny_wheel"]\n'))
    clone.trust()
    clone.does("run", "--evaluations", "5", *BUBBLEWRAP, new_cache=True)


def test_the_canaries_sing(clone: HostileClone) -> None:
    subprocess.run([sys.executable, "-c", "import glob"], cwd=clone.folder, check=False)
    subprocess.run(["./git"], cwd=clone.folder, check=False)
    assert {each.name for each in clone.canaries.iterdir()} >= {"glob.py", "git"}


@pytest.mark.slow
def test_looking_at_the_machine_runs_nothing_of_the_clone(clone: HostileClone) -> None:
    clone.does("doctor", new_cache=True)
    clone.evogit("doctor", "--sandbox", "none", new_cache=True)
    clone.does("doctor", "build", *BUBBLEWRAP, new_cache=True)
    for line in ("tasks", "runs", "status", "adopt . ../task", "import .", "worker", "doctor", "runs", "new task"):
        clone.evogit(*line.split())


@pytest.mark.slow
def test_evaluating_runs_nothing_of_the_clone(clone: HostileClone) -> None:
    begin(clone)
    assert clone.evogit("audit", "--json", *BUBBLEWRAP).json["findings"], "each line that is printed counts"
    for line in ("check", "verify best", "check --uncommitted", "rescore --dry-run", "minimize best", "ablate best"):
        clone.does(*line.split(), *BUBBLEWRAP)
    clone.does("shell", "best", *BUBBLEWRAP, "--", "true")


@pytest.mark.slow
def test_looking_at_a_run_and_deciding_run_nothing_of_the_clone(clone: HostileClone) -> None:
    begin(clone)
    looking = """status;log;graph;show best;brief best;diff seed best;blame best value.py;best;report;decisions;runs
        report;export ../best.svg;export best ../out;land best --dry-run;fsck;gc"""
    deciding = """promote best -m good --yes;note best -m so --yes;guide more --yes;undo --yes;merge best seed --dry-run
        graft best seed --dry-run"""
    for line in f"{looking};{deciding}".replace("\n", ";").split(";"):
        clone.does(*line.split())
    git(clone.folder.parent, "init", "-q", "--bare", "server.git")
    clone.does("sync", "../server.git")
    clone.does("clean", "mine", "--all", "--yes")


@pytest.mark.slow
def test_a_bench_runs_nothing_of_the_clone(clone: HostileClone) -> None:
    words = "bench circle_packing --method evolve --evaluations 2 -n 1 -o ../bench"
    clone.does(*words.split(), *BUBBLEWRAP)
