"""A person's own repository with a run in it, written as an engine would, for tests of what people do with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evogit.config import Task, load_repository_task
from evogit.testing import RecordedRun
from tests.plain_git import git

TOML = """\
name = "own"
goal = "Bring VALUE up."
editable = ["src/**"]
withheld = ["hidden/**"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = ".evogit/evaluate.py"
splits = ["train", "holdout"]
[sandbox]
timeout = "60s"
"""

EVALUATE = """\
from evogit import Case

def evaluate(program, split):
    yield Case(split, score=float(program.call("src.main:value", returns=int).value))
"""

FILES = {
    "evogit.toml": TOML,
    ".evogit/evaluate.py": EVALUATE,
    "src/__init__.py": "",
    "src/main.py": "VALUE = 1\n\n\n\n\n\ndef value():\n    return VALUE\n",
    "README.md": "A program.\n",
    "hidden/case.txt": "1\n",
}


class Own(RecordedRun):
    """`main` is checked out at the seed; `add` makes candidates by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.task: Task = load_repository_task(folder)
        super().__init__(
            folder,
            "own",
            task="own",
            task_digest=self.task.digest,
            metrics=self.task.metrics,
            evaluator=self.task.evaluator_digest,
            population="refs/evogit/own/agents/",
            editable=self.task.editable,
            withheld=self.task.withheld,
        )

    @property
    def seed(self) -> str:
        return self.history.seed or ""

    @classmethod
    def make(cls, folder: Path) -> Own:
        """A new one; copies of its folder are as good."""
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "config", "user.name", "Ada")
        git(folder, "config", "user.email", "ada@example.org")
        seed = save(folder, "start", FILES)
        own = cls(folder)
        own._take_in(seed, (), 1.0)
        return own

    def git(self, *arguments: str) -> str:
        return git(self.folder, *arguments).strip()

    def save(self, title: str, files: Mapping[str, str]) -> str:
        """A commit of the person's on what is checked out."""
        return save(self.folder, title, files)

    def add(self, value: float, *parents: str, files: Mapping[str, str], title: str = "better") -> str:
        """A candidate of agent a1, and its individual."""
        commit = self.commit({path: text.encode() for path, text in files.items()}, *parents, title=title)
        self._take_in(commit, parents, value, title)
        self.adopt(commit)
        return commit

    def _take_in(self, commit: str, parents: tuple[str, ...], value: float, title: str = "") -> None:
        self.journal.keep({}, commit)
        self.propose(*parents, candidate=commit, tree=self.repository.tree_of(commit), title=title)
        self.evaluate(commit, value, evaluator=self.task.evaluator_digest)


def save(folder: Path, title: str, files: Mapping[str, str]) -> str:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", title)
    return git(folder, "rev-parse", "HEAD").strip()


def main(value: int, tail: str = "") -> dict[str, str]:
    """The program with another value."""
    return {"src/main.py": FILES["src/main.py"].replace("VALUE = 1", f"VALUE = {value}") + tail}
