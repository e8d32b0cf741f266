"""What a run uses: CPU of this process and of all that it started, wall clock, moves, and processes of `git`."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from evogit.events import Duplicate, Entry, Evaluated, FailedProposal, Proposed, Spent

FORKS = "evogit.evaluation.evaluator_main"
"""What the command line of the process holds that evaluator processes are forked from."""

REAPED = (13, 15)
"""Where the system tells what a process has waited for."""

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """User and system time of this process, of those that it has waited for, and of those that are still at work."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used) + sum(map(_seconds_of, _descendants("self")))


def nested_seconds(process: str = "self") -> float:
    """The part of it that evaluator processes did not use themselves, but sandboxes and candidates."""
    found = 0.0
    for child in _children(process):
        if FORKS in command_line(child):
            for evaluator in _children(child):
                found += _seconds_of(evaluator, *REAPED) + sum(map(_seconds_of, _descendants(evaluator)))
        else:
            found += nested_seconds(child)
    return found


def command_line(process: str | int) -> str:
    """How a process was started, nothing where it has ended."""
    return _content(str(process), "cmdline")


def _children(process: str) -> list[str]:
    files = Path("/proc", process, "task").glob("*/children")
    return [child for file in files for child in _content(process, f"task/{file.parent.name}/children").split()]


def _content(process: str, file: str) -> str:
    """What the system tells of a process, nothing where it has ended."""
    try:
        return Path("/proc", process, file).read_text()
    except OSError:
        return ""


def _descendants(process: str) -> list[str]:
    children = _children(process)
    return children + [below for child in children for below in _descendants(child)]


def _seconds_of(process: str, first: int = 11, end: int = 15) -> float:
    """Of utime, stime, cutime and cstime, all by default: proc(5)."""
    return sum(map(int, _content(process, "stat").rpartition(")")[2].split()[first:end])) / TICKS


@dataclass(frozen=True, slots=True)
class Reading:
    """What was used until so many candidates were evaluated."""

    evaluated: int
    cpu: float
    nested: float
    """The part of what sandboxes and candidates used."""
    moves: int
    gits: int


class Meter:
    """Watches a run and reads the clocks when so many candidates as one of the `marks` are evaluated.

    Attributes:
        readings: at the marks, and by `read` at other times.
        outcomes: how attempts ended (`new`, `duplicate`, `failed`) of each way to make candidates.
        candidates_cpu: CPU seconds of candidates themselves, as their evaluations say.
        busy: seconds that evaluations took.
        tokens: of prompts and completions.
    """

    def __init__(self, marks: Collection[int] = ()) -> None:
        self.readings: list[Reading] = []
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.candidates_cpu = 0.0
        self.busy = 0.0
        self.tokens = 0
        self._marks = marks
        self._walls: list[float] = []
        self._gits = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """Count processes of `git`; Python tells of each that it starts."""
        if event == "subprocess.Popen" and Path(os.fsdecode(str(arguments[0]))).name == "git":
            self._gits += 1

    def entry(self, entry: Entry) -> None:
        """Take a fact of the run in."""
        match entry.event:
            case Evaluated(evaluation=evaluation):
                self.candidates_cpu += evaluation.cost.cpu
                self.busy += evaluation.cost.wall
                if evaluation.repeat == 0 and evaluation.split == "train":
                    self._evaluated()
            case Proposed() | Duplicate() | FailedProposal() as attempt:
                way = " ".join(filter(None, [attempt.operator, attempt.strategy and f"({attempt.strategy})"]))
                outcome = {Proposed: "new", Duplicate: "duplicate", FailedProposal: "failed"}[type(attempt)]
                if attempt.operator != "seed":
                    self.outcomes[way, outcome] += 1
            case Spent(prompt=prompt, completion=completion):
                self.tokens += prompt + completion

    def _evaluated(self) -> None:
        self._walls.append(time.perf_counter())
        if len(self._walls) in self._marks:
            self.read()

    def read(self) -> Reading:
        """Read the clocks now."""
        self.readings.append(
            Reading(len(self._walls), cpu_seconds(), nested_seconds(), self.outcomes.total(), self._gits)
        )
        return self.readings[-1]

    def activity(self, agent: str, doing: str) -> None:
        """Of no interest here."""

    def wall_ms(self, before: Reading, after: Reading) -> float:
        """Median milliseconds from one evaluation to the next."""
        walls = self._walls[before.evaluated - 1 : after.evaluated]
        return 1000 * statistics.median(b - a for a, b in zip(walls, walls[1:], strict=False))

    def count(self, outcome: str) -> int:
        """Attempts that ended so."""
        return sum(number for (_, ended), number in self.outcomes.items() if ended == outcome)


def cpu_ms(before: Reading, after: Reading) -> float:
    """Milliseconds of CPU per candidate between two readings."""
    return 1000 * (after.cpu - before.cpu) / (after.evaluated - before.evaluated)


def cpu_ms_per_move(before: Reading, after: Reading) -> float:
    """Milliseconds of CPU per attempt of an agent between two readings."""
    return 1000 * (after.cpu - before.cpu) / (after.moves - before.moves)
