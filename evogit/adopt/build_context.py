"""Which files of a build's context a Dockerfile means, and where they are."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from evogit.adopt.foreign_task import EXECUTABLE, PLAIN, File

MAX_RULES = 200
"""Lines of a .dockerignore that count."""
MAX_RULE_CHARS = 500


def sent(files: Mapping[str, File]) -> dict[str, File]:
    """The files of a folder that a build gets of it: those that its .dockerignore does not leave out."""
    said = files.get(".dockerignore", (b"", PLAIN))[0].decode(errors="replace").splitlines()
    rules = [line[:MAX_RULE_CHARS].strip() for line in said if line.strip() and not line.startswith("#")][:MAX_RULES]
    patterns = [(normal(f"/{rule.removeprefix('!')}").split("/")[1:], rule.startswith("!")) for rule in rules]
    return {path: file for path, file in files.items() if _is_sent(path, patterns)}


def _is_sent(path: str, patterns: Sequence[tuple[Sequence[str], bool]]) -> bool:
    """Whether the last rule that matches a path, or a folder above it, is an exception, or there is none."""
    names = path.split("/")
    told = [back for pattern, back in patterns if any(_is_match(pattern, names[:n]) for n in range(1, len(names) + 1))]
    return told[-1] if told else True


def chosen(source: str, files: Mapping[str, File]) -> Iterator[tuple[str, str, File]]:
    """Of each file that a source means: what it means, the file's path below that (empty where it is it), the file."""
    pattern = [name for name in normal(f"/{source}").split("/") if name]
    for path, file in files.items():
        names = path.split("/")
        if len(names) >= len(pattern) and _is_match(pattern, names[: len(pattern)]):
            yield "/".join(names[: len(pattern)]), "/".join(names[len(pattern) :]), file


def below(path: str, files: Mapping[str, File]) -> list[str]:
    """The files that an absolute path with wildcards means, and all below it."""
    pattern = path.split("/")
    return [each for each in files if _is_match(pattern, each.split("/")[: len(pattern)])]


def changed(said: str, mode: int) -> int:
    """The Git mode of a file after a `chmod`, of which only who may run it matters."""
    if re.fullmatch(r"[0-7]{1,8}", said):
        return EXECUTABLE if int(said, 8) & 0o100 else PLAIN
    told = re.findall(r"([-+=])[a-zA-Z]{0,8}x", said)
    return mode if not told else PLAIN if told[-1] == "-" else EXECUTABLE


def _is_match(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a pattern covers a path, both name by name: as Docker has it, with `**` for any folders."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached, default=len(names) + 1), len(names) + 1))
        else:
            plain = re.sub(r"\\(.)", r"[\1]", part).replace("[^", "[!")
            reached = {at + 1 for at in reached if at < len(names) and fnmatch.fnmatchcase(names[at], plain)}
    return len(names) in reached


def normal(path: str) -> str:
    """An absolute path without what it need not say."""
    return posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)
