"""Finds the task that a person means: of the gallery, a folder of their own, or one of another system's."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from evogit.adopt.foreign_task import ForeignTask, Format
from evogit.adopt.harbor import steps
from evogit.config import REPOSITORY_FILE, TASK_FILE, Task, gallery, load_repository_task, load_task
from evogit.config.values import nearest
from evogit.content import content
from evogit.core import ConfigError, NotFoundError
from evogit.lazy_exports import gathered
from evogit.trust import Trust

logger = logging.getLogger(__name__)


def formats() -> list[Format]:
    """Return the formats of other systems; the first one that reads a task is its format."""
    return sorted(gathered("evogit.adopt", "FORMATS"), key=lambda known: known.rank)


def find_task(name_or_path: str) -> Task:
    """The task of the gallery with this name, or the one in this folder, whose ever format it is in.

    Raises:
        ConfigError: when its file is wrong.
        NotFoundError: when there is neither, with the nearest names and what was looked for.
    """
    path = Path(name_or_path)
    trust = Trust.of_user()
    if name_or_path in (names := gallery()):
        if path.is_dir() and _is_task(path):
            logger.warning("%s is the task that comes along; the one in the folder here is ./%s", path, path)
        return load_task(content("tasks") / name_or_path)
    if (path / TASK_FILE).is_file() and not _is_foreign(path / TASK_FILE):
        return replace(load_task(path), untrusted=None if trust.covers(path, "task") else path)
    if (path / REPOSITORY_FILE).is_file():
        return replace(load_repository_task(path), untrusted=None if trust.covers(path, "repository") else path)
    if found := recognise(path):
        for note in found.notes:
            logger.warning("%s: %s", found.name, note)
        return replace(load_task(found.kept()), untrusted=None if trust.covers(path) else path)
    if path.exists():
        raise unknown(path)
    raise NotFoundError(
        f"no task {name_or_path}; expected a folder with one or a name from `evogit tasks`; {nearest(path.name, names)}"
    )


def unknown(path: Path) -> NotFoundError:
    """The error for a path that is in no known format."""
    if not path.exists():
        return NotFoundError(f"there is no {path}")
    if names := steps(path):
        return NotFoundError(
            f"{path} is a Harbor task of {len(names)} steps ({', '.join(names)}), each of which begins with what the "
            "one before it leaves; such tasks are not supported"
        )
    what = "\n".join(
        f"  {expected}" for expected in (TASK_FILE, REPOSITORY_FILE, *(known.expected for known in formats()))
    )
    below = [str(each) for each in sorted(path.iterdir()) if each.is_dir() and _is_task(each)] if path.is_dir() else []
    perhaps = f"\nperhaps you mean {', '.join(below[:5])}" if below else ""
    reasons = (known.lacking(path) for known in formats())
    lacks = "".join(f"; {reason}" for reason in reasons if reason)
    return NotFoundError(
        f"{path} has no task.toml or evogit.toml, nor what another format needs{lacks}; looked for\n{what}\n"
        "`evogit new NAME` makes a task folder; `evogit new NAME --from PATH --model MODEL` lets a model write one; "
        f"`evogit init --editable FILE --command COMMAND --read NAME=regex:PATTERN` takes a command{perhaps}"
    )


def recognise(path: Path) -> ForeignTask | None:
    """The task of another system at a path, None where it is in no known format.

    Raises:
        ConfigError: a file that it names is none of its folder's.
    """
    if not path.exists():
        return None
    place = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    return next(filter(None, (known.read(place) for known in formats())), None)


def _is_task(path: Path) -> bool:
    """Return whether there is a task of another system that can be read."""
    with suppress(ConfigError):
        return recognise(path) is not None
    return False


def _is_foreign(file: Path) -> bool:
    """Whether a task.toml is not ours: Harbor calls its file the same."""
    return (file.parent / "instruction.md").is_file() or bool(steps(file.parent))
