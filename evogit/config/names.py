"""The names of the files that people write for a task, of the folder for what they do not, and of the tasks here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evogit.content import content

TASK_FILE = "task.toml"
REPOSITORY_FILE = "evogit.toml"
TEMPLATES = "evogit-brief"
_TOPS = "bin box dev etc lib lib32 lib64 libx32 packages proc sbin supervisor tmp under usr"
SYSTEM = frozenset(_TOPS.split())
"""What is at the top of a sandbox already."""


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where a person's own files are that are no settings: evogit/ in $XDG_STATE_HOME, else in ~/.local/state."""
    named = Path(environ.get("XDG_STATE_HOME", ""))
    home = Path(environ.get("HOME", "~")).expanduser()
    return (named if named.is_absolute() else home / ".local" / "state") / "evogit"


def gallery() -> list[str]:
    """The names of the tasks that come with EvoGit."""
    return sorted(file.parent.name for file in content("tasks").glob(f"*/{TASK_FILE}"))
