"""Walks small projects of many kinds as an engineer would, from `git clone` to a landed commit, and prints the way.

Run: `python benchmarks/walks.py [--sandbox bubblewrap] [KIND...]`. Printed are the commands, the last
lines of what they said, the time from the clone to the first gain that is proven, and the commit that lands. The model
is a script with one good idea. Projects come from `tests/small_projects.py`, their dependencies from registries.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.plain_git import git  # noqa: E402
from tests.small_projects import LOCAL, PROJECTS, SmallProject  # noqa: E402

KINDS = ("mocha", "pip", "cargo", "go", "cmake", "submodule")
"""The six that are walked unless others are named."""
LAST = 12
"""Lines of a command's output that are printed."""


class Walk:
    """One project's way; `began` is when it was cloned."""

    def __init__(self, project: SmallProject, sandbox: str, folder: Path) -> None:
        self.project = project
        self.sandbox = ("--sandbox", sandbox)
        self.folder = folder
        self.clone = folder / "clone"
        self.began = 0.0
        self.proven: float | None = None

    def walk(self) -> bool:
        """Go it; whether a commit landed."""
        self.project.make(self.folder / "origin")
        (self.folder / "reply.txt").write_text(self.project.reply())
        self.began = time.monotonic()
        self.command("git", *LOCAL, "clone", "-q", "--recurse-submodules", "origin", "clone", cwd=self.folder)
        model = ("--model", f"script:{self.folder / 'reply.txt'}", "--agents", "1", "--proposals", "1", "--yes")
        found = self.evogit("init", "--yes", "--name", "walk", *self.sandbox)
        found = found and self.evogit("run", *model, *self.sandbox)
        found = found and self.evogit("report") and self.evogit("land", "best", "--squash", "--yes", *self.sandbox)
        branches = git(self.clone, "branch", "--list", "evogit/walk/land/*", "--format=%(refname:short)").split()
        landed = found and bool(branches) and self.command("git", "merge", "-q", "--ff-only", branches[0])
        if landed:
            self.command("git", "log", "-1", "--format=%B", "--stat", lines=40)
        return landed

    def evogit(self, *arguments: str) -> bool:
        """A command of EvoGit's, as installed beside this Python."""
        return self.command(str(Path(sys.executable).with_name("evogit")), *arguments)

    def command(self, *argv: str, cwd: Path | None = None, lines: int = LAST) -> bool:
        """Run and print it; whether it exits with 0. The second candidate that is adopted is proven to be better."""
        print("$", Path(argv[0]).name, *argv[1:], flush=True)
        said, adopted = list[str](), 0
        process = subprocess.Popen(
            argv, cwd=cwd or self.clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
        )
        assert process.stdout
        for line in process.stdout:
            said.append(line.rstrip())
            adopted += " adopted " in line
            if adopted == 2 and self.proven is None:
                self.proven = time.monotonic() - self.began
        code = process.wait()
        print(
            *(f"    {line}" for line in said[-lines:]),
            *([f"    exit code {code}"] if code else []),
            sep="\n",
            flush=True,
        )
        return code == 0


def main() -> None:
    """Walk the projects that are asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(PROJECTS)}")
    parser.add_argument("--sandbox", default="bubblewrap")
    asked = parser.parse_args()
    if unknown := set(asked.kinds) - PROJECTS.keys():
        parser.error(f"expected kinds among {', '.join(PROJECTS)}, got {', '.join(sorted(unknown))}")
    projects = [PROJECTS[kind] for kind in asked.kinds or KINDS]
    results = []
    for project in projects:
        print(f"=== {project.name}, {asked.sandbox}", flush=True)
        with tempfile.TemporaryDirectory(prefix="evogit-walk-") as folder:
            walk = Walk(project, asked.sandbox, Path(folder))
            landed = walk.walk()
        proven = f"first proven gain after {walk.proven:.0f} s" if walk.proven else "no proven gain"
        took = time.monotonic() - walk.began
        results.append(f"{project.name:12} {'landed' if landed else 'DID NOT LAND'} after {took:.0f} s, {proven}")
    print(f"=== all, {asked.sandbox}", *results, sep="\n")
    sys.exit(any("NOT" in result for result in results))


if __name__ == "__main__":
    main()
