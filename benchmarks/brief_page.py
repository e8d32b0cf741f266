"""Writes docs/briefs.md: briefs of real runs, for readers to judge.

Run: `python benchmarks/brief_page.py > docs/briefs.md`. Two runs through the command line, in sandboxes: the shipped
task circle_packing with mutators, and a part of EvoGit's own source with an editor whose scripted model asks to READ,
breaks a test, and proposes what changes nothing. Figures of time differ each time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from evogit.text import fence  # noqa: E402

EVOGIT = [sys.executable, "-c", "from evogit.cli import main; main()"]

PROJECT = """
name = "outline"
goal = "Make outline() in source/outline.py faster; what it returns must stay the same. Look at _opened() first."
editable = ["source/*.py"]
[metrics.cpu]
direction = "minimize"
[evaluator]
kind = "command"
repeats = 2
command = "python3 -m unittest -q && python3 bench.py"
read = { cpu = "json" }
[sandbox]
packages = ["msgspec"]
"""

BENCH = """
import cProfile, json, pathlib, pstats, time
from source.outline import _parts

lines = [line for file in sorted(pathlib.Path("source").glob("*.py")) for line in file.read_text().split("\\n")] * 10
started = time.process_time()
list(_parts(lines))
took = time.process_time() - started
profile = cProfile.Profile()
profile.runcall(lambda: list(_parts(lines)))
slowest = sorted(pstats.Stats(profile).stats.items(), key=lambda known: -known[1][2])
for (file, line, name), (_, calls, own, *_) in slowest[:5]:
    print(f"{own:.3f} s in {name}, {pathlib.Path(file).name}:{line}, {calls} calls")
print(json.dumps({"cpu": took}))
"""

TEST = """
import unittest
from source.outline import outline

class Outline(unittest.TestCase):
    def test_methods_stand_inside_of_their_class(self):
        parts = outline("class A:\\n    def b(self):\\n        pass\\n")
        self.assertEqual([(part.name, part.depth) for part in parts], [("A", 0), ("b", 1)])
"""

REPLIES = """%% asks first
I have to see how definitions are told apart elsewhere.

<<<<<<< READ source/definitions.py:statements
<<<<<<< READ source/pieces.py:40-60
%% breaks a test
The indentation need not be counted where a line begins with a letter.

TITLE: take all lines for unindented

<<<<<<< SEARCH source/outline.py
        indent = len(line) - len(line.lstrip())
        while stack and _ends(stack[-1], indent, stripped):
=======
        indent = 0
        while stack and _ends(stack[-1], indent, stripped):
>>>>>>> REPLACE
%% changes nothing that counts
More outlines are remembered.

TITLE: remember four times as many outlines

<<<<<<< SEARCH source/outline.py
@lru_cache(maxsize=256)
=======
@lru_cache(maxsize=1024)
>>>>>>> REPLACE
%% is better
Most lines cannot begin a definition: their first character tells.

TITLE: look at the first character before any pattern

<<<<<<< SEARCH source/outline.py
    line = lines[number - 1][:LONGEST_HEAD]
=======
    line = lines[number - 1][:LONGEST_HEAD]
    if not (line[indent : indent + 1].isalpha() or line[indent : indent + 1] in "_$*&~"):
        return []
>>>>>>> REPLACE
"""

HEAD = """# Briefs to read

What an editor is told, for you to judge: could you improve the code with it? Made by `python benchmarks/brief_page.py`
from two runs; what a brief is made of and why is in [the design notes](design/agents.md), what it costs in
[the results](results.md#what-a-paid-call-is-told). `evogit brief [REV]` shows one of your own.
"""


def evogit(folder: Path, *arguments: str) -> str:
    """What a command prints."""
    done = subprocess.run([*EVOGIT, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"evogit {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout


def packing(folder: Path) -> Path:
    """A repository in which mutators packed circles for a while."""
    evogit(folder, "run", "circle_packing", "--agent", "mutator:2", "--evaluations", "40", "--yes", "--deterministic")
    return folder / "evogit-circle_packing"


def project(folder: Path) -> Path:
    """A repository of some of EvoGit's own code, in which a scripted editor made a few moves."""
    repository = folder / "project"
    shutil.copytree(ROOT / "evogit" / "source", repository / "source", ignore=shutil.ignore_patterns("__pycache__"))
    (repository / "source" / "__init__.py").write_text("")
    for name, text in {"evogit.toml": PROJECT, "bench.py": BENCH, "test_outline.py": TEST}.items():
        (repository / name).write_text(text.lstrip())
    (folder / "replies").write_text(REPLIES)
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begin"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    model = f"editor@script:{folder / 'replies'}:1"
    evogit(repository, "run", "--agent", model, "--proposals", "4", "--yes", "--selector", "sequential")
    return repository


def brief(repository: Path, rev: str) -> dict[str, Any]:
    """What an editor would be told of a candidate."""
    told: dict[str, Any] = json.loads(evogit(repository, "brief", rev, "--json"))
    return told


def page(told: dict[str, Any], title: str, about: str) -> str:
    """A brief under a heading, with the tokens of its sections."""
    tokens = told["tokens"]
    table = "\n".join(f"| {heading} | {count:,} |" for heading, count in tokens.items())
    total = f"| **in all** | **{sum(tokens.values()):,}** |"
    text = fence("".join(told["sections"]).rstrip(), "markdown")
    return f"## {title}\n\n{about}\n\n| section | tokens |\n|---|---:|\n{table}\n{total}\n\n{text}\n"


def main() -> None:
    """Make the runs, and print the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        circles, own = packing(folder), project(folder)
        briefs = [
            page(brief(circles, "best"), "The best of a small program", "One file, shown whole."),
            page(
                brief(circles, "seed"),
                "The seed of the same run",
                "The parent is not the best, so the best's code is told too, as a patch.",
            ),
            page(
                brief(own, "seed"),
                "A file among larger ones",
                "What the goal and the profile name is shown, and a map of the rest. One move asked to READ, one broke "
                "a test, one made\nno difference, one was better.",
            ),
        ]
        rules = f"## The rules, before each brief\n\n{fence(brief(circles, 'best')['rules'].rstrip(), 'markdown')}\n"
    print("\n".join([HEAD, *briefs, rules]), end="")


if __name__ == "__main__":
    main()
