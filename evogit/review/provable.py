"""The smallest gain that a run of a noisy task can prove, by how the seed's evaluations differ."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from evogit.config import Task
from evogit.history.scores import Scores
from evogit.review.checking import SeedEvaluation
from evogit.stats.estimates import Estimate, Noise, student

WANTED = 0.05  # the gain, as a share of the seed's score, to which advice is given
MAX_REPEATS = 30  # repeats that are advised at most
SHORT = 2.0
"""Seconds of wall clock below which a longer command costs little, and averages out what disturbs it for moments."""
HOUR = 3600.0


class Provable(Struct, frozen=True, kw_only=True):
    """The least gain over the seed that is told from noise, at 95 %, if both are evaluated `1 + repeats` times.

    `gain` is in the metric's unit, None with fewer than two repeats, which prove nothing; `share` is of the seed's
    score, None also where that is zero. `hourly` are evaluations per hour, one at a time. `enough` are the repeats with
    which a gain of `WANTED` can be told, None if too many.
    """

    repeats: int
    gain: float | None
    share: float | None
    hourly: float
    enough: int | None

    @property
    def advice(self) -> str:
        """Return how many repeats tell a small gain, as the end of a sentence."""
        if self.enough is None:
            return f"{100 * WANTED:g} % takes more than {MAX_REPEATS} repeats"
        return f"{100 * WANTED:g} % takes repeats = {self.enough}"


def provable(task: Task, judged: SeedEvaluation) -> Provable | None:
    """Return what can be proven of the metric that ranks; None where the seed failed, or came out alike each time."""
    name = task.primary.name
    if judged.failed or judged.spread(name) is None:
        return None
    scores = Scores.of(task.metrics, judged.evaluation.split, 1)
    values = {at: each.metrics[name] for at, each in enumerate((judged.evaluation, *judged.again))}
    noise = Noise(scores.declared[name])
    noise.learn("seed", values)
    value = Estimate.of(values.values(), noise.scale).mean

    def least(times: int) -> float:
        """The gain that is told after so many repeats of both, whose spreads are pooled."""
        margin = student(0.95, 2 * times) * math.sqrt(noise.variance * 2 / (1 + times))
        _, beyond = noise.scale.difference(value, task.primary.sign * margin, margin)
        return beyond

    enough = next((n for n in range(2, MAX_REPEATS + 1) if least(n) <= WANTED * abs(value)), None)
    wall = sum(each.cost.wall for each in (judged.evaluation, *judged.again)) / judged.times
    gain = least(task.repeats) if task.repeats > 1 else None
    return Provable(
        repeats=task.repeats,
        gain=gain,
        share=gain / abs(value) if gain is not None and value else None,
        hourly=HOUR / wall if wall else math.inf,
        enough=enough,
    )


def told_provable(task: Task, judged: SeedEvaluation) -> Iterator[str]:
    """Yield sentences on the smallest gain that can be proven, on the pace, and on what would help."""
    found = provable(task, judged)
    if found is None:
        return
    if found.gain is None:
        yield f"repeats = {found.repeats} can prove no gain, however large it is: set 2 or more"
    else:
        size = f"{found.gain:.2g} {task.primary.name}" if found.share is None else f"{100 * found.share:.2g} %"
        yield f"the smallest gain that repeats = {found.repeats} can prove is about {size}"
    if math.isfinite(found.hourly):
        pace = float(f"{found.hourly:.2g}")
        yield f"about {pace:,.0f} evaluations per hour, one at a time; a new best takes {found.repeats} more"
    if found.share is not None and found.share <= WANTED:
        return
    help_by = [] if found.gain is not None and found.share is None else [found.advice]
    if judged.slow:
        help_by.append("shorten the command: there is more time for repeats then")
    elif judged.evaluation.cost.wall < SHORT:
        help_by.append("let the command work longer: that averages out short disturbances")
    if task.primary.noise == "log" and not task.environment.exclusive:
        help_by.append("[sandbox] exclusive = true: one candidate at a time makes times steadier")
    if help_by:
        yield f"for smaller gains: {'; '.join(help_by)}"
