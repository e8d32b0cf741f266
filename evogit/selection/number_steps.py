"""The memory of a run about the numbers in its programs, and the next step of each.

The rule is that of Rosenbrock (1960, "An automatic method for finding the greatest or least value of a function"): a
step that helped is made again and longer, another one shorter and the other way. Ours: a step that changed no case at
all was too short, so that plateaus are left. Agents that ask no model draw such steps (`agents/mutation/tuning.py`).
For those that do, changes of one number continue without a call: as far again and then twice as far each time if one
made the best candidate, and the other way if one made it worse, as in mirrored sampling (Brockhoff et al., 2010,
"Mirrored sampling and sequential selection for evolution strategies").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from evogit.core import Candidate
from evogit.history import History
from evogit.history.counts import EXTENDED, MIRRORED
from evogit.history.per_candidate import Lessons
from evogit.repository import EXECUTABLE, FILE, Repository, TreeEntry, UnfitChangeError
from evogit.selection import Change
from evogit.selection.merge_planner import improved, is_for, is_known
from evogit.source import MAX_SOURCE_BYTES
from evogit.source.numbers import NOTHING, Constant, Numbers, changed_numbers, numbers_of, with_step
from evogit.text import TITLE_LENGTH, one_line

WINDOW = 200
"""Latest evaluated candidates that are learned from."""

MIRROR_WINDOW = 60
"""Latest evaluated candidates among which one is looked for whose change is made the other way."""

LONGER, IDLE, SHORTER = 2, -2.0, -0.5
"""The next step, as a multiple of one that helped, of one that changed no case, and of one that made things worse."""

IDLE_TOGETHER = 2.0
"""The same for each of several steps that were made together and changed no case."""

MAX_STEPS = 10
"""Steps in a row; then an agent is asked, however well they go."""

ALIKE = 2.0
"""A number is not mirrored again from the same candidate by a step of nearly this length, up to so many times."""

PRIOR = {EXTENDED: 2, MIRRORED: 1}
"""Steps that are taken to have helped before any was made."""

MAX_LINE_CHARS = 1000
"""Two lines of a title that are looked at."""

REMEMBERED = 512
"""Pairs of trees that are not compared again, and trees that steps make."""

Frame = frozenset[tuple[str, int, str]]
"""Return the difference of a candidate to the seed, apart from numbers: paths, modes, content digests."""


class Step(NamedTuple):
    """A step from a candidate: what it follows from, the number, and how far it goes."""

    way: str
    source: str
    number: Constant
    by: float


class _Lesson(NamedTuple):
    """By how much a candidate changed which numbers of its parent, if nothing else, and what that was worth."""

    frame: Frame
    changes: Mapping[Constant, float]
    worth: float


class NumberSteps:
    """The memory of a run's numbers. All that it tells follows from the history, whatever it was asked before."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._trees = repository.trees
        self._frames: dict[str, Frame] = {}
        self._same: dict[Frame, Frame] = {}
        self._changed = lru_cache(REMEMBERED)(self._compare)
        self._made = lru_cache(REMEMBERED)(self._make)
        self._lessons = Lessons(self._lesson)
        self._outcomes = Lessons(_outcome)

    # --- for agents that ask no model -------------------------------------------------------------------------------

    def steps(self, history: History, parent: str) -> Mapping[Constant, float]:
        """Return signed lengths of the next steps from a parent, of the numbers that were changed before.

        What was learned on other code counts only for named numbers, and where there is nothing else.
        """
        elsewhere: dict[Constant, float] = {}
        alike: dict[Constant, float] = {}
        frame = self._frame(history, parent)
        for lesson in self._lessons.of(history, history.judgements[-WINDOW:]).values():
            if lesson.changes:
                _learn(alike if lesson.frame is frame else elsewhere, lesson.changes, lesson.worth)
        return {number: by for number, by in elsewhere.items() if number.name} | alike

    def tuned(self, history: History, seed: str) -> str:
        """Return the fittest candidate that is the seed but for its numbers; the seed if there is no fitter one."""
        fittest = seed
        for commit in history.judgements:
            if commit not in history.pruned and history.fitter(commit, fittest) and not self._frame(history, commit):
                fittest = commit
        return fittest

    # --- for agents that ask models ---------------------------------------------------------------------------------

    def move(self, history: History, agent: str) -> Change | None:
        """Return the next step from the best candidate, or its latest equal, that makes something new, if any.

        Such moves ask no model, so they use up no proposals, but an evaluation each; they are made while they help as
        often as everything else that is evaluated.
        """
        ways = _paying(self._outcomes.of(history, history.judgements[-WINDOW:]).values())
        for onto in dict.fromkeys(filter(None, (history.latest_best, history.best))):
            for step in self._open(history, onto, ways):
                if not is_for(history, agent, step.source):
                    continue
                made = self._made(history.phylogeny[onto].tree, step.number, step.by)
                if made and not is_known(history, made[0]):
                    _, content, title = made
                    change = {step.number.path: content}
                    return Change(parent=onto, strategy=step.way, change=change, title=title)
        return None

    def _open(self, history: History, onto: str, ways: Collection[str]) -> Iterator[Step]:
        """Yield the steps that follow from what was evaluated: how the candidate became so good, then what failed."""
        in_vain, candidate = history.attempts.in_vain, history.phylogeny[onto]
        if EXTENDED in ways and not in_vain(EXTENDED, onto):
            yield from self._extended(history, candidate)
        if MIRRORED in ways and not in_vain(MIRRORED, onto):
            yield from self._mirrored(history, candidate)

    def _extended(self, history: History, best: Candidate) -> Iterator[Step]:
        """Yield what made a candidate better than its parent once more, unless that was done often enough already."""
        graph, first, steps = history.phylogeny, best, 0
        while first.strategy == EXTENDED:
            first, steps = graph[first.parents[0]], steps + 1
        if steps < MAX_STEPS and _helped(history, best):
            changes = self._changed(graph[best.parents[0]].tree, best.tree)
            if len(changes) == 1:
                ((number, by),) = changes.items()
                yield Step(EXTENDED, best.commit, number, by * LONGER if steps else by)

    def _mirrored(self, history: History, best: Candidate) -> Iterator[Step]:
        """Yield what made a candidate worse, the latest first, the other way, unless much the same was tried."""
        worse, tried = list[Step](), list[tuple[Constant, float]]()
        for commit in reversed(history.judgements[-MIRROR_WINDOW:]):
            child = history.phylogeny[commit]
            if child.parents != (best.commit,) or len(changes := self._changed(best.tree, child.tree)) != 1:
                continue
            ((number, by),) = changes.items()
            if child.strategy not in PRIOR and not history.no_worse(commit, best.commit):
                worse.append(Step(MIRRORED, commit, number, -by))
            if child.strategy == MIRRORED:
                tried.append((number, by))
        for step in worse:
            if not any(number == step.number and 1 / ALIKE < by / step.by < ALIKE for number, by in tried):
                yield step

    def _make(self, tree: str, number: Constant, by: float) -> tuple[str, bytes, str] | None:
        """Return the tree with a step, the file's new content, and a title."""
        old = self._trees.files(tree, lambda path: path == number.path)[number.path]
        place = numbers_of(number.path, old).numbers[number]
        new = with_step(old, place, by)
        if new is None:
            return None
        try:
            return self._trees.write(tree, {number.path: new}), new, _title(number.path, old, new, *place[:2])
        except UnfitChangeError:
            return None

    # --- what candidates teach --------------------------------------------------------------------------------------

    def _lesson(self, history: History, commit: str) -> _Lesson:
        candidate, frame = history.phylogeny[commit], self._frame(history, commit)
        if candidate.operator != "mutation" or history.fitness(candidate.parents[0]) is None:
            return _Lesson(frame, {}, 0.0)
        parent = history.phylogeny[candidate.parents[0]]
        return _Lesson(frame, self._changed(parent.tree, candidate.tree), _worth(history, commit, parent.commit))

    def _compare(self, before: str, after: str) -> Mapping[Constant, float]:
        """Return by how much each number changed between two trees; nothing if anything else changed."""
        changes: dict[Constant, float] = {}
        for old, new in self._trees.differences(before, after):
            if old is None or new is None or (old.path, old.mode) != (new.path, new.mode) or not self._is_read(new):
                return {}
            found = changed_numbers(new.path, *(self._trees.blob(each.blob) for each in (old, new)))
            if not found:
                return {}
            changes |= found
        return changes

    def _frame(self, history: History, commit: str) -> Frame:
        """Return the same object for all candidates that have the same."""
        if commit not in self._frames:
            seed, tree = history.phylogeny[history.seed or commit].tree, history.phylogeny[commit].tree
            parts = set[tuple[str, int, str]]()
            for old, new in self._trees.differences(seed, tree):
                if new is None:
                    parts.add((old.path if old else "", 0, ""))
                    continue
                rest = self._numbers(new).rest
                if old is None or old.mode != new.mode or not rest or self._numbers(old).rest != rest:
                    parts.add((new.path, new.mode, rest or new.blob))
            frame = frozenset(parts)
            self._frames[commit] = self._same.setdefault(frame, frame)
        return self._frames[commit]

    def _numbers(self, entry: TreeEntry) -> Numbers:
        return numbers_of(entry.path, self._trees.blob(entry.blob)) if self._is_read(entry) else NOTHING

    def _is_read(self, entry: TreeEntry) -> bool:
        return entry.mode in (FILE, EXECUTABLE) and self._trees.size(entry.blob) <= MAX_SOURCE_BYTES


def _worth(history: History, commit: str, parent: str) -> float:
    """Return the next step of the same kind, as a multiple of the one that a candidate made."""
    gain = history.gain(commit, parent)
    if gain is not None and gain > 0:
        return LONGER
    return IDLE if gain == 0 and history.scores.cases(commit) == history.scores.cases(parent) else SHORTER


def _learn(steps: dict[Constant, float], changes: Mapping[Constant, float], worth: float) -> None:
    """Take in what came of changes. If several did not help it is unknown which were to blame."""
    for number, by in changes.items():
        if len(changes) == 1:
            steps[number] = worth * by
        elif worth == LONGER:
            steps[number] = math.copysign(max(abs(by), abs(steps.get(number, by))), by)
        else:
            steps[number] = steps.get(number, by) * (IDLE_TOGETHER if worth == IDLE else 1.0)


def _paying(outcomes: Collection[tuple[str, bool] | None]) -> Collection[str]:
    """Return the ways in which steps helped as often as everything else that was made of one parent."""
    made, helped = Counter[str](), Counter[str]()
    for way, better in filter(None, outcomes):
        made[way] += 1
        helped[way] += better
    usual = helped[""] / max(1, made[""])
    return {way for way, prior in PRIOR.items() if (helped[way] + prior) / (made[way] + prior) >= usual}


def _outcome(history: History, commit: str) -> tuple[str, bool] | None:
    """Return the way of a step, empty for other changes, and whether it helped; None for merges."""
    candidate = history.phylogeny[commit]
    if len(candidate.parents) != 1:
        return None
    return candidate.strategy if candidate.strategy in PRIOR else "", _helped(history, candidate)


def _helped(history: History, candidate: Candidate) -> bool:
    """Return whether a change of one parent made it better, beyond noise."""
    return len(candidate.parents) == 1 and improved(history, candidate.commit)


def _title(path: str, old: bytes, new: bytes, start: int, end: int) -> str:
    """Return the line before and after; if that is too long, the number and its place."""
    stop = end + len(new) - len(old)
    lines = one_line(f"{_line(old, start, end)} -> {_line(new, start, stop)}", MAX_LINE_CHARS)
    if len(lines) <= TITLE_LENGTH:
        return lines
    line = old.count(b"\n", 0, start) + 1
    return one_line(f"{old[start:end].decode()} -> {new[start:stop].decode()}, line {line} of {path}")


def _line(content: bytes, start: int, end: int) -> str:
    last = content.find(b"\n", end)
    line = content[content.rfind(b"\n", 0, start) + 1 : last if last >= 0 else len(content)]
    return line.decode(errors="replace").strip()
