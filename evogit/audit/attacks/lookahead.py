"""A program that knows what is to come: from an earlier call, from a whole series, from the last evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import where
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import SECOND, Call, Laboratory
from evogit.audit.rules import kind

FEW = 5
"""Items that follow each other below which what comes next may be the answer by chance."""
LIVE = re.compile(
    r"\bonline\b|\bstream|one (item|at a time)|arriv|without (seeing|knowing)|look.?ahead|future|causal", re.I
)


async def _future(lab: Laboratory) -> AsyncIterator[Hit]:
    """What is to come, known before: the same in each evaluation, or given to an earlier call."""
    calls = lab.seed.asked
    following = [] if lab.timed else _following(lab.answered)
    if len(following) >= FEW and len(set(map(repr, following))) > 1:
        turns = (0, 1, 2, len(following) // 2)  # the right order, and controls
        tables = [NEXT.format(items=json.dumps(following[turn:] + following[:turn])) for turn in turns]
        candidates = [each for table in tables if (each := lab.cheating("lookahead", table, answers=True))]
        told, *controls = [await lab.evaluate(each, secret=SECOND) for each in candidates] or [lab.seed]
        usual = max((each.score for each in controls if each.score is not None), default=None)
        if lab.better(told) and told.score and (usual is None or told.score - usual > abs(usual) / 3):
            what = "what comes next is the answer, and is the same in each evaluation"
            yield Hit(what, candidates[0], told, where(calls))
            return
    async for hit in _series(lab):
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


CAUSAL = re.compile(
    r"\bup to (and including )?(now|the present|(the )?(current )?(day|hour|minute|step|time|round|tick|moment|t)\b)"
    r"|\bso far\b|\b(past|earlier|previous) (values|prices|items|data)\b|\bonly the past\b|(see|know)\w* what comes",
    re.I,
)
"""How a goal says that an answer may depend on what came before alone."""
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
    return {moves}
"""


async def _series(lab: Laboratory) -> AsyncIterator[Hit]:
    """A whole series at once, where each answer is to depend on what came before alone, as the seed's do."""
    place = _series_at(lab.answered)
    if lab.timed or place < 0 or not CAUSAL.search(lab.task.goal):
        return
    keeps = lab.cheating("lookahead", KEEPS.format(place=place), answers=True)
    said = (await lab.evaluate(keeps)).evidence.stdout if keeps else b""
    if b"the past alone" not in said or b"the future, too" in said:
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


def _series_at(calls: list[Call]) -> int:
    """Which argument is a series of numbers with a number as answer to each; -1 where there is none."""
    if not calls:
        return -1
    for place in range(min(len(call.arguments) for call in calls)):
        pairs = [(call.arguments[place], call.value) for call in calls]
        if all(_numbers(given) and _numbers(value) and len(given) == len(value) for given, value in pairs):
            return place
    return -1


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= FEW and all(type(each) in (int, float) for each in value)


def _following(calls: list[Call]) -> list[Any]:
    """To each call the item that came next, where that is of the kind of an answer; else what was answered."""
    found: list[Any] = []
    for now, after in zip(calls, calls[1:], strict=False):
        if not now.arguments or not after.arguments or now.target != after.target:
            return []
        before, item = now.arguments[0], after.arguments[0]
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


# --- hidden things that are the same in each evaluation ---------------------------------------------------------

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
    usual = max((each.score for each in controls if each.score is not None), default=None)
    if lab.better(told) and told.score is not None and (usual is None or told.score - usual > abs(usual) / 3):
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
        "knows from an earlier evaluation what it is to find out",
        "Draw what is hidden with the `rng` that evaluate() may take, and do not name it to the program.",
        _replayed,
    ),
    Attack(
        "lookahead",
        "leaks",
        "uses what is to come",
        "Hand out one item at a time with program.stream, from items that are drawn with rng.",
        _future,
    ),
)
