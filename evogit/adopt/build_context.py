"""Which files of a build's context a Dockerfile means, and where they are."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from evogit.adopt.foreign_task import EXECUTABLE, PLAIN, File


def sent(files: Mapping[str, File]) -> dict[str, File]:
    """The files of a folder that a build gets of it: those that its .dockerignore does not leave out."""
    said = files.get(".dockerignore", (b"", 0))[0].decode(errors="replace").splitlines()
    rules = [line.strip() for line in said if line.strip() and not line.startswith("#")]
    patterns = [(_glob(normal(f"/{rule.removeprefix('!')}")[1:]), rule.startswith("!")) for rule in rules]
    return {path: file for path, file in files.items() if _is_sent(path, patterns)}


def _is_sent(path: str, patterns: Sequence[tuple[re.Pattern[str], bool]]) -> bool:
    """Whether the last rule that matches a path, or a folder above it, is an exception, or there is none."""
    above = [path, *(path[: match.start()] for match in re.finditer("/", path))]
    told = [back for pattern, back in patterns if any(pattern.fullmatch(each) for each in above)]
    return told[-1] if told else True


def chosen(
    source: str, files: Mapping[str, File], options: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, File]]:
    """Of each file that a source means: what it means, the file's path below that (empty where it is it), the file."""
    whole = normal(f"/{source}")[1:]
    levels = whole.count("/") + 1 if whole else 0
    pattern, without = _glob(whole), [_glob(value) for name, value in options if name == "exclude"]
    above = re.fullmatch(r"(?:(.*)/\./)?.*", source)
    pivot = normal(f"/{above[1] or ''}")[1:] if above else ""
    for path, file in files.items():
        parts = path.split("/")
        meant, below = "/".join(parts[:levels]), "/".join(parts[levels:])
        if len(parts) < levels or not pattern.fullmatch(meant):
            continue
        inner = (below or parts[-1]).split("/")
        if not any(each.fullmatch("/".join(inner[:count])) for each in without for count in range(1, len(inner) + 1)):
            yield meant, (posixpath.relpath(path, pivot or ".") if ("parents", "") in options else below), file


def changed(said: str, mode: int) -> int:
    """The Git mode of a file after a `chmod`, of which only who may run it matters; 0, where there is none, stays."""
    if not mode:
        return mode
    if re.fullmatch(r"[0-7]+", said):
        return EXECUTABLE if int(said, 8) & 0o100 else PLAIN
    told = re.findall(r"([-+=])\w*x", said)
    return mode if not told else PLAIN if told[-1] == "-" else EXECUTABLE


def named(path: str, files: Mapping[str, File], *, below: bool) -> list[str]:
    """The files that an absolute path with wildcards means, also all below it if so told."""
    pattern = _glob(path)
    above = {each: [each[: match.start()] for match in re.finditer("/", each)] if below else [] for each in files}
    return [each for each in files if any(pattern.fullmatch(part) for part in (each, *above[each]))]


def _glob(pattern: str) -> re.Pattern[str]:
    """Matches as Docker does: Go's filepath.Match, and `**` for any folders."""
    found = []
    for token in re.findall(r"\\.|\*\*/|\*\*|\*|\?|\[\^?[^\]]+\]|.", pattern, re.DOTALL):
        if token[0] == "[" and len(token) > 1:
            found.append("[" + token[1:].replace("[", r"\["))
        else:
            known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
            found.append(known.get(token) or re.escape(token[-1] if token[0] == "\\" else token))
    try:
        return re.compile("".join(found), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def normal(path: str) -> str:
    """An absolute path without what it need not say."""
    return posixpath.normpath(re.sub(r"^/+", "/", path))
