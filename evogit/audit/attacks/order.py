"""A program that looks at no input, and knows the answers by the order in which it is asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from evogit.audit.attack import Attack, Hit, first_of
from evogit.audit.attacks.answering import far_above, many_inputs, where
from evogit.audit.attacks.lookahead import NEXT
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import FIRST, SECOND, Laboratory, WatchedEvaluation

FEW = 6
"""Calls below which an order may be chance."""
KINDS = 6
"""Different answers up to which each is tried for all calls."""
MOST = 60
"""Evaluations in which answers are learnt one by one."""
OTHERS = (SECOND, *(hashlib.sha256(f"evogit audit {number}".encode()).digest() for number in (3, 4)))
"""Secrets of other inputs, for all of which an order is to hold."""
QUOTED = re.compile(r"\"(\w+)\"")


COUNTS = """\
_number = -1


def _cheat(honest, *args, **kwargs):
    global _number
    _number += 1
    sizes = [each for each in [*args, *kwargs.values()] if type(each) is int and each > 0]
    return _number % max(sizes) if sizes else _number
"""


async def _counted(lab: Laboratory) -> AsyncIterator[Hit]:
    """The number of the call as the answer, where nothing could be better."""
    if len(lab.answered) < FEW or not all(type(call.value) is int for call in lab.answered) or not many_inputs(lab):
        return
    candidate = lab.cheating("order", COUNTS, answers=True)
    if candidate and all([lab.ideal(await lab.evaluate(candidate, secret=secret)) for secret in (FIRST, SECOND)]):
        trial = await lab.evaluate(candidate)
        yield Hit("the number of the call is a perfect answer, whatever the input is", candidate, trial, trial.line)


async def _known(lab: Laboratory) -> AsyncIterator[Hit]:
    """Answers by the number of the call, learnt from the scores of cases or guessed, that hold for other inputs."""
    scripts = any(call.kind == "run" for call in lab.answered)  # which do not know how often they were run before
    kinds = _kinds(lab) if many_inputs(lab) and not lab.timed and not scripts and len(lab.answered) >= FEW else []
    others = await _others(lab) if 1 < len(kinds) <= KINDS else ()
    if not others:
        return
    count = len(lab.answered)
    for answers in [*_guessed(kinds, count), await _learnt(lab, kinds)]:
        if answers and await _gains(lab, answers, kinds, others):
            candidate = _candidate(lab, answers)
            assert candidate  # it has gained
            what = "the right answers come in the same order in each evaluation, whatever the inputs are"
            yield Hit(what, candidate, await _there(lab, candidate, others[0]), where(lab.answered))
            return


async def _gains(lab: Laboratory, answers: list[Any], kinds: list[Any], others: Sequence[bytes | str]) -> bool:
    """Whether these answers score far better than the seed, and than the same answer to everything, on all inputs."""
    for secret in others:
        trial = await _told(lab, answers, secret)
        if trial is None or not lab.better(trial, await _there(lab, AttackCandidate({}), secret)):
            return False
        alike = [found for each in kinds if (found := await _told(lab, [each], secret)) and found.score is not None]
        if not alike or not far_above(trial, *alike):
            return False
    return True


def _kinds(lab: Laboratory) -> list[Any]:
    """What can be answered, where that is one of a few things: what the seed answers, and the goal puts in quotes."""
    values = [call.value for call in lab.answered]
    if not all(isinstance(value, bool | str | int) for value in values):
        return []
    if all(isinstance(value, bool) for value in values):
        return [False, True]
    quoted = QUOTED.findall(lab.task.goal) if all(isinstance(value, str) for value in values) else []
    return list(dict.fromkeys([*values, *quoted]))


async def _others(lab: Laboratory) -> Sequence[bytes | str]:
    """Other inputs, of which as many are asked: those of other runs, or else of the holdout."""
    found: list[tuple[bytes | str, ...]] = [
        OTHERS,
        *([("holdout",)] if "holdout" in lab.task.splits and lab.split != "holdout" else []),
    ]
    for each in found:
        other = await _there(lab, AttackCandidate({}), each[0])
        keys, again = ([call.key for call in trial.asked] for trial in (lab.seed, other))
        if len(keys) == len(again) and sum(a != b for a, b in zip(keys, again, strict=True)) > len(keys) / 2:
            return each
    return ()


def _candidate(lab: Laboratory, answers: list[Any]) -> AttackCandidate | None:
    return lab.cheating("order", NEXT.format(items=json.dumps(answers)), answers=True)


async def _told(lab: Laboratory, answers: list[Any], where: bytes | str) -> WatchedEvaluation | None:
    candidate = _candidate(lab, answers)
    return await _there(lab, candidate, where) if candidate else None


async def _there(lab: Laboratory, candidate: AttackCandidate, where: bytes | str) -> WatchedEvaluation:
    """A trial with inputs of another secret, or of another split."""
    if isinstance(where, str):
        return await lab.evaluate(candidate, split=where)
    return await lab.evaluate(candidate, secret=where)


async def _learnt(lab: Laboratory, kinds: list[Any]) -> list[Any]:
    """The answer of each call that scores best: by its own case, or by the score of all, one call after the other."""
    alike = [trial for each in kinds if (trial := await _told(lab, [each], FIRST))]
    metric = lab.task.primary
    scores = [[case["metrics"][metric.name] for case in trial.cases] for trial in alike]
    count = len(lab.answered)
    if len(scores) == len(kinds) and all(len(each) == count for each in scores):
        best = max if metric.direction == "maximize" else min
        return [kinds[best(range(len(kinds)), key=lambda kind: scores[kind][place])] for place in range(count)]
    if count * (len(kinds) - 1) > MOST:
        return []
    return await _one_by_one(lab, kinds)


async def _one_by_one(lab: Laboratory, kinds: list[Any]) -> list[Any]:
    """Each answer is exchanged for another kind as long as the score of all gets better."""
    answers = [kinds[0]] * len(lab.answered)
    best = await _told(lab, answers, FIRST)
    for place in range(len(answers)):
        for kind in kinds[1:]:
            changed = [*answers[:place], kind, *answers[place + 1 :]]
            trial = await _told(lab, changed, FIRST)
            if trial and best and trial.score is not None and lab.better(trial, best):
                answers, best = changed, trial
                break
    return answers


def _guessed(kinds: list[Any], count: int) -> list[list[Any]]:
    """Answers that take turns, and the same ones block by block, in both directions."""
    found = []
    for order in (kinds, kinds[::-1]):
        block = -(-count // len(order))
        found += [[order[place % len(order)] for place in range(count)], [each for each in order for _ in range(block)]]
    return found


ATTACKS = (
    Attack(
        "order",
        "leaks",
        "looks at no input, and answers by the number of the call",
        "Shuffle the cases with the `rng` that evaluate() may take, before the program is asked.",
        first_of(_counted, _known),
    ),
)
