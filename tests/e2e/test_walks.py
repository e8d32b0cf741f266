"""What a person does in a repository of theirs, from init to a landed improvement: in C."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import run_forked

pytestmark = pytest.mark.slow

PROJECTS = Path(__file__).parent.parent / "projects"

HIDDEN = """\
from textstats import most_common


def test_ties_are_in_alphabetical_order():
    assert most_common("c b b a a", 2) == [("a", 2), ("b", 2)]
"""
"""A test that agents do not see."""

INIT = (
    *("--goal", "Count primes faster.", "--editable", "src/*.c", "--command", "make -s test bench"),
    *("--read", r"milliseconds=regex:took ([0-9.]+) ms", "--minimize", "milliseconds"),
)
REPLIES = """\
TITLE: stop at the square root
<<<<<<< SEARCH src/primes.c
    for (unsigned d = 2; d < n; d++)
=======
    for (unsigned d = 2; d * d <= n; d++)
>>>>>>> REPLACE
%%
TITLE: odd divisors alone
<<<<<<< SEARCH src/primes.c
    if (n < 2)
        return 0;
=======
    if (n % 2 == 0)
        return n == 2;
    if (n < 2)
        return 0;
>>>>>>> REPLACE
%% does not compile
<<<<<<< SEARCH src/primes.c
    unsigned count = 0;
=======
    unsigned count = zero;
>>>>>>> REPLACE
"""
MEANWHILE = {
    "README.md": "# primes\n\nCounts primes.\n",
    "src/primes.h": "append:\n/* end */\n",
    "notes.txt": "for colleagues\n",
}
"""Commits of colleagues: the path, and its text or what is appended."""


class Person:
    """Somebody with a clone of a project, who types commands in it."""

    def __init__(self, folder: Path, project: str) -> None:
        self.clone = folder / "clone"
        kept = {name: os.environ[name] for name in ("PATH", "XDG_CACHE_HOME") if name in os.environ}
        self.environment = {**kept, "HOME": str(folder / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        (folder / "home").mkdir()
        origin = folder / "origin"
        shutil.copytree(PROJECTS / project, origin)
        if project == "python":
            hidden = origin / ".evogit" / "test_hidden.py"
            hidden.parent.mkdir()
            hidden.write_text(HIDDEN)
        (folder / "home" / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "as it was"]):
            self.run("git", *command, at=origin)
        self.run("git", "clone", "-q", str(origin), str(self.clone), at=folder)
        hook = self.clone / ".git" / "hooks" / "pre-commit"
        hook.write_text("#!/bin/sh\nexit 0\n")
        hook.chmod(0o755)

    def run(self, *command: str, at: Path | None = None, code: int = 0) -> str:
        done = subprocess.run(
            command, cwd=at or self.clone, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def git(self, *arguments: str) -> str:
        return self.run("git", *arguments)

    def evogit(self, *arguments: str, code: int = 0) -> str:
        done = run_forked(arguments, cwd=self.clone, env=self.environment)
        assert done.code == code, f"evogit {' '.join(arguments)}: {done.code}\n{done.out}\n{done.err}"
        return done.out

    def untouched(self) -> Mapping[str, object]:
        """What no run may change: status, HEAD, hooks and config."""
        git = self.clone / ".git"
        files = [git / "HEAD", git / "config", *sorted((git / "hooks").iterdir())]
        return {"status": self.git("status", "--porcelain"), **{str(file): file.read_bytes() for file in files}}

    def colleagues(self) -> None:
        for path, text in MEANWHILE.items():
            file = self.clone / path
            old = file.read_text() if text.startswith("append:") else ""
            file.write_text(old + text.removeprefix("append:"))
            self.git("add", path)
            self.git("commit", "-qm", f"work on {path}")


def test_from_init_to_a_landed_improvement(tmp_path: Path) -> None:
    person = Person(tmp_path, "c")
    person.evogit("init", *INIT, "--name", "night", "--sandbox", "bubblewrap", "--yes")
    (tmp_path / "replies").write_text(REPLIES)
    before, branches = person.untouched(), person.git("branch", "-a").splitlines()

    model = f"script:{tmp_path / 'replies'}"
    person.evogit(
        *("run", "--agent", f"editor@{model}:2", "--proposals", "9", "--seed", "2", "--sandbox", "bubblewrap", "--yes")
    )

    assert person.untouched() == before
    new = set(person.git("branch", "-a").splitlines()) - set(branches)
    assert [line.strip() for line in new] == ["evogit/night/best"]
    status = json.loads(person.evogit("status", "--json"))
    seed, best = (status[name]["metrics"]["milliseconds"] for name in ("seed", "best"))
    assert best < seed / 2
    assert "judged: inside" in person.evogit("show", "best")
    assert "seed" in person.evogit("graph", "-n", "5")
    assert "judged: inside" in person.evogit("report")

    person.colleagues()
    tip = person.git("rev-parse", "main")
    landed = json.loads(person.evogit("land", "best", "--squash", "--sandbox", "bubblewrap", "--yes", "--json"))
    assert person.git("rev-parse", "main") == tip
    person.run("sh", "-c", landed["commands"][0])

    assert person.git("rev-parse", "HEAD~1") == tip
    assert "d * d <= n" in person.git("show", "HEAD")
    assert person.git("log", "-1", "--format=%an").strip() == "Ada"
    assert MEANWHILE.keys().isdisjoint(person.git("show", "--name-only", "--format=").split())
    person.run("make", "-s", "test")
    shutil.rmtree(person.clone / "build", ignore_errors=True)

    person.evogit("rm", "night", "--yes")
    person.git("gc", "-q", "--prune=now")
    kept = person.git("rev-list", "--objects", "--all", "--reflog").split("\n")
    wanted = {line.split()[0] for line in kept if line}
    objects = person.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert set(objects) == wanted
    assert "evogit" not in person.git("for-each-ref")
    assert person.git("rev-list", "--count", "--all").strip() == "5"
