"""The tables of the benchmark, as Markdown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, pstdev

from results import Results
from running import Outcome
from serving import best_so_far
from systems import SYSTEMS

from evogit.stats import paired_tests

POINTS = (25, 50, 100, 200)
OURS = ("evogit-1", "evogit-2", "evogit-4")
PLAIN = ("hill-climbing", "best-of-n")
MARGIN = paired_tests.MARGIN
Cell = tuple[str, str, int]
"""A task, a kind of model, a seed: what a pair has in common."""


@dataclass
class Search:
    """How far each run got, on a scale from the seed (0) to the best that any run of its task found (1)."""

    runs: Sequence[Outcome]

    @cached_property
    def systems(self) -> list[str]:
        """Those that ran, in the order of the table of systems."""
        return [name for name in SYSTEMS if any(run.system == name for run in self.runs)]

    @cached_property
    def budget(self) -> int:
        """Evaluations of a run."""
        return max(len(run.scores) for run in self.runs)

    @cached_property
    def scales(self) -> dict[str, tuple[float, float]]:
        """Of each task, the score of the seed, and the best."""
        found: dict[str, tuple[float, float]] = {}
        for run in self.runs:
            seed, best = found.get(run.task, (run.scores[0] or 0.0, 0.0))
            found[run.task] = seed, max([best, seed, *(score for score in run.scores if score is not None)])
        return found

    @cached_property
    def curves(self) -> dict[str, dict[Cell, list[float]]]:
        """Of each system, the best so far by cell."""
        found: dict[str, dict[Cell, list[float]]] = {}
        for run in self.runs:
            seed, best = self.scales[run.task]
            curve = best_so_far([seed if score is None else score for score in run.scores])
            scaled = [paired_tests.normalised(value, seed, best) for value in curve]
            found.setdefault(run.system, {})[run.task, run.kind, run.seed] = scaled
        return found

    def areas(self, system: str, fits: Callable[[Cell], bool] = lambda cell: True) -> dict[Cell, float]:
        """The area under the best so far of each run."""
        curves = self.curves.get(system, {})
        return {cell: paired_tests.area(curve, self.budget) for cell, curve in curves.items() if fits(cell)}

    def lead(self, ours: str, theirs: str, fits: Callable[[Cell], bool]) -> list[float]:
        """How much more area we have, pair by pair."""
        mine, other = self.areas(ours, fits), self.areas(theirs, fits)
        return [mine[cell] - other[cell] for cell in sorted(mine.keys() & other.keys())]


def tables(results: Results) -> str:
    """All there is to print."""
    runs = [run for run in results.runs.values() if run.scores]
    if not runs:
        return "nothing was measured"
    search = Search(runs)
    parts = [what_ran(search)]
    parts += [progress(search, kind) for kind in sorted({run.kind for run in runs})]
    parts += [by_task(search), leads(search), costs(search), others(results), notes(results)]
    return "\n\n".join(part for part in parts if part)


def what_ran(search: Search) -> str:
    """In a sentence."""
    seeds = {run.seed for run in search.runs}
    kinds = sorted({run.kind for run in search.runs})
    tasks = list(search.scales)
    return (
        f"{len(search.runs)} runs of {search.budget} evaluations: {len(search.systems)} systems, {len(tasks)} tasks "
        f"({', '.join(tasks)}), models {' and '.join(kinds)}, at most {len(seeds)} seeds."
    )


def progress(search: Search, kind: str) -> str:
    """The best so far at some evaluations, and the area: means over the tasks, each of which counts the same."""
    points = [point for point in POINTS if point <= search.budget]
    lines = [row("system", "runs", *points, "area")]
    for system in search.systems:
        curves = {cell: curve for cell, curve in search.curves[system].items() if cell[1] == kind}
        if curves:
            values = [over_tasks({cell: at(curve, point) for cell, curve in curves.items()}) for point in points]
            areas = search.areas(system, lambda cell: cell[1] == kind)
            lines.append(row(system, len(curves), *(f"{value:.3f}" for value in values), f"{over_tasks(areas):.3f}"))
    return f"**Search, the {kind} model** (0 is the seed, 1 the best found by any run of the task)\n\n{ruled(lines)}"


def at(curve: Sequence[float], point: int) -> float:
    """The best after so many evaluations."""
    return curve[min(point, len(curve)) - 1]


def over_tasks(values: dict[Cell, float]) -> float:
    """The mean of the tasks' means."""
    tasks = {task for task, _, _ in values}
    return fmean(fmean(value for cell, value in values.items() if cell[0] == task) for task in tasks)


def by_task(search: Search) -> str:
    """The area of each system on each task, over all models and seeds."""
    tasks = list(search.scales)
    lines = [row("area", *tasks)]
    for system in search.systems:
        found = [[*search.areas(system, lambda cell, task=task: cell[0] == task).values()] for task in tasks]
        lines.append(row(system, *(f"{fmean(each):.2f}" if each else "" for each in found)))
    return ruled(lines)


def leads(search: Search) -> str:
    """EvoGit's area less that of hill climbing, and less that of the best peer of each task, pair by pair."""
    peers = [name for name in search.systems if name not in (*OURS, *PLAIN)]
    lines = [row("lead in area", "against", *search.scales, "all tasks")]
    said = []
    for ours in (name for name in OURS if name in search.systems):
        for against, rivals in (("hill climbing", [PLAIN[0]]), ("the best peer there", peers)):
            if not set(rivals) & set(search.systems):
                continue
            found = {task: lead_there(search, ours, rivals, task) for task in search.scales}
            pooled = [each for task in found for each in found[task]]
            lines.append(row(ours, against, *(interval(each) for each in [*found.values(), pooled])))
            said.append(verdict(ours, against, found))
    return ruled(lines) + "\n\n" + "\n".join(said) if said else ""


def lead_there(search: Search, ours: str, rivals: Sequence[str], task: str) -> list[float]:
    """The lead over the rival with the largest area on a task, where both ran."""

    def fits(cell: Cell) -> bool:
        return cell[0] == task

    pairs = {rival: search.lead(ours, rival, fits) for rival in rivals}
    return min((lead for lead in pairs.values() if lead), key=fmean, default=[])


def verdict(ours: str, against: str, found: dict[str, list[float]]) -> str:
    """On how many tasks EvoGit is ahead, not behind by more than the margin, and behind beyond chance."""
    known = {task: lead for task, lead in found.items() if lead}
    ahead = sum(fmean(lead) >= 0 for lead in known.values())
    worse = [task for task, lead in known.items() if len(lead) > 1 and bounds(lead)[1] < -MARGIN]
    behind = [task for task, lead in known.items() if fmean(lead) < 0]
    more = f"; behind on {', '.join(behind)}" if behind else ""
    beyond = f"; by more than {100 * MARGIN:.0f} % beyond chance on {', '.join(worse)}" if worse else ""
    return f"- {ours} against {against}: not below on {ahead} of {len(known)} tasks{more}{beyond}."


def bounds(lead: Sequence[float]) -> tuple[float, float]:
    """The interval of the mean."""
    return paired_tests.interval(lead, random.Random(0))


def interval(lead: Sequence[float]) -> str:
    """The mean with its interval; of one pair there is none."""
    if len(lead) < 2:
        return f"{lead[0]:+.2f}" if lead else ""
    low, high = bounds(lead)
    return f"{fmean(lead):+.2f} [{low:+.2f}, {high:+.2f}]"


def costs(search: Search) -> str:
    """What a candidate costs, and what becomes of candidates."""
    head = ("CPU, ms", "scoring", "wall, ms", "without scoring", "peak MB", "tokens in", "out", "questions")
    lines = [row("per candidate", *head, "duplicates", "failed", "first result, s")]
    for system in search.systems:
        runs = [run for run in search.runs if run.system == system and not run.note]
        if not runs:
            continue
        count = sum(len(run.scores) for run in runs)

        def per(values: Iterable[float], count: int = count) -> float:
            return sum(values) / count

        lines.append(
            row(
                system,
                f"{1000 * per(run.cpu for run in runs):.0f}",
                f"{1000 * per(run.scoring_cpu for run in runs):.0f}",
                f"{1000 * per(run.wall for run in runs):.0f}",
                f"{1000 * per(max(0.0, run.wall - run.scoring) for run in runs):.0f}",
                f"{fmean(run.memory for run in runs):.0f}",
                f"{per(run.asked['prompt'] for run in runs):.0f}",
                f"{per(run.asked['completion'] for run in runs):.0f}",
                f"{per(run.asked['questions'] for run in runs):.2f}",
                f"{100 * per(run.duplicates for run in runs):.0f} %",
                f"{100 * per(sum(score is None for score in run.scores) for run in runs):.0f} %",
                f"{fmean(run.first for run in runs):.1f} ± {pstdev(run.first for run in runs):.1f}",
            )
        )
    return ruled(lines)


def others(results: Results) -> str:
    """A kill, the same seed twice, forged scores, and what to write."""
    systems = [name for name in SYSTEMS if any(each == name for each, _ in results.trials)]
    if not systems:
        return ""
    head = ("version", "killed at", "lost", "again", "resumed to", "same seed twice", "forged scores believed")
    lines = [row("system", *head, "files, lines to write", "packages, MB")]
    for system in systems:
        kill, repeat, forge, set_up = (results.trials.get((system, trial), {}) for trial in TRIALS)
        cells = [kill.get(each, "") for each in ("evaluated", "lost", "again", "reached")]
        size = f"{set_up['packages']}, {set_up['megabytes']:.0f}" if set_up.get("packages") else ""
        written = f"{set_up['files']}, {set_up['lines']}" if set_up else ""
        lines.append(row(system, set_up.get("version", ""), *cells, said(repeat), believed(forge), written, size))
    return ruled(lines)


TRIALS = ("kill", "repeat", "forge", "set-up")


def said(repeat: dict[str, int]) -> str:
    """Whether two runs were the same."""
    if not repeat:
        return ""
    compared = repeat["compared"]
    return f"same, {compared}" if repeat["differs"] < 0 else f"differs from {repeat['differs']} of {compared}"


def believed(forge: dict[str, object]) -> str:
    """How many were, and which."""
    if not forge:
        return ""
    if not forge["tried"]:
        return "not known"
    names = [str(each).replace("_", " ") for each in forge["believed"]]  # type: ignore[attr-defined]
    return f"{len(names)} of {forge['tried']}" + (f" ({', '.join(names)})" if names else "")


def notes(results: Results) -> str:
    """Runs that did not get to their end."""
    return "\n".join(f"- {name}: {run.note}" for name, run in results.runs.items() if run.note)


def row(*cells: object) -> str:
    """A line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def ruled(lines: Sequence[str]) -> str:
    """A table, with its rule."""
    return "\n".join([lines[0], "|" + "---|" * (lines[0].count("|") - 1), *lines[1:]])
