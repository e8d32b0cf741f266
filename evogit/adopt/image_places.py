"""Where the files of an image are among a candidate's, and the links that lead there from their paths in it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from evogit.adopt.dockerfile import VIRTUAL, Recipe
from evogit.adopt.foreign_task import VIEW, File, may_link

IMAGE = "image"
"""The folder of theirs with what an image has elsewhere."""
TEMPORARY = "tmp"
"""The folder that cannot be linked: stand-ins copy what is in a tmp/ to where /tmp is."""
MOST = 5
"""Paths that a note names."""


class Places(Struct, frozen=True):
    """Where an image's files are.

    Attributes:
        folder: absolute path of the folder in which programs work, with all that the image has around it.
        own: top folders beside it that are folders of the candidate's.
        files: path among the candidate's -> file.
        elsewhere: path among theirs -> file, of those outside of it.
        links: absolute path -> folder of the candidate's.
        lost: absolute paths that a sandbox cannot have.
    """

    folder: str
    own: tuple[str, ...]
    files: Mapping[str, File]
    elsewhere: Mapping[str, File]
    links: Mapping[str, str]
    lost: tuple[str, ...]


def arranged(
    recipe: Recipe,
    leads: str,
    taken: Collection[str] = (),
    others: Mapping[str, File] = MappingProxyType({}),
    named: Collection[str] = (),
) -> Places:
    """The places of a recipe's files: the working folder `leads` there; the `taken` tops are for something else.

    A link cannot lie below another one: what lies beside the working folder, below the same top, makes the folder above
    both the one that is linked. `others` are files of another image, which never come to lie among a candidate's; paths
    that are `named`, which the image does not have, are a candidate's to bring.
    """
    folder = _folder(recipe, taken, named)
    own = _own(recipe, folder, taken, named)
    files: dict[str, File] = {}
    links = {folder: leads} if _linkable(folder, taken) else {}
    links |= {f"/{top}": posixpath.normpath(f"{leads}/{top}") for top in own if top != TEMPORARY}
    left = dict(others)
    for path, file in [*recipe.files.items(), *((path, VIRTUAL) for path in recipe.places)]:
        if folder != "/" and is_below(path, folder):
            files[posixpath.relpath(path, folder)] = file
        elif f"/{_top(path)}" in links:
            files[path[1:]] = file
        else:
            left[path] = file
    elsewhere: dict[str, File] = {}
    lost = []
    tops = {_top(path) for path in links}
    for path, file in left.items():
        top = _top(path)
        if top in tops or not (top == TEMPORARY or _linkable(f"/{top}", taken)):
            lost += [path] if not path.endswith("/.") else []
        else:
            elsewhere[f"{IMAGE}{path}"] = file
            links |= {f"/{top}": f"{VIEW}/{IMAGE}/{top}"} if top != TEMPORARY else {}
    return Places(folder, own, _real(files), _real(elsewhere), links, tuple(lost))


def _own(recipe: Recipe, folder: str, taken: Collection[str], named: Collection[str]) -> tuple[str, ...]:
    """The tops beside the folder that are a candidate's: of what is named; in all of an image, also of what it has."""
    has = [path for path in named if any(file == path or is_below(file, path) for file in recipe.files)]
    paths = [*recipe.files, *recipe.places, *named] if folder == "/" else [path for path in named if path not in has]
    tops = {_top(path) for path in paths} - {_top(folder)}
    inside = {posixpath.relpath(path, folder).split("/")[0] for path in recipe.files if is_below(path, folder)}
    own = {top for top in tops - (inside if folder != "/" else set()) if _linkable(f"/{top}", taken)}
    temporary = any(is_below(path, f"/{TEMPORARY}") for path in named if path not in has)
    return (*sorted(own), *((TEMPORARY,) if temporary else ()))


def _top(path: str) -> str:
    return path.split("/")[1]


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


def _folder(recipe: Recipe, taken: Collection[str], named: Collection[str]) -> str:
    """The working folder, or the one above it and all below the same top that the image has or that is named."""
    workdir = recipe.workdir
    if workdir == "/" or not _linkable(workdir, taken):
        return workdir
    paths = (*recipe.files, *recipe.places, *named)
    near = [posixpath.dirname(path) for path in paths if is_below(path, f"/{_top(workdir)}")]
    return posixpath.commonpath([workdir, *near])


def _linkable(path: str, taken: Collection[str]) -> bool:
    return may_link(path) and _top(path) not in taken
