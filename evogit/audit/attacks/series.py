"""Whole series that are given at once, where answers are to depend on what came before alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from evogit.audit.attack import Hit, first_of
from evogit.audit.attacks.answering import far_above, where
from evogit.audit.laboratory import Call, Laboratory
from evogit.audit.parts import EACH, Place
from evogit.audit.rules import given

FEW = 5
"""Items that follow each other below which what comes next may be the answer by chance."""
CAUSAL = re.compile(
    r"\bup to (and including )?(now|the present|(the )?(current )?(day|hour|minute|step|time|round|tick|moment|t)\b)"
    r"|\bso far\b|\bbefore (that|this|the same|its) (day|hour|minute|step|time|round|tick|moment|item|one)\b"
    r"|\b(without|not|never|nor)\b[^.]{0,40}\b(later|future|coming|following)\b"
    r"|\breal[- ]time\b|\blook\w*[- ]?ahead\b|\bcausal\b|\bpeek|\bhindsight\b|\btomorrow\b|\bas \w+ (come|arrive)s?\b"
    r"|\b(no|any|without) knowledge of\b|\bnext (day|hour|week|step|value|price|tick)\b|\bonline\b|\bstream"
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
        part = honest(*_at(given, {place!r}, _in(given, {place!r})[:size]))
        print("the past alone" if part[: size - 1] == value[: size - 1] else "the future, too")
    return value
"""
RISES = """\
def _cheat(honest, *args, **kwargs):
    value, series = honest(*args, **kwargs), _in([*args, *kwargs.values()], {place!r})
    low, high = {sides}
    moves = [after > now for now, after in zip(series, series[1:])]
    return ({moves})[: len(value)]
"""


async def _series(lab: Laboratory) -> AsyncIterator[Hit]:
    """A whole series at once, where each answer is to depend on what came before alone, as the seed's do."""
    place = _series_at(lab.answered)
    if lab.timed or place is None or not CAUSAL.search(lab.task.goal) or not await _keeps(lab, place):
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
        if lab.better(trial) and far_above(trial, control):
            what = "the whole series is given, and answers that use its next element score better"
            yield Hit(what, told, trial, where(trial.asked))
            return


async def _keeps(lab: Laboratory, place: Place) -> bool:
    """Whether what the seed says of an element depends on what came before alone."""
    keeps = lab.cheating("lookahead", KEEPS.format(place=place), answers=True)
    said = (await lab.evaluate(keeps)).evidence.stdout if keeps else b""
    return b"the past alone" in said and b"the future, too" not in said


def _live(goal: str) -> bool:
    return bool(CAUSAL.search(goal) or ONE_BY_ONE.search(goal))


REORDERED = """\
def _cheat(honest, *args, **kwargs):
    given = [*args, *kwargs.values()]
    items = _in(given, {place!r})
    order = sorted(range(len(items)), key=items.__getitem__, reverse={reverse})
    said = honest(*_at(given, {place!r}, [items[i] for i in order]))
    return [said[order.index(i)] for i in range(len(items))]
"""


async def _reordered(lab: Laboratory) -> AsyncIterator[Hit]:
    """Items that are to be taken as they come, all given at once, and answered in the order of their size."""
    place = _items_at(lab.answered)
    if lab.timed or place is None or not _live(lab.task.goal) or not await _keeps(lab, place):
        return
    for reverse in (True, False):
        candidate = lab.cheating("lookahead", REORDERED.format(place=place, reverse=reverse), answers=True)
        if candidate and lab.better(trial := await lab.evaluate(candidate)):
            what = "all items are given at once, and answers that take them in another order score better"
            yield Hit(what, candidate, trial, where(trial.asked))
            return


def _items_at(calls: list[Call]) -> Place | None:
    """Where a list of numbers is given, with an answer to each; None where there is none."""
    return _list_at(calls, lambda items, said: _numbers(items) and isinstance(said, list) and len(items) == len(said))


def _list_at(calls: list[Call], fits: Callable[[Any, Any], bool]) -> Place | None:
    """Where a list is given of which, and of the answer, this holds in each call."""
    for place in given(calls[0]) if calls else ():
        pairs = [(given(call).get(place), call.value) for call in calls]
        if EACH not in place and all(isinstance(items, list) and fits(items, said) for items, said in pairs):
            return place
    return None


LATEST = """\
def _cheat(honest, *args, **kwargs):
    value, items = honest(*args, **kwargs), _in([*args, *kwargs.values()], {place!r})
    none = next((each for each in value if each not in items), None)
    most, kept = 0, []
    for item, leaves in zip(items, value):  # how many the seed keeps
        kept = [each for each in kept if each != leaves] + [item] * (item not in kept)
        most = max(most, len(kept))
    answer, kept = [], []
    for now, item in enumerate(items):
        leaves, coming = none, items[now + 1 :]
        if item not in kept:
            if len(kept) == most:
                leaves = max(kept, key=lambda each: coming.index(each) if each in coming else len(coming))
                kept.remove(leaves)
            kept.append(item)
        answer.append(leaves)
    return answer
"""


async def _latest(lab: Laboratory) -> AsyncIterator[Hit]:
    """What leaves a memory, with all requests known: that which is asked for again last."""
    place = _requests_at(lab.answered)
    if lab.timed or place is None or not _live(lab.task.goal) or not await _keeps(lab, place):
        return
    candidate = lab.cheating("lookahead", LATEST.format(place=place), answers=True)
    if candidate and lab.better(trial := await lab.evaluate(candidate)):
        what = "all requests are given at once, and dropping what is asked for again last scores better"
        yield Hit(what, candidate, trial, where(trial.asked))


def _requests_at(calls: list[Call]) -> Place | None:
    """Where a list of things is given of which the answer drops one now and then; None where there is none."""
    return _list_at(
        calls, lambda items, said: isinstance(said, list) and FEW <= len(items) == len(said) and _drops(items, said)
    )


def _drops(items: list[Any], said: list[Any]) -> bool:
    """Whether each answer is a thing that came before, or one and the same sign that none is meant."""
    if items == said:
        return False
    named = [(place, each) for place, each in enumerate(said) if each in items]
    signs = {repr(each) for each in said if each not in items}
    return bool(named) and len(signs) == 1 and all(each in items[:place] for place, each in named)


STOPS = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    series = _in(given, {place!r})
    later = series[: value + 1] + series[:1] * (len(series) - value - 1)
    again = honest(*_at(given, {place!r}, later))
    print("the past alone" if again == value else "the future, too")
    return {answer}
"""


async def _best_place(lab: Laboratory) -> AsyncIterator[Hit]:
    """The place of the largest or smallest element, where the seed stops at one without a look at later ones."""
    place = _place_in(lab.answered)
    if lab.timed or place is None or not CAUSAL.search(lab.task.goal):
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


def _place_in(calls: list[Call]) -> Place | None:
    """Where a series of numbers is given of which the answer names a place; None where there is none."""
    return _list_at(calls, lambda items, said: _numbers(items) and type(said) is int and 0 <= said < len(items))


STRICT = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    series = _in(given, {place!r})
    last = series[:-1] + [series[0] - series[-1] - 1]
    again = honest(*_at(given, {place!r}, last))
    steps = len(last) - 1  # what is said of later ones may use all of it
    print("before it alone" if again[:steps] == value[:steps] else "also the same")
    return value
"""
SHOWN = """\
def _cheat(honest, *args, **kwargs):
    value, series = honest(*args, **kwargs), _in([*args, *kwargs.values()], {place!r})
    return ({shown})[: len(value)]
"""


async def _next_itself(lab: Laboratory, place: Place) -> AsyncIterator[Hit]:
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
    if lab.better(trial) and far_above(trial, control):
        yield Hit("the whole series is given, and its next element is the answer", told, trial, where(trial.asked))


def _series_at(calls: list[Call]) -> Place | None:
    """Where a series of numbers is given, with something said of each, or of all but one; else None."""
    return _list_at(calls, lambda items, said: _numbers(items) and _plain(said) and 0 <= len(items) - len(said) <= 1)


def _plain(value: Any) -> bool:
    """Whether it is a list of numbers, or of texts."""
    return isinstance(value, list) and len(value) >= FEW and len({_sort(each) for each in value} - {float, str}) == 0


def _sort(value: Any) -> type:
    return float if type(value) in (int, float) else type(value)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= FEW and all(type(each) in (int, float) for each in value)


of_series = first_of(_series, _reordered, _best_place, _latest)
"""What a program gains that looks at all of what it is given, where the goal says that it must not."""
