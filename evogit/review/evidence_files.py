"""What is kept about a candidate, or an attempt that made none: files of an evidence tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evogit.events import Entry
from evogit.repository import Repository


def gone(repository: Repository, run: str, tree: str | None) -> str:
    """Why an evidence tree that a journal names is not here, in a sentence; empty where it is, or there is none."""
    if not tree or repository.trees.exists(tree):
        return ""
    if tree in repository.keeping(run).thinned():
        return "what was kept of it was thinned by `evogit clean RUN`"
    return "what was kept of it is not here, and was not thinned here; see `evogit doctor runs`"


def texts(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files for JSON."""
    return {name: content.decode(errors="backslashreplace") for name, content in files.items()}


def uses(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Evidence tree -> the entries that name it, in their order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if tree := named(entry):
            found.setdefault(tree, []).append(entry)
    return found


def named(entry: Entry) -> str:
    """The evidence tree that an entry names; empty where it names none."""
    tree: str = getattr(entry.event, "evidence", "")
    return tree
