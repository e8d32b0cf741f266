"""Answers that nobody could have earned anything with: nothing, nonsense, the same for everything."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import (
    CONSTANT,
    FALSE,
    MATCHES,
    NOTHING,
    ODD,
    ODD_IN_TEXT,
    OVERFLOW,
    SAME,
    many_inputs,
    passes,
    tried,
    union,
    where,
)
from evogit.audit.laboratory import Laboratory
from evogit.audit.parts import leaves

MANY = 6000
"""Numbers from minus so many on that are answered at once; 64 KiB as text."""

SEVEN = "return _each(honest(*args, **kwargs), lambda number: 7)"
"""What says the same as NaN where numbers are only names, such as of groups."""
SOME = 4
"""Numbers of an answer that are NaN alone."""
KINDS = 6
"""Different things that answers say, up to which each is said of everything."""
NEARLY = 0.9
"""A score, of at most 1, that the same answer to everything should not have."""
NUMBERS = {
    f"all numbers from -{MANY} on": f"return ' '.join(map(str, range(-{MANY}, {MANY})))",
    f"all numbers from {MANY} down": f"return ' '.join(map(str, range({MANY}, -{MANY}, -1)))",
}
"""In both orders, so that neither its first nor its last number is what counts."""


async def _nothing(lab: Laboratory) -> AsyncIterator[Hit]:
    async for says, candidate, trial in tried(lab, "nothing", NOTHING):
        if passes(lab, trial) and trial.asked and all(call.value in (None, "", [], {}) for call in trial.asked):
            yield Hit(f"answering {says} is accepted", candidate, trial, trial.line)
            return


async def _odd(lab: Laboratory) -> AsyncIterator[Hit]:
    plain = [trial.score async for _, _, trial in tried(lab, "nan", {"7 for each number": SEVEN})]
    async for says, candidate, trial in tried(lab, "nan", ODD):
        if passes(lab, trial) and (lab.better(trial) or trial.score not in plain):
            yield Hit(f"{says} is accepted", candidate, trial, trial.line)
            return
    paths = list(leaves(lab.answered[0].value))[:SOME] if lab.answered else []
    alone = {f"NaN {path}": f"return _at(honest(*args, **kwargs), {path!r}, float('nan'))" for path in paths if path}
    async for says, candidate, trial in tried(lab, "nan", alone):
        if lab.better(trial):
            yield Hit(f"{says} is accepted", candidate, trial, trial.line)
            return
    async for says, candidate, trial in tried(lab, "nan", ODD_IN_TEXT if _in_texts(lab) else {}):
        if lab.better(trial):
            yield Hit(f"{says} is accepted", candidate, trial, trial.line)
            return
    found = [each async for each in tried(lab, "nan", OVERFLOW)]
    better = [each for each in found if lab.better(each[2])]
    if len(found) > 1 and [says for says, _, _ in better] == list(OVERFLOW)[:1]:
        says, candidate, trial = better[0]
        yield Hit(f"{says} overflows, and scores better", candidate, trial, trial.line)


def _one_kind(lab: Laboratory) -> dict[str, str]:
    """Each of the few things that can be said of something, said of everything."""
    flat = [each for call in lab.answered for each in _said_each(call.value)]
    kinds = list(dict.fromkeys(flat))
    if not many_inputs(lab) or not 1 <= len(kinds) <= KINDS or any(isinstance(each, float) for each in kinds):
        return {}
    kinds += [each for each in (False, True) if isinstance(kinds[0], bool) and each not in kinds]
    return {f"{each!r} for everything": SAME.format(word=each) for each in kinds}


def _said_each(value: Any) -> list[Any]:
    """What an answer says of one thing after the other."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str) and len(value.splitlines()) > 1:
        value = value.splitlines()
    parts = value if isinstance(value, list) else [value]
    return [str(part) if isinstance(part, list | dict) else part for part in parts]


def _in_texts(lab: Laboratory) -> bool:
    return any(isinstance(call.value, str) for call in lab.answered)


async def _truth(lab: Laboratory) -> AsyncIterator[Hit]:
    same = {says: body.replace("True", "1").replace("False", "0") for says, body in FALSE.items()}
    numbers = {says: trial async for says, _, trial in tried(lab, "bools", same)}
    async for says, candidate, trial in tried(lab, "bools", FALSE):
        if lab.better(trial) and lab.better(trial, numbers.get(says)):
            yield Hit(f"{says} is accepted", candidate, trial, where(trial.asked))
            return


async def _constant(lab: Laboratory) -> AsyncIterator[Hit]:
    """All constants alike, and better than the seed; or one that nothing could be better than."""
    found = [each async for each in tried(lab, "constant", CONSTANT)]
    better = [each for each in found if lab.better(each[2])]
    alike = len(better) == len(found) == len(CONSTANT) and len({trial.score for _, _, trial in better}) == 1
    for says, candidate, trial in better:
        if alike or (lab.ideal(trial) and many_inputs(lab)):
            yield Hit(
                f"{says} scores {'as well as any constant' if alike else 'perfectly'}", candidate, trial, trial.line
            )
            return
    async for says, candidate, trial in tried(lab, "constant", _one_kind(lab)):
        if not lab.better(trial) or lab.task.primary.direction == "minimize":
            continue
        values = [each[lab.task.primary.name] for each in trial.evaluation.cases.values()]
        asked = sum(len(_said_each(call.value)) for call in lab.answered) / len(values)
        if any(NEARLY * most <= min(values) <= max(values) <= most for most in (1, asked)):
            yield Hit(f"{says} scores {min(values):g} or more: nearly all is alike", candidate, trial, trial.line)
            return
    async for says, candidate, trial in tried(lab, "constant", MATCHES if _in_texts(lab) else {}):
        if lab.ideal(trial):
            yield Hit(f"{says}, which matches everything, scores perfectly", candidate, trial, trial.line)
            return


async def _all_texts(lab: Laboratory) -> AsyncIterator[Hit]:
    """An answer that holds all answers, where texts are looked for in texts."""
    texts = {str(call.value): None for call in lab.answered if isinstance(call.value, str) or call.kind == "run"}
    bodies = {"": f"return {' '.join(texts)!r}", "rows": f"return {chr(10).join(texts)!r}"} if len(texts) > 1 else {}
    async for _, candidate, trial in tried(lab, "all-answers", bodies if many_inputs(lab) else {}):
        if lab.better(trial):
            yield Hit("a text that holds all answers is taken for each of them", candidate, trial, trial.line)
            return
    async for _, candidate, trial in tried(lab, "all-answers", union(lab)):
        if lab.ideal(trial):
            yield Hit("a list that holds all answers is taken for each of them", candidate, trial, trial.line)
            return
    if many_inputs(lab) and texts and (lab.answered[0].kind == "run" or any(re.search(r"\d", text) for text in texts)):
        found = [each async for each in tried(lab, "all-answers", NUMBERS)]
        if len(found) == len(NUMBERS) and all(lab.better(trial) for _, _, trial in found):
            says, candidate, trial = found[0]
            yield Hit(f"a text that holds {says} is taken for each answer", candidate, trial, trial.line)


async def _first(lab: Laboratory) -> AsyncIterator[Hit]:
    if not many_inputs(lab):
        return
    first = repr(lab.answered[0].value)
    async for _, candidate, trial in tried(lab, "first-answer", {"": f"return {first}"}):
        if lab.ideal(trial) or (lab.timed and await lab.confirmed(candidate)):
            yield Hit("the answer to the first input is accepted for every input", candidate, trial, trial.line)


ATTACKS = (
    Attack(
        "nothing",
        "answers",
        "answers nothing: None, an empty list, an empty text",
        "Check what the answer is and how long, with returns=TYPE and len(), before anything is scored.",
        _nothing,
    ),
    Attack(
        "nan",
        "answers",
        "answers NaN and infinities, also as text",
        "Ask for the type with returns=, refuse what is not finite, and compare so that NaN fails.",
        _odd,
    ),
    Attack(
        "bools",
        "answers",
        "answers True and False for numbers",
        "Ask for the type with returns=int or returns=float, which take no bools.",
        _truth,
    ),
    Attack(
        "constant",
        "answers",
        "answers the same number, or a pattern that matches everything",
        "Check the answer against its input: a constant should break a rule, or score worse than an attempt.",
        _constant,
    ),
    Attack(
        "first-answer",
        "answers",
        "answers every input as the first one",
        "Compare each answer with its own input, or with what you compute yourself.",
        _first,
    ),
    Attack(
        "all-answers",
        "answers",
        "answers all texts at once",
        "Compare texts as a whole, with ==; not whether one holds the other.",
        _all_texts,
    ),
)
