"""Which files of a build's context a Dockerfile means, and where they are."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from evogit.adopt.foreign_task import File


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
