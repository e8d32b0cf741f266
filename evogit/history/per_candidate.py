"""What the evaluations of candidates teach, found out once for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        known = self._still_true(history)
        self._found = {each: known[each] if each in known else self._learn(history, each) for each in commits}
        return self._found

    def _still_true(self, history: History) -> Mapping[str, T]:
        scores, position = history.scores, self._position
        if scores is not self._scores or (scores.shifting and len(scores.log) > position):
            self._found = {}
        self._scores = scores
        self._position = len(scores.log)
        children = history.phylogeny.children
        stale = {each for commit in scores.log[position:] for each in (commit, *children(commit))}
        return {commit: lesson for commit, lesson in self._found.items() if commit not in stale}
