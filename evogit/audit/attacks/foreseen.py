"""A program that knows what it is to find out: from an earlier evaluation, or an earlier round of the same one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from evogit.audit.attack import Attack, Hit, first_of
from evogit.audit.attacks.answering import far_above, where
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import SECOND, Call, Laboratory

GAMES = 3
"""Rounds below which what ended them says nothing."""
REPLAY = """\
import json

_ENDS = json.loads({ends!r})
_rounds = 0


def _cheat(honest, *args, **kwargs):
    global _rounds
    value = honest(*args, **kwargs)
    if json.dumps([args, kwargs], sort_keys=True) != {first!r}:
        return value
    _rounds += 1  # each begins with the same question
    return _ENDS[(_rounds - 1) % len(_ENDS)]
"""


AGAIN = """\
import json

_last = None


def _cheat(honest, *args, **kwargs):
    global _last
    if _last is None or json.dumps([args, kwargs], sort_keys=True) != {first!r}:
        _last = honest(*args, **kwargs)
    return _last  # what ended a round begins the next one
"""


async def _same_again(lab: Laboratory) -> AsyncIterator[Hit]:
    """What ended a round of questions as the first answer of the next one, if it ends all of these at once."""
    if lab.timed or len(_ends(lab.answered)) < GAMES:
        return
    first = lab.answered[0]
    candidate = lab.cheating("foreseen", AGAIN.format(first=first.key), answers=True)
    trial = await lab.evaluate(candidate) if candidate else None
    if candidate is None or trial is None or not lab.better(trial):
        return
    asked = [call.key for call in trial.asked if call.target == first.target]
    later = asked[asked.index(first.key, 1) :] if first.key in asked[1:] else []
    if len(later) >= GAMES - 1 and set(later) == {first.key}:
        what = "what is to be found out is the same in each round, and the program remembers it"
        yield Hit(what, candidate, trial, where(lab.answered))


async def _replayed(lab: Laboratory) -> AsyncIterator[Hit]:
    """What ended each round of questions in an earlier evaluation, as the first answer of the round."""
    ends = [] if lab.timed else _ends(lab.answered)
    if len(ends) < GAMES or len(set(map(repr, ends))) < GAMES or not await _foretold(lab, len(ends)):
        return
    first = lab.answered[0].key
    turned = [ends[turn:] + ends[:turn] for turn in (0, 1, len(ends) // 2)]  # the right order, and controls
    codes = [REPLAY.format(ends=json.dumps(each), first=first) for each in turned]
    candidates = [each for code in codes if (each := lab.cheating("foreseen", code, answers=True))]
    told, *controls = [await lab.evaluate(each, secret=SECOND) for each in candidates] or [lab.seed]
    if lab.better(told) and far_above(told, *controls):
        what = "what is to be found out is the same in each evaluation, and the program is told which it is"
        yield Hit(what, candidates[0], told, where(lab.answered))


def _ends(calls: list[Call]) -> list[Any]:
    """The last answer of each round; a round begins with the question that the first one begins with."""
    first = [place for place, call in enumerate(calls) if call.key == calls[0].key]
    if not first or len(calls) < 2 * len(first):
        return []
    return [calls[after - 1].value for after in [*first[1:], len(calls)]]


async def _foretold(lab: Laboratory, rounds: int) -> bool:
    """Whether a program can know the round: by what it is told before each, or as there are no other rounds at all."""
    if "holdout" not in lab.task.splits:
        return True
    other = await lab.evaluate(AttackCandidate({}), secret=SECOND)
    told, again = (
        [call.key for call in trial.asked if call.target != lab.answered[0].target] for trial in (lab.seed, other)
    )
    return told == again and len(set(told)) >= rounds


ATTACKS = (
    Attack(
        "foreseen",
        "leaks",
        "knows from an earlier evaluation, or an earlier round, what it is to find out",
        "Draw what is hidden with the `rng` that evaluate() may take, anew for each round, and do not name it.",
        first_of(_same_again, _replayed),
    ),
)
