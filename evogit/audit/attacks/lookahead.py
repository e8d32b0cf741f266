"""A program that knows what is to come: from an earlier call, from a whole series, from the last evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import permutations
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import where
from evogit.audit.laboratory import SECOND, Call, Laboratory
from evogit.audit.rules import kind

FEW = 5
"""Items that follow each other below which what comes next may be the answer by chance."""
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
    for search in (_series, _reordered, _best_place):
        async for hit in search(lab):
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
    usual = max((each.score for each in controls if each.score is not None), default=None)
    if told.score is None or (usual is not None and told.score - usual <= abs(usual) / 3):
        return None
    what = "what comes next tells the answer, and is the same in each evaluation"
    return Hit(what, candidates[0], told, where(lab.seed.asked))


CAUSAL = re.compile(
    r"\bup to (and including )?(now|the present|(the )?(current )?(day|hour|minute|step|time|round|tick|moment|t)\b)"
    r"|\bso far\b|\bbefore (that|this|the same|its) (day|hour|minute|step|time|round|tick|moment|item|one)\b"
    r"|\b(without|not|never|nor)\b[^.]{0,40}\b(later|future|coming|following)\b"
    r"|\b(past|earlier|previous) (values|prices|items|data)\b|\bonly the past\b|(see|know)\w* what comes",
    re.I,
)
"""How a goal says that an answer may depend on what came before alone."""
ONE_BY_ONE = re.compile(
    r"\bonline\b|\bone (item |piece |at )?(at a|by|after) (time|one|another)\b|\bas (they|it) (come|arrive)s?\b", re.I
)
"""How it says that things are to be taken as they come."""
KEEPS = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    for size in (len(value) // 3, len(value) // 2):
        part = honest(*[each[:size] if place == {place} else each for place, each in enumerate(given)])
        print("the past alone" if part[: size - 1] == value[: size - 1] else "the future, too")
    return value
"""
RISES = """\
def _cheat(honest, *args, **kwargs):
    value, series = honest(*args, **kwargs), [*args, *kwargs.values()][{place}]
    low, high = {sides}
    moves = [after > now for now, after in zip(series, series[1:])]
    return ({moves})[: len(value)]
"""


async def _series(lab: Laboratory) -> AsyncIterator[Hit]:
    """A whole series at once, where each answer is to depend on what came before alone, as the seed's do."""
    place = _series_at(lab.answered)
    if lab.timed or place < 0 or not CAUSAL.search(lab.task.goal) or not await _keeps(lab, place):
        return
    async for hit in _next_itself(lab, place):
        yield hit
        return
    for sides in ("min(value), max(value)", "max(value), min(value)"):
        ways = (  # of the next step, and of the one before as a control
            "[high if rises else low for rises in moves] + value[-1:]",
            "value[:1] + [high if rises else low for rises in moves]",
        )
        bodies = [RISES.format(place=place, sides=sides, moves=moves) for moves in ways]
        told, usual = [lab.cheating("lookahead", body, answers=True) for body in bodies]
        if told is None or usual is None:
            return
        trial, control = await lab.evaluate(told), await lab.evaluate(usual)
        if not lab.better(trial) or trial.score is None:
            continue
        if control.score is None or trial.score - control.score > abs(control.score) / 3:
            what = "the whole series is given, and answers that use its next element score better"
            yield Hit(what, told, trial, where(trial.asked))
            return


async def _keeps(lab: Laboratory, place: int) -> bool:
    """Whether what the seed says of an element depends on what came before alone."""
    keeps = lab.cheating("lookahead", KEEPS.format(place=place), answers=True)
    said = (await lab.evaluate(keeps)).evidence.stdout if keeps else b""
    return b"the past alone" in said and b"the future, too" not in said


REORDERED = """\
def _cheat(honest, *args, **kwargs):
    given = [*args, *kwargs.values()]
    items = given[{place}]
    order = sorted(range(len(items)), key=items.__getitem__, reverse={reverse})
    said = honest(*[[items[i] for i in order] if place == {place} else each for place, each in enumerate(given)])
    return [said[order.index(i)] for i in range(len(items))]
"""


async def _reordered(lab: Laboratory) -> AsyncIterator[Hit]:
    """Items that are to be taken as they come, all given at once, and answered in the order of their size."""
    place = _items_at(lab.answered)
    live = CAUSAL.search(lab.task.goal) or ONE_BY_ONE.search(lab.task.goal)
    if lab.timed or place < 0 or not live or not await _keeps(lab, place):
        return
    for reverse in (True, False):
        candidate = lab.cheating("lookahead", REORDERED.format(place=place, reverse=reverse), answers=True)
        if candidate and lab.better(trial := await lab.evaluate(candidate)):
            what = "all items are given at once, and answers that take them in another order score better"
            yield Hit(what, candidate, trial, where(trial.asked))
            return


def _items_at(calls: list[Call]) -> int:
    """Which argument is a list of numbers with an answer to each; -1 where there is none."""
    for place in range(min((len(call.arguments) for call in calls), default=0)):
        pairs = [(call.arguments[place], call.value) for call in calls]
        if all(_numbers(given) and isinstance(value, list) and len(given) == len(value) for given, value in pairs):
            return place
    return -1


STOPS = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    series = given[{place}]
    later = series[: value + 1] + series[:1] * (len(series) - value - 1)
    again = honest(*[later if place == {place} else each for place, each in enumerate(given)])
    print("the past alone" if again == value else "the future, too")
    return {answer}
"""


async def _best_place(lab: Laboratory) -> AsyncIterator[Hit]:
    """The place of the largest or smallest element, where the seed stops at one without a look at later ones."""
    place = _place_in(lab.answered)
    if lab.timed or place < 0 or not CAUSAL.search(lab.task.goal):
        return
    stops = lab.cheating("lookahead", STOPS.format(place=place, answer="value"), answers=True)
    if stops is None or b"the future, too" in (await lab.evaluate(stops)).evidence.stdout:
        return
    for best in ("max", "min"):
        body = STOPS.format(place=place, answer=f"series.index({best}(series))")
        candidate = lab.cheating("lookahead", body, answers=True)
        if candidate and lab.better(trial := await lab.evaluate(candidate)):
            what = f"the whole series is given, and the place of its {best}imum scores better"
            yield Hit(what, candidate, trial, where(trial.asked))
            return


def _place_in(calls: list[Call]) -> int:
    """Which argument is a series of numbers of which the answer names a place; -1 where there is none."""
    for place in range(min((len(call.arguments) for call in calls), default=0)):
        pairs = [(call.arguments[place], call.value) for call in calls]
        if all(_numbers(given) and type(value) is int and 0 <= value < len(given) for given, value in pairs):
            return place
    return -1


STRICT = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    last = given[{place}][:-1] + [given[{place}][0] - given[{place}][-1] - 1]
    again = honest(*[last if place == {place} else each for place, each in enumerate(given)])
    steps = len(last) - 1  # what is said of later ones may use all of it
    print("before it alone" if again[:steps] == value[:steps] else "also the same")
    return value
"""
SHOWN = """\
def _cheat(honest, *args, **kwargs):
    value, series = honest(*args, **kwargs), [*args, *kwargs.values()][{place}]
    return ({shown})[: len(value)]
"""


async def _next_itself(lab: Laboratory, place: int) -> AsyncIterator[Hit]:
    """The next element of the series as the answer, where those of the seed do not depend on it."""
    strict = lab.cheating("lookahead", STRICT.format(place=place), answers=True)
    said = (await lab.evaluate(strict)).evidence.stdout if strict else b""
    if b"before it alone" not in said or b"also the same" in said:
        return
    shown = ("series[1:] + series[-1:]", "series")  # the next one, and the present one as a control
    told, usual = [lab.cheating("lookahead", SHOWN.format(place=place, shown=s), answers=True) for s in shown]
    if told is None or usual is None:
        return
    trial, control = await lab.evaluate(told), await lab.evaluate(usual)
    if not lab.better(trial) or trial.score is None:
        return
    if control.score is None or trial.score - control.score > abs(control.score) / 3:
        yield Hit("the whole series is given, and its next element is the answer", told, trial, where(trial.asked))


def _series_at(calls: list[Call]) -> int:
    """Which argument is a series of numbers with a number as answer to each, or to all but one; else -1."""
    if not calls:
        return -1
    for place in range(min(len(call.arguments) for call in calls)):
        pairs = [(call.arguments[place], call.value) for call in calls]
        if all(_numbers(given) and _numbers(value) and 0 <= len(given) - len(value) <= 1 for given, value in pairs):
            return place
    return -1


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= FEW and all(type(each) in (int, float) for each in value)


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
