"""Which pair to compare next: the one whose verdict is likely to tell most."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence

from evogit.stats.bradley_terry import Comparisons, Fit

Pair = tuple[str, str]


def gain(fit: Fit, a: str, b: str) -> float:
    """How much a verdict on this pair is worth: its information times what is not known of the difference.

    For a small gain that is twice the expected information in nats, log(1 + p(1 - p) v) / 2 with a Gaussian posterior
    (D-optimal design; for paired comparisons Glickman & Jensen 2005).
    """
    chance = fit.preference(a, b)
    return chance * (1 - chance) * (fit.variance(a) + fit.variance(b))


def opponent(
    fit: Fit,
    tally: Comparisons,
    one: str,
    others: Sequence[str],
    rng: random.Random,
    avoid: Collection[frozenset[str]] = (),
) -> str | None:
    """Whom `one` should meet: someone of another connected part first, then where most is to be learned.

    Equals are drawn. `avoid` are pairs that shall not meet, such as the one that met last; None where none is left.
    """
    free = [each for each in others if each != one and frozenset((one, each)) not in avoid]
    if not free:
        return None
    linked = _reached(tally, one)
    return max(free, key=lambda each: (each not in linked, gain(fit, one, each), rng.random()))


def pairs(
    fit: Fit, tally: Comparisons, items: Sequence[str], rng: random.Random, avoid: Collection[frozenset[str]] = ()
) -> Iterator[Pair]:
    """Pairs worth comparing now, those of the least known first; none comes twice, so that all may be asked at once."""
    free = set(items)
    for one in sorted(items, key=lambda each: (-fit.variance(each), rng.random())):
        if one not in free:
            continue
        other = opponent(fit, tally, one, [each for each in items if each in free], rng, avoid)
        if other:
            free -= {one, other}
            yield (one, other) if rng.random() < 0.5 else (other, one)


def _reached(tally: Comparisons, one: str) -> set[str]:
    """All that verdicts link with `one`, itself included."""
    reached, frontier = {one}, [one]
    while frontier:
        found = set(tally.met.get(frontier.pop(), ())) - reached
        reached |= found
        frontier.extend(found)
    return reached
