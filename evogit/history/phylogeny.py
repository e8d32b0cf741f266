"""The graph of candidates and their parents. Pure and in memory; it only ever grows."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from evogit.core import Candidate, NotFoundError, RepositoryError
from evogit.history.pages import DERIVED, Pages, fold


class Candidates(Pages[str, Candidate]):
    """All candidates, by id."""


@dataclass(eq=False, slots=True)
class Phylogeny:
    """Candidates and their parent edges, in the order in which the journals learned of them.

    A parent is always known before its child, so every edge points from a lower to a higher `number`; the walks
    below use that to stop early and cost what they visit, not the size of the graph. They go by numbers: a hundred
    thousand candidates themselves are decoded only where somebody looks at them.
    """

    _candidates: Candidates = field(default_factory=Candidates)
    _ids: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _parents: list[tuple[int, ...]] = field(default_factory=list)
    """The numbers of the parents of each candidate."""
    _trials: set[int] = field(default_factory=set)
    """The numbers of those that were only tried."""
    _children: dict[int, list[int]] = field(default_factory=dict, metadata=DERIVED)
    """The numbers of the children of those that have any, as far as `_linked`."""
    _linked: int = field(default=0, metadata=DERIVED)

    def add(self, candidate: Candidate) -> None:
        """Add one candidate whose parents are known already; adding it again changes nothing.

        Raises:
            RepositoryError: when a parent is unknown, which means that a journal is incomplete.
        """
        if candidate.commit in self._numbers:
            return
        for parent in candidate.parents:
            if parent not in self._numbers:
                raise RepositoryError(
                    f"candidate {candidate.commit[:7]} names the parent {parent[:7]}, which no journal proposes; "
                    "fetch the missing journal, or see `evogit doctor`"
                )
        self._numbers[candidate.commit] = len(self._ids)
        self._ids.append(candidate.commit)
        self._parents.append(tuple([self._numbers[parent] for parent in candidate.parents]))
        if candidate.trial:
            self._trials.add(self._numbers[candidate.commit])
        self._candidates[candidate.commit] = candidate
        fold(self._candidates)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._candidates.values())

    def __contains__(self, commit: object) -> bool:
        return commit in self._numbers

    def __getitem__(self, commit: str) -> Candidate:
        found = self._candidates.get(commit)
        if found is None:
            raise _unknown(commit)
        return found

    @property
    def ids(self) -> Sequence[str]:
        """The id of each candidate, by number."""
        return self._ids

    @property
    def numbers(self) -> Mapping[str, int]:
        """The number of each candidate, by id."""
        return self._numbers

    def starting_with(self, prefix: str) -> list[Candidate]:
        """The candidates whose id begins with `prefix` (hex digits, any case)."""
        prefix = prefix.lower()
        return [self[commit] for commit in self._ids if commit.startswith(prefix)]

    def parents(self, commit: str) -> tuple[str, ...]:
        """Ids of the parents of `commit`, the fitter or first one first."""
        return tuple([self._ids[parent] for parent in self._parents[self._numbers[commit]]])

    def is_trial(self, commit: str) -> bool:
        """Whether `commit` was only tried by `evogit minimize`."""
        number = self._numbers.get(commit)
        if number is None:
            raise _unknown(commit)
        return number in self._trials

    def children(self, commit: str) -> tuple[str, ...]:
        """Ids of the candidates bred from `commit`, oldest first."""
        return tuple([self._ids[child] for child in self._links().get(self._numbers[self[commit].commit], ())])

    def _links(self) -> Mapping[int, Sequence[int]]:
        known = self._children
        for number in range(self._linked, len(self._ids)):
            for parent in self._parents[number]:
                known.setdefault(parent, []).append(number)
        self._linked = len(self._ids)
        return known

    def ancestors(self, *commits: str) -> set[str]:
        """Ids of `commits` and everything they descend from."""
        return self._reach(commits, self._parents.__getitem__)

    def descendants(self, *commits: str) -> set[str]:
        """Ids of `commits` and everything bred from them."""
        known = self._links()
        return self._reach(commits, lambda number: known.get(number, ()))

    def _reach(self, commits: Iterable[str], neighbours: Callable[[int], Iterable[int]]) -> set[str]:
        reached = {self._numbers[commit] for commit in commits}
        frontier = list(reached)
        while frontier:
            for neighbour in neighbours(frontier.pop()):
                if neighbour not in reached:
                    reached.add(neighbour)
                    frontier.append(neighbour)
        return {self._ids[number] for number in reached}

    def merge_base(self, a: str, b: str) -> str | None:
        """The youngest common ancestor of `a` and `b` (one of them when it is the other's ancestor).

        None when they have no ancestor in common, as with two seeds.
        """
        sides = {self._numbers[a]: 1}
        sides[self._numbers[b]] = sides.get(self._numbers[b], 0) | 2
        heap = [-number for number in sides]
        heapq.heapify(heap)
        while heap:
            number = -heapq.heappop(heap)
            if sides[number] == 3:
                return self._ids[number]
            for parent in self._parents[number]:
                if parent not in sides:
                    sides[parent] = 0
                    heapq.heappush(heap, -parent)
                sides[parent] |= sides[number]
        return None

    def is_ancestor(self, old: str, young: str) -> bool:
        """Whether `young` descends from `old`, or is it."""
        return self.merge_base(old, young) == old

    def lineage(self, commit: str) -> list[Candidate]:
        """The path of first parents from the seed to `commit`, both included, oldest first."""
        path = [self._numbers[commit]]
        while parents := self._parents[path[-1]]:
            path.append(parents[0])
        return [self[self._ids[number]] for number in reversed(path)]

    def effective_lines(self, heads: Sequence[str]) -> float:
        """Return how many lines some individuals are worth: 1 if all are the same, their number if they share none.

        With p(c) the share of the heads that are the candidate c or descend from it, it is exp(H / T) for
        H = -sum p(c) ln p(c) and T = sum p(c) over all candidates but seeds: the phylogenetic diversity of order 1 of
        Chao, Chiu & Jost (2010, "Phylogenetic diversity measures based on Hill numbers"), each step of length 1.
        """
        above = Counter(commit for head in heads for commit in self.ancestors(head) if self.parents(commit))
        shares = [times / len(heads) for times in above.values()]
        return math.exp(-sum(share * math.log(share) for share in shares) / sum(shares)) if shares else 1.0

    def is_one_line(self, heads: Iterable[str]) -> bool:
        """Return whether of every two individuals one is the other, or descends from it."""
        oldest_first = sorted(heads, key=self._numbers.__getitem__)
        return all(self.is_ancestor(old, young) for old, young in pairwise(oldest_first))

    def skeleton(self, keep: Iterable[str]) -> set[str]:
        """Ids of what matters to the candidates in `keep`: themselves and their ancestors. All else is a dead end."""
        return self.ancestors(*(commit for commit in keep if commit in self._numbers))

    def find(self, revision: str) -> Candidate:
        """The one candidate that the (abbreviated) id names. Raises NotFoundError: when none or several match."""
        found = self.starting_with(revision) if len(revision) >= 4 else []
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError(f"{revision} names {len(found)} candidates; give more digits")
        raise NotFoundError(f"expected a candidate's id (4 digits or more), got {revision!r}; see `evogit log`")


class MergeBases:
    """Merge bases of many candidates with one: each candidate is looked at once, and no further back than they go."""

    def __init__(self) -> None:
        self._graph: Phylogeny | None = None
        self._onto = ""
        self._reached = set[int]()
        """Ancestors of that one, itself included, as far as was needed."""
        self._open: list[int] = []
        """Those whose parents were not, the youngest first, as a heap of negative numbers."""
        self._known: dict[int, int | None] = {}

    def of(self, graph: Phylogeny, onto: str, commit: str) -> str | None:
        """The youngest common ancestor of both, one of them where it is the other's; None where there is none."""
        if graph is not self._graph or onto != self._onto:
            self._graph = graph
            self._onto = onto
            self._reached = {graph._numbers[onto]}
            self._open = [-graph._numbers[onto]]
            self._known = {}
        base = self._base(graph, graph._numbers[commit])
        return None if base is None else graph._ids[base]

    def _base(self, graph: Phylogeny, number: int) -> int | None:
        open_ones = [] if number in self._known else [number]
        while open_ones:
            each = open_ones[-1]
            is_ancestor = self._is_ancestor(graph, each)
            parents = () if is_ancestor else graph._parents[each]
            if unknown := [parent for parent in parents if parent not in self._known]:
                open_ones += unknown
                continue
            bases = [base for parent in parents if (base := self._known[parent]) is not None]
            self._known[each] = each if is_ancestor else max(bases, default=None)
            open_ones.pop()
        return self._known[number]

    def _is_ancestor(self, graph: Phylogeny, number: int) -> bool:
        while self._open and -self._open[0] > number:
            for parent in graph._parents[-heapq.heappop(self._open)]:
                if parent not in self._reached:
                    self._reached.add(parent)
                    heapq.heappush(self._open, -parent)
        return number in self._reached


def _unknown(commit: str) -> RepositoryError:
    return RepositoryError(
        f"expected the candidate {commit[:7]}, which no journal proposes; fetch the missing journal, or "
        "see `evogit doctor`"
    )
