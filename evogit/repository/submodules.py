"""Where the objects of submodules are: Git clones them into folders of the repository that has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def object_folders(modules: Path) -> Iterator[Path]:
    """The object databases of the submodules that were fetched, and of those in them; `modules` is Git's folder."""
    for folder in sorted(modules.iterdir()) if modules.is_dir() else ():
        if (folder / "HEAD").is_file():
            yield folder / "objects"
            yield from object_folders(folder / "modules")
        else:  # of a name such as libs/parser
            yield from object_folders(folder)
