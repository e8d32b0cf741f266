"""The variants of `rent.py`: each switches one mechanism of the search off, or on where it is off by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evogit.agents.mutation import mutator
from evogit.breeding import breeder
from evogit.config import Task
from evogit.engine import waiting
from evogit.selection import elitist, frugal, number_steps

TWO = ("two_modules", "deceptive_trap")
"""Landscapes that were written for merges."""


def nothing() -> None:
    """Change nothing."""


def same(task: Task) -> Task:
    """Return the task as it is."""
    return task


@dataclass(frozen=True)
class Variant:
    """A search with one mechanism switched off, or on (`adds`); `code` are the files that it costs."""

    name: str
    field: str
    selector: str = "elitist"
    apply: Callable[[], None] = nothing
    code: tuple[str, ...] = ()
    adds: bool = False
    written_for: tuple[str, ...] = ()
    task: Callable[[Task], Task] = same

    def lines(self, root: Path) -> int:
        """Return the lines of code of its own files."""
        files = [root / "evogit" / name for name in self.code]
        return sum(len(file.read_text().splitlines()) for file in files if file.exists())


def put(place: Any, **values: Any) -> Callable[[], None]:
    """Replace attributes when the variant begins."""
    return lambda: [setattr(place, name, value) for name, value in values.items()] and None  # type: ignore[return-value]


def drop(way: str) -> Callable[[], None]:
    """Let the mutator never draw one of its ways."""

    def apply() -> None:
        for table in (mutator.EDITS, mutator._FIRST, mutator._WITH_TUNING):
            table.pop(way, None)

    return apply


def _without_tuning() -> None:
    number_steps.NumberSteps.steps = lambda self, history, parent: None  # type: ignore[assignment,method-assign]
    number_steps.NumberSteps.tuned = lambda self, history, seed: seed  # type: ignore[method-assign]


PLANS = ("selection/merge_planner.py", "selection/merge_strategies.py", "selection/conflict_settlers.py")
TUNING = ("agents/mutation/tuning.py", "selection/number_steps.py", "source/numbers.py")

FREE = [
    Variant("default free", "free"),
    Variant("merges and donors", "free", "elitist:merge=no", code=PLANS, written_for=TWO),
    Variant("number steps", "free", apply=_without_tuning, code=TUNING),
    Variant("donors", "free", "elitist:p_donor=0"),
    Variant("random merges", "free", "elitist:random=yes", adds=True, written_for=TWO),
    Variant("restarts", "free", "elitist:p_restart=0", written_for=TWO),
    Variant("fingerprints", "free", task=lambda task: replace(task, fingerprints=False),
            code=("breeding/fingerprints.py",)),
    Variant("weighted", "free", "weighted", adds=True, code=("selection/weighted.py",)),
    Variant("pareto over cases", "free", "pareto:over=cases", adds=True, code=("selection/pareto.py",)),
    Variant("map-elites", "free", "map-elites:size=0..4000/40", adds=True, code=("selection/map_elites.py",)),
    Variant("islands", "free", "islands:count=2", adds=True, code=("selection/islands.py",)),
    Variant("exploring", "free", "elitist:p_explore=0", apply=put(elitist, P_EXPLORE_PER_WAIT=0)),
    Variant("boldness", "free", "elitist:boldness_max=1"),
    Variant("drift on plateaus", "free", apply=put(elitist, _latest=lambda history, best: best),
            written_for=("secret_target",)),
    Variant("drawing until new", "free", apply=put(breeder, DRAWN=1)),
    *(Variant(way, "free", apply=drop(way)) for way in (*mutator.EDITS, "exchange", *mutator.TUNING)),
    Variant("random-parent (control)", "free", "random-parent", adds=True),
    Variant("one-plus-lambda (control)", "free", "one-plus-lambda", adds=True),
]  # fmt: skip

PAID = [
    Variant("default paid", "paid"),
    Variant("number steps, paid", "paid", "elitist:numbers=no", code=TUNING),
    Variant("mirrored steps, paid", "paid",
            apply=put(number_steps.NumberSteps, _mirrored=lambda self, history, best: iter(()))),
    Variant("merges, paid", "paid", "elitist:merge=no", code=PLANS, written_for=TWO),
    Variant("spares, paid", "paid", apply=put(frugal.Frugal, _spares=lambda self, history, best: ())),
    Variant("late rebases, paid", "paid", apply=put(breeder.Breeder, _rebased=lambda self, bred: bred)),
    Variant("asking ahead, paid", "paid", apply=put(waiting.AskingAhead, allow=lambda self: True),
            code=("engine/waiting.py",)),
    Variant("plateaus, paid", "paid", "elitist:tactics=no"),
    Variant("weighted, paid", "paid", "weighted", adds=True),
    Variant("map-elites, paid", "paid", "map-elites:size=0..4000/40", adds=True),
    Variant("islands, paid", "paid", "islands:count=2", adds=True),
]  # fmt: skip

VARIANTS = {variant.name: variant for variant in (*FREE, *PAID)}
"""All variants, the decisive ones first."""
