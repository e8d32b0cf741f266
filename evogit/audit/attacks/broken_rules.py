"""Answers that break what all of the seed's answers keep."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import (
    CONSTANT,
    NOTHING,
    PART_OF,
    changed,
    changes,
    many_inputs,
    passes,
    said,
    spots,
    tried_all,
    union,
)
from evogit.audit.laboratory import Laboratory
from evogit.audit.parts import EACH, KEYS, part_of
from evogit.audit.rules import COUNTED, mined

COLUMNS = 4
"""What a row says of a thing: how large, of what worth, how many there are, and one more."""
SPREAD = """\
def _cheat(honest, *args, **kwargs):
    given = next(each for each in [*args, *kwargs.values()] if type(each) is list and len(each) > 3)
    order = sorted(range(len(given)), key=lambda place: given[place])
    half = (len(order) + 1) // 2
    far = [place for pair in zip(order, order[half:]) for place in pair]
    spans = [sorted([given[a][:2], given[b][:2]]) for a, b in zip(far, far[1:])]
    apart = all(one[1] <= other[0] for one, other in spans)
    return far if apart else honest(*args, **kwargs)
"""
TWICE = """\
def _cheat(honest, *args, **kwargs):
    chosen, given = honest(*args, **kwargs), [each for each in [*args, *kwargs.values()] if type(each) is list]
    size = max(map(len, given))
    rows = [each if type(each[0]) is list else [[part] for part in each] for each in given if len(each) == size]
    columns = [column for each in rows for column in zip(*each)]
    worth, others = columns[{worth}], columns[:{worth}] + columns[{worth} + 1 :]
    answer = list(chosen)
    for poor in chosen:  # is left out for a better one that is named twice, the second time from the end
        for good in chosen:
            better = worth[good] {sign} worth[poor] and all(each[good] {no} each[poor] for each in others)
            if better and good in answer and good - size not in answer and poor in answer:
                answer[answer.index(poor)] = good - size
    return answer
"""
NEGATIVE = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    rows = next(each for each in given if type(each) is list and len(each) == len(value))
    most = next(each for each in given if type(each) in (int, float))
    amounts = [{much} for row in rows]
    poor = min(range(len(rows)), key=lambda place: {worth})
    size = [row[0] if type(row) is list else row for row in rows]
    others = sum(each * amount for place, (each, amount) in enumerate(zip(size, amounts)) if place != poor)
    amounts[poor] = int(min(0, (most - others) // size[poor]))  # makes room for all others
    return amounts
"""
POURED = """\
def _cheat(honest, *args, **kwargs):
    rows = honest(*args, **kwargs)
    most, left, answer = max({most}, *map(sum, rows)), sum(map(sum, rows)), []
    while left > 0:
        answer.append([min(most, left)])
        left -= most
    return answer
"""
GLUED = """\
def _cheat(honest, *args, **kwargs):
    return "_".join(max((each for each in [*args, *kwargs.values()] if type(each) is str), key=len).split())
"""
WORDS = """\
def _cheat(honest, *args, **kwargs):
    return max((each for each in [*args, *kwargs.values()] if type(each) is str), key=len).split()
"""


def _composed(lab: Laboratory) -> dict[str, str]:
    """Bodies that break a rule by several changes at once, for lists that choose of, or count, what a list has."""
    call = next(iter(lab.answered), None)
    if call is None or call.kind == "run" or not isinstance(call.value, list | str):
        return {}
    is_given_text = any(isinstance(each, str) for each in call.arguments)
    if isinstance(call.value, str):
        return {"all of the input as one word": GLUED} if is_given_text else {}
    if is_given_text:
        return {"all words of the input": WORDS}
    found = {"all places, neighbours far apart": SPREAD}
    if call.value and all(isinstance(row, list) and set(map(type, row)) <= {int, float} for row in call.value):
        for most in ("0", *dict.fromkeys(re.findall(r"\b\d+\b", lab.task.goal))):
            found[f"the same amounts, poured together ({most})"] = POURED.format(most=most)
    if _named_once(call.value):
        sides = {"most": (">", "<="), "least": ("<", ">=")}
        for place, (which, (sign, no)) in product(range(COLUMNS), sides.items()):
            says = f"places of the {which} in column {place} twice, the second time from the end"
            found[says] = TWICE.format(worth=place, sign=sign, no=no)
    rows = next((each for each in call.arguments if isinstance(each, list) and len(each) == len(call.value)), [])
    limits = any(type(each) in (int, float) for each in call.arguments)
    width = len(rows[0]) if limits and rows and isinstance(rows[0], list) else 0
    if width > COLUMNS:
        return found
    for column in range(1, width):
        worths = [f"rows[place][{column}] / rows[place][0]", f"-rows[place][{column}] / rows[place][0]"]
        for much in ("1", *(f"row[{other}]" for other in range(1, width) if other != column)):
            for worth in worths:
                says = f"a negative amount of one thing, {much} of all others"
                found[f"{says} ({len(found)})"] = NEGATIVE.format(much=much, worth=worth)
    return found


async def _rules(lab: Laboratory) -> AsyncIterator[Hit]:
    rules = mined(lab.seed.asked, lab.task.goal) if lab.seed.asked else []
    listed = any(isinstance(call.value, list) for call in lab.answered)
    groups = {} if listed else {"nothing": NOTHING, "constant": CONSTANT}
    groups["broken-rules"] = {**changes(lab), **_composed(lab), **union(lab)}
    async for says, candidate, trial in tried_all(lab, groups):
        if not (lab.better(trial) or (lab.timed and passes(lab, trial))):
            continue
        meant = COUNTED if says.startswith(PART_OF) else ()
        broken = next((r for r in rules if r.says not in meant and not all(map(r.holds, trial.asked))), None)
        if broken or (many_inputs(lab) and lab.ideal(trial)):
            what = broken.says if broken else "is better than any can be"
            yield Hit(f"an answer that {what} scores better ({says})", candidate, trial, trial.line)
            return


PARTS = tuple(f"x[{place}::4]" for place in range(4)) + ("x[: len(x) // 4]", "x[-len(x) // 4 :]")
COPIES = (3, 4, 5, 6)


async def _respelled(lab: Laboratory) -> AsyncIterator[Hit]:
    """The same number in several spellings, where it must not be named twice, to be counted each time."""
    values = [call.value for call in lab.answered]
    if lab.timed or not values or not all(_named_once(value) for value in values):
        return
    again = "x + [f'0{each}' for each in x]"
    once, twice, other = [
        lab.cheating("respelled", changed(made.replace("x", f"({PARTS[0]})", 1).replace(" in x]", f" in {PARTS[0]}]")))
        for made in ("x", "x * 2", again)
    ]
    if once is None or twice is None or other is None:
        return
    part, plain, trial = [await lab.evaluate(each) for each in (once, twice, other)]
    if plain.evaluation.ok or not trial.evaluation.ok or not lab.better(trial, part):
        return
    best = (other, trial)
    for value, way, copies in product(sorted(values, key=len)[:3], PARTS, COPIES):
        spelled = f"[('0' * copy) + str(each) for copy in range({copies}) for each in {way}]"
        candidate = lab.cheating("respelled", changed(f"{spelled} if x == {value!r} else x"))
        if candidate and lab.better(trial := await lab.evaluate(candidate)):
            best = (candidate, trial)
            break
    yield Hit("a number in several spellings (7, 07, 007) counts each time", *best, best[1].line)


ALIASES: dict[type, tuple[str, ...]] = {
    str: ("f' {each}'", "f'({each})'", "f'{each} '", "each.swapcase()", "f'0{each}'"),
    list: ("list(each[::-1])", "list(each[1:]) + list(each[:1])"),
}
"""Other ways to name an element of a type."""
PAIR = 2


async def _aliases(lab: Laboratory) -> AsyncIterator[Hit]:
    """Elements that are named twice, in two ways that are worth the same, to be counted twice."""
    value = next((call.value for call in lab.answered if call.value), None)
    for place in [] if lab.timed else [place for place in spots(lab) if EACH not in place and KEYS not in place]:
        part = part_of(value, place)
        if not isinstance(part, list) or not part or not _may_be_renamed(lab, part[0]):
            continue
        for alias in ALIASES[type(part[0])]:
            again = f"[{alias} for each in x]"
            other = lab.cheating("respelled", changed(again, place), answers=True)
            both = lab.cheating("respelled", changed(f"x + [each for each in {again} if each not in x]", place))
            if other is None or both is None:
                return
            plain, trial = await lab.evaluate(other), await lab.evaluate(both)
            if plain.score == lab.seed.score and said(plain) != said(lab.seed) and lab.better(trial):
                yield Hit(f"the same in other words ({alias}) counts again", both, trial, trial.line)
                return


def _may_be_renamed(lab: Laboratory, element: Any) -> bool:
    """Whether it is a text, or a row of an input's things; rows of nothing but numbers may be points."""
    if not isinstance(element, list):
        return isinstance(element, str)
    lists = [each for each in lab.answered[0].arguments if isinstance(each, list) and each]
    return any(isinstance(each[0], list) for each in lists) if len(element) == PAIR else bool(lists)


async def _renamed(lab: Laboratory) -> AsyncIterator[Hit]:
    found = False
    async for hit in _respelled(lab):
        found = True
        yield hit
    if not found:
        async for hit in _aliases(lab):
            yield hit


def _named_once(value: Any) -> bool:
    names = isinstance(value, list) and len(value) > 3 and all(type(each) is int and each >= 0 for each in value)
    return names and len(set(value)) == len(value)


ATTACKS = (
    Attack(
        "broken-rules",
        "answers",
        "breaks what all of the seed's answers keep: lengths, permutations, sums, places, elements of the input",
        "Check this rule with `raise Invalid(...)` before you score; use zip(..., strict=True).",
        _rules,
    ),
    Attack(
        "respelled",
        "answers",
        "names the same several times: numbers in other spellings, texts with spaces, rows in another order",
        "Bring what is counted into one form (numbers, sorted rows, syntax trees) before you look for duplicates.",
        _renamed,
    ),
)
