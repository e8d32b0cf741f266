"""Files that people write: tasks, settings and limits, validated, and classes of their own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evogit.config.names import REPOSITORY_FILE, TASK_FILE, TEMPLATES, gallery
    from evogit.config.task import Task, load_repository_task, load_task

_HOMES = {
    "names": ("REPOSITORY_FILE", "TASK_FILE", "TEMPLATES", "gallery"),
    "task": ("Task", "load_repository_task", "load_task"),
}
"""Module -> what it gives to other rooms; loaded when asked for, as no command needs all of it."""

__all__ = ["REPOSITORY_FILE", "TASK_FILE", "TEMPLATES", "Task", "gallery", "load_repository_task", "load_task"]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
