"""What an author took over from candidates that were shown: lines that one of them brought, in a tree not bred from it.

Lines count by their text alone, without the space around them and whatever file they are in. A line that several of
the shown ones have belongs to the oldest. Independent answers of one model to one brief shared lines of 96 letters and
digits, 8 % of what one of them added; one that had read a diff shared 702 with it, 35 %.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from evogit.core import Candidate
from evogit.history import History
from evogit.repository import Repository

MANY = 200
"""Letters and digits of lines in common that are no chance, whatever else was added."""

SHARE, FEW = 0.3, 24
"""Share of what a candidate added that is no chance in another one either, if it has this many letters and digits."""

Texts = set[bytes]


class Inspirations:
    """Compares trees of one run."""

    def __init__(self, repository: Repository, history: History) -> None:
        self._repository = repository
        self._history = history

    def of(self, tree: str, parents: Sequence[str], shown: Collection[str]) -> tuple[str, ...]:
        """Those of the `shown` candidates that brought what the tree has and its parents have not; the oldest first.

        Costs a comparison of trees for each parent and each of the shown.
        """
        graph = self._history.phylogeny
        fresh = self._fresh(tree, [graph[each] for each in parents]) if shown else set()
        found, claimed = list[str](), Texts()
        for candidate in sorted((graph[each] for each in shown), key=lambda each: each.number):
            own = self._added(candidate) - claimed if fresh else Texts()
            claimed |= own
            if _is_no_chance(own & fresh, own):
                found.append(candidate.commit)
        return tuple(found)

    def _added(self, candidate: Candidate) -> Texts:
        return self._fresh(candidate.tree, [self._history.phylogeny[each] for each in candidate.parents])

    def _fresh(self, tree: str, parents: Iterable[Candidate]) -> Texts:
        """The lines that a tree has and none of the parents has in the files that differ."""
        fresh: Texts | None = None
        for parent in parents:
            added = self._repository.lines(parent.tree, tree, lambda _: True).added
            paths = {path for path, _ in added}
            old = self._repository.trees.files(parent.tree, paths.__contains__).values()
            known = {line.strip() for content in old for line in content.split(b"\n")}
            new = {text for _, text in added} - known
            fresh = new if fresh is None else fresh & new
        return fresh or set()


def _is_no_chance(taken: Texts, added: Texts) -> bool:
    size = _letters(taken)
    return size >= MANY or (size >= FEW and size >= SHARE * _letters(added))


def _letters(texts: Iterable[bytes]) -> int:
    """How many letters and digits they have."""
    return sum(character.isalnum() for text in texts for character in text.decode(errors="replace"))
