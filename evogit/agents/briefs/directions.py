"""Where each agent is to look first, so that those that begin together do not all propose the same."""

from __future__ import annotations

from evogit.agents import Background, Brief

DIRECTIONS = (
    "the method: another one that is known to be better for this kind of problem",
    "the data: what is computed, copied or looked up again although it need not be",
    "the innermost work: where most of the time or of the loss arises",
    "what the worst cases or the latest failures have in common",
    "limits and constants: what is not used up, or chosen with too much care",
)
"""Of an agent's move, the next one after the other's: moves that are thought about together differ in theirs."""


def place_to_look(brief: Brief) -> str:
    """The direction of a move: the next one by its number that nobody follows now; empty where conflicts say what.

    Where all are taken, and in a deterministic run, where nobody is told of others, the number alone decides.
    """
    if brief.conflicts or not brief.move:
        return ""
    taken = "\n".join(brief.claims.others()) if brief.claims else ""
    first = brief.move % len(DIRECTIONS)
    places = DIRECTIONS[first:] + DIRECTIONS[:first]
    return next((place for place in places if place not in taken), places[0])


def direction(brief: Brief, background: Background) -> str:
    """What an agent is told of it where it is not alone."""
    place = place_to_look(brief) if background.agents > 1 else ""
    if not place:
        return ""
    return f"Others have much the same brief. To propose something else, look first at {place}."
