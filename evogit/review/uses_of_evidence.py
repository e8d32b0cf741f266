"""Which entries of a run's journals name which evidence; equal files are one tree, which several may name."""

from __future__ import annotations

from collections.abc import Iterable

from evogit.core import Entry


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
