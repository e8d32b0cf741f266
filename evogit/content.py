"""Finds the content folders `sandbox/`, `tasks/` and `graphs/`: in the installed package, else in the checkout."""

from __future__ import annotations

from pathlib import Path

from evogit.core import EvoGitError

PACKAGE = Path(__file__).parent


def content(name: str) -> Path:
    """The folder `name` of the project's content.

    Raises:
        EvoGitError: when neither the package nor a checkout around it has that folder.
    """
    for folder in (PACKAGE / "_content" / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise EvoGitError(f"expected the folder {name}/ in the installed package or beside it; reinstall evogit")
