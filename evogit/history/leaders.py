"""Which candidate leads a noisy run, which would if believed, and which cannot be told apart from the best."""

from __future__ import annotations

from collections.abc import Mapping

from evogit.core import Cost
from evogit.history import History
from evogit.stats.estimates import Duel, Estimate, duel, shared_level

NEAR = 0.1
"""Share of a limit from which on a candidate may work until a clock stops it, rather than until it is done."""
ALIKE = 0.05
"""Relative difference of CPU or wall clock up to which different candidates seem to be stopped by the same clock."""
OTHERS, LATEST = 2, 50
"""Candidates that must be alike in that, of so many that were evaluated last."""
LOOKS = 2
"""Bests that come out alike when they are evaluated again, after which scores are exact though clocks seem to end them;
one is enough where the seed's repeats were alike, too."""


def contender(history: History) -> str | None:
    """The fittest by what is known, as long as that is not enough to believe it; None where the best stands.

    It is the seed at first: its repeats tell how noisy the scores are before anybody is compared with it.
    """
    if not history.repeats:
        return None
    sign = history.metric.sign
    out = history.pruned | history.set_aside
    known = ((history.fitness(commit), commit) for commit in history.scores.commits() if commit not in out)
    values = {commit: sign * value for value, commit in known if value is not None}
    for top in sorted(values, key=values.__getitem__, reverse=True):  # of equals the earlier one
        if not history.scores.believed(top):
            return top
        if top == history.best or history.earned(top, history.best):
            break  # else it is a merge that gained too little, however often it is evaluated
    return None


def to_repeat(history: History) -> str | None:
    """Which to evaluate again, so that the contender is believed or falls behind; None where none need be.

    The best first, while it was evaluated less often than the contender: both must be known alike.
    """
    found, best = contender(history), history.best
    if history.scores.paired:  # the best is measured beside it
        return found
    if found and best and best != found and history.scores.repeated(best) < history.scores.repeated(found):
        return best
    return found


def doubtful(history: History) -> str | None:
    """Return the best of a run that counts as exact if there is reason to evaluate it again; None if there is not.

    There is where the task says that scores are noisy, and only those of the seed were alike, and where candidates seem
    to work until a clock stops them.
    """
    best, scores = history.best, history.scores
    if history.repeats or scores.shifting or best in (None, history.seed) or scores.repeated(best or ""):
        return None
    alike = sum(commit != history.seed for commit in scores.again())
    seems_exact = alike > 0 if history.declared_repeats else alike >= LOOKS or not is_clock_bound(history, best or "")
    return None if seems_exact else best


def is_clock_bound(history: History, commit: str) -> bool:
    """Return whether a candidate came near to a limit, and used just as much CPU or wall clock as others."""
    own = _cost(history, commit)
    if own.call_share < NEAR:
        return False
    others = (_cost(history, each) for each in history.judgements[-LATEST:] if each != commit)
    return sum(_alike(own, each) for each in others) >= OTHERS


def _cost(history: History, commit: str) -> Cost:
    """Return the cost of the first evaluation of a valid candidate; none of one that failed."""
    evaluation = history.evaluation(commit, repeat=0)
    return evaluation.cost if evaluation and evaluation.ok else Cost()


def _alike(own: Cost, other: Cost) -> bool:
    pairs = ((own.call_cpu, other.call_cpu), (own.call_wall, other.call_wall))
    return any(used and abs(used - beside) <= ALIKE * used for used, beside in pairs)


def field(history: History) -> Mapping[str, Estimate]:
    """What is known of all that may be the best; higher is better."""
    out = history.pruned | history.set_aside
    return history.scores.field(commit for commit in history.scores.commits() if commit not in out)


def tied(history: History) -> list[str]:
    """Ids of those that are not worse than the best beyond noise, fittest first; none where scores are exact."""
    best = history.best
    if best is None or not history.repeats:
        return []
    known = field(history)
    noise, lead = history.scores.noise(), known[best]
    others = [commit for commit in known if commit != best]
    if noise.common or history.scores.paired:
        near = [commit for commit in others if not history.scores.surely_better(best, commit)]
    else:
        margins = {times: noise.margin(lead.times, times) for times in {each.times for each in known.values()}}
        near = [commit for commit in others if lead.mean - known[commit].mean <= margins[known[commit].times]]
    return sorted(near, key=lambda commit: -known[commit].mean)


def undecided(history: History) -> Duel | None:
    """The two to tell apart next; None where the leader is better than all beyond noise, or no repeat can tell more."""
    known, scores = field(history), history.scores
    if history.repeats == 1:
        return None
    found, common = duel(known), scores.noise().common
    if found is None:
        return None
    if common is None and not scores.paired:
        return None if found.decided(known, scores.noise()) else found
    above, margin = scores.difference(found.leader, found.rival, level=shared_level(len(known)))
    return None if scores.metric.sign * above > margin or (common and common.rounded) else found
