"""Donors of agents that ask models: while a run stands still, some calls see the code of another line."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from evogit.events import Proposed
from evogit.history import History

STILL_CALLS = 2
"""Calls of models that came to something but no better candidate, after which a run stands still."""

WINDOW = 200
"""Calls, the latest ones, that are looked at."""

PRIOR_TRIES, PRIOR_GAINS = 4, 1
"""Calls of both kinds, and gains among them, that are assumed before there are any."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.6


def donor(history: History, others: Sequence[str], rng: random.Random) -> str | None:
    """Return which of the candidates of other lines a call sees, mostly one that few calls saw; None for none of them.

    While the run stands still, a third of the calls see one at first. From then on their share is g / (g + 2h), within
    bounds, for the probabilities g and h that a child is better than its parent with and without another line's code,
    each estimated from such calls of this run (a Beta prior's mean).
    """
    waited, tries, gains = _calls(history)
    if waited < STILL_CALLS or not others:
        return None
    seen, unseen = ((gains[saw] + PRIOR_GAINS) / (tries[saw] + PRIOR_TRIES) for saw in (True, False))
    if rng.random() >= min(max(seen / (seen + 2 * unseen), LEAST_SHARE), MOST_SHARE):
        return None
    showings = Counter(commit for shown in history.shown.values() for commit in shown)
    return rng.choices(others, [1 / (1 + showings[commit]) for commit in others])[0]


def sees_other_line(history: History, child: str) -> bool:
    """Return whether the brief for a candidate showed code that is no sibling's of it."""
    graph = history.phylogeny
    parents = {*graph.parents(child), history.written_on.get(child, "")}
    return any(parents.isdisjoint(graph.parents(other)) for other in history.shown.get(child, ()))


def _calls(history: History) -> tuple[int, Counter[bool], Counter[bool]]:
    """Return how many calls brought nothing better since the last that did, and what came of those in such times.

    Of these the candidates that were evaluated, and those of them that are better than their parent, by whether their
    brief showed another line.
    """
    horizon, records = history.attempts.horizon, {history.phylogeny[best].move for best in history.records}
    waited, tries, gains = 0, Counter[bool](), Counter[bool]()
    for key in history.authors.order[-WINDOW:]:
        if horizon is not None and key[0] > horizon:
            break
        done = history.authors.efforts[key].done
        if waited >= STILL_CALLS and isinstance(done, Proposed) and history.judged(done.candidate):
            saw = sees_other_line(history, done.candidate)
            tries[saw] += 1
            gains[saw] += history.fitter(done.candidate, done.parents[0])
        waited = 0 if key[0] in records else waited + 1
    return waited, tries, gains
