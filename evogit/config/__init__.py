"""Files that people write: tasks, settings and limits, validated, and classes of their own.

A folder goes in, a `Task` or `Settings` comes out, or a ConfigError that lists all mistakes. Start with `task.py`.
"""

from typing import TYPE_CHECKING

from evogit.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from evogit.config.names import REPOSITORY_FILE, TASK_FILE, TEMPLATES, gallery
    from evogit.config.task import Task, load_repository_task, load_task

__getattr__ = lazy_exports(
    __name__,
    {
        "names": ["REPOSITORY_FILE", "TASK_FILE", "TEMPLATES", "gallery"],
        "task": ["Task", "load_repository_task", "load_task"],
    },
)
