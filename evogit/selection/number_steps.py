"""Changes of one number that go on without asking a model: further where that helped, the other way where it did not.

After Rosenbrock (1960, "An automatic method for finding the greatest or least value of a function"), for whatever
number was changed alone, in whatever file; ours: as far again, then twice as far each time. The other way is mirrored
sampling (Brockhoff et al., 2010, "Mirrored sampling and sequential selection for evolution strategies").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from evogit.core import Candidate
from evogit.history import History
from evogit.history.counts import EXTENDED, MIRRORED
from evogit.history.per_candidate import Lessons
from evogit.repository import UnfitChangeError
from evogit.selection import Move
from evogit.selection.anatomy import PLAIN, Anatomy
from evogit.selection.merge_planner import improved, is_for
from evogit.source import MAX_SOURCE_BYTES
from evogit.source.number_changes import NumberChange, changed_number, with_step
from evogit.text import TITLE_LENGTH, one_line

WINDOW = 60
"""Latest evaluated candidates among which one is looked for whose change is made the other way."""

MEMORY = 200
"""Latest evaluated candidates by which it is decided whether there are more steps."""

LONGER = 2
"""What a step that helped is multiplied by, where it was one that went on already."""

MOST = 10
"""Steps in a row; then an agent is asked, however well they go."""

ALIKE = 2.0
"""A number is not mirrored again from the same candidate by a step of nearly this length, up to so many times."""

PRIOR = {EXTENDED: 2, MIRRORED: 1}
"""Steps that are taken to have helped before any was made."""

OTHERWISE, NO_CHANGE = "", "-"
"""The way of what is no step, and of what has not one parent."""

LONGEST_LINE = 1000
"""Characters of two lines that are looked at for a title."""

REMEMBERED = 512
"""Changes, and trees that steps make, that are not looked at again."""


class Step(NamedTuple):
    """A step from a candidate: what it follows from, which bytes of which file are the number, and how far it goes."""

    way: str
    source: str
    path: str
    blob: str
    place: tuple[int, int]
    by: float


class _Moved(NamedTuple):
    """What a candidate changed of its parent: one number of a file whose blob was another before."""

    path: str
    before: str
    after: str
    change: NumberChange


class _Outcome(NamedTuple):
    """What became of a candidate: the way of a step, and whether it is better than its one parent."""

    way: str
    helped: bool


class NumberSteps:
    """The steps that a run may go on with. They ask no model, so they use up no proposals, but an evaluation each.

    Such steps are made while they help as often as all else does that is evaluated.
    """

    def __init__(self, anatomy: Anatomy) -> None:
        self._trees = anatomy.repository.trees
        self._moved = lru_cache(REMEMBERED)(self._read)
        self._made = lru_cache(REMEMBERED)(self._make)
        self._outcomes = Lessons(_outcome)

    def move(self, history: History, agent: str) -> Move | None:
        """The next step from the best candidate, or its latest equal, that makes something new; None without one."""
        ways = _paying(self._outcomes.of(history, history.judgements[-MEMORY:]).values())
        for onto in dict.fromkeys(filter(None, (history.latest_best, history.best))):
            for step in self._open(history, onto, ways):
                if not is_for(history, agent, step.source):
                    continue
                made = self._made(history.phylogeny[onto].tree, step)
                if made and not _is_known(history, made[0]):
                    _, content, title = made
                    change = {step.path: content}
                    return Move(operator="mutation", parents=(onto,), strategy=step.way, change=change, title=title)
        return None

    def _open(self, history: History, onto: str, ways: Collection[str]) -> Iterator[Step]:
        """The steps that follow from what was evaluated: first how the candidate became so good, then what failed."""
        in_vain, this = history.attempts.in_vain, history.phylogeny[onto]
        if EXTENDED in ways and not in_vain(EXTENDED, onto):
            yield from self._extended(history, this)
        if MIRRORED in ways and not in_vain(MIRRORED, onto):
            yield from self._mirrored(history, this)

    def _extended(self, history: History, this: Candidate) -> Iterator[Step]:
        """What made a candidate better than its parent once more, unless the latest `MOST` steps are such already."""
        graph, first, steps = history.phylogeny, this, 0
        while first.strategy == EXTENDED:
            first, steps = graph[first.parents[0]], steps + 1
        if steps >= MOST or not _helped(history, this):
            return
        if moved := self._moved(graph[this.parents[0]].tree, this.tree):
            change = moved.change
            by = change.by * LONGER if steps else change.by
            yield Step(EXTENDED, this.commit, moved.path, moved.after, (change.start, change.new_end), by)

    def _mirrored(self, history: History, this: Candidate) -> Iterator[Step]:
        """What made a candidate worse, the latest first, the other way, unless that was tried with much the same."""
        children = [history.phylogeny[each] for each in reversed(history.judgements[-WINDOW:])]
        worse, tried = list[tuple[str, _Moved]](), list[_Moved]()
        for child in children:
            if child.parents == (this.commit,) and (moved := self._moved(this.tree, child.tree)):
                if child.strategy not in PRIOR and not history.no_worse(child.commit, this.commit):
                    worse.append((child.commit, moved))
                if child.strategy == MIRRORED:
                    tried.append(moved)
        for commit, (path, before, _, change) in worse:
            if not any(_is_alike(path, change, each) for each in tried):
                yield Step(MIRRORED, commit, path, before, (change.start, change.old_end), -change.by)

    def _read(self, before: str, after: str) -> _Moved | None:
        """The number in which two trees differ, if they differ in one alone."""
        differing = self._trees.differences(before, after)
        if len(differing) != 1:
            return None
        old, new = differing[0]
        if old is None or new is None or (old.path, old.mode) != (new.path, new.mode) or old.mode not in PLAIN:
            return None
        if max(self._trees.size(each.blob) for each in (old, new)) > MAX_SOURCE_BYTES:
            return None
        change = changed_number(self._trees.blob(old.blob), self._trees.blob(new.blob))
        return change and _Moved(new.path, old.blob, new.blob, change)

    def _make(self, tree: str, step: Step) -> tuple[str, bytes, str] | None:
        """The tree with a step, the file's new content, and a title."""
        old = self._trees.blob(step.blob)
        new = with_step(old, *step.place, step.by)
        if new is None:
            return None
        try:
            return self._trees.write(tree, {step.path: new}), new, _title(old, new, step)
        except UnfitChangeError:
            return None


def _is_alike(path: str, change: NumberChange, mirrored: _Moved) -> bool:
    """Whether a change the other way is much the same as one that was made."""
    ratio = -mirrored.change.by / change.by
    return (path, change.start) == (mirrored.path, mirrored.change.start) and 1 / ALIKE < ratio < ALIKE


def _paying(known: Collection[_Outcome]) -> Collection[str]:
    """The ways in which steps helped as often as all else that was made of one parent."""
    made, helped = Counter[str](), Counter[str]()
    for way, better in known:
        made[way] += 1
        helped[way] += better
    usual = helped[OTHERWISE] / max(1, made[OTHERWISE])
    return {way for way, prior in PRIOR.items() if (helped[way] + prior) / (made[way] + prior) >= usual}


def _outcome(history: History, commit: str) -> _Outcome:
    candidate = history.phylogeny[commit]
    if len(candidate.parents) != 1:
        return _Outcome(NO_CHANGE, False)
    way = candidate.strategy if candidate.strategy in PRIOR else OTHERWISE
    return _Outcome(way, _helped(history, candidate))


def _helped(history: History, candidate: Candidate) -> bool:
    """Whether a change of one parent made it better, beyond noise."""
    return len(candidate.parents) == 1 and improved(history, candidate.commit)


def _is_known(history: History, tree: str) -> bool:
    """Whether this was proposed, as far as a move may know."""
    first = history.duplicate_of(tree, "")
    return first is not None and history.attempts.is_known(history.phylogeny[first])


def _title(old: bytes, new: bytes, step: Step) -> str:
    """The line before and after; where that is too long, the number and its place."""
    start, end = step.place
    stop = end + len(new) - len(old)
    lines = one_line(f"{_line(old, start, end)} -> {_line(new, start, stop)}", LONGEST_LINE)
    if len(lines) <= TITLE_LENGTH:
        return lines
    line = old.count(b"\n", 0, start) + 1
    numbers = f"{old[start:end].decode()} -> {new[start:stop].decode()}"
    return one_line(f"{numbers}, line {line} of {step.path}")


def _line(content: bytes, start: int, end: int) -> str:
    last = content.find(b"\n", end)
    line = content[content.rfind(b"\n", 0, start) + 1 : last if last >= 0 else len(content)]
    return line.decode(errors="replace").strip()
