"""What steps of earlier runs taught: sentences that were proven on several parents, offered to the briefs of others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from msgspec.structs import replace

from evogit.core import EvoGitError
from evogit.events import Lesson
from evogit.history.context import StoredRun
from evogit.history.history import History
from evogit.repository import Repository
from evogit.text import one_line

NO_LESSONS = "none"
"""The source that stands for no lessons at all."""

MAX_LESSON_CHARS = 200
MAX_LESSONS, MAX_LESSON_TOKENS = 5, 200
"""The lessons of a brief, and the tokens (of four bytes) that all of them take."""

MIN_LIKENESS = 0.2
"""The likeness of goal and files, of 1 at most, below which a lesson is not offered."""

Source = tuple[Repository, str]
"""A run, and the repository in which it lies."""


def lesson_sources(repository: Repository, named: Sequence[str] = (), *, but: str = "") -> list[Source]:
    """Return the runs whose lessons a run is offered: those `named`, else all others of its repository.

    A name is that of a run of the repository, or the folder of another repository, all of whose runs are meant. Runs
    that nobody named count only if the user trusts the key that seals them: what a stranger wrote reaches no brief.

    Raises:
        NotFoundError: a name is neither.
    """
    if not named:
        return [(repository, run) for run in repository.runs() if run != but and repository.keys.find(run)]
    runs = repository.runs()
    others = [Repository.discover(Path(name)) for name in named if name not in (*runs, NO_LESSONS)]
    return [(repository, run) for run in named if run in runs] + [(each, run) for each in others for run in each.runs()]


def kept_lessons(sources: Iterable[Source]) -> list[tuple[str, Lesson]]:
    """Return the lessons of some runs, each after the run whose journal has it, withdrawn ones too.

    Runs that cannot be read are left out. Of a lesson that a fork has too, the first run's counts.
    """
    lessons = dict[str, tuple[str, Lesson]]()
    for repository, run in sources:
        with suppress(EvoGitError):
            history = StoredRun.open(repository, run).history
            for step, lesson in history.lessons.items():
                pruned = "" if step not in history.pruned else "its step was pruned"
                lessons.setdefault(step, (run, replace(lesson, withdrawn=lesson.withdrawn or pruned)))
    return list(lessons.values())


def lesson_line(lesson: Lesson) -> str:
    """Return a lesson and what proves it, in one line."""
    gains = " to ".join(dict.fromkeys(f"{edge(lesson.gains.values(), default=0):+.3g}" for edge in (min, max)))
    text = one_line(lesson.text, MAX_LESSON_CHARS)
    return f"{text} ({lesson.metric} {gains} on {len(lesson.gains)} parents, run {lesson.run})"


def likeness(lesson: Lesson, goal: str, files: Collection[str]) -> float:
    """Return how much a task is like the one that taught this: the mean share of words and of changed files."""
    own, words = (set(re.findall(r"\w{3,}", text.lower())) for text in (lesson.goal, goal))
    there = sum(path in files for path in lesson.files) / max(len(lesson.files), 1)
    return (len(own & words) / max(len(own | words), 1) + there) / 2


def offered(lessons: Iterable[Lesson], history: History, goal: str, files: Collection[str]) -> tuple[str, ...]:
    """Return a line for each lesson that a brief tells: in force, not of this run, like its goal and files.

    The likest come first, as many as there is room for.
    """
    others = [each for each in lessons if not each.withdrawn and each.step not in history.phylogeny]
    likest = sorted(((likeness(each, goal, files), lesson_line(each)) for each in others), reverse=True)
    lines = [line for like, line in likest[:MAX_LESSONS] if like >= MIN_LIKENESS]
    ends = accumulate(len(line.encode()) + len("- \n") for line in lines)
    return tuple(line for line, end in zip(lines, ends, strict=True) if end <= 4 * MAX_LESSON_TOKENS)
