"""Where the files of an image are among a candidate's, and the links that lead there from their paths in it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from evogit.adopt.dockerfile import VIRTUAL, Recipe
from evogit.adopt.foreign_task import VIEW, File, may_link

IMAGE = "image"
"""The folder of theirs with what an image has elsewhere; stand-ins copy what is in its tmp/ to where /tmp is."""
MOST = 5
"""Paths that a note names."""


class Places(Struct, frozen=True):
    """Where an image's files are.

    Attributes:
        folder: absolute path of the folder in which programs work, with all that the image has around it.
        files: path below that folder -> file.
        elsewhere: path among theirs -> file, of those outside of it.
        links: absolute path -> folder of the candidate's.
        lost: absolute paths that a sandbox cannot have.
    """

    folder: str
    files: Mapping[str, File]
    elsewhere: Mapping[str, File]
    links: Mapping[str, str]
    lost: tuple[str, ...]


def arranged(
    recipe: Recipe, leads: str, taken: Collection[str] = (), others: Mapping[str, File] = MappingProxyType({})
) -> Places:
    """The places of a recipe's files: the working folder `leads` there; the `taken` tops are for something else.

    A link cannot lie below another one: what lies beside the working folder, below the same top, makes the folder above
    both the one that is linked. `others` are files of another image, which never come to lie among a candidate's.
    """
    folder = _folder(recipe, taken)
    files: dict[str, File] = {}
    links = {folder: leads} if _linkable(folder, taken) else {}
    left = dict(others)
    for path, file in [*recipe.files.items(), *((path, VIRTUAL) for path in recipe.virtual)]:
        top = path.split("/")[1]
        whole = folder == "/" and _linkable(f"/{top}", taken)
        if whole or (folder != "/" and is_below(path, folder)):
            files[posixpath.relpath(path, folder)] = file
            links |= {f"/{top}": posixpath.normpath(f"{leads}/{top}")} if whole else {}
        else:
            left[path] = file
    elsewhere: dict[str, File] = {}
    lost = []
    tops = {path.split("/")[1] for path in links}
    for path, file in left.items():
        top = path.split("/")[1]
        if top in tops or not (top == "tmp" or _linkable(f"/{top}", taken)):
            lost.append(path)
        else:
            elsewhere[f"{IMAGE}{path}"] = file
            links |= {f"/{top}": f"{VIEW}/{IMAGE}/{top}"} if top != "tmp" else {}
    return Places(folder, _real(files), _real(elsewhere), links, tuple(lost))


def _real(files: Mapping[str, File]) -> dict[str, File]:
    """Those that are files, not places for what is made where they are."""
    return {path: file for path, file in files.items() if file != VIRTUAL}


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is below a folder."""
    return path.startswith(f"{folder.rstrip('/')}/")


def told_lost(lost: Collection[str], whose: str = "its image", where: str = "the system") -> Iterator[str]:
    """What a person is told of the files of an image that a sandbox cannot have."""
    if lost:
        names = ", ".join(list(lost)[:MOST]) + (f" and {len(lost) - MOST} more" if len(lost) > MOST else "")
        yield f"{whose} has {names}, where a sandbox has {where}: no program will find that"


def _folder(recipe: Recipe, taken: Collection[str]) -> str:
    """The working folder, or the one above it and all that the image has below the same top."""
    workdir = recipe.workdir
    if workdir == "/" or not _linkable(workdir, taken):
        return workdir
    near = [
        posixpath.dirname(path)
        for path in (*recipe.files, *recipe.virtual)
        if is_below(path, f"/{workdir.split('/')[1]}")
    ]
    return posixpath.commonpath([workdir, *near])


def _linkable(path: str, taken: Collection[str]) -> bool:
    return may_link(path) and path.split("/")[1] not in taken
