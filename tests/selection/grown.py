"""Histories of candidates that are real trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evogit.repository import Repository

from .born import Born

SEED = {"one.py": b"A = 0\n\nB = 0\n\n\ndef f():\n    return A\n", "two.py": b"X = 0\nY = 0\n", "notes.txt": b"-\n"}
FLAT = {"a": 0.0, "b": 0.0, "x": 0.0}


class Grown(Born):
    """Born candidates with files; their value is the sum of their cases."""

    def __init__(
        self, repository: Repository, agents: tuple[str, ...] = ("a1",), seed: Mapping[str, bytes] = SEED
    ) -> None:
        super().__init__(agents)
        self.repository = repository
        self.seed = self.grow(seed, FLAT)

    def grow(
        self, files: Mapping[str, bytes | None], cases: Mapping[str, float] | None, *parents: int, **known: Any
    ) -> int:
        """A child whose files differ so from its first parent's; without cases it is not valid."""
        before = self.history.phylogeny[self.ids[parents[0]]].tree if parents else None
        number = self.candidate(*parents, tree=self.repository.trees.write(before, files), **known)
        self.judge(number, None if cases is None else sum(cases.values()), cases=cases)
        return number
