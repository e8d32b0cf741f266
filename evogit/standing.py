"""Which of people's decisions stand, and which candidates they mark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evogit.core import Decision, Entry
from evogit.phylogeny import Phylogeny


def in_force(entries: Sequence[Entry]) -> list[Entry]:
    """The decisions that no other one takes back, undoing ones left out, oldest first."""
    undone: set[str] = set()
    standing: list[Entry] = []
    for entry in reversed(entries):
        decision = entry.event
        assert isinstance(decision, Decision)
        if entry.id in undone:
            continue
        if decision.kind == "undo":
            undone.add(decision.undoes)
        else:
            standing.append(entry)
    return standing[::-1]


def marked(standing: Iterable[Entry], phylogeny: Phylogeny) -> tuple[set[str], set[str]]:
    """Ids of the pruned and of the promoted candidates under decisions that stand."""
    pruned, promoted = set[str](), set[str]()
    for entry in standing:
        decision = entry.event
        assert isinstance(decision, Decision)
        named = [commit for commit in decision.candidates if commit in phylogeny]
        if decision.kind == "promote":
            promoted.update(named)
        elif decision.kind == "prune":
            pruned |= phylogeny.descendants(*named) if decision.subtree else set(named)
    return pruned, promoted


def restored(entries: Sequence[Entry], phylogeny: Phylogeny) -> set[str]:
    """Ids of the candidates that a decision pruned which another one took back."""
    standing = {entry.id for entry in in_force(entries)}
    return marked((entry for entry in entries if entry.id not in standing), phylogeny)[0]
