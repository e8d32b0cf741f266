"""Histories of candidates that are real trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evogit.core import Proposed
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
        self,
        files: Mapping[str, bytes | None],
        cases: Mapping[str, float] | None,
        *parents: int,
        operator: str | None = None,
        tree: str = "",
        **known: Any,
    ) -> int:
        """A child whose files differ so from its first parent's; without cases it is not valid."""
        before = self.history.phylogeny[self.ids[parents[0]]].tree if parents else None
        number = self.place(tree or self.repository.trees.write(before, files), *parents, operator=operator, **known)
        self.judge(number, None if cases is None else sum(cases.values()), cases=cases)
        return number

    def place(
        self, tree: str, *parents: int, operator: str | None = None, agent: str = "a1", strategy: str = ""
    ) -> int:
        """One that waits for its evaluation."""
        number = len(self.ids)
        self.ids.append(f"{number + 1:040x}")
        operator = operator or ("seed", "mutation", "merge")[len(parents)]
        named: Any = {"operator": operator, "agent": agent, "strategy": strategy}
        of = tuple(self.ids[each] for each in parents)
        self.append(Proposed(engine="e", move=number, candidate=self.ids[-1], tree=tree, parents=of, **named))
        return number
