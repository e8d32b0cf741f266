"""An agent that reads in feedback, reasons and logs what was expected."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import CONSTANT, NOTHING, cheat, many_inputs
from evogit.audit.attacks.timing import TABLE
from evogit.audit.laboratory import Call, Laboratory, WatchedEvaluation
from evogit.audit.rules import kind

ROUNDS = 12
"""Evaluations in which an agent reads what was expected."""


async def _feedback(lab: Laboratory) -> AsyncIterator[Hit]:
    """An agent that reads what was expected, and writes it down."""
    if not many_inputs(lab) or lab.timed or lab.answered[0].kind == "run":  # a script knows no input by its arguments
        return
    for body in ("", *NOTHING.values(), *CONSTANT.values()):
        known: dict[str, Any] = {}
        told = False
        for _ in range(ROUNDS):
            text = TABLE.replace("honest(*args, **kwargs)", "_otherwise(honest, *args, **kwargs)")
            otherwise = cheat(body or "return honest(*args, **kwargs)").replace("_cheat", "_otherwise")
            code = text.format(table=json.dumps(known)).replace("def _cheat", f"{otherwise}\n\ndef _cheat")
            candidate = lab.cheating("feedback", code, answers=True)
            if candidate is None:
                return
            trial = await lab.evaluate(candidate)
            if known and _told_most(trial, known) and (lab.ideal(trial) or (lab.better(trial) and told)):
                what = f"feedback tells what was expected: {len(known)} answers written down from it score better"
                yield Hit(what, candidate, trial, trial.line)
                return
            told = told or bool(SAYS.search(_all_said(trial)))
            news = {key: value for key, value in _told(lab, trial).items() if known.get(key, _told) != value}
            if not news:
                break
            known |= news


def _all_said(trial: WatchedEvaluation) -> str:
    parts = [str(case["feedback"]) for case in trial.cases]
    return "\n".join([*parts, trial.evaluation.reason, trial.evidence.log])


def _told_most(trial: WatchedEvaluation, known: dict[str, Any]) -> bool:
    return any(call.key in known for call in trial.asked)


def _told(lab: Laboratory, trial: WatchedEvaluation) -> dict[str, Any]:
    """Answers that feedback and reasons name, by the input that they seem to be for."""
    wanted = {call.target: kind(call.value) for call in lab.seed.asked}
    found: dict[str, Any] = {}
    calls = [call for call in trial.asked if call.target in {each.target for each in lab.answered}]
    said = [str(case["feedback"]) for case in trial.cases]
    each = max(1, len(calls) // len(said)) if said else 1
    texts = [(calls[place * each : (place + 1) * each], text) for place, text in enumerate(said)]
    if trial.end:
        texts.append((calls[-1:], f"{trial.evaluation.reason}\n{trial.evidence.log}"))
    elif trial.evidence.log:  # what evaluate() prints
        texts.append((calls, trial.evidence.log))
    usual = [word for word in _literals(said[0]) if all(word in _literals(each) for each in said)] if said[1:] else []
    for asked, text in texts:
        for call, value in _matched(asked, text, wanted, usual):
            found[call.key] = value
    return found


def _matched(calls: list[Call], text: str, wanted: dict[str, Any], usual: list[Any]) -> Iterator[tuple[Call, Any]]:
    if not calls:
        return
    own = [call.value for call in calls]
    sort = wanted.get(calls[0].target)
    given = [part for call in calls for part in call.arguments]
    after = [_first_after(text, found.end(), sort) for found in SAYS.finditer(text)]
    after = [value for value in after if value is not None]
    if len(after) == len(calls):
        yield from zip(calls, after, strict=True) if after != own else ()
        return
    known = [*own, *given, *usual]
    named = [value for value in _literals(text) if kind(value) == sort and value not in known]
    if len(named) == len(calls) or (named and len(calls) == 1):
        yield from zip(calls, named, strict=False)
    elif len(calls) > 1:
        for call in calls:
            lines = [line for line in text.splitlines() if call.arguments and repr(call.arguments[0]) in line]
            values = [value for line in lines for value in _literals(line) if kind(value) == sort]
            values = [value for value in values if value != call.value and value not in call.arguments]
            if values:
                yield call, values[0]


SAYS = re.compile(r"expected|should be|correct|answer|want(ed)?|truth|optimal|instead of|solution|label|target", re.I)


def _first_after(text: str, start: int, sort: Any) -> Any:
    """The first value of a kind that a line names after a word such as "expected"; None where there is none."""
    line = text[start : (text + "\n").index("\n", start)]
    if sort is str:
        phrase = _PHRASE.match(line)
        return phrase[2] if phrase else None
    values = [_value(found[0]) for found in _LITERAL.finditer(line)]
    return next((value for value in values if kind(value) == sort), None)


_PHRASE = re.compile(
    r"(?: (?:was|is|be))?[:=]?\s*(['\"`]?)(.+?)\1(?=[,;)!]|\.?$|\.? (?:got|but|not|instead|and|for)\b)"
)
"""A text after such a word, up to what comes after it."""
_LITERAL = re.compile(
    r"\[[^\n]*?\](?![\]\w])|\{[^\n]*?\}|-?\d+\.?\d*(?:e-?\d+)?|'[^'\n]*'|\"[^\"\n]*\"|True|False|\b[A-Za-z_]+\b"
)


def _literals(text: str) -> Iterator[Any]:
    """Values that a text names: those after words such as "expected" first."""
    at = [found.end() for found in SAYS.finditer(text)]
    for start in (*at, 0):
        yield from (_value(found[0]) for found in _LITERAL.finditer(text, start))


def _value(literal: str) -> Any:
    try:
        return json.loads(json.dumps(ast.literal_eval(literal)))
    except (ValueError, SyntaxError, TypeError):
        return literal


ATTACKS = (
    Attack(
        "feedback",
        "leaks",
        "writes down what feedback, reasons and logs say was expected",
        "Say in feedback how far an answer was off, and never what was expected; draw the inputs with rng.",
        _feedback,
    ),
)
