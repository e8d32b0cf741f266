"""Reads files of a folder that a stranger may have made: nothing outside of it, and nothing without an end.

Git and archives keep symbolic links, so a path in such a folder may lead to any file of this machine. The folder
itself has files that its author does not have: a clone holds `.git/config` and what its user keeps there untracked.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from evogit.core import ConfigError
from evogit.credentials import is_secret_name
from evogit.text import folded_name

MAX_FILE_BYTES = 256 << 20
MAX_TEXT_BYTES = 4 << 20
"""Bytes of a file that is read as text."""
MAX_LINKS = 40
"""Links that a path may lead through, as in Linux."""
MAX_DEPTH = 100
"""Folders within each other."""
MAX_BITS = 64
"""Bits of an integer in TOML."""
MAX_LINE_CHARS = 2000
"""Characters of a line that patterns are looked for in."""
EXECUTABLE, PLAIN = 0o100755, 0o100644
"""Git modes."""
_DEEP = re.compile(
    r"(?<![\w.-])(?:(?:[\w-]{1,80}|\"[^\"\n]{0,80}\"|'[^'\n]{0,80}')[ \t]{0,40}\.[ \t]{0,40}){33}[\w\"'-]"
)
"""A dotted key whose tables are so deep that reading it takes longer than anybody waits."""
_IRREGULAR = "{}: expected a regular file, got a folder, pipe or device; remove it"


def file_at(root: Path, path: str, limit: int = MAX_FILE_BYTES, *, whole: bool = False) -> tuple[bytes, int]:
    """Read a file below a folder: its content and Git mode. Links are followed as `open_at` does.

    Raises:
        ConfigError: it leads out of the folder, is not a regular file, cannot be read or has more bytes than `limit`.
    """
    try:
        with open_at(root, path, whole=whole) as file:
            about = os.fstat(file.fileno())
            data = file.read(limit + 1) if about.st_size <= limit else b""  # it may grow meanwhile
    except OSError as error:
        raise ConfigError(f"{root / path}: cannot be read: {error.strerror}") from None
    if max(len(data), about.st_size) > limit:
        raise ConfigError(f"{root / path}: expected at most {limit:,} bytes, got more; make it smaller or remove it")
    return data, EXECUTABLE if about.st_mode & 0o100 else PLAIN


def open_at(root: Path, path: str, *, whole: bool = False) -> BinaryIO:
    """Open a file below a folder for reading.

    Links are followed as far as they stay below `root` and lead to no hidden or secret file; in a Git working tree,
    where users keep files of their own, only if the `whole` folder is read, so that a link gives nothing more away.
    Raises ConfigError: it is or leads to none that may be read, is not a regular file or cannot be opened.
    """
    try:
        file = os.fdopen(_opened(root, path, whole=whole), "rb")
    except (OSError, ValueError) as error:  # no such file, or no name that a file can have
        raise ConfigError(f"{root / path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ConfigError(_IRREGULAR.format(root / path))
    return file


def text_at(root: Path, path: str, limit: int = MAX_TEXT_BYTES) -> str:
    """Read a file below a folder as UTF-8, with a replacement for the rest. Raises ConfigError: as `file_at`."""
    return file_at(root, path, limit)[0].decode(errors="replace")


def find_text(root: Path, path: str, limit: int = MAX_TEXT_BYTES) -> str:
    """Read a file below a folder as text; return nothing if it may not be read or is not there."""
    with suppress(ConfigError):
        return text_at(root, path, limit)
    return ""


def has_file(root: Path, path: str, *, whole: bool = False) -> bool:
    """Return whether `file_at` may read the file, if it is not too long."""
    try:
        open_at(root, path, whole=whole).close()
    except ConfigError:
        return False
    return True


def walk(root: Path) -> Iterator[str]:
    """Yield the paths below a folder in order, through no link. Raises ConfigError: folders lie too deep."""
    for below, folders, files in folders_below(root):
        if folders and below.count("/") == MAX_DEPTH - 1:
            raise ConfigError(f"{root}: expected at most {MAX_DEPTH} folders within each other, got more")
        links = [name for name in folders if (root / below / name).is_symlink()]
        folders[:] = [name for name in folders if name not in links]
        yield from (below + name for name in sorted([*files, *links]))


def folders_below(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the path of each folder with a slash behind it, the folders in it and its files, as `os.walk` does.

    The root's path is empty. What lies too deep is passed over. Who iterates may take folders out.
    """
    for place, folders, files in os.walk(root):
        below = "" if Path(place) == root else f"{Path(place).relative_to(root).as_posix()}/"
        folders.sort()
        yield below, folders, sorted(files)
        if below.count("/") >= MAX_DEPTH:
            folders.clear()


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines that say something, each as far as patterns look: the longest lines are those of made files."""
    yield from (line[:MAX_LINE_CHARS] for line in text.splitlines() if line[:MAX_LINE_CHARS].strip())


def joined_lines(text: str) -> str:
    """Return what `lines_of` yields as one text."""
    return "\n".join(lines_of(text))


def toml_of(text: str) -> dict[str, Any]:
    """Read TOML that a stranger may have written.

    Raises:
        tomllib.TOMLDecodeError: it is none, its keys or brackets are too deep, or a number has too many digits.
    """
    if _DEEP.search(text):
        raise tomllib.TOMLDecodeError("its keys are too deep")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("its brackets are too deep") from None
    except ValueError as error:  # thousands of digits, or no TOML
        raise tomllib.TOMLDecodeError(str(error)) from None
    if any(isinstance(value, int) and value.bit_length() > MAX_BITS for value in _values(found)):
        raise tomllib.TOMLDecodeError("a number has too many digits")
    return found


def _values(value: object) -> Iterator[object]:
    left = [value]
    while left:
        each = left.pop()
        left += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        yield each


def _opened(root: Path, path: str, *, whole: bool) -> int:
    """Open a file for reading, one component after the other, so that no link is followed unseen.

    Raises:
        ConfigError: the path leads out of the folder, or through a link to what its author may not have.
        OSError: there is no such file.
        ValueError: no file can have this name everywhere.
    """
    path.encode()
    left, links = path.split("/")[::-1], 0
    with ExitStack() as stack:
        places = [_folder(stack, root)]
        while left:
            name = left.pop()
            if name == "..":
                if len(places) == 1:
                    raise ConfigError(_outside(root, path))
                places.pop()
            if name in ("", ".", ".."):
                continue
            mode = os.stat(name, dir_fd=places[-1], follow_symlinks=False).st_mode
            if folded_name(name) == ".git" or (links and is_secret_name(name)):
                raise ConfigError(f"{root / path}: expected a file of the folder's author, got one of this machine")
            if stat.S_ISLNK(mode):
                links += 1
                target = os.readlink(name, dir_fd=places[-1])
                if target.startswith("/"):
                    target = _below(root, path, target)
                    places = places[:1]
                _check_link(root, path, target, whole=whole)
                left += target.split("/")[::-1]
                if links > MAX_LINKS:
                    raise ConfigError(f"{root / path}: expected at most {MAX_LINKS} links, got more; remove it")
            elif any(part not in ("", ".") for part in left):
                places.append(_folder(stack, Path(name), places[-1]))
            else:
                if not stat.S_ISREG(mode):
                    raise ConfigError(_IRREGULAR.format(root / path))
                return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=places[-1])
    raise ConfigError(_IRREGULAR.format(root / path))


def _check_link(root: Path, path: str, target: str, *, whole: bool) -> None:
    """Refuse a link to what the author of a folder may not have."""
    hidden = any(name.startswith(".") and name not in (".", "..") for name in target.split("/"))
    if hidden or is_secret_name(target):
        raise ConfigError(f"{root / path}: expected no link to a hidden or secret file; put a copy in its place")
    if not whole and any(os.path.lexists(place / ".git") for place in (root.resolve(), *root.resolve().parents)):
        raise ConfigError(f"{root / path}: expected no link in a Git working tree; put a copy in its place")


def _folder(stack: ExitStack, name: Path, below: int | None = None) -> int:
    """Open a folder; below another one, not through a link."""
    follow = 0 if below is None else os.O_NOFOLLOW
    found = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | follow, dir_fd=below)
    stack.callback(os.close, found)
    return found


def _below(root: Path, path: str, target: str) -> str:
    real = f"{root.resolve()}/"
    if not target.startswith(real):
        raise ConfigError(_outside(root, path))
    return target.removeprefix(real)


def _outside(root: Path, path: str) -> str:
    return f"{root / path}: expected a file of {root}, got a link that leads out of it; put a copy in its place"
