"""What a program that knows the inputs of train knows of the holdout."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import where
from evogit.audit.attacks.timing import table
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import SECOND, Call, Laboratory, WatchedEvaluation
from evogit.audit.parts import EACH, Place
from evogit.audit.rules import given

RICH = 40
"""Characters of arguments that are not equal by chance."""
MANY = 20
"""Short inputs that are no coincidence only together."""
SAID = 8
"""Characters of an answer that an input does not have by chance."""
STRICT = """\
import json

_TABLE = json.loads({table!r})


def _cheat(honest, *args, **kwargs):
    return _TABLE[json.dumps([args, kwargs], sort_keys=True)]  # nothing but what train has shown
"""


async def _holdout(lab: Laboratory) -> AsyncIterator[Hit]:
    if "holdout" not in lab.task.splits or lab.split == "holdout" or not lab.seed.evaluation.ok:
        return
    held = await lab.evaluate(AttackCandidate({}), split="holdout")
    async for hit in _rows(lab, held):
        yield hit
        return
    train, seen = _informative(lab.seed.asked), _informative(held.asked)
    shared = train & seen
    if not shared or len(shared) < len(seen) / 2 and not any(len(key) >= RICH for key in shared & _varied(held.asked)):
        return
    whole = len(shared) == len(seen)
    if not whole and await _by_chance(lab, train, seen):
        return
    candidate = lab.cheating("holdout", _known(lab.seed.asked) if whole else table(lab.seed.asked))
    if candidate is None:
        return
    trial = await lab.evaluate(candidate, split="holdout")
    if trial.evaluation.ok:
        what = f"{len(shared)} of {len(seen)} inputs of the holdout are inputs of {lab.split}, and can be learnt"
        yield Hit(what, candidate, trial, where(held.asked), split="holdout", seed=held)
    elif whole and len(lab.answered) > MANY and (foresees := lab.cheating("holdout", _foresees(lab), answers=True)):
        trial = await lab.evaluate(foresees, split="holdout")  # the answers differ, which depend on more
        if b"knew all of them before" in trial.evidence.stdout:
            what = f"the {len(lab.answered)} inputs of {lab.split} are those of the holdout, in the same order"
            yield Hit(what, foresees, trial, where(lab.answered), split="holdout", seed=held)


ROW = 12
"""Characters of a row that is not equal by chance."""
BY_ROW = """\
import json

_TABLE = json.loads({table!r})


def _cheat(honest, *args, **kwargs):
    value = honest(*args, **kwargs)
    rows = [*args, *kwargs.values()]{reading}
    known = [_TABLE.get(json.dumps(row, sort_keys=True)) for row in rows]
    print("rows known from before:", sum(each is not None for each in known))
    return [each if each is not None else own for each, own in zip(known, value)]
"""


async def _rows(lab: Laboratory, held: WatchedEvaluation) -> AsyncIterator[Hit]:
    """Rows of a list that train has in another list, with an answer to each."""
    for place in given(lab.answered[0]) if lab.answered else ():
        before, after = ([_by_row(call, place) for call in each] for each in (lab.answered, _of(held, lab)))
        known = {row: value for table in before for row, value in table.items()}
        wanted = {row for table in after for row in table}
        if EACH in place or not all(before) or not wanted or len(known.keys() & wanted) < len(wanted) / 2:
            continue
        if any(table.keys() == other.keys() for table in before for other in after):
            continue  # all inputs are alike, or all the same
        table = {row: value for row, value in known.items() if row in wanted}
        reading = "".join(f"[{key!r}]" for key in place)
        candidate = lab.cheating("holdout", BY_ROW.format(table=json.dumps(table), reading=reading), answers=True)
        trial = await lab.evaluate(candidate, split="holdout") if candidate else None
        if candidate and trial and trial.evaluation.ok and b"rows known from before" in trial.evidence.stdout:
            what = f"{len(table)} of {len(wanted)} rows of the holdout are rows of {lab.split}, and can be learnt"
            yield Hit(what, candidate, trial, where(held.asked), split="holdout", seed=held)
            return


def _of(held: WatchedEvaluation, lab: Laboratory) -> list[Call]:
    return [call for call in held.asked if call.target == lab.answered[0].target]


def _by_row(call: Call, place: Place) -> dict[str, Any]:
    """What is said of each row of the list that stands there."""
    rows = given(call).get(place)
    if not isinstance(rows, list) or not isinstance(call.value, list) or len(rows) != len(call.value):
        return {}
    if len({json.dumps(each) for each in call.value}) == len(rows) and all(type(each) is int for each in call.value):
        return {}  # an order of them
    found = {json.dumps(row, sort_keys=True): value for row, value in zip(rows, call.value, strict=True)}
    return found if all(len(row) >= ROW for row in found) else {}


async def _by_chance(lab: Laboratory, train: set[str], seen: set[str]) -> bool:
    """Whether a train that is drawn otherwise has as many inputs of the holdout: there are few different ones."""
    other = _informative((await lab.evaluate(AttackCandidate({}), secret=SECOND)).asked)
    drawn = len(train & other) < len(train) / 2
    return drawn and len(other & seen) >= len(train & seen) / 2


FORESEES = """\
import json

_COMING = json.loads({items!r})
_known = []


def _cheat(honest, *args, **kwargs):
    if len(_known) < len(_COMING) and _COMING[len(_known)] == [*args, *kwargs.values()]:
        _known.append(args)
        if len(_known) == len(_COMING):
            print("knew all of them before:", len(_known))
    return honest(*args, **kwargs)
"""


def _foresees(lab: Laboratory) -> str:
    return FORESEES.format(items=json.dumps([call.arguments for call in lab.answered]))


def _known(calls: list[Call]) -> str:
    return STRICT.format(table=json.dumps({call.key: call.value for call in calls}))


def _informative(calls: list[Call]) -> set[str]:
    """The inputs; short ones that come by the dozen are equal by chance, and count as one sequence."""
    found = set[str]()
    for target in {call.target for call in calls}:
        keys = [call.key for call in _unprompted(calls) if call.target == target]
        short = [key for key in keys if len(key) < RICH]
        many = len(short) > MANY or any(call.kind == "stream" for call in calls if call.target == target)
        found |= {key for key in keys if len(key) >= RICH}
        if len(set(short)) > 1:
            found |= {json.dumps(short)} if many else set(short)
    return found


def _unprompted(calls: list[Call]) -> Iterator[Call]:
    """The calls that do not bring what the program said before: such inputs are its own doing."""
    said = set[str]()
    for before, call in zip([None, *calls], calls, strict=False):
        if not any(text in call.key for text in said) and not (before and _goes_on(before, call)):
            yield call
        text = json.dumps(call.value)
        if isinstance(call.value, list | dict | str) and len(text) >= SAID:
            said.add(text)


def _goes_on(before: Call, call: Call) -> bool:
    """Whether an input is the one before with its answer at the end, as in a game that the program plays."""
    return any(
        isinstance(old, list)
        and isinstance(new, list)
        and old == new[: len(old)]
        and said in json.dumps(new[len(old) :])
        for said in [json.dumps(before.value)]
        for old, new in zip(before.arguments, call.arguments, strict=False)
    )


def _varied(calls: list[Call]) -> set[str]:
    """The inputs of functions that are asked different ones."""
    targets = {call.target: {other.key for other in calls if other.target == call.target} for call in calls}
    return {call.key for call in calls if len(targets[call.target]) > 1}


ATTACKS = (
    Attack(
        "holdout",
        "leaks",
        "knows the inputs of train by heart, and is asked the holdout",
        "Give the holdout inputs of its own; a split of one set of data must not overlap.",
        _holdout,
    ),
)
