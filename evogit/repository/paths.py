"""Paths of files that candidates bring: which ones no checkout could hold, or would be damaged by."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from evogit.core import RepositoryError

LONGEST_NAME, DEEPEST = 255, 100  # bytes of one name in a path, and names in a path
NAMED = 3  # paths that a sentence names
_GIT_FOLDER = re.compile(r"\.git|git~\d+", re.IGNORECASE)

_NO_PATH = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")

_PERHAPS_GIT = re.compile(r"\.git|~|[^\x00-\x7f]", re.IGNORECASE)


class UnfitChangeError(RepositoryError):
    """A change that the tree cannot take; the repository itself is well."""


def check_path(path: str) -> None:
    r"""Refuse paths that could escape or damage a checkout on any file system.

    HFS+ ignores format characters and NTFS strips trailing dots and spaces, reads `:` as a stream and `\` as a
    separator, so `.g<ZWNJ>it` and `.git. ` are `.git` there. Raises UnfitChangeError: naming the path and what is wrong
    with it.
    """
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in path):
        raise UnfitChangeError(f"the path {path!r} holds control characters; use printable ones")
    parts = path.split("/")
    if len(parts) > DEEPEST or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise UnfitChangeError(
            f"expected a path of {DEEPEST} names at most, each of {LONGEST_NAME} bytes at most, got {path[:60]!r}..."
        )
    for part in parts:
        if part in {"", ".", ".."} or "\\" in part:
            raise UnfitChangeError(f"expected a relative path with plain names, got {path!r}")
        if is_git_folder(part):
            raise UnfitChangeError(f"the path {path!r} would reach into a .git folder")


def check_read(path: str) -> None:
    """Refuse a path that Git itself would not write. Raises UnfitChangeError: it may lead elsewhere or to `.git`."""
    if _NO_PATH.search(path) or (_PERHAPS_GIT.search(path) and any(map(is_git_folder, re.split(r"[/\\]", path)))):
        raise UnfitChangeError(
            f"expected paths in a tree that a checkout can hold, got {ascii(path)[:300]}; Git itself never writes such"
        )


def is_git_folder(name: str) -> bool:
    """Whether some file system takes a name in a path for that of a `.git` folder."""
    folded = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    return _GIT_FOLDER.fullmatch(folded.split(":")[0].rstrip(". ")) is not None


def named(paths: Sequence[str]) -> str:
    """The first of them, and how many more there are: for a sentence."""
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more


def twins(paths: Iterable[str], changed: Iterable[str]) -> set[str]:
    """Those of the changed paths that, themselves or in a folder above, differ from one of `paths` only in case."""
    spellings: dict[str, set[str]] = {}
    for part in {part for path in paths for part in parts_of(path)}:
        spellings.setdefault(folded(part), set()).add(part)
    double = {part for parts in spellings.values() if len(parts) > 1 for part in parts}
    return {path for path in changed if any(part in double for part in parts_of(path))}


def folded(path: str) -> str:
    """What a file system that ignores case takes the path for."""
    return unicodedata.normalize("NFC", path).casefold()


def parts_of(path: str) -> Iterator[str]:
    """The path and all folders above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
