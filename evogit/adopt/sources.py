"""Reads the files of another system's task: those that count, and what its YAML says."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from evogit.adopt.foreign_task import File
from evogit.contained import file_at, find_text, folders_below, has_file
from evogit.core import ConfigError
from evogit.source.marks import END, START, blocks

LARGEST = 32 << 20
"""Bytes of files beside an evaluator, beyond which they are left out: what is larger belongs into an image."""
MAX_SOURCE_BYTES = 1 << 20  # bytes of a file that may name others
MAX_NAMED = 1000  # files of which it is looked for whether a source names them
MOST = 10_000  # files beside an evaluator
LEFT_OUT = re.compile(
    r"(^|/)(\.[^/]*|__pycache__|[^/]*_output|wandb|solution|evolved_program|venv|evogit-[^/]*)/"
    r"|(^|/)(\.(?!evogit)[^/]*|[^/]*best_program[^/]*)$"
)
"""Paths that no evaluator needs, and solutions, which no candidate may find."""
NEVER = re.compile(r"(^|/)(\.git|__pycache__)(/|$)")  # paths that are never taken, whatever a format says
UNLESS_NAMED = re.compile(
    r"(^|/)(?P<folder>outputs?|results?(_[^/]*)?|checkpoints?|logs?)/"
    r"|(^|/)(README[^/]*|LICENSE[^/]*|[^/]*(?P<ending>\.(png|jpe?g|gif|pdf|sqlite|db|log)))$"
)
"""Paths of what runs leave behind, and of what people read: left out where no source names them."""
MAX_YAML_CHARS = 1 << 18  # characters of a file; a longer one counts as empty
MAX_YAML_DEPTH = 50
MAX_YAML_NODES = 100_000  # values of a file once all aliases are replaced by what they stand for
MAX_YAML_BITS = 64  # bits of an integer
MAX_SECONDS = 30 * 24 * 3600.0
SOURCES = re.compile(r"\.(py|[rR]|rs|c|cc|cpp|cxx|h|hpp|sh|bash|jl|go|[cm]?js|ts|rb|pl|lua|java)$")
"""How names of sources end."""


def files_below(root: Path, below: str = "") -> dict[str, File]:
    """Path -> file of all that an evaluator may need of a task's folder, or of one `below` it.

    Files that are too large and those that runs left behind are passed over.
    """
    names = list(_walk(root, below, LEFT_OUT))
    folder, room = (root / below).resolve(), [MAX_NAMED]
    sources = "\n".join(find_text(folder, name, MAX_SOURCE_BYTES) for name in names if not UNLESS_NAMED.search(name))
    return _fitting(folder, [name for name in names if _is_meant(name, sources, room)])


def all_below(root: Path, below: str = "") -> dict[str, File]:
    """Path -> file of all in a task's folder, or in one `below` it, as far as it is not too large."""
    return _fitting((root / below).resolve(), _walk(root, below, NEVER))


def too_large(root: Path, files: Mapping[str, File], below: str = "", *, whole: bool = False) -> tuple[str, ...]:
    """Return a note if files are not among those taken, as they are too large; of the `whole` folder if all count."""
    names = [name for name in _walk(root, below, NEVER if whole else LEFT_OUT) if name not in files]
    missing = [name for name in names if whole or not UNLESS_NAMED.search(name)]
    if not missing:
        return ()
    named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return (f"{named}: left out, as no more than {LARGEST >> 20} MB and {MOST} files come along with a task",)


def _fitting(folder: Path, names: Iterable[str]) -> dict[str, File]:
    """The files of these that there is room for."""
    files: dict[str, File] = {}
    room = LARGEST
    for name in names:
        if len(files) < MOST:
            with suppress(ConfigError):  # it is larger than the room that is left
                files[name] = file_at(folder, name, room)
                room -= len(files[name][0])
    return files


def _is_meant(name: str, sources: str, room: list[int]) -> bool:
    """Return whether an evaluator may need the file; `room` limits the files that are searched for."""
    match = UNLESS_NAMED.search(name)
    if match is None or room[0] <= 0:
        return match is None
    room[0] -= 1
    words = match["folder"] or match["ending"], name.rpartition("/")[2]
    return any(word in sources and re.search(rf"(?<![\w-]){re.escape(word)}(?!\w)", sources) for word in words if word)


def _walk(root: Path, inside: str, without: re.Pattern[str]) -> Iterator[str]:
    """Yield the paths of what is not left out, in order; links that may not be followed are passed over.

    Nothing is below a folder that is hidden, or that a link stands for.
    """
    folder, top = (root / inside).resolve(), root.resolve()
    if folder != Path(os.path.normpath(top / inside)) or not folder.is_relative_to(top):
        return
    if any(name.startswith(".") for name in folder.relative_to(top).parts):
        return
    for below, folders, files in folders_below(folder):
        folders[:] = [name for name in folders if not without.search(f"{below}{name}/")]
        names = (below + name for name in files)
        yield from (name for name in names if not without.search(name) and has_file(folder, name))


def marked(seed: Mapping[str, File]) -> str:
    """A sentence for agents where a seed marks what may change; empty where it does not."""
    if any(blocks(data) for data, _ in seed.values()):
        return f"Only what stands between the lines with {START} and {END} may change; leave these lines in place."
    return ""


# --- YAML ---------------------------------------------------------------------------------------------------------


def read_yaml(text: str) -> dict[str, Any]:
    """The mapping that a file holds; empty where it holds none, is not well formed, or is beyond the bounds."""
    import yaml  # 20 ms that only tasks of other systems need

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_YAML_CHARS:
        return {}
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_YAML_DEPTH:
                return {}
        root = yaml.compose(text, Loader=loader)
        value = yaml.load(text, Loader=loader) if root and _size(root, {}) <= MAX_YAML_NODES else None  # noqa: S506 - safe
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError):  # ValueError: a date or number that there is
        # not; AttributeError: a text that says that it is a date (PyYAML 6)
        return {}
    return plain if isinstance(plain := _plain(value), dict) else {}


def _plain(value: Any) -> Any:
    """The same as JSON may say it; a key that is no text is left out."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if isinstance(key, str)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, date):
        return str(value)
    is_small = isinstance(value, int) and value.bit_length() <= MAX_YAML_BITS
    return value if is_small or isinstance(value, str | float) else None


def _size(node: Any, sizes: dict[int, float]) -> float:
    """Values in a node once aliases are replaced; infinite for one that holds itself."""
    if id(node) not in sizes:
        sizes[id(node)] = math.inf
        sizes[id(node)] = 1 + sum(_size(each, sizes) for each in _inner(node))
    return sizes[id(node)]


def _inner(node: Any) -> Iterator[Any]:
    values = node.value if isinstance(node.value, list) else ()
    for each in values:
        yield from each if isinstance(each, tuple) else (each,)


def at(values: Any, *keys: str) -> Any:
    """Return the value at this path of nested mappings; None if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def seconds(value: object, default: float) -> float:
    """A time that a file says, if it is one that can be waited for."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value <= MAX_SECONDS else default  # type: ignore[operator, arg-type]
