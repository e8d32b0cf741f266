"""What the evaluations of candidates teach, found out once for each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from evogit.history.history import History
from evogit.history.scores import Scores

T = TypeVar("T")


class Lessons(Generic[T]):
    """What `learn` finds of candidates; asked again only where a candidate or a parent of it was evaluated since."""

    def __init__(self, learn: Callable[[History, str], T]) -> None:
        self._learn = learn
        self._scores: Scores | None = None
        self._position = 0
        self._found: dict[str, T] = {}

    def of(self, history: History, commits: Sequence[str]) -> Mapping[str, T]:
        """Id -> lesson; the same object as last time where nothing new is known. All others are forgotten."""
        stale, known = self._stale(history), self._found
        self._found = {
            each: known[each] if each in known and each not in stale else self._learn(history, each) for each in commits
        }
        return self._found

    def _stale(self, history: History) -> Collection[str]:
        """What was told otherwise since the last time; where all was, there is nothing that is known."""
        scores, position = history.scores, self._position
        if scores is not self._scores or (scores.shifting and len(scores.log) > position):
            self._found = {}
        self._scores = scores
        self._position = len(scores.log)
        children = history.phylogeny.children
        return {each for commit in scores.log[position:] for each in (commit, *children(commit))}
