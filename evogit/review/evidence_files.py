"""What is kept about a candidate, or an attempt that made none: files of an evidence tree."""

from __future__ import annotations

from collections.abc import Mapping

from evogit.core import RepositoryError
from evogit.repository import Repository


def read(repository: Repository, tree: str | None) -> dict[str, bytes]:
    """The files of an evidence tree; none where there is no tree, or it is gone."""
    try:
        return repository.trees.files(tree, lambda _: True) if tree else {}
    except RepositoryError:
        return {}


def texts(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files for JSON."""
    return {name: content.decode(errors="backslashreplace") for name, content in files.items()}
