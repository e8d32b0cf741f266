"""From a move to a tree: the brief for an agent, the checks on what it proposes, and merges."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from evogit.agents import Agent, Brief, NoUsableChangeError
from evogit.config import Task
from evogit.core import Operator
from evogit.phylogeny import Phylogeny
from evogit.repository import Merged, Repository, Side, UnfitChangeError
from evogit.selection import Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Bred:
    """A tree that may become a candidate, and where it came from."""

    tree: str
    parents: tuple[str, ...]
    operator: Operator
    strategy: str
    title: str


class Breeder:
    """Turns moves into trees. Everything that an agent proposes is checked here, before anything is committed."""

    def __init__(self, repository: Repository, task: Task, phylogeny: Phylogeny) -> None:
        self._repository, self._task, self._phylogeny = repository, task, phylogeny

    async def breed(self, agent: Agent, move: Move, rng: random.Random) -> Bred:
        """Carry out a move.

        Raises:
            NoUsableChangeError: when nothing came of it that may be committed; the message says why.
        """
        try:
            return await (self._merge(move, rng) if move.operator == "merge" else self._mutate(agent, move, rng))
        except UnfitChangeError as error:
            raise NoUsableChangeError(str(error)) from error

    async def _merge(self, move: Move, rng: random.Random) -> Bred:
        first, second = move.parents

        def choose() -> Side:
            return "ours" if move.strategy == "fitter" else rng.choice(("ours", "theirs"))

        merged = await self._repository.merger.merge(first, second, choose)
        title = f"merge {first[:7]} × {second[:7]}{_conflicts(merged, move.strategy)}"
        return Bred(tree=merged.tree, parents=move.parents, operator="merge", strategy=move.strategy, title=title)

    async def _mutate(self, agent: Agent, move: Move, rng: random.Random) -> Bred:
        parent = self._phylogeny[move.parents[0]]
        donor = self._phylogeny[move.donor] if move.donor else None
        brief = Brief(
            goal=self._task.goal,
            parent=parent,
            files=self._editable_files(parent.tree),
            donor=donor,
            donor_files=self._editable_files(donor.tree) if donor else {},
        )
        proposal = await agent.propose(brief, rng)
        crossed = donor is not None and proposal.used_donor
        return Bred(
            tree=self._apply(parent.tree, proposal.changes),
            parents=(parent.commit, donor.commit) if crossed and donor else (parent.commit,),
            operator="merge" if crossed else "mutation",
            strategy=proposal.strategy,
            title=proposal.title,
        )

    def _editable_files(self, tree: str) -> dict[str, bytes]:
        return self._repository.trees.files(tree, self._task.is_editable)

    def _apply(self, tree: str, changes: Mapping[str, bytes | None]) -> str:
        """The tree with the proposed changes, all of which must lie in editable paths."""
        protected = sorted(path for path in changes if not self._task.is_editable(path))
        if protected:
            allowed = ", ".join(self._task.editable)
            raise NoUsableChangeError(f"expected changes to {allowed} only, got {', '.join(protected)}")
        return self._repository.trees.write(tree, changes)


def _conflicts(merged: Merged, strategy: str) -> str:
    if not merged.conflicts:
        return ""
    return f", {merged.conflicts} conflict{'s' * (merged.conflicts > 1)} settled: {strategy}"
