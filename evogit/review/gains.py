"""What single candidates gained, and the steps by which one came to be."""

from __future__ import annotations

from evogit.core import Candidate, Evaluation
from evogit.history import History


def last_evaluation(history: History, candidate: Candidate) -> Evaluation | None:
    """The last evaluation of a candidate, whatever the task was like then."""
    return history.evaluation(candidate.commit) or history.former(candidate.commit)


def improves(history: History, candidate: Candidate) -> bool:
    """Whether it is fitter than all its parents, beyond noise where scores are noisy; rounding is not a gain."""
    commit = candidate.commit
    return all(
        history.surely_fitter(commit, parent) and history.gain(commit, parent) != 0 for parent in candidate.parents
    )


def gain(history: History, commit: str) -> float | None:
    """How much better a candidate is than its fittest valid parent; negative when worse, None if unknown."""
    scores = history.scores
    value = scores.fitness(commit)
    if value is None:
        return None
    known = map(scores.fitness, history.phylogeny[commit].parents)
    return min([scores.metric.gain(value, each) for each in known if each is not None], default=None)


def way(history: History, commit: str) -> list[tuple[Candidate, float | None]]:
    """How a candidate came to be, from the seed on: back along fittest parents, so that the gains add up.

    A gain is over the fittest parent; where none was evaluated since the task changed, over the last one on the way.
    """
    told: list[tuple[Candidate, float | None]] = []
    last = None
    for each in _ancestors(history, commit):
        value, step = history.fitness(each.commit), gain(history, each.commit)
        if step is None and value is not None and last is not None:
            step = history.metric.gain(value, last)
        last = last if value is None else value
        told.append((each, step))
    return told


def _ancestors(history: History, commit: str) -> list[Candidate]:
    found = [history.phylogeny[commit]]
    while parents := found[-1].parents:
        fittest = parents[0]
        for parent in parents[1:]:
            fittest = parent if history.fitter(parent, fittest) else fittest
        found.append(history.phylogeny[fittest])
    return found[::-1]
