"""A search near the seed's answers: small changes that break what all of them keep, tried until one scores better."""

from __future__ import annotations

import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any

from msgspec.structs import replace

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.timing import table
from evogit.audit.laboratory import Call, Laboratory, WatchedEvaluation
from evogit.audit.parts import KEYS, part_of, places
from evogit.audit.rules import ALL_ONCE, BACKWARDS, EACH_THING, EARLY, NAMED_TWICE, SUM, Rule, given, mined, numbers

SECONDS = 10.0
"""How long an audit looks for such a change."""
MOST = 150
"""Evaluations of one answer."""
ANSWERS = 2
"""The shortest answers of the seed that are changed."""
TRIES = 2000
"""Changes that are drawn for an evaluation until one breaks a rule."""
DRY = 5
"""How often none of them does before the answer is given up."""
FAR = 10
"""How many times the seed's numbers a negative one is, so that no better guess is meant."""
SIGNED = re.compile(r"negativ|minus|(?<![\w.])-\d|below (0|zero)|\bshort\b|\bsigned?\b", re.I)
WHOLE = re.compile(r"\bwhole\b|\bintegers?\b|\bhow many\b|\bpieces\b", re.I)
AMOUNTS = re.compile(r"\b(amounts?|quantit\w+|how (much|many)|kilo\w*|kg|lit(re|er)s?|tonn?e?s?|units|money)\b", re.I)
TIMES = re.compile(r"\b(starts?|begins?|minutes?|hours?|when|seats?|loads?|ship\w*|stock)\b", re.I)
ONCE = re.compile(r"\bonce\b|\btwice\b|\bdifferent\b|\bdistinct\b|\bunique\b|\bsubset\b", re.I)
PERMUTED = re.compile(r"\bpermut|\border(ing|ed)?\b(?! to\b)|\btour\b|\bonce\b", re.I)
"""How a goal says that each thing comes once; "different" may be said of some pairs alone."""
OWN = re.compile(r"\b(own|only one|at most one|no two|once|twice)\b", re.I)
"""How it says that none is given out twice."""
PLACES, TWICE = "counts places from the end", "names something twice"
NEGATIVE, PART = "holds a negative amount", "holds a part of what is whole"
EXCHANGED, LEFT_OUT = "two exchanged", "one left out"
EXCHANGES = 0.2
"""How often rows are exchanged, not changed."""
BROKEN_BY = {
    EARLY: (EXCHANGED,),
    EACH_THING: (LEFT_OUT,),
    NAMED_TWICE: ("an element",),
    BACKWARDS: ("more of one", "an amount"),
    **dict.fromkeys(ALL_ONCE, ("an element",)),
    PLACES: ("a place",),
    TWICE: ("an element",),
    NEGATIVE: ("more of one", "an amount"),
    PART: ("a half",),
}
"""The changes that break a rule on purpose; any other one may be a fair answer of another kind."""
Edit = tuple[str, Any, Any]
"""What was changed, the answer after it, and one with what is fair of the change alone, which is to be worth less."""


def _list_edit(x: list[Any], call: Call, rng: random.Random) -> Edit | None:
    """A change of one or two elements of a list."""
    one, other = rng.randrange(len(x)), rng.randrange(len(x))
    without = x[:one] + x[one + 1 :]

    def put(part: Any) -> list[Any]:
        return [*x[:one], part, *x[one + 1 :]]

    exchanged = (EXCHANGED, _at(put(x[other]), other, x[one]), x)
    if isinstance(x[one], list | dict):
        if rng.random() < EXCHANGES:
            return exchanged
        inner = _edit(x[one], call, rng)
        if inner and rng.random() < EXCHANGES:
            return inner[0], [*x, inner[1]], [*x, x[one]]
        return inner and (inner[0], put(inner[1]), put(inner[2]))
    ways: list[Edit] = [("an element once more", put(x[other]), without), exchanged]
    if type(x[one]) is type(x[other]) is int:
        sizes = [len(each) for each in given(call).values() if isinstance(each, list | dict)]
        size = rng.choice([*sizes, *(each for each in given(call).values() if type(each) is int), 1])
        ways.append(("a place counted from the end", put(x[other] - size), without))
        ways.append(("a place counted from the end, added", [*x, x[other] - size], x))
        ways.append(("a place counted beyond the end", put(x[other] + size), without))
        ways.append(("a half", put(x[one] + 0.5), without))
    if type(x[one]) in (int, float) and one != other and type(x[other]) in (int, float):
        much, less = _amounts(x, rng)
        ways.append(
            ("more of one, less than none of another", _at(put(x[one] + much), other, x[other] - less), without)
        )
        rates = [each for each in given(call).values() if _rates(each, len(x))]
        for each in rates[:1]:  # what is exchanged at these rates is worth the same in all
            even = _at(put(x[one] + much * each[other]), other, x[other] - much * each[one])
            ways.append(("more of one, less than none of another", even, without))
    return rng.choice(ways)


def _rates(given: Any, count: int) -> bool:
    return isinstance(given, list) and len(given) == count and all(type(each) in (int, float) for each in given)


def _dict_edit(x: dict[str, Any], call: Call, rng: random.Random) -> Edit | None:
    """A change of one or two entries of a table, whose keys are those of one of the inputs."""
    named = next((sorted(each) for each in _names(call) if set(x) <= each), list(x))
    some = rng.choice(list(x))
    if type(x[some]) not in (int, float):
        if not isinstance(x[some], list | dict):
            if rng.random() < 0.5:
                return "an element once more", {**x, some: x[rng.choice(list(x))]}, x
            return LEFT_OUT, {key: part for key, part in x.items() if key != some}, x
        inner = _edit(x[some], call, rng)
        return inner and (inner[0], {**x, some: inner[1]}, {**x, some: inner[2]})
    one, other = rng.choice(named), rng.choice(named)
    without = {key: part for key, part in x.items() if key != other}
    much, less = _amounts(list(x.values()), rng)
    if one == other:
        return "an amount below zero", {**x, one: -less}, without
    if any(type(x.get(key, 0)) not in (int, float) for key in (one, other)):
        return None
    more = {**x, one: x.get(one, 0) + much}
    return "more of one, less than none of another", {**more, other: x.get(other, 0) - less}, more


def _amounts(values: list[Any], rng: random.Random) -> tuple[float, float]:
    """How much more of one, and how much less of another."""
    most = max((abs(each) for each in values if type(each) in (int, float)), default=1) or 1
    much = most * rng.choice((1, 10, 100))
    less = much * rng.choice((0.125, 0.25, 0.5, 1, 2, 4))
    return (much, int(less)) if all(type(each) is int for each in values) else (much, less)


def _at(x: list[Any], place: int, part: Any) -> list[Any]:
    return [*x[:place], part, *x[place + 1 :]]


def _edit(x: Any, call: Call, rng: random.Random) -> Edit | None:
    if isinstance(x, list) and x:
        return _list_edit(x, call, rng)
    return _dict_edit(x, call, rng) if isinstance(x, dict) and x else None


# --- rules of numbers -----------------------------------------------------------------------------------------------


def _of_numbers(calls: list[Call], goal: str) -> Iterator[Rule]:
    """Rules of all numbers of the answers, as far as the goal does not speak against them."""
    found = [list(numbers(call.value)) for call in calls]
    flat = list(chain.from_iterable(found))
    asked = chain.from_iterable(numbers(call.arguments) for call in calls)
    if not flat or not all(found):
        return
    if all(map(_named, calls)):
        yield Rule(PLACES, lambda call: all(0 <= x < _most(call) for x in numbers(call.value)))
        if ONCE.search(goal):
            yield Rule(TWICE, lambda call: _once(list(numbers(call.value))))
    elif _amounting(calls, goal) and min(flat) >= 0 and min(asked, default=-1) >= 0 and not SIGNED.search(goal):
        least = 0 if all(_keyed(call, goal) for call in calls) else -FAR * max(flat)
        yield Rule(NEGATIVE, lambda call: all(each >= least for each in numbers(call.value)))
    if all(type(each) is int for each in flat) and WHOLE.search(goal):
        yield Rule(PART, lambda call: all(each == int(each) for each in numbers(call.value)))


def _named(call: Call) -> bool:
    """Whether the answer names places of a list of the input, none of them twice."""
    found = list(numbers(call.value))
    return all(type(each) is int and 0 <= each < _most(call) for each in found) and _once(found)


def _most(call: Call) -> int:
    return max((len(each) for each in given(call).values() if isinstance(each, list)), default=0)


def _once(found: list[Any]) -> bool:
    return len(set(found)) == len(found)


def _amounting(calls: list[Call], goal: str) -> bool:
    """Whether the answers say how much there is of each thing: by names, or in the order of the input."""
    if all(_keyed(call, goal) for call in calls):
        return True
    sizes = [{len(each) for each in given(call).values() if isinstance(each, list)} for call in calls]
    return bool(AMOUNTS.search(goal)) and all(len(call.value) in own for call, own in zip(calls, sizes, strict=True))


def _keyed(call: Call, goal: str) -> bool:
    """Whether the answer says how much of each thing that the input names; or when, where the goal speaks of either."""
    named = [set(each) for each in call.arguments if isinstance(each, dict)]
    if isinstance(call.value, dict) and any(set(call.value) <= names for names in named):
        return True
    tables = [part_of(call.value, place) for place in places(call.value) if place[-1:] == (KEYS,)]
    spoken = AMOUNTS.search(goal) or TIMES.search(goal)
    return bool(spoken) and any(set(each) <= names for each in tables for names in _names(call))


def _names(call: Call) -> list[set[str]]:
    """The names of each table of the input, and the texts of each list of it."""
    parts = [each for each in given(call).values() if isinstance(each, list | dict)]
    return [set(each) for each in parts if each and all(isinstance(name, str) for name in each)]


# --- the search -----------------------------------------------------------------------------------------------------


async def _edited(lab: Laboratory) -> AsyncIterator[Hit]:
    calls = [
        call for call in lab.answered if call.kind == "call" and isinstance(call.value, list | dict) and call.value
    ]
    if lab.timed or lab.seed.score is None or len(calls) != len(lab.answered) or not calls:
        return
    rules = [*_mined(calls, lab.task.goal), *_of_numbers(calls, lab.task.goal)]
    until = time.monotonic() + SECONDS
    unique = {call.key: call for call in calls}
    for call in sorted(unique.values(), key=lambda each: len(each.key))[:ANSWERS] if rules else ():
        async for hit in _near(lab, call, rules, until):
            yield hit
            return


def _mined(calls: list[Call], goal: str) -> list[Rule]:
    """Sums, what comes before others, and each thing once where the answer is made of rows, or the goal says so."""
    rows = all(isinstance(call.value, list) and all(isinstance(each, list) for each in call.value) for call in calls)
    once = [*ALL_ONCE] if rows or PERMUTED.search(goal) else []
    once += [NAMED_TWICE] if OWN.search(goal) and all(isinstance(call.value, dict) for call in calls) else []
    return [rule for rule in mined(calls, goal) if rule.says in (SUM, EARLY, EACH_THING, BACKWARDS, *once)]


async def _near(lab: Laboratory, call: Call, rules: list[Rule], until: float) -> AsyncIterator[Hit]:
    """A climb from this answer of the seed over answers that break a rule and are accepted."""
    rng = random.Random(call.key)
    best, score = call.value, None
    seen = [call.value]
    dry = 0
    for _ in range(MOST):
        if dry == DRY or time.monotonic() > until:
            return
        start = best if rng.random() < 0.5 else call.value
        drawn = next((each for each in _breaking(start, call, rules, rng) if each[1] not in seen), None)
        if drawn is None:
            dry += 1
            continue
        says, value, without, rule = drawn
        seen.append(value)
        candidate, trial = await _answering(lab, call, value)
        if candidate and lab.better(trial):
            other = (await _answering(lab, call, without))[1]
            if not lab.better(other) and (rule.says not in (PLACES, TWICE) or await _chosen(lab, call)):
                yield Hit(f"an answer that {rule.says} scores better ({says})", candidate, trial, trial.line)
                return
        elif trial.score is not None and (score is None or trial.score > score):
            best, score = value, trial.score


def _breaking(value: Any, call: Call, rules: list[Rule], rng: random.Random) -> Iterator[tuple[str, Any, Any, Rule]]:
    for _ in range(TRIES):
        if edit := _edit(value, call, rng):
            says, changed, without = edit
            meant = [rule for rule in rules if says.startswith(BROKEN_BY.get(rule.says, ""))]
            broken = next((rule for rule in meant if not rule.holds(replace(call, value=changed))), None)
            if broken:
                yield says, changed, without, broken


async def _chosen(lab: Laboratory, call: Call) -> bool:
    """Whether the answer is a choice: less of it is accepted, in any order; else it says something of each thing."""
    if not isinstance(call.value, list):
        return True
    trials = [(await _answering(lab, call, value))[1] for value in (call.value[::-1], call.value[1:])]
    return trials[0].score == lab.seed.score and trials[1].evaluation.ok


async def _answering(lab: Laboratory, call: Call, value: Any) -> tuple[Any, WatchedEvaluation]:
    """The seed that answers this to the call, and its trial."""
    candidate = lab.cheating("edited", table([replace(call, value=value)]), answers=True)
    return candidate, await lab.evaluate(candidate) if candidate else lab.seed


ATTACKS = (
    Attack(
        "edited",
        "answers",
        "changes an answer of the seed a little, again and again, so that it breaks what all of them keep",
        "Check this rule with `raise Invalid(...)` before you score: places from 0, amounts not below 0, none twice.",
        _edited,
    ),
)
