"""The names of the files that people write for a task."""

TASK_FILE = "task.toml"
REPOSITORY_FILE = "evogit.toml"
TEMPLATES = "evogit-brief"
