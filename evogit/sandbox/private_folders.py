"""Folders of people that may lie below what sandboxes have of the host, and that no program may read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from evogit.core import SandboxError
from evogit.sandbox.cache import cache_folder

SOURCES = ("/usr/src", "/usr/local/src")
"""Where projects are put, which no program needs."""
MAX_POINTER_CHARS = 8192
"""Of a `.git` file, which names a folder."""
SYSTEM = ("/usr/bin", "/usr/lib")
"""What no program runs without."""


def projects(places: Iterable[Path]) -> Iterator[Path]:
    """These folders, and the repositories that they lie in: the tops of their trees, and what Git keeps of them."""
    for place in {Path.resolve(each) for each in places}:
        yield place
        for top in (place, *place.parents):
            marker = top / ".git"
            if os.path.exists(marker):  # noqa: PTH110 - a folder above may be closed to us
                yield top
                yield from _git_folders(marker)
                break


def _git_folders(marker: Path) -> Iterator[Path]:
    """Where `.git` is a file, it names the folder, which lies in or beside the common one."""
    if marker.is_file():
        with marker.open(errors="replace") as file:
            named = file.read(MAX_POINTER_CHARS).partition("gitdir:")[2].strip()
        folder = (marker.parent / named).resolve()
        yield folder
        if folder.parent.name == "worktrees":
            yield folder.parent.parent


def persons(environ: Mapping[str, str]) -> Iterator[Path]:
    """A person's own: home, settings, state and caches."""
    yield cache_folder().resolve()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        if folder := environ.get(name):
            yield Path(folder).resolve()
    if named := environ.get("EVOGIT_SETTINGS"):
        yield Path(named).resolve().parent


def covered(
    roots: Iterable[Path], private: Iterable[Path], own: Iterable[Path], prefix: Path, *, privileged: bool
) -> list[Path]:
    """Folders to be covered below the `roots` that sandboxes have of the host; none lies below another.

    Args:
        roots: what programs can read otherwise.
        private: projects, which must be kept apart.
        own: what is to be covered where it lies below a root, but may as well hold one, as a home may be `/`.
        prefix: of the sandbox's interpreter.
        privileged: whether programs are another user than ours, who cannot enter what is not open to all.

    Raises:
        SandboxError: a project holds what every program needs.
    """
    roots, private, system = list(roots), list(private), [Path(each) for each in SYSTEM]
    for folder in private:
        held = [each for each in system if each.is_relative_to(folder)] or [prefix] * (folder == prefix)
        if held and (folder / ".git").exists():
            raise SandboxError(
                f"bubblewrap cannot keep {folder} from programs, which need {held[0]}; "
                "move the repository to a folder of its own, or use --sandbox docker"
            )
    hidden = {each for each in private if each != prefix} | {each for each in own if not prefix.is_relative_to(each)}
    reached = [
        each
        for each in sorted(hidden)
        if any(each.is_relative_to(root) for root in roots)
        and os.path.isdir(each)  # noqa: PTH112 - what we may not look at is not there for programs either
        and not any(part.is_relative_to(each) for part in system)
        and not (privileged and _closed(each))
    ]
    return [each for each in reached if not any(other in each.parents for other in reached)]


def _closed(folder: Path) -> bool:
    """Whether other users than its owner cannot get there."""
    return any(not os.stat(above).st_mode & 0o001 for above in folder.parents)  # noqa: PTH116 - as fast as can be
