"""Which of people's decisions stand, and which candidates they mark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evogit.core import Decision, Entry
from evogit.history.phylogeny import Phylogeny


def standing(entries: Sequence[Entry]) -> list[Entry]:
    """The decisions that no later one takes back, those to undo included, oldest first."""
    undone: set[str] = set()
    found: list[Entry] = []
    for entry in reversed(entries):
        if entry.id not in undone:
            found.append(entry)
            undone.add(_decision(entry).undoes)
    return found[::-1]


def in_force(entries: Sequence[Entry]) -> list[Entry]:
    """Those that stand, undoing ones left out."""
    return [entry for entry in standing(entries) if _decision(entry).kind != "undo"]


def _decision(entry: Entry) -> Decision:
    assert isinstance(entry.event, Decision)
    return entry.event


def marked(entries: Iterable[Entry], phylogeny: Phylogeny) -> tuple[set[str], set[str]]:
    """Ids of the candidates that these decisions prune and promote."""
    pruned, promoted = set[str](), set[str]()
    for decision in map(_decision, entries):
        named = [commit for commit in decision.candidates if commit in phylogeny]
        if decision.kind == "promote":
            promoted.update(named)
        elif decision.kind == "prune":
            pruned |= phylogeny.descendants(*named) if decision.subtree else set(named)
    return pruned, promoted


def restored(entries: Sequence[Entry], phylogeny: Phylogeny) -> set[str]:
    """Ids of the candidates that a decision pruned which another one took back."""
    kept = {entry.id for entry in in_force(entries)}
    return marked((entry for entry in entries if entry.id not in kept), phylogeny)[0]
