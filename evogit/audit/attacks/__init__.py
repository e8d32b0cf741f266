"""All attacks, one file for each kind, in the order in which they are tried."""

from evogit.audit.attack import Attack
from evogit.audit.attacks import (
    answers,
    arguments,
    broken_rules,
    carrying,
    edited,
    feedback,
    files,
    foreseen,
    holdout,
    inside,
    lookahead,
    mishaps,
    order,
    stability,
    timing,
    tolerance,
    unbounded,
)

_LUCK, _SPREAD, _MEMORY = stability.ATTACKS

ATTACKS: tuple[Attack, ...] = (
    _LUCK,
    _SPREAD,
    *holdout.ATTACKS,
    *feedback.ATTACKS,
    *arguments.ATTACKS,
    *foreseen.ATTACKS,
    *lookahead.ATTACKS,
    *order.ATTACKS,
    *files.ATTACKS,
    *carrying.ATTACKS,
    *timing.ATTACKS,
    *answers.ATTACKS,
    *broken_rules.ATTACKS,
    *unbounded.ATTACKS,
    *mishaps.ATTACKS,
    *inside.ATTACKS,
    *edited.ATTACKS,
    *tolerance.ATTACKS,
    _MEMORY,
)
"""Cheap ones first, open-ended searches late; what needs that others were evaluated before comes last."""
