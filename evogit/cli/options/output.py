"""Files and folders that commands write where the user says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click


class OutputPath(click.Path):
    """A file or folder to write; a repository's own link must not lead the writing out of the repository.

    Git keeps links: `report.html` of a clone may be one to `~/.bashrc`. In a folder the same holds for what is there.
    """

    def __init__(self, **kinds: bool) -> None:
        super().__init__(path_type=Path, **kinds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fail where a link in a repository leads out of it."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        for link in (link for each in (path, *_below(path)) for link in _links_out(each)):
            target = os.path.realpath(link)
            self.fail(f"{link} is a link out of the repository, to {target}; name that place itself", param, ctx)
        return path


def _below(folder: Path) -> Iterator[Path]:
    """Yield all links below a folder, but for those in Git folders, which no commit brings along."""
    for place, folders, files in os.walk(folder):
        yield from (path for name in (*folders, *files) if (path := Path(place, name)).is_symlink())
        folders[:] = [name for name in folders if name != ".git"]


def _links_out(path: Path) -> Iterator[Path]:
    """Links on the way to `path` that lie in the working tree of a repository and lead out of it, or into `.git`."""
    way = [path := Path(os.path.abspath(path)), *path.parents]  # noqa: PTH100 - resolve() would follow the links
    for link in filter(Path.is_symlink, way):
        tops = (top for top in link.parents if os.path.lexists(top / ".git"))
        target = Path(os.path.realpath(link))
        if ".git" in target.parts or not all(target.is_relative_to(os.path.realpath(top)) for top in tops):
            yield link
