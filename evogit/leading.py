"""Who leads a noisy run, who would if it could be believed, and who cannot be told apart from the best."""

from __future__ import annotations

from collections.abc import Mapping

from evogit.confidence import Estimate
from evogit.history import History


def contender(history: History) -> str | None:
    """The fittest by what is known, as long as that is not enough to believe it; None where the best stands.

    It is the seed at first: its repeats tell how noisy the scores are before anybody is compared with it.
    """
    if not history.repeats:
        return None
    top: str | None = None
    for commit in history.scores.commits():
        if commit not in history.pruned and history.fitness(commit) is not None:
            top = commit if top is None or history.fitter(commit, top) else top
    return top if top and not history.scores.believed(top) else None


def to_repeat(history: History) -> str | None:
    """Whom to judge again, so that the contender is believed or falls behind; None where nobody need be.

    The best first, while it was judged less often than the contender: both must be known alike.
    """
    found, best = contender(history), history.best
    if found and best and best != found and history.scores.repeated(best) < history.scores.repeated(found):
        return best
    return found


def field(history: History) -> Mapping[str, Estimate]:
    """What is known of all who may be the best, higher is better."""
    return history.scores.field(commit for commit in history.scores.commits() if commit not in history.pruned)


def tied(history: History) -> list[str]:
    """Ids of those that are not worse than the best beyond noise, fittest first; none where scores are exact."""
    best = history.best
    if best is None or not history.repeats:
        return []
    known = field(history)
    near = [commit for commit in known if commit != best and not history.surely_fitter(best, commit)]
    return sorted(near, key=lambda commit: -known[commit].mean)
