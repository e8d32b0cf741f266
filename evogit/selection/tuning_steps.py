"""How far each named number should go next, learned from what earlier changes of it did.

The rule is that of Rosenbrock (1960, "An automatic method for finding the greatest or least value of a function"): a
step that helped is made again and longer, another one shorter and the other way. Ours: a step that changed no case at
all was too short, so that plateaus are left; and lessons of candidates that differ from the parent in more than named
numbers count only where there are no others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from evogit.history import History
from evogit.history.per_candidate import Lessons
from evogit.selection.anatomy import PLAIN, Anatomy
from evogit.source.constants import NOTHING, REMEMBERED, Constant, Named, named
from evogit.source.pieces import has_pieces

WINDOW = 200
"""Latest evaluated candidates that are learned from."""

LONGER = 2.0
"""What a step that helped is multiplied by."""

IDLE = -2.0
"""The same of one that changed no case."""

SHORTER = -0.5
"""The same of one that made things worse."""

IDLE_TOGETHER = 2.0
"""The same of each of several that were made together and changed no case."""

Frame = frozenset[tuple[str, int, str]]
"""What a candidate has that the seed has not, apart from named numbers: paths, modes, digests of the content."""


class _Lesson(NamedTuple):
    """What a candidate taught: by how much it changed which number of its parent, and what that was worth.

    Without changes, or without a parent that was evaluated, it taught nothing. `frame` is the candidate's.
    """

    frame: Frame
    changes: Mapping[Constant, float]
    worth: float


class Tuning:
    """What the history of a run tells of its named numbers. `anatomy` tells what candidates are made of."""

    def __init__(self, anatomy: Anatomy) -> None:
        self._anatomy = anatomy
        self._frames: dict[str, Frame] = {}
        self._same: dict[Frame, Frame] = {}
        self._read = lru_cache(REMEMBERED)(self._read_named)
        self._lessons = Lessons(self._learned)

    def steps(self, history: History, parent: str) -> Mapping[Constant, float]:
        """Signed lengths of the next steps from a parent, of the numbers that were changed before."""
        elsewhere: dict[Constant, float] = {}
        alike: dict[Constant, float] = {}
        frame = self._frame(history, parent)
        for lesson in self._lessons.of(history, history.judgements[-WINDOW:]).values():
            if lesson.changes:
                _learn(alike if lesson.frame is frame else elsewhere, lesson.changes, lesson.worth)
        return elsewhere | alike

    def tuned(self, history: History, seed: str) -> str:
        """The fittest candidate that is the seed but for its named numbers; the seed where there is no fitter one."""
        fittest = seed
        for commit in history.judgements:
            if commit not in history.pruned and history.fitter(commit, fittest) and not self._frame(history, commit):
                fittest = commit
        return fittest

    def _learned(self, history: History, commit: str) -> _Lesson:
        candidate, frame = history.phylogeny[commit], self._frame(history, commit)
        if candidate.operator != "mutation" or history.fitness(candidate.parents[0]) is None:
            return _Lesson(frame, {}, 0.0)
        return _Lesson(frame, self._changed(history, commit), _worth(history, commit))

    def _changed(self, history: History, commit: str) -> Mapping[Constant, float]:
        """By how much a candidate changed which number of its parent; nothing where it changed more than that."""
        parent = history.phylogeny[commit].parents[0]
        if self._frame(history, commit) is not self._frame(history, parent):
            return {}
        after, before = self._anatomy.files(history, commit), self._anatomy.files(history, parent)
        changes: dict[Constant, float] = {}
        for path in sorted(after.keys() | before.keys()):
            then, now = (self._named(history, each, path).numbers for each in (parent, commit))
            for constant in now:
                if by := now[constant].value - then[constant].value:
                    changes[constant] = by
        return changes

    def _frame(self, history: History, commit: str) -> Frame:
        """The same object for all candidates that have the same."""
        if commit not in self._frames:
            seed = history.seed or commit
            parts = [
                (path, file.mode, self._rest(history, commit, path))
                for path, file in self._anatomy.files(history, commit).items()
                if file.mode != self._anatomy.file(history, seed, path).mode
                or self._rest(history, commit, path) != self._rest(history, seed, path)
            ]
            frame = frozenset(parts)
            self._frames[commit] = self._same.setdefault(frame, frame)
        return self._frames[commit]

    def _rest(self, history: History, commit: str, path: str) -> str:
        """A digest of what a candidate has at a path, without named numbers where there can be any."""
        return self._named(history, commit, path).rest or self._anatomy.file(history, commit, path).blob

    def _named(self, history: History, commit: str, path: str) -> Named:
        file = self._anatomy.file(history, commit, path)
        return self._read(path, file.blob) if has_pieces(path) and file.mode in PLAIN and not file.whole else NOTHING

    def _read_named(self, path: str, blob: str) -> Named:
        return named(path, self._anatomy.repository.trees.blob(blob))


def _worth(history: History, commit: str) -> float:
    """What the next step of the same kind is, as a multiple of the one that a candidate made."""
    parent = history.phylogeny[commit].parents[0]
    gain = history.gain(commit, parent)
    if gain is not None and gain > 0:
        return LONGER
    return IDLE if gain == 0 and history.scores.cases(commit) == history.scores.cases(parent) else SHORTER


def _learn(steps: dict[Constant, float], changes: Mapping[Constant, float], worth: float) -> None:
    """Take in what came of changes. Of several that did not help it is unknown which were to blame."""
    for constant, by in changes.items():
        if len(changes) == 1:
            steps[constant] = worth * by
        elif worth == LONGER:
            steps[constant] = math.copysign(max(abs(by), abs(steps.get(constant, by))), by)
        else:
            steps[constant] = steps.get(constant, by) * (IDLE_TOGETHER if worth == IDLE else 1.0)
