"""All attacks, one file for each family, in the order in which they are tried."""

from evogit.audit.attack import Attack
from evogit.audit.attacks import answers, carrying, inside, leaks, stability, timing, tolerance

_LUCK, _MEMORY = stability.ATTACKS

ATTACKS: tuple[Attack, ...] = (
    _LUCK,
    *leaks.ATTACKS,
    *carrying.ATTACKS,
    *timing.ATTACKS,
    *answers.ATTACKS,
    *inside.ATTACKS,
    *tolerance.ATTACKS,
    _MEMORY,
)
"""Cheap ones first; what needs that others were evaluated before comes last."""
