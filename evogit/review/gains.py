"""The steps by which a candidate came to be, and what each gained."""

from __future__ import annotations

from evogit.core import Candidate, Evaluation
from evogit.history import History
from evogit.history.standing import Comparison, compare, origin_of


def last_evaluation(history: History, candidate: Candidate) -> Evaluation | None:
    """The last evaluation of a candidate, whatever the task was like then."""
    return history.evaluation(candidate.commit) or history.former(candidate.commit)


def way(history: History, commit: str) -> list[tuple[Candidate, Comparison | None]]:
    """Return how a candidate came to be, from the seed on, so that the gains add up where scores are exact.

    The way leads back along the fittest of parents and inspirations. A gain is over that one; where none was evaluated
    since the task changed, over the last one on the way.
    """
    steps: list[tuple[Candidate, Comparison | None]] = []
    last = None
    for each in _ancestors(history, commit):
        over = origin_of(history, each.commit) or last
        steps.append((each, compare(history.scores, each.commit, over) if over else None))
        last = last if history.fitness(each.commit) is None else each.commit
    return steps


def _ancestors(history: History, commit: str) -> list[Candidate]:
    found = [history.phylogeny[commit]]
    while origins := history.origins(found[-1].commit):
        found.append(history.phylogeny[origin_of(history, found[-1].commit) or origins[0]])
    return found[::-1]
