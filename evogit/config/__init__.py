"""Files that people write: tasks, settings and limits, validated."""

from evogit.config.task import (
    REPOSITORY_FILE,
    TASK_FILE,
    TEMPLATES,
    Task,
    find_task,
    gallery,
    load_repository_task,
    load_task,
)

__all__ = [
    "REPOSITORY_FILE",
    "TASK_FILE",
    "TEMPLATES",
    "Task",
    "find_task",
    "gallery",
    "load_repository_task",
    "load_task",
]
