"""A program that knows what is to come: from an earlier call, from the last evaluation, from a series."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import permutations
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import far_above, where
from evogit.audit.attacks.series import FEW, of_series
from evogit.audit.laboratory import SECOND, Call, Laboratory
from evogit.audit.rules import kind

CHOICES = 4
"""Different items up to which all ways to answer them are tried."""
LIVE = re.compile(
    r"\bonline\b|\bstream|one (item|at a time)|arriv|without (seeing|knowing)|look.?ahead|future|causal", re.I
)


async def _future(lab: Laboratory) -> AsyncIterator[Hit]:
    """What is to come, known before: the same in each evaluation, or given to an earlier call."""
    calls = lab.seed.asked
    following = [] if lab.timed else _following(lab.answered)
    if len(following) >= FEW and len(set(map(repr, following))) > 1:
        for items in _replies(following):
            if hit := await _known_next(lab, items):
                yield hit
                return
    async for hit in of_series(lab):
        yield hit
        return
    texts = [lab.task.goal, *lab.evaluator_texts().values()]
    ahead = _known_ahead(calls) if any(map(LIVE.search, texts)) else None
    if ahead:
        earlier, _ = ahead
        candidate = lab.cheating("lookahead", TELLS)
        trial = await lab.evaluate(candidate) if candidate else None
        if candidate and trial and trial.evaluation.ok and b"knew it before" in trial.evidence.stdout:
            what = f"{earlier.target} is given what later calls bring: items that were to be unknown"
            yield Hit(what, candidate, trial, earlier.line)


def _replies(following: list[Any]) -> Iterator[list[Any]]:
    """What comes next; and, where there are few different items, each way to answer them with one of these."""
    yield following
    items = [each for each in dict.fromkeys(following) if each is not None] if _plain(following) else []
    for turned in permutations(items) if len(items) <= CHOICES else ():
        if list(turned) != items:
            reply = dict(zip(items, turned, strict=True))
            yield [reply[each] for each in following]


def _plain(items: list[Any]) -> bool:
    return all(isinstance(each, str | int) for each in items)


async def _known_next(lab: Laboratory, items: list[Any]) -> Hit | None:
    """A table of answers by their number alone, if it gains on other inputs, and does not in another order."""
    turns = (0, 1, 2, len(items) // 2)
    tables = [NEXT.format(items=json.dumps(items[turn:] + items[:turn])) for turn in turns]
    candidates = [each for table in tables if (each := lab.cheating("lookahead", table, answers=True))]
    if not candidates or not lab.better(told := await lab.evaluate(candidates[0], secret=SECOND)):
        return None
    controls = [await lab.evaluate(each, secret=SECOND) for each in candidates[1:]]
    if not far_above(told, *controls):
        return None
    what = "what comes next tells the answer, and is the same in each evaluation"
    return Hit(what, candidates[0], told, where(lab.seed.asked))


def _following(calls: list[Call]) -> list[Any]:
    """To each call the item that came next, in the first argument that brings one; the last answer at the end."""
    own = [call.value for call in calls]
    found = [_brought(calls, place) for place in range(min((len(call.arguments) for call in calls), default=0))]
    return next((items for items in found if items and items != own), [])


def _brought(calls: list[Call], place: int) -> list[Any]:
    """What an argument brings next, if it is of the kind of an answer."""
    found: list[Any] = []
    for now, after in zip(calls, calls[1:], strict=False):
        if now.target != after.target:
            return []
        before, item = now.arguments[place], after.arguments[place]
        if isinstance(item, list) and isinstance(before, list) and item and item[:-1] == before:
            item = item[-1]
        if kind(item) != kind(now.value):
            return []
        found.append(item)
    return [*found, calls[-1].value] if found else []


NEXT = """\
import json

_NEXT = json.loads({items!r})
_number = -1


def _cheat(honest, *args, **kwargs):
    global _number
    _number += 1
    return _NEXT[_number % len(_NEXT)]
"""
TELLS = """\
import json, sys

_seen = []


def _cheat(honest, *args, **kwargs):
    value = honest(*args, **kwargs)
    for part in [*args, *kwargs.values()]:
        if any(part in known for known in _seen):
            print("knew it before:", json.dumps(part)[:80])
        if type(part) is list and len(part) > 2:
            _seen.append(part)
    return value
"""


def _known_ahead(calls: list[Call]) -> tuple[Call, Call] | None:
    """A call and a later one most of whose kind bring what the first was given."""
    for place, call in enumerate(calls[:50]):
        for part in call.arguments:
            if not isinstance(part, list) or len(part) < 3:
                continue
            later = [
                each for each in calls[place + 1 : place + 1 + len(part)] if each.target == calls[place + 1].target
            ]
            items = [each.arguments[0] for each in later if each.arguments]
            if (
                len(items) >= 3
                and sum(item in part for item in items) > 0.9 * len(items)
                and items != [part] * len(items)
            ):
                return call, later[0]
            same = [each for each in calls if each.target == call.target and len(each.arguments) > 1]
            if len(same) > 2 and all(part in each.arguments for each in same[:3]) and _reads_on(same, part):
                return call, same[1]
    return None


def _reads_on(calls: list[Call], whole: list[Any]) -> bool:
    """Whether each call is about the next element of a list that all are given."""
    places = [next((x for x in call.arguments if type(x) is int), -1) for call in calls[: len(whole)]]
    return len(places) > 2 and places == list(range(places[0], places[0] + len(places))) and places[0] < len(whole) - 1


ATTACKS = (
    Attack(
        "lookahead",
        "leaks",
        "uses what is to come",
        "Hand out one item at a time with program.stream, from items that are drawn with rng.",
        _future,
    ),
)
