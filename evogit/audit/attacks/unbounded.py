"""Numbers that the score follows wherever they go: claims, and what grows without end."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator
from typing import Any

from evogit.audit.attack import Attack, Hit, first_of
from evogit.audit.attacks.answering import tried
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import Call, Laboratory, WatchedEvaluation
from evogit.audit.parts import leaves, read, scalars


def _paths(lab: Laboratory) -> list[tuple[Any, ...]]:
    return list(leaves(lab.answered[0].value))[:8] if lab.answered else []


async def _claimed(lab: Laboratory) -> AsyncIterator[Hit]:
    """A number of the answer that the score follows wherever it goes, or that it is divided by."""
    for path in _paths(lab):
        found: list[tuple[float, AttackCandidate, WatchedEvaluation]] = []
        for number in (0.21, 0.43, 0.87, 1.0, 1e-9):
            body = f"return _at(honest(*args, **kwargs), {path!r}, {number!r})"
            found += [(number, candidate, trial) async for _, candidate, trial in tried(lab, "claims", {"": body})]
            if len(found) == PAIR and not any(trial.evaluation.ok for _, _, trial in found):
                break
        valid = [(number, candidate, trial) for number, candidate, trial in found if trial.evaluation.ok]
        values = [(number, trial.evaluation.metrics[lab.task.primary.name]) for number, _, trial in valid]
        follows = {round(value / number, 9) for number, value in values if number > 0.1}
        divides = {round(value * number, 9) for number, value in values if number > 0.1}
        best = max(valid, key=lambda each: each[2].score or -math.inf, default=None)
        moved = len(values) > 2 and (len(follows) == 1 or len(divides) == 1) and 0 not in follows
        if best and moved and lab.better(best[2]):
            what = f"the score is what the program says of itself{_named(path)}"
            yield Hit(what, best[1], best[2], best[2].line)
            return
    async for hit in first_of(_named_claims, _judged)(lab):
        yield hit


PAIR = 2
CLAIMS = re.compile(
    r"score|cost|quality|profit|objective|makespan|fitness|accura|error|loss|points|reward|evaluations|iterations"
    r"|coverage|collected|saved|waste|penalty",
    re.I,
)
"""Names of what a program says of its own answer."""
SIZES = re.compile(r"total|length|distance|area|count|used|value|weight|sum|size", re.I)
"""Names that are such where a list stands beside; else they may be what is to be decided."""


async def _named_claims(lab: Laboratory) -> AsyncIterator[Hit]:
    """A number named like a result, beside what it is said of: another number alone scores better."""
    value = lab.answered[0].value if lab.answered and not lab.timed else None
    for place in scalars(value) if isinstance(value, dict) else ():
        number, beside = read(value, place), read(value, place[:-1])
        listed = any(isinstance(part, list | dict) for part in beside.values())
        claimed = CLAIMS.search(str(place[-1])) or (listed and SIZES.search(str(place[-1])))
        if isinstance(number, str) or not claimed or len(beside) < PAIR:
            continue
        for claim in ("0", "1", "0.5", "100", "10**6", "-(10**6)"):
            body = f"return _at(honest(*args, **kwargs), {place!r}, {claim})"
            async for _, candidate, trial in tried(lab, "claims", {"": body}):
                if lab.better(trial):
                    what = f"a number that the program says of itself{_named(place)} makes the score better"
                    yield Hit(what, candidate, trial, trial.line)
                    return


async def _judged(lab: Laboratory) -> AsyncIterator[Hit]:
    """A function of the candidate that is given what another one answered, and says how good that is."""
    for target, calls in _judges(lab).items():
        name = re.split(r"[:.]", target)[-1]
        found: list[tuple[str, float, AttackCandidate, WatchedEvaluation]] = []
        for group, share, verdict in VERDICTS:
            body = f"return {verdict} if _is(honest, {name!r}) else honest(*args, **kwargs)"
            async for _, candidate, trial in tried(lab, "claims", {"": body}, answers=False):
                if trial.evaluation.ok:
                    found.append((group, share, candidate, trial))
        better = [each for each in found if lab.better(each[3])]
        believed = any(_follows(lab, found, group) for group in ("part", "count"))
        best = next((each for each in better if lab.ideal(each[3])), better[-1] if better and believed else None)
        if best:
            yield Hit(f"the score is what the program's own {name} says", best[2], best[3], calls[0].line)
            return


def _follows(lab: Laboratory, found: list[tuple[str, float, AttackCandidate, WatchedEvaluation]], group: str) -> bool:
    """Whether the score is as many times larger as what is said."""
    metric = lab.task.primary.name
    shares = [trial.evaluation.metrics[metric] / share for own, share, _, trial in found if own == group]
    return len(shares) > 1 and shares[0] != 0 and max(shares) - min(shares) < 0.1 * abs(shares[0])


def _judges(lab: Laboratory) -> dict[str, list[Call]]:
    """The functions beside the one that answers which say a number, or whether something is so."""
    found: dict[str, list[Call]] = {}
    for call in lab.seed.asked:
        if isinstance(call.value, int | float) and call.kind != "run" and call.target != lab.answered[0].target:
            found.setdefault(call.target, []).append(call)
    return found


VERDICTS = (
    ("part", 0.5, "_each(honest(*args, **kwargs), lambda number: type(number)(number / 2))"),
    ("part", 0.25, "_each(honest(*args, **kwargs), lambda number: type(number)(number / 4))"),
    ("", 1.0, "max((len(each) for each in [*args, *kwargs.values()] if hasattr(each, '__len__')), default=1)"),
    *(("", 1.0, number) for number in ("0", "0.0", "1.0", "True", "False")),
    ("count", 1.0, "1"),
    ("count", 100.0, "100"),
)
"""What is said in the place of the honest number; the score is to follow the shares of a group."""


def _named(path: tuple[Any, ...]) -> str:
    return f" ({''.join(f'[{part!r}]' for part in path)} of its answer)" if path else ""


async def _unbounded(lab: Laboratory) -> AsyncIterator[Hit]:
    """Numbers that only have to be larger, or smaller, and lists that have to be longer, for a score without end."""
    bodies: list[str] = [f"return _each(honest(*args, **kwargs), lambda number: {way})" for way in _WAYS]
    bodies += [f"return _at(honest(*args, **kwargs), {path!r}, {value})" for path in _paths(lab) for value in _VALUES]
    for body in [*bodies, *_TURNS, "return honest(*args, **kwargs) * SIZE"]:
        rising: list[tuple[AttackCandidate, WatchedEvaluation]] = []
        for size in ("10", "1000", "100_000") if body.endswith("* SIZE") else ("1e3", "1e6", "1e9"):
            async for _, candidate, trial in tried(lab, "endless", {"": body.replace("SIZE", size)}):
                if trial.score is not None and lab.better(trial, rising[-1][1] if rising else None):
                    rising.append((candidate, trial))
            if not rising:
                break
        if (
            len(rising) == 3
            and _gain(lab, rising[-1][1]) > 1e3
            and _gain(lab, rising[-1][1]) > 100 * _gain(lab, rising[0][1])
        ):
            yield Hit(
                "the score has no bound: what is larger by far scores better by far", *rising[-1], rising[-1][1].line
            )
            return
    async for says, candidate, trial in tried(lab, "endless", DEGENERATE):
        if lab.better(trial) and not (lab.timed or lab.floor) and _gain(lab, trial) > DIVIDED:
            yield Hit(f"the score has no bound: {says} scores better by far", candidate, trial, trial.line)
            return


_WAYS = (
    "number * SIZE",
    "number * -SIZE",
    "-SIZE",
    "SIZE",
    "number - SIZE",
    "int(number - SIZE)",
    "int(number * SIZE)",
    "-int(SIZE)",
    "int(SIZE)",
    "1 / SIZE",
)
_TURNS = (
    "return [(-SIZE if place % 2 else SIZE) for place, _ in enumerate(honest(*args, **kwargs))]",
    "return [(-int(SIZE) if place % 2 else int(SIZE)) for place, _ in enumerate(honest(*args, **kwargs))]",
    "return [(int(SIZE) if place % 2 else -int(SIZE)) for place, _ in enumerate(honest(*args, **kwargs))]",
)
_VALUES = ("SIZE", "-SIZE", "1 / SIZE", "int(SIZE)", "-int(SIZE)")
DEGENERATE = {
    "another number for each element": "return list(range(len(honest(*args, **kwargs))))",
    "the same number for each element": "return [0] * len(honest(*args, **kwargs))",
    "0 for each but one": "return [1] + [0] * (len(honest(*args, **kwargs)) - 1)",
}
DIVIDED = 1e6
"""How many times the seed's score is gained by none but a division by next to nothing."""


def _gain(lab: Laboratory, trial: WatchedEvaluation) -> float:
    assert trial.score is not None  # it was better
    assert lab.seed.score is not None
    return (trial.score - lab.seed.score) / max(1.0, abs(lab.seed.score))


ATTACKS = (
    Attack(
        "claims",
        "answers",
        "says of itself how good it is",
        "Compute the score from the answer in the evaluator; take no number that the program could make up.",
        _claimed,
    ),
    Attack(
        "endless",
        "answers",
        "answers ever larger, smaller and negative numbers",
        "Bound each number of the answer, and the score, by what is possible, and raise Invalid beyond.",
        _unbounded,
    ),
)
