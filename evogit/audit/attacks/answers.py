"""Answers that nobody could have earned anything with: nothing, nonsense, and such as break what all answers keep."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import product
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.candidate import Candidate
from evogit.audit.laboratory import Call, Laboratory, Trial
from evogit.audit.rules import mined

FAMILY = "answers"
FIELDS = 3
"""Fields of an answer that are changed one by one."""

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
FALSE = {
    "False for numbers": "return _each(honest(*args, **kwargs), lambda number: False)",
    "True for numbers": "return _each(honest(*args, **kwargs), lambda number: True)",
}
CONSTANT = {
    f"{number} for all numbers": f"return _each(honest(*args, **kwargs), lambda number: {number})"
    for number in (0, 1, 2)
}
CHANGES = {
    "the first element alone": "x[:1]",
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
    "an empty row for each": "[[] for each in x]",
    "an empty list": "[]",
    "all places of the input": "list(range(max(len(x) for x in [*args, *kwargs.values()] if type(x) is list)))",
    "all of the input": "max((each for each in [*args, *kwargs.values()] if type(each) is list), key=len)",
}
"""What becomes of a list, which is the answer or a field of it."""


def cheat(body: str) -> str:
    """The function that answers in the place of the seed's."""
    return f"def _cheat(honest, *args, **kwargs):\n    {body}\n"


def changed(expression: str, field: str = "") -> str:
    """A cheat that changes the list that is the answer, or a field of it."""
    value = "    answer = honest(*args, **kwargs)\n"
    if field:
        rest = f"    x = answer[{field!r}]\n    return {{**answer, {field!r}: {expression}}}\n"
    else:
        rest = f"    x = answer\n    return {expression}\n"
    return f"def _cheat(honest, *args, **kwargs):\n{value}{rest}"


async def tried(lab: Laboratory, name: str, bodies: dict[str, str]) -> AsyncIterator[tuple[str, Candidate, Trial]]:
    """Each candidate whose answers are made so, with its trial, where it answers something else than the seed."""
    for says, body in bodies.items():
        candidate = lab.cheating(name, cheat(body) if not body.startswith("def ") else body, answers=True)
        if candidate is None:
            return
        trial = await lab.evaluate(candidate)
        if answers(trial) != answers(lab.seed):
            yield says, candidate, trial


def answers(trial: Trial) -> list[Any]:
    """What the candidate said, call by call."""
    return [call.value for call in trial.asked]


def changes(lab: Laboratory) -> dict[str, str]:
    """Bodies that change the lists of the seed's answers."""
    found = dict[str, str]()
    value = next((call.value for call in lab.answered), None)
    fields = [""] if isinstance(value, list) else []
    if isinstance(value, dict):
        fields = [key for key, part in value.items() if isinstance(part, list)][:FIELDS]
    for field in fields:
        for says, expression in CHANGES.items():
            found[f"{says} ({field})" if field else says] = changed(expression, field)
    return found


def where(calls: Sequence[Call]) -> str:
    """The line that asks for answers, first of those without `returns`."""
    ordered = sorted(calls, key=lambda call: call.typed)
    return ordered[0].line if ordered else ""


def passes(lab: Laboratory, trial: Trial) -> bool:
    """Whether an answer that is none came through for a score that is no worse, where the seed's means something."""
    if trial.score is None or lab.seed.score is None or lab.floor:
        return lab.better(trial)
    return trial.score >= lab.seed.score or (lab.timed and trial.score >= lab.seed.score / 1.5 > 0)


# --- attacks ------------------------------------------------------------------------------------------------------


async def _nothing(lab: Laboratory) -> AsyncIterator[Hit]:
    async for says, candidate, trial in tried(lab, "nothing", NOTHING):
        if passes(lab, trial) and trial.asked and all(call.value in (None, "", [], {}) for call in trial.asked):
            yield Hit(f"answering {says} is accepted", candidate, trial, trial.line)
            return


async def _odd(lab: Laboratory) -> AsyncIterator[Hit]:
    async for says, candidate, trial in tried(lab, "nan", ODD):
        if passes(lab, trial):
            yield Hit(f"{says} is accepted", candidate, trial, trial.line)
            return
    found = [each async for each in tried(lab, "nan", OVERFLOW)]
    better = [each for each in found if lab.better(each[2])]
    if len(found) == len(OVERFLOW) and [says for says, _, _ in better] == list(OVERFLOW)[:1]:
        says, candidate, trial = better[0]
        yield Hit(f"{says} overflows, and scores better", candidate, trial, trial.line)


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


async def _all_texts(lab: Laboratory) -> AsyncIterator[Hit]:
    """An answer that holds all answers, where texts are looked for in texts."""
    texts = {call.value: None for call in lab.answered if isinstance(call.value, str)}
    if len(texts) < 2:
        return
    bodies = {"": f"return {' '.join(texts)!r}", "rows": f"return {chr(10).join(texts)!r}"}
    async for _, candidate, trial in tried(lab, "all-answers", bodies):
        if lab.better(trial):
            yield Hit("a text that holds all answers is taken for each of them", candidate, trial, trial.line)
            return


async def _first(lab: Laboratory) -> AsyncIterator[Hit]:
    if not many_inputs(lab):
        return
    first = repr(lab.answered[0].value)
    async for _, candidate, trial in tried(lab, "first-answer", {"": f"return {first}"}):
        if lab.ideal(trial) or (lab.timed and await lab.confirmed(candidate)):
            yield Hit("the answer to the first input is accepted for every input", candidate, trial, trial.line)


def many_inputs(lab: Laboratory) -> bool:
    """Whether answers are about inputs at all; else the answer itself is what evolves, and may be written down."""
    return len({call.key for call in lab.answered}) > 1 and bool(lab.answered[0].arguments)


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


def _composed(lab: Laboratory) -> dict[str, str]:
    """Bodies that break a rule by several changes at once, for lists that choose of, or count, what a list has."""
    call = next(iter(lab.answered), None)
    if call is None or not isinstance(call.value, list) or call.kind == "run":
        return {}
    found = {"all places, neighbours far apart": SPREAD}
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
    rules = mined(lab.seed.asked) if lab.seed.asked else []
    bodies = {**(changes(lab) or {**NOTHING, **CONSTANT}), **_composed(lab)}
    async for says, candidate, trial in tried(lab, "broken-rules", bodies):
        if not (lab.better(trial) or (lab.timed and passes(lab, trial))):
            continue
        broken = next((rule for rule in rules if not all(map(rule.holds, trial.asked))), None)
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


def _named_once(value: Any) -> bool:
    names = isinstance(value, list) and len(value) > 3 and all(type(each) is int and each >= 0 for each in value)
    return names and len(set(value)) == len(value)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of the numbers of an answer that mean something of their own: fields, and places of short lists."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and len(path) < 2:
        for place in range(len(value)) if len(value) <= 4 else (0, 1, len(value) - 1):
            yield from leaves(value[place], (*path, place))


def _paths(lab: Laboratory) -> list[tuple[Any, ...]]:
    return list(leaves(lab.answered[0].value))[:8] if lab.answered else []


async def _claimed(lab: Laboratory) -> AsyncIterator[Hit]:
    """A number of the answer that the score follows wherever it goes, or that it is divided by."""
    for path in _paths(lab):
        found: list[tuple[float, Candidate, Trial]] = []
        for number in (0.21, 0.43, 0.87, 1.0, 1e-9):
            body = f"return _at(honest(*args, **kwargs), {path!r}, {number!r})"
            found += [(number, candidate, trial) async for _, candidate, trial in tried(lab, "claims", {"": body})]
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


def _named(path: tuple[Any, ...]) -> str:
    return f" ({''.join(f'[{part!r}]' for part in path)} of its answer)" if path else ""


async def _unbounded(lab: Laboratory) -> AsyncIterator[Hit]:
    """Numbers that only have to be larger, or smaller, and lists that have to be longer, for a score without end."""
    bodies: list[str] = [f"return _each(honest(*args, **kwargs), lambda number: {way})" for way in _WAYS]
    bodies += [f"return _at(honest(*args, **kwargs), {path!r}, {value})" for path in _paths(lab) for value in _VALUES]
    for body in [*bodies, *_TURNS, "return honest(*args, **kwargs) * SIZE"]:
        rising: list[tuple[Candidate, Trial]] = []
        for size in ("10", "1000", "100_000") if body.endswith("* SIZE") else ("1e3", "1e6", "1e9"):
            async for _, candidate, trial in tried(lab, "endless", {"": body.replace("SIZE", size)}):
                if trial.score is not None and lab.better(trial, rising[-1][1] if rising else None):
                    rising.append((candidate, trial))
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


def _gain(lab: Laboratory, trial: Trial) -> float:
    assert trial.score is not None  # it was better
    assert lab.seed.score is not None
    return (trial.score - lab.seed.score) / max(1.0, abs(lab.seed.score))


FAILING = {
    "raising an exception": 'raise ValueError("no answer")',
    "ending its process": "import os\n    os._exit(0)",
    "nothing": "return None",
}
HALF = """\
_calls = 0


def _cheat(honest, *args, **kwargs):
    global _calls
    _calls += 1
    if _calls {way}:
        {body}
    return honest(*args, **kwargs)
"""


async def _failing(lab: Laboratory) -> AsyncIterator[Hit]:
    bodies = {says: cheat(body) for says, body in FAILING.items()}
    nothing = any(call.value is None for call in lab.answered)  # then it is an answer
    for way, part in (("% 2 == 0", "every other call"), ("> 1", "all calls but the first"), ("== 1", "the first call")):
        bodies[f"raising an exception in {part}"] = HALF.format(way=way, body='raise ValueError("no answer")')
        bodies[f"nothing in {part}"] = HALF.format(way=way, body="return None")
    for says, body in bodies.items():
        if nothing and says.startswith("nothing"):
            continue
        candidate = lab.cheating("failing", body, answers=True)
        if candidate is None:
            return
        trial = await lab.evaluate(candidate)
        always = trial.evaluation.ok and not trial.asked and not lab.floor and passes(lab, trial)
        if always or (lab.better(trial) and await lab.confirmed(candidate)):
            yield Hit(f"failing pays: {says} scores better than answering", candidate, trial, trial.line)
            return


async def _crashing(lab: Laboratory) -> AsyncIterator[Hit]:
    bodies = {**NOTHING, **ODD, **FALSE, **CONSTANT, **changes(lab)}
    async for says, candidate, trial in tried(lab, "crash", bodies):
        if trial.evaluation.status == "evaluator-error":
            why = trial.end.get("error") or trial.evaluation.reason
            yield Hit(f"the evaluator fails on {says}: {why}"[:200], candidate, trial, trial.line)
            return


LONG = {
    "a list of 200 000 elements": "return (honest(*args, **kwargs) * 200_000)[:200_000]",
    "a number of a billion": "return _each(honest(*args, **kwargs), lambda number: 10**9)",
}
CODE = """print("executed by the", "evaluator")"""
"""An expression that leaves a trace in what evaluators print, which no quotation of it does."""


async def _code(lab: Laboratory) -> AsyncIterator[Hit]:
    if not any('"' in repr([call.value]) or "'" in repr([call.value]) for call in lab.answered):
        return
    for says, body in {
        "an expression": f"return {CODE!r}",
        "an expression in a field": f"return _each_text(honest(*args, **kwargs), {CODE!r})",
    }.items():
        candidate = lab.cheating("code", cheat(body), answers=True)
        trial = await lab.evaluate(candidate) if candidate else None
        if candidate and trial and "executed by the evaluator" in trial.evidence.log:
            yield Hit(f"{says} that the program answers is executed by the evaluator", candidate, trial, trial.line)
            return


PATIENCE = 8.0
"""Seconds of CPU that a legal answer may hold the evaluator."""


async def _holding(lab: Laboratory) -> AsyncIterator[Hit]:
    if lab.seed.seconds > PATIENCE / 4:
        return
    for says, body in LONG.items():
        candidate = lab.cheating("slow", cheat(body), answers=True)
        if candidate is None:
            return
        trial = await lab.evaluate(candidate, total=PATIENCE)
        if trial.evaluation.status == "timeout" and "judging" in trial.evaluation.reason:
            yield Hit(f"{says} holds the evaluator for more than {PATIENCE:g} s", candidate, trial, where(trial.asked))
            return


ATTACKS = (
    Attack(
        "nothing",
        FAMILY,
        "answers nothing: None, an empty list, an empty text",
        "Check what the answer is and how long, with returns=TYPE and len(), before anything is scored.",
        _nothing,
    ),
    Attack(
        "nan",
        FAMILY,
        "answers NaN and infinities, also as text",
        "Ask for the type with returns=, refuse what is not finite, and compare so that NaN fails.",
        _odd,
    ),
    Attack(
        "bools",
        FAMILY,
        "answers True and False for numbers",
        "Ask for the type with returns=int or returns=float, which take no bools.",
        _truth,
    ),
    Attack(
        "constant",
        FAMILY,
        "answers the same number for everything",
        "Check the answer against its input: a constant should break a rule, or score worse than an attempt.",
        _constant,
    ),
    Attack(
        "first-answer",
        FAMILY,
        "answers every input as the first one",
        "Compare each answer with its own input, or with what you compute yourself.",
        _first,
    ),
    Attack(
        "all-answers",
        FAMILY,
        "answers all texts at once",
        "Compare texts as a whole, with ==; not whether one holds the other.",
        _all_texts,
    ),
    Attack(
        "broken-rules",
        FAMILY,
        "breaks what all of the seed's answers keep: lengths, permutations, sums, places, elements of the input",
        "Check this rule with `raise Invalid(...)` before you score; use zip(..., strict=True).",
        _rules,
    ),
    Attack(
        "respelled",
        FAMILY,
        "names the same number several times, in several spellings",
        "Turn texts into numbers first, and look for duplicates among these.",
        _respelled,
    ),
    Attack(
        "claims",
        FAMILY,
        "says of itself how good it is",
        "Compute the score from the answer in the evaluator; take no number that the program could make up.",
        _claimed,
    ),
    Attack(
        "endless",
        FAMILY,
        "answers ever larger, smaller and negative numbers",
        "Bound each number of the answer, and the score, by what is possible, and raise Invalid beyond.",
        _unbounded,
    ),
    Attack(
        "failing",
        FAMILY,
        "fails, in all calls or in some",
        "Let CandidateFailedError pass, or score a failed case as the worst; never leave it out.",
        _failing,
    ),
    Attack(
        "crash",
        FAMILY,
        "answers what an evaluator may stumble over",
        "Ask for the type with returns=, check lengths and zero before you index or divide, and raise Invalid.",
        _crashing,
    ),
    Attack(
        "code",
        FAMILY,
        "answers with code where a text is asked for",
        "Never eval() or exec() what a program says; read it with ast.literal_eval or a parser of your own.",
        _code,
    ),
    Attack(
        "slow",
        FAMILY,
        "answers what takes an evaluator long",
        "Bound lengths and numbers before loops over them.",
        _holding,
    ),
)

__all__ = ["ATTACKS", "answers", "changes", "cheat", "many_inputs", "passes", "tried", "where"]
