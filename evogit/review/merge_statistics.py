"""What merges and grafts brought, strategy by strategy and step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import to_builtins

from evogit.history import History
from evogit.review.json_records import Record
from evogit.selection.merge_strategies import Outcomes, StepEffect, edges, tallies


def merge_statistics(history: History) -> Record:
    """What merges and grafts brought: by strategy, and of each step that was grafted, causes first.

    `gain` of a strategy is the mean over the better parent, that of a step the mean over the candidates that got it,
    both in the primary metric's unit, None if unknown. A step's `interval` is of Student's t at 95 %, None
    with one background; where the whole of it is above zero, the step is `causal`.
    """
    outcomes = list(Outcomes().of(history).values())
    strategies = [
        {"operator": operator, "strategy": strategy, **to_builtins(tally)}
        for (operator, strategy), tally in tallies(outcomes).items()
    ]
    return {"strategies": strategies, "steps": _steps(history, edges(outcomes))}


def _steps(history: History, found: Sequence[StepEffect]) -> list[Record]:
    return [
        {
            "commit": each.commit,
            "title": history.phylogeny[each.commit].title,
            "backgrounds": each.backgrounds,
            "helped": each.helped,
            "gain": each.gain,
            "interval": _interval(each),
            "causal": each.causal,
        }
        for each in found
    ]


def _interval(edge: StepEffect) -> list[float] | None:
    if edge.gain is None or edge.margin is None or math.isinf(edge.margin):
        return None
    return [edge.gain - edge.margin, edge.gain + edge.margin]
