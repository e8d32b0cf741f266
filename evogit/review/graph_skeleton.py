"""Which candidates a person wants to see, and how those are connected when the others are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from evogit.core import Candidate
from evogit.history import History


class SkeletonEdge(Struct, frozen=True):
    """The way down to `parent`, a shown candidate; it is not `direct` when it leads through some that are not.

    An `inspiration` is no parent: an agent was shown it, and the child has lines that it brought.
    """

    parent: str
    direct: bool
    inspiration: bool = False


class Row(Struct, frozen=True):
    """A shown candidate, its nearest shown ancestors, and how many candidates are folded into it."""

    candidate: Candidate
    edges: tuple[SkeletonEdge, ...]
    folded: int


def landmarks(history: History) -> list[str]:
    """What a person looks for, the most telling first.

    The seed, the best, what people decided about, the agents' individuals, then every candidate that was the best
    when it was evaluated, the largest step first.
    """
    fitness = [history.fitness(commit) or 0.0 for commit in history.records]
    steps = [abs(new - old) for old, new in zip([0.0, *fitness], fitness, strict=False)]
    records = [commit for _, commit in sorted(zip(steps, history.records, strict=True), reverse=True)]
    named = [commit for entry in history.in_force() for commit in getattr(entry.event, "candidates", ())]
    wanted = [history.seed, history.best, *named, *history.living(), *records]
    return list(dict.fromkeys(commit for commit in wanted if commit and commit in history.phylogeny))


def skeleton(history: History) -> set[str]:
    """The landmarks and what they come from, parents and inspirations; all else is a dead end."""
    graph, found = history.phylogeny, history.inspirations
    shown = graph.skeleton(landmarks(history))
    while more := {each for child in shown & found.keys() for each in found[child]} - shown:
        shown |= graph.ancestors(*more)
    return shown


def most_telling(history: History, shown: Collection[str], limit: int) -> set[str]:
    """At most `limit` of the shown candidates: the landmarks first, then the youngest."""
    first = [commit for commit in landmarks(history) if commit in shown]
    young = sorted(shown, key=lambda commit: -history.phylogeny.numbers[commit])
    return set(list(dict.fromkeys([*first, *young]))[:limit])


def expanded(history: History, shown: Iterable[str], commits: Iterable[str]) -> set[str]:
    """What is shown when the dead ends below `commits` are unfolded."""
    return set(shown) | history.phylogeny.descendants(*commits)


def rows(history: History, shown: Collection[str]) -> list[Row]:
    """The shown candidates, the youngest first; `shown` must hold the seed.

    Every other candidate is folded into its nearest shown ancestor along first parents, a second seed into the first.
    """
    owner: dict[str, str] = {}
    phylogeny = history.phylogeny
    for commit in phylogeny.ids:
        parents = phylogeny.parents(commit)
        folded = owner[parents[0]] if parents else history.seed or ""
        owner[commit] = commit if commit in shown else folded
    sizes = Counter(owner.values())
    kept = (phylogeny[commit] for commit in phylogeny.ids if commit in shown)
    found = history.inspirations
    return [Row(each, _edges(each, owner, found.get(each.commit, ())), sizes[each.commit] - 1) for each in kept][::-1]


def _edges(candidate: Candidate, owner: dict[str, str], inspirations: Sequence[str]) -> tuple[SkeletonEdge, ...]:
    edges: dict[str, SkeletonEdge] = {}
    for parent in candidate.parents:
        edges.setdefault(owner[parent], SkeletonEdge(owner[parent], owner[parent] == parent))
    for each in inspirations:
        edges.setdefault(owner[each], SkeletonEdge(owner[each], owner[each] == each, inspiration=True))
    return tuple(edges.values())
