"""The names of the files of a task, and of the tasks of the gallery."""

from __future__ import annotations

from evogit.content import content

TASK_FILE = "task.toml"
REPOSITORY_FILE = "evogit.toml"
TEMPLATES = "evogit-brief"
_TOPS = "bin box dev etc lib lib32 lib64 libx32 packages proc sbin supervisor tmp under usr"
SYSTEM = frozenset(_TOPS.split())  # what is at the top of a sandbox already


def gallery() -> list[str]:
    """The names of the tasks that come with EvoGit."""
    return sorted(file.parent.name for file in content("tasks").glob(f"*/{TASK_FILE}"))
