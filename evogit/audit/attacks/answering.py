"""Bodies of candidates that answer something else than the seed, and what came of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import Call, Laboratory, WatchedEvaluation
from evogit.audit.parts import EACH, KEYS, Place, common, spelled

NOTHING = {
    "nothing": "return None",
    "an empty answer": "return type(honest(*args, **kwargs))()",
    "an empty text": 'return ""',
    "an empty list": "return []",
}
ODD = {
    "NaN": 'return _each(honest(*args, **kwargs), lambda number: float("nan"))',
    "infinity": 'return _each(honest(*args, **kwargs), lambda number: float("inf"))',
    "minus infinity": 'return _each(honest(*args, **kwargs), lambda number: float("-inf"))',
    'the text "nan" for numbers': 'return _each(honest(*args, **kwargs), lambda number: "nan")',
    'the text "-inf" for numbers': 'return _each(honest(*args, **kwargs), lambda number: "-inf")',
    'the text "inf" for numbers': 'return _each(honest(*args, **kwargs), lambda number: "inf")',
}
OVERFLOW = {
    f"{number} for all numbers": f"return _each(honest(*args, **kwargs), lambda number: {number})"
    for number in ("1e308", "1e100", "1.0")
}
"""The first one overflows in a sum; the others, which do not, are to tell whether that is what pays."""
IN_TEXT = """\
def _cheat(honest, *args, **kwargs):
    import re
    value = honest(*args, **kwargs)
    return re.sub({number!r}, {word!r}, value) if isinstance(value, str) else value
"""
ODD_IN_TEXT = {
    f'"{word}" for {which} in a text': IN_TEXT.format(number=number, word=word)
    for word in ("nan", "inf", "-inf")
    for which, number in (
        ("each number with a point", r"-?\d+\.\d+(?:e-?\d+)?"),
        ("the last number of each line", r"(?m)-?\d[\d.e-]*$"),
    )
}
FALSE = {
    "False for numbers": "return _each(honest(*args, **kwargs), lambda number: False)",
    "True for numbers": "return _each(honest(*args, **kwargs), lambda number: True)",
}
CONSTANT = {
    f"{number} for all numbers": f"return _each(honest(*args, **kwargs), lambda number: {number})"
    for number in (0, 1, 2)
}
SAME = """\
def _cheat(honest, *args, **kwargs):
    def same(value):
        if isinstance(value, dict):
            return dict.fromkeys(value, {word!r})
        if isinstance(value, str) and value.count("\\n"):
            return "\\n".join([{word!r}] * len(value.splitlines())) + "\\n"
        return [{word!r}] * len(value) if isinstance(value, list) else {word!r}
    return same(honest(*args, **kwargs))
"""
"""The same said of everything."""
MATCHES = {f"the text {text!r}": f"return {text!r}" for text in (".*", "(?s).*", "*", "%", "**/*")}
"""Patterns that match all there is."""
CHANGES = {
    "the first element alone": "x[:1]",
    "the second element alone": "x[1:2]",
    "the third element alone": "x[2:3]",
    "the last element alone": "x[-1:]",
    "the first half": "x[: len(x) // 2]",
    "all but the first": "x[1:]",
    "its first and last elements alone": "[x[0], x[-1]]",
    "everything twice": "x + x",
    "its first element for all": "x[:1] * len(x)",
    "its last element for all": "x[-1:] * len(x)",
    "its smallest element for all": "[min(x)] * len(x)",
    "its largest element for all": "[max(x)] * len(x)",
    "0 for each": "[0] * len(x)",
    "-1 for each": "[-1] * len(x)",
    "its sum as one element": "[sum(x)]",
    "its elements negative": "[-each for each in x]",
    "half of each": "[each / 2 for each in x]",
    "twice as much of each": "[each * 2 for each in x]",
    "nothing for all but the first": "[*x[:1], *[None] * (len(x) - 1)]",
    "an empty row for each": "[[] for each in x]",
    "an empty list": "[]",
    "all places of the input": "list(range(max(len(x) for x in [*args, *kwargs.values()] if type(x) is list)))",
    "all of the input": "max((each for each in [*args, *kwargs.values()] if type(each) is list), key=len)",
    "all names of the input": "list(max((each for each in [*args, *kwargs.values()] if type(each) is dict), key=len))",
}
"""What becomes of a list, which is the answer or a field of it."""
PART_OF = ("the first half", "all but the first")
"""Changes that leave out so little that it may be what is asked for; they are named with a field at times."""
SAME_SIZE = ("for all", "for each", "negative", "half of each", "twice as much")
"""Changes that keep the number of elements, for columns of rows and values of tables."""
LONGEST = 1 << 16
"""Characters of a list of all answers."""
SPOTS = 5
"""Lists of an answer that are changed one by one."""


def cheat(body: str) -> str:
    """The function that answers in the place of the seed's."""
    return f"def _cheat(honest, *args, **kwargs):\n    {body}\n"


def changed(expression: str, place: Place = ()) -> str:
    """A cheat that changes the list that is the answer, or one within it."""
    if not place:
        return cheat(f"x = honest(*args, **kwargs)\n    return {expression}")
    return cheat(f"return _on(honest(*args, **kwargs), {place!r}, lambda x: {expression})")


async def tried(
    lab: Laboratory, name: str, bodies: dict[str, str], *, answers: bool = True
) -> AsyncIterator[tuple[str, AttackCandidate, WatchedEvaluation]]:
    """Each candidate whose answers are made so, with its trial, where it answers something else than the seed.

    Without `answers`, what all of its functions say is made so.
    """
    for says, body in bodies.items():
        candidate = lab.cheating(name, body if "def _cheat" in body else cheat(body), answers=answers)
        if candidate is None:
            return
        trial = await lab.evaluate(candidate)
        if said(trial) != said(lab.seed):
            yield says, candidate, trial


async def tried_all(
    lab: Laboratory, groups: Mapping[str, dict[str, str]]
) -> AsyncIterator[tuple[str, AttackCandidate, WatchedEvaluation]]:
    """The same for bodies of several attacks, by whose names they are known if these were tried before."""
    for name, bodies in groups.items():
        async for each in tried(lab, name, bodies):
            yield each


def said(trial: WatchedEvaluation) -> list[Any]:
    """What the candidate said, call by call."""
    return [call.value for call in trial.asked]


def changes(lab: Laboratory) -> dict[str, str]:
    """Bodies that change the lists of the seed's answers, also those within."""
    found = dict[str, str]()
    for place in spots(lab):
        column = EACH in place and KEYS not in place
        for says, expression in CHANGES.items():
            if not column or any(word in says for word in SAME_SIZE):
                found[f"{says} ({spelled(place)})" if place else says] = changed(expression, place)
    return found


def union(lab: Laboratory) -> dict[str, str]:
    """A body that answers all elements of all answers, where these are lists."""
    if not many_inputs(lab) or not all(isinstance(call.value, list) for call in lab.answered):
        return {}
    found = list({json.dumps(each): each for call in lab.answered for each in call.value}.values())
    return {"all elements of all answers": f"return {found!r}"} if len(json.dumps(found)) < LONGEST else {}


def spots(lab: Laboratory) -> list[Place]:
    """Where the answers have lists that can be changed: of each kind the outermost first."""
    found = common([call.value for call in lab.answered])
    lists = sorted((place for place in found if EACH not in place), key=len)
    return [*lists[:SPOTS], *[place for place in found if EACH in place][:SPOTS]]


def where(calls: Sequence[Call]) -> str:
    """The line that asks for answers, first of those without `returns`."""
    ordered = sorted(calls, key=lambda call: call.typed)
    return ordered[0].line if ordered else ""


def passes(lab: Laboratory, trial: WatchedEvaluation) -> bool:
    """Whether an answer that is none came through for a score that is no worse, where the seed's means something."""
    if trial.score is None or lab.seed.score is None or lab.floor:
        return lab.better(trial)
    return trial.score >= lab.seed.score or (lab.timed and trial.score >= lab.seed.score / 1.5 > 0)


def far_above(trial: WatchedEvaluation, *controls: WatchedEvaluation) -> bool:
    """Whether a score is more than a third above the best of its controls, of which none need be valid."""
    usual = max((each.score for each in controls if each.score is not None), default=None)
    return trial.score is not None and (usual is None or trial.score - usual > abs(usual) / 3)


def many_inputs(lab: Laboratory) -> bool:
    """Whether answers are about inputs at all; else the answer itself is what evolves, and may be written down."""
    return len({call.key for call in lab.answered}) > 1 and bool(lab.answered[0].arguments)
