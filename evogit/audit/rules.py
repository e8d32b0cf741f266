"""What all answers of the seed have in common, given what they answer: an answer that lacks it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct

from evogit.audit.laboratory import Call, read_printed
from evogit.audit.parts import EACH, LONG, Place, common, part_of, places, read, scalars

APART = "is the same where the input wants it apart"
SHOULD = "has not as many elements as it should"
REARRANGED = "is not a rearrangement of the input"
EACH_PLACE = "does not name each place once"
EACH_NUMBER = "does not have each number once"
EACH_LINE = "has not as many lines as the input"
EACH_THING = "does not say something of each thing of the input"
SUM = "does not add up to what was asked for"
OTHER_KIND = "is of another kind than those of the seed"
SAME_LENGTH = "has not as many elements as the input"
OTHER_WORDS = "says words that the input does not have"
ONE_PLACE = "puts all things at one place"
OVERLAP = re.compile(
    r"overlap|over (one )?another|at a time|at once|clash|colli[ds]|\bapart\b|disjoint|intersect|conflict"
    r"|\bno two\b|same (time|place|spot|slot|room|cell)",
    re.I,
)
"""How a goal says that things must not be at one place, or at one time."""
NAMED_TWICE = "names something twice"
BACKWARDS = "ends before it begins"
EARLY = "has a thing before what must come before it"
MORE = "has more elements than it may have"
OTHER_SIZE = "has not as many elements as the goal says"
MANY = 40
"""Calls of a function that are compared."""
ALL_ONCE = (REARRANGED, EACH_PLACE, EACH_NUMBER)
FEW = 4
"""Elements below which what all lists together have in common with something may be chance."""
WORD = re.compile(r"\w+")
NAMES = re.compile(r"\[(\w+(?:, *\w+)+)\]")
"""What a list has, as a goal writes it down: `[a, b, c]`."""
SPELLED = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Rule(Struct, frozen=True):
    """Something that holds for each answer of the seed; `says` ends a sentence about an answer that lacks it."""

    says: str
    holds: Callable[[Call], bool]


def mined(calls: Sequence[Call], goal: str = "") -> list[Rule]:
    """The rules that all these answers keep; how many elements they have is one where the goal says so."""
    rules: list[Rule] = []
    for target in {call.target: None for call in calls}:
        own = list(islice((call for call in calls if call.target == target), MANY))
        for place in dict.fromkeys([(), *common([call.value for call in own])]):
            rules += [_for_target(target, place, *rule) for rule in _kinds(own, place)]
            rules += [_for_target(target, place, *rule) for rule in _contents(own, place, goal)]
            rules += [_for_target(target, place, *rule) for rule in _sizes(own, place, goal)]
        rules += [_for_target(target, (), *rule) for rule in _stated(own, goal)]
    return rules


def _for_target(target: str, place: Place, says: str, holds: Callable[[Any, Call], bool]) -> Rule:
    def of_call(call: Call) -> bool:
        if call.target != target:
            return True
        try:
            return holds(read(call.value, place), call)
        except (TypeError, LookupError, ValueError, AttributeError):
            return False

    return Rule(says, of_call)


def given(call: Call) -> Mapping[Place, Any]:
    """All that a call is given: its arguments, and what stands within them, by its place."""
    return _given(call.kind, call.key)


@lru_cache(maxsize=4096)
def _given(kind: str, key: str) -> Mapping[Place, Any]:
    args, kwargs = json.loads(key)
    arguments = [*args, *kwargs.values()]
    if kind == "run":
        asked = arguments[0]
        arguments = [*map(_word, asked["argv"][1:]), *map(read_printed, [asked["stdin"], *asked["files"].values()])]
    found: dict[Place, Any] = {(number,): value for number, value in enumerate(arguments)}
    for number, value in enumerate(arguments):
        for place in (*scalars(value), *places(value)):
            found[(number, *place)] = part_of(value, place)
    return found


def _word(text: str) -> Any:
    """A word of a command; a number as one."""
    found = read_printed(text)
    return found[0] if isinstance(found, list) and len(found) == 1 else text


def kind(value: Any) -> Any:
    """What sort of value it is, whatever its content and length."""
    if isinstance(value, dict):
        return {key: kind(part) for key, part in value.items()}
    if isinstance(value, list):
        return [kind(value[0])] if value else []
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def numbers(value: Any) -> Iterator[int | float]:
    """All numbers in a value."""
    if isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


Holds = Callable[[Any, Call], bool]


def _kinds(calls: Sequence[Call], place: Place) -> Iterator[tuple[str, Holds]]:
    if place:
        return
    found = [kind(call.value) for call in calls]

    def alike(value: Any, _: Call) -> bool:
        return bool(kind(value) == found[0])

    yield from _wholes(calls)
    if found[0] != [] and all(each == found[0] for each in found):
        yield OTHER_KIND, alike


def _wholes(calls: Sequence[Call]) -> Iterator[tuple[str, Holds]]:
    """That a text has as many lines as one of the input, and a table an entry for each thing of the input."""
    shared = [where for where in given(calls[0]) if all(where in given(call) for call in calls)]
    for says, check in WHOLE.items():
        for where in shared:
            if all(_true(check, call.value, given(call)[where]) for call in calls):
                yield says, lambda value, call, check=check, where=where: check(value, given(call)[where])  # type: ignore[misc]


def _as_long(value: Any, given: Any) -> bool:
    if not isinstance(value, str) or not isinstance(given, str):
        return False
    return len(value.splitlines()) == len(given.splitlines()) >= FEW


def _one_each(value: Any, given: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(given, dict | list) or len(value) < FEW:
        return False
    return sorted(map(str, value)) == sorted(map(str, given))


def _in_its_words(value: Any, given: Any) -> bool:
    if not isinstance(value, str) or not isinstance(given, str):
        return False
    words = WORD.findall(value)
    return len(words) >= FEW and set(words) <= set(WORD.findall(given))


def _all_its_words(value: Any, given: Any) -> bool:
    """Whether a text, or lines of text, has each word of the input as often as the input, written otherwise."""
    texts = value if isinstance(value, list) else [value]
    if value == given or not isinstance(given, str) or not all(isinstance(each, str) for each in texts):
        return False
    words = WORD.findall(" ".join(texts))
    return len(words) >= FEW and sorted(words) == sorted(WORD.findall(given))


def _apart_by_name(value: Any, given: Any) -> bool:
    """Whether a table says something else of the two of each pair of the input."""
    return isinstance(value, dict) and _pairs(given) and all(value[str(a)] != value[str(b)] for a, b, *_ in given)


WHOLE: dict[str, Callable[[Any, Any], bool]] = {
    EACH_LINE: _as_long,
    OTHER_WORDS: _in_its_words,
    EACH_THING: _one_each,
    "does not have each word of the input": _all_its_words,
    APART: _apart_by_name,
}


Check = Callable[[list[Any], Any], bool]
"""Whether a list as answer keeps a rule, given one of the arguments."""
COUNTED = (SAME_LENGTH, SHOULD, REARRANGED, EACH_PLACE, EACH_NUMBER, EACH_LINE, EACH_THING, APART)
"""Rules that a seed keeps by chance which chooses everything: leaving a part out may be what is asked for."""
RELATED: dict[str, Check] = {
    SAME_LENGTH: lambda value, given: isinstance(given, list) and len(value) == len(given),
    SHOULD: lambda value, given: type(given) is int and len(value) == given,
    REARRANGED: lambda value, given: isinstance(given, list) and _same(value, given),
    "holds what the input does not have": lambda value, given: (
        isinstance(given, list) and all(x in given for x in value)
    ),
    "names places that the input does not have": lambda value, given: (
        isinstance(given, list) and _places(value, given) and _used(value, given)
    ),
    MORE: lambda value, given: type(given) is int and len(value) <= given,
    SUM: lambda value, given: type(given) in (int, float) and sum(value) == given,
    "takes steps that the input does not have": lambda value, given: _joined(value, given),
    APART: lambda value, given: _apart(value, given),
    "chooses spans that overlap": lambda value, given: _disjoint(value, given),
    "does not begin where it should": lambda value, given: type(given) in (int, str) and value[0] == given,
    "does not end where it should": lambda value, given: type(given) in (int, str) and value[-1] == given,
    NAMED_TWICE: lambda value, given: _once(value, given),
    EARLY: lambda value, given: _ordered(value, given),
    EACH_PLACE: lambda value, given: _order(value) and len(value) == (len(given) if isinstance(given, list) else given),
}
ALONE: dict[str, Callable[[list[Any]], bool]] = {
    EACH_NUMBER: lambda value: _order(value),
    "says nothing of some things": lambda value: None not in value,
    BACKWARDS: lambda value: _forwards(value),
}


ENDS = (("from", "to"), ("start", "end"), ("begin", "end"), ("start", "finish"), ("start", "stop"), ("low", "high"))


def _forwards(value: list[Any]) -> bool:
    """Whether all of some records end after they begin."""
    names = [pair for pair in ENDS if all(isinstance(each, dict) and set(pair) <= set(each) for each in value)]
    return bool(names) and all(each[one] <= each[other] for one, other in names for each in value)


def _once(value: list[Any], given: Any) -> bool:
    """Elements or places of the input, none of them twice."""
    of_input = isinstance(given, list) and all(x in given or (type(x) is int and 0 <= x < len(given)) for x in value)
    return of_input and len({repr(each) for each in value}) == len(value)


PAIR = 2
AT_MOST = re.compile(r"\bat most\b|\bno more than\b|\bup to\b|\bnot more than\b|\bmaximum of\b|\blimit", re.I)
AFTER = re.compile(r"\b(after|before|preced\w*|depend\w*|prerequisite\w*|first|earlier|finished|done)\b", re.I)
"""How a goal says that some things come before others."""
Limit = Callable[[list[Any], Any, Any], bool]
"""Whether a list as answer keeps a rule, given two of the arguments: a list, and a number that limits."""


def _chosen(value: list[Any], given: Any, most: Any) -> bool:
    """Places of things that together are no more than may be."""
    if not isinstance(given, list) or type(most) not in (int, float) or not _places(value, given):
        return False
    sizes = [each[0] if isinstance(each, list) else each for each in given]
    return bool(sum(sizes[place] for place in value) <= most)


def _loads(value: list[Any], given: Any, most: Any) -> bool:
    """A box for each thing, none of which holds more than it may."""
    if not isinstance(given, list) or type(most) not in (int, float) or len(given) != len(value):
        return False
    loads: dict[Any, Any] = {}
    for box, size in zip(value, given, strict=True):
        loads[box] = loads.get(box, 0) + size
    return all(load <= most for load in loads.values())


def _amounts(value: list[Any], given: Any, most: Any) -> bool:
    """How much of each thing, none of it negative, that together is no more than may be."""
    if not isinstance(given, list) or type(most) not in (int, float) or len(given) != len(value):
        return False
    sizes = [each[0] if isinstance(each, list) else each for each in given]
    total = sum(size * amount for size, amount in zip(sizes, value, strict=True))
    return all(amount >= 0 for amount in value) and any(amount > 1 for amount in value) and total <= most


LIMITED: dict[str, Limit] = {
    "holds a negative amount, or more than it may": _amounts,
    "takes more than it may": _chosen,
    "puts more together than it may": _loads,
}


def _places(value: list[Any], given: list[Any]) -> bool:
    return all(type(x) is int and 0 <= x < len(given) for x in value)


def _used(value: list[Any], given: list[Any]) -> bool:
    """Whether an answer of more elements than there are places has most places; else small numbers look like some."""
    return len(value) <= len(given) or 2 * len(set(value)) > len(given)


def _pairs(given: Any) -> bool:
    return isinstance(given, list) and len(given) > 1 and all(isinstance(x, list) and len(x) >= 2 for x in given)


def _befores(given: Any) -> list[tuple[Any, Any]]:
    """Which thing comes before which other one: things with a name, and a list of names of others among them."""
    if isinstance(given, dict):
        rows = [[name, part] for name, part in given.items()]
    else:
        rows = [list(each.values()) if isinstance(each, dict) else each for each in given]
    columns = list(zip(*rows, strict=True))
    before = next(each for each in columns if all(isinstance(part, list) for part in each))
    wanted = {name for part in before for name in part}
    names = next(each for each in columns if each != before and _all_named(each, wanted))
    return [(one, name) for name, part in zip(names, before, strict=True) for one in part]


def _all_named(column: Sequence[Any], wanted: set[Any]) -> bool:
    plain = all(isinstance(each, str | int) for each in column)
    return plain and wanted <= set(column) and len(set(column)) == len(column)


def _ordered(value: list[Any], given: Any) -> bool:
    """Whether each thing comes after those that the input says with it."""
    if isinstance(given, list) and _pairs(given) and all(len(pair) == PAIR for pair in given):
        steps = [(one, other) for one, other in given]
    elif isinstance(given, list | dict):
        steps = _befores(given)
    else:
        return False
    at = {name: place for place, name in enumerate(value)}
    return len(steps) >= FEW - 1 and all(at[one] < at[other] for one, other in steps)


def _disjoint(value: list[Any], given: Any) -> bool:
    """Whether no two of the chosen spans of the input, each with its begin and end, overlap."""
    if not _pairs(given) or not _places(value, given) or not all(each[0] < each[1] for each in given):
        return False
    spans = sorted(given[place][:2] for place in value)
    return len(spans) > 1 and all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False))


def _apart(value: list[Any], given: Any) -> bool:
    """Whether the places that each pair of the input names have different answers."""
    return _pairs(given) and all(_places(pair[:2], value) and value[pair[0]] != value[pair[1]] for pair in given)


def _joined(value: list[Any], given: Any) -> bool:
    """Whether each step is one that the input has: a pair, or an entry of a table of neighbours."""
    steps = list(zip(value, value[1:], strict=False))
    if isinstance(given, dict):
        return bool(steps) and all(b in given.get(str(a), ()) for a, b in steps)
    return bool(steps) and _pairs(given) and all(_has(given, a, b) for a, b in steps)


def _has(given: list[Any], a: Any, b: Any) -> bool:
    return any(pair[:2] in ([a, b], [b, a]) for pair in given)


def _same(value: list[Any], given: list[Any]) -> bool:
    return sorted(map(repr, value)) == sorted(map(repr, given))


def _order(value: list[Any]) -> bool:
    return all(type(x) is int for x in value) and sorted(value) == list(range(len(value)))


def _sizes(calls: Sequence[Call], place: Place, goal: str) -> Iterator[tuple[str, Holds]]:
    """That lists have as many elements as the goal names, whatever they are given."""
    sizes = {len(value) if isinstance(value := part_of(call.value, place), list) else 0 for call in calls}
    size = sizes.pop()
    named = {len(found.split(",")) for found in NAMES.findall(goal)}
    words = WORD.findall(goal.lower())
    if (
        size > 1
        and not sizes
        and (size in named or str(size) in words or size in map(SPELLED.index, set(SPELLED[2:]) & set(words)))
    ):
        yield OTHER_SIZE, lambda value, _: len(value) == size


UNITS: dict[str, Callable[[Any], int]] = {
    r"characters|letters|chars|signs": len,
    r"words": lambda text: len(text.split()),
    r"lines": lambda text: len(text.splitlines()),
}
"""What is counted of a text, as goals name it."""
FEWER = re.compile(rf"(?:at most|up to|no more than|not more than) (\d+|{'|'.join(SPELLED[1:])})\b", re.I)
RANGES = re.compile(r"(?:from|between)\s+(-?\d+(?:\.\d+)?)\s+(?:to|and)\s+(-?\d+(?:\.\d+)?)", re.I)


def _stated(calls: Sequence[Call], goal: str) -> Iterator[tuple[str, Holds]]:
    """Limits that the goal names, and that all the answers keep."""
    for units, count in UNITS.items():
        for found in re.findall(rf"(\d+)\s+(?:{units})", goal if AT_MOST.search(goal) else ""):
            if all(isinstance(call.value, str) and count(call.value) <= int(found) for call in calls):
                yield "is longer than the goal allows", _at_most(count, int(found))
    for found in FEWER.findall(goal):
        most = int(found) if found.isdigit() else SPELLED.index(found.lower())
        if all(isinstance(call.value, list) and len(call.value) <= most for call in calls):
            yield MORE, lambda value, _, most=most: isinstance(value, list) and len(value) <= most  # type: ignore[misc]
    for low, high in RANGES.findall(goal):
        inside = _within(float(low), float(high))
        if all(inside(call.value, call) and any(True for _ in numbers(call.value)) for call in calls):
            yield "has a number out of the range that the goal names", inside


def _at_most(count: Callable[[Any], int], most: int) -> Holds:
    def holds(value: Any, _: Call) -> bool:
        return isinstance(value, str) and count(value) <= most

    return holds


def _within(low: float, high: float) -> Holds:
    def holds(value: Any, _: Call) -> bool:
        return all(low <= number <= high for number in numbers(value))

    return holds


def _contents(calls: Sequence[Call], place: Place, goal: str) -> Iterator[tuple[str, Holds]]:
    values = [part_of(call.value, place) for call in calls]
    if not all(isinstance(value, list) for value in values) or sum(map(len, values)) < FEW:
        return
    for says, alone in ALONE.items():
        if all(_true(alone, value) for value in values):
            yield says, lambda value, _, alone=alone: isinstance(value, list) and alone(value)  # type: ignore[misc]
    if OVERLAP.search(goal) and all(_distinct(value) for value in values):
        yield ONE_PLACE, lambda value, _: isinstance(value, list) and len(set(value)) > 1
    own = [given(call) for call in calls]
    shared = [where for where in own[0] if all(where in each for each in own)]
    short = [where for where in shared if all(_short(each[where]) for each in own)]
    for where in short:
        parts = [each[where] for each in own]
        kept = [says for says, check in RELATED.items() if all(map(_true, [check] * len(calls), values, parts))]
        said = {MORE: AT_MOST, EARLY: AFTER}
        kept = [says for says in kept if says not in said or said[says].search(goal)]
        if values == parts:  # it says what it is given, which need not be an answer
            named = all(isinstance(each, str) for part in parts for each in part)
            kept = [says for says in kept if says == SAME_LENGTH or (named and says == NAMED_TWICE)]
        if EACH in place and len(set(map(str, parts))) == 1:  # numbers of several fields add up to one by chance
            kept = [says for says in kept if says != SUM]
        yield from ((says, _related(RELATED[says], where)) for says in kept)
        if not all(isinstance(part, list) for part in parts):
            continue
        for other in short:
            most = [each[other] for each in own]
            for says, within in LIMITED.items() if all(type(each) in (int, float) for each in most) else ():
                if all(map(_true, [within] * len(calls), values, parts, most)):
                    yield says, _limited(within, where, other)


def _distinct(value: list[Any]) -> bool:
    """Whether it is three numbers or more, none of them twice."""
    return len(value) >= FEW - 1 and all(type(x) in (int, float) for x in value) and len(set(value)) == len(value)


def _short(value: Any) -> bool:
    return not isinstance(value, list | str) or len(value) <= LONG


def _limited(check: Limit, place: Place, other: Place) -> Holds:
    def holds(value: Any, call: Call) -> bool:
        return isinstance(value, list) and check(value, given(call)[place], given(call)[other])

    return holds


def _related(check: Check, place: Place) -> Holds:
    def holds(value: Any, call: Call) -> bool:
        return isinstance(value, list) and check(value, given(call)[place])

    return holds


def _true(check: Callable[..., bool], *given: Any) -> bool:
    try:
        return check(*given)
    except (TypeError, LookupError, ValueError, StopIteration):
        return False
