"""Which candidate leads a noisy run, which would if believed, and which cannot be told apart from the best."""

from __future__ import annotations

from collections.abc import Mapping

from evogit.history import History
from evogit.stats.estimates import Duel, Estimate, duel, shared_level


def contender(history: History) -> str | None:
    """The fittest by what is known, as long as that is not enough to believe it; None where the best stands.

    It is the seed at first: its repeats tell how noisy the scores are before anybody is compared with it.
    """
    if not history.repeats:
        return None
    sign = history.metric.sign
    out = history.pruned | history.set_aside
    known = ((history.fitness(commit), commit) for commit in history.scores.commits() if commit not in out)
    _, top = max(((sign * value, commit) for value, commit in known if value is not None), key=_value, default=(0, ""))
    return top if top and not history.scores.believed(top) else None


def _value(pair: tuple[float, str]) -> float:
    return pair[0]  # of equals the earlier one


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
    found, common = duel(known), scores.noise().common
    if found is None:
        return None
    if common is None and not scores.paired:
        return None if found.decided(known, scores.noise()) else found
    above, margin = scores.difference(found.leader, found.rival, level=shared_level(len(known)))
    return None if scores.metric.sign * above > margin or (common and common.rounded) else found
