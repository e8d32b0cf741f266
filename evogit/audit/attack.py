"""What an attack is, and what it finds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from msgspec import Struct

from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import Laboratory, WatchedEvaluation


class Hit(Struct, frozen=True):
    """An attack that worked: the candidate, its trial, what is wrong in a sentence, and the line to blame if known.

    `split` is where, unless it is the audited one; then the seed's trial there comes along.
    `stricter` is a patch of the evaluator that is to refuse it, where a model suggests one.
    """

    what: str
    candidate: AttackCandidate
    trial: WatchedEvaluation
    line: str = ""
    split: str = ""
    seed: WatchedEvaluation | None = None
    stricter: str = ""


Search = Callable[[Laboratory], AsyncIterator[Hit]]
"""Tries candidates, and gives those that score without earning it."""


def first_of(*searches: Search) -> Search:
    """The search whose hits are those of the first of some that has any."""

    async def search(lab: Laboratory) -> AsyncIterator[Hit]:
        for each in searches:
            found = False
            async for hit in each(lab):
                found = True
                yield hit
            if found:
                return

    return search


class AttackKind(Struct, frozen=True):
    """A way to score without earning it: its name, what it tries and the remedy, a sentence each."""

    name: str
    family: str
    tries: str
    remedy: str


class Attack(AttackKind, frozen=True):
    """One that can be tried."""

    search: Search


@dataclass(frozen=True)
class Finding:
    """What a person is told of a hit: the values are of the primary metric; `source` is the text of the line."""

    attack: Attack
    hit: Hit
    split: str
    seed: float | None
    value: float | None
    line: str
    source: str
    diff: str = field(repr=False)
