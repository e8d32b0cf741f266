"""Results that follow from evaluations, computed once for each candidate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from evogit.history.history import History
from evogit.history.scores import Scores

T = TypeVar("T")


class Lessons(Generic[T]):
    """Results of `learn` for candidates, computed again only after an evaluation that they follow from.

    A result follows from the evaluations of the candidate, of its parents, and of its `premises`; with `pooled` also
    from the noise, which every evaluation of a noisy run changes.
    """

    def __init__(
        self,
        learn: Callable[[History, str], T],
        premises: Callable[[History, str], Collection[str]] = lambda history, commit: (),
        *,
        pooled: bool = False,
    ) -> None:
        self._learn = learn
        self._premises = premises
        self._pooled = pooled
        self._scores: Scores | None = None
        self._position = 0
        self._found: dict[str, T] = {}
        self._followers: dict[str, set[str]] = {}

    def of(self, history: History, commits: Sequence[str]) -> Mapping[str, T]:
        """Return id -> result; results of other candidates are forgotten."""
        stale, known = self._stale(history), self._found
        self._found = {
            each: known[each] if each in known and each not in stale else self._anew(history, each) for each in commits
        }
        return self._found

    def _anew(self, history: History, commit: str) -> T:
        for premise in self._premises(history, commit):
            self._followers.setdefault(premise, set()).add(commit)
        return self._learn(history, commit)

    def _stale(self, history: History) -> Collection[str]:
        """Return the candidates whose results may differ since the last call; forget all if all may."""
        scores, position = history.scores, self._position
        moved = len(scores.log) > position and (scores.shifting or (self._pooled and scores.repeats > 0))
        if scores is not self._scores or moved:
            self._found = {}
            self._followers = {}
        self._scores = scores
        self._position = len(scores.log)
        children = history.phylogeny.children
        return {
            each
            for commit in scores.log[position:]
            for each in (commit, *children(commit), *self._followers.get(commit, ()))
        }
