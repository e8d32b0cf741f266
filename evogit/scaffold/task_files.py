"""The files that `evogit new` writes: a small real task, with comments, that `evogit check` accepts at once."""

from __future__ import annotations

from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "templates" / "task"
PLACES = {
    "task.toml": "task.toml",
    "goal.md": "goal.md",
    "seed/solution.py": "solution.py.txt",
    "evaluator/evaluate.py": "evaluate.py.txt",
    "README.md": "README.md",
}
"""Path in a task's folder -> its template."""


def files(name: str, folder: str) -> dict[str, str]:
    """Return path -> content of a new task of that name; its README reaches it as `folder`."""
    texts = {path: (TEMPLATES / place).read_text(encoding="utf-8") for path, place in PLACES.items()}
    return {path: Template(text).substitute(name=name, folder=folder) for path, text in texts.items()}
