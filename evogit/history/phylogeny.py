"""The graph of candidates and their parents. Pure and in memory; it only ever grows."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evogit.core import Candidate, NotFoundError, RepositoryError

if TYPE_CHECKING:
    import networkx as nx


@dataclass(eq=False, slots=True)
class Phylogeny:
    """Candidates and their parent edges, in the order in which the journals learned of them.

    A parent is always known before its child, so every edge points from a lower to a higher `number`; the walks
    below use that to stop early and cost what they visit, not the size of the graph.
    """

    _candidates: dict[str, Candidate] = field(default_factory=dict)
    _children: dict[str, list[str]] = field(default_factory=dict)

    def add(self, candidate: Candidate) -> None:
        """Add one candidate whose parents are known already; adding it again changes nothing.

        Raises:
            RepositoryError: when a parent is unknown, which means that a journal is incomplete.
        """
        if candidate.commit in self._candidates:
            return
        for parent in candidate.parents:
            if parent not in self._candidates:
                raise RepositoryError(
                    f"candidate {candidate.commit[:7]} names the parent {parent[:7]}, which no journal proposes; "
                    "fetch the missing journal, or see `evogit doctor`"
                )
        self._candidates[candidate.commit] = candidate
        self._children[candidate.commit] = []
        for parent in candidate.parents:
            self._children[parent].append(candidate.commit)

    def __len__(self) -> int:
        return len(self._candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._candidates.values())

    def __contains__(self, commit: object) -> bool:
        return commit in self._candidates

    def __getitem__(self, commit: str) -> Candidate:
        try:
            return self._candidates[commit]
        except KeyError:
            raise RepositoryError(
                f"expected the candidate {commit[:7]}, which no journal proposes; fetch the missing journal, or "
                "see `evogit doctor`"
            ) from None

    def starting_with(self, prefix: str) -> list[Candidate]:
        """The candidates whose id begins with `prefix` (hex digits, any case)."""
        prefix = prefix.lower()
        return [candidate for commit, candidate in self._candidates.items() if commit.startswith(prefix)]

    def children(self, commit: str) -> tuple[str, ...]:
        """Ids of the candidates bred from `commit`, oldest first."""
        return tuple(self._children[self[commit].commit])

    def ancestors(self, *commits: str) -> set[str]:
        """Ids of `commits` and everything they descend from."""
        return self._reach(commits, lambda commit: self._candidates[commit].parents)

    def descendants(self, *commits: str) -> set[str]:
        """Ids of `commits` and everything bred from them."""
        return self._reach(commits, lambda commit: self._children[commit])

    def _reach(self, commits: Iterable[str], neighbours: Callable[[str], Iterable[str]]) -> set[str]:
        reached = set(commits)
        frontier = list(reached)
        while frontier:
            for neighbour in neighbours(frontier.pop()):
                if neighbour not in reached:
                    reached.add(neighbour)
                    frontier.append(neighbour)
        return reached

    def merge_base(self, a: str, b: str) -> str | None:
        """The youngest common ancestor of `a` and `b` (one of them when it is the other's ancestor).

        None when they have no ancestor in common, as with two seeds.
        """
        sides = {a: 1}
        sides[b] = sides.get(b, 0) | 2
        heap = [(-self._candidates[commit].number, commit) for commit in sides]
        heapq.heapify(heap)
        while heap:
            commit = heapq.heappop(heap)[1]
            if sides[commit] == 3:
                return commit
            for parent in self._candidates[commit].parents:
                if parent not in sides:
                    sides[parent] = 0
                    heapq.heappush(heap, (-self._candidates[parent].number, parent))
                sides[parent] |= sides[commit]
        return None

    def is_ancestor(self, old: str, young: str) -> bool:
        """Whether `young` descends from `old`, or is it."""
        return self.merge_base(old, young) == old

    def lineage(self, commit: str) -> list[Candidate]:
        """The path of first parents from the seed to `commit`, both included, oldest first."""
        path = [self._candidates[commit]]
        while path[-1].parents:
            path.append(self._candidates[path[-1].parents[0]])
        return path[::-1]

    def skeleton(self, keep: Iterable[str]) -> set[str]:
        """Ids of what matters to the candidates in `keep`: themselves and their ancestors. All else is a dead end."""
        return self.ancestors(*(commit for commit in keep if commit in self._candidates))

    def find(self, revision: str) -> Candidate:
        """The one candidate that the (abbreviated) id names.

        Raises:
            NotFoundError: when none or several match.
        """
        found = self.starting_with(revision) if len(revision) >= 4 else []
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError(f"{revision} names {len(found)} candidates; give more digits")
        raise NotFoundError(f"expected a candidate's id (4 digits or more), got {revision!r}; see `evogit log`")

    def graph(self) -> nx.DiGraph:
        """The graph for analysis with networkx: an edge parent -> child carries `index`, 0 for the first parent."""
        import networkx as nx  # 50 ms that only analysis needs

        graph = nx.DiGraph()
        graph.add_nodes_from((candidate.commit, {"candidate": candidate}) for candidate in self)
        for candidate in self:
            for index, parent in enumerate(candidate.parents):
                graph.add_edge(parent, candidate.commit, index=index)
        return graph
