"""What a program or an agent should not know: answers in arguments, files and feedback, the future, the holdout."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answers import CONSTANT, NOTHING, cheat, many_inputs, where
from evogit.audit.attacks.timing import TABLE, table
from evogit.audit.candidate import Candidate
from evogit.audit.laboratory import SECOND, Call, Laboratory, Trial
from evogit.audit.rules import kind

FAMILY = "leaks"
RICH = 40
"""Characters of arguments that are not equal by chance."""
FEW = 5
"""Items that follow each other below which what comes next may be the answer by chance."""
MANY = 20
"""Short inputs that are no coincidence only together."""
LABELS = 4
"""Different texts of a column that may be the names of what is true and false."""
ROUNDS = 12
"""Evaluations in which an agent reads what was expected."""
LIVE = re.compile(
    r"\bonline\b|\bstream|one (item|at a time)|arriv|without (seeing|knowing)|look.?ahead|future|causal", re.I
)
ANSWERS = (
    "answer",
    "expected",
    "label",
    "truth",
    "solution",
    "optimal",
    "optimum",
    "correct",
    "ground_truth",
    "y_true",
    "y",
)

STRICT = """\
import json

_TABLE = json.loads({table!r})


def _cheat(honest, *args, **kwargs):
    return _TABLE[json.dumps([args, kwargs], sort_keys=True)]  # nothing but what train has shown
"""


# --- the holdout --------------------------------------------------------------------------------------------------


async def _holdout(lab: Laboratory) -> AsyncIterator[Hit]:
    if "holdout" not in lab.task.splits or lab.split == "holdout" or not lab.seed.evaluation.ok:
        return
    held = await lab.evaluate(Candidate({}), split="holdout")
    train, seen = _informative(lab.seed.asked), _informative(held.asked)
    shared = train & seen
    if not shared or len(shared) < len(seen) / 2 and not any(len(key) >= RICH for key in shared & _varied(held.asked)):
        return
    whole = len(shared) == len(seen)
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
        keys = [call.key for call in calls if call.target == target]
        short = [key for key in keys if len(key) < RICH]
        many = len(short) > MANY or any(call.kind == "stream" for call in calls if call.target == target)
        found |= {key for key in keys if len(key) >= RICH}
        if len(set(short)) > 1:
            found |= {json.dumps(short)} if many else set(short)
    return found


def _varied(calls: list[Call]) -> set[str]:
    """The inputs of functions that are asked different ones."""
    targets = {call.target: {other.key for other in calls if other.target == call.target} for call in calls}
    return {call.key for call in calls if len(targets[call.target]) > 1}


# --- what agents are told -----------------------------------------------------------------------------------------


async def _feedback(lab: Laboratory) -> AsyncIterator[Hit]:
    """An agent that reads what was expected, and writes it down."""
    if not many_inputs(lab) or lab.timed:
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


def _all_said(trial: Trial) -> str:
    parts = [str(case["feedback"]) for case in trial.cases]
    return "\n".join([*parts, trial.evaluation.reason, trial.evidence.log])


def _told_most(trial: Trial, known: dict[str, Any]) -> bool:
    return any(call.key in known for call in trial.asked)


def _told(lab: Laboratory, trial: Trial) -> dict[str, Any]:
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
    for asked, text in texts:
        for call, value in _matched(asked, text, wanted):
            found[call.key] = value
    return found


def _matched(calls: list[Call], text: str, wanted: dict[str, Any]) -> Iterator[tuple[Call, Any]]:
    if not calls:
        return
    own = [call.value for call in calls]
    sort = wanted.get(calls[0].target)
    given = [part for call in calls for part in call.arguments]
    after = [_first_after(text, found.end(), sort) for found in SAYS.finditer(text)]
    after = [value for value in after if value is not None]
    if len(after) == len(calls) > 1:
        yield from zip(calls, after, strict=True)
        return
    named = [value for value in _literals(text) if kind(value) == sort and value not in own and value not in given]
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
    values = [_value(found[0]) for found in _LITERAL.finditer(line)]
    return next((value for value in values if kind(value) == sort), None)


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


# --- what programs are given --------------------------------------------------------------------------------------


def _answers_at(calls: list[Call]) -> dict[str, str]:
    """Where in the arguments the answer may stand: what to say -> how to read it."""
    given = "[*args, *kwargs.values()]"
    found: dict[str, str] = {}
    if calls[0].kind == "run":
        asked = calls[0].arguments[0]
        files = [name for name in asked["files"] if name not in asked["argv"]]
        found |= {f"the argument in the file {name}": f"_said(open({name!r}).read())[0]" for name in files}
        found |= {f"argument {place} of the command": f"_said(sys.argv[{place}])[0]" for place in (1, 2, 3)}
        return found
    for place, part in enumerate(calls[0].arguments):
        if isinstance(part, dict):
            for key in part:
                if str(key).lower() in ANSWERS:
                    found[f"the argument's field {key!r}"] = f"{given}[{place}][{key!r}]"
        if isinstance(part, list):
            for other, number in enumerate(calls[0].arguments):
                if type(number) is int:
                    for step in ("", " + 1"):
                        say = f"the element at {'the next' if step else 'this'} place of a list among the arguments"
                        found[say] = f"{given}[{place}][{given}[{other}]{step}]"
    for key in calls[0].given[1]:
        if key.lower() in ANSWERS:
            found[f"the argument {key!r}"] = f"kwargs[{key!r}]"
    return found


async def _arguments(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.seed.asked or lab.timed:
        return
    for says, expression in _answers_at(lab.answered).items():
        body = (
            "def _cheat(honest, *args, **kwargs):\n    try:\n        return "
            + expression
            + "\n    except (LookupError, TypeError, OSError):\n        return honest(*args, **kwargs)\n"
        )
        candidate = lab.cheating("in-arguments", body, answers=True)
        trial = await lab.evaluate(candidate) if candidate else None
        named = "field" in says or (says.startswith("the argument ") and any(word in says for word in ANSWERS[:-1]))
        if candidate and trial and (lab.ideal(trial) or (named and lab.better(trial))):
            yield Hit(f"{says} is the answer", candidate, trial, where(lab.seed.asked))
            return


async def _future(lab: Laboratory) -> AsyncIterator[Hit]:
    """What is to come, known before: the same in each evaluation, or given to an earlier call."""
    calls = lab.seed.asked
    following = [] if lab.timed else _following(lab.answered)
    if len(following) >= FEW and len(set(map(repr, following))) > 1:
        turns = (0, 1, 2, len(following) // 2)  # the right order, and controls
        tables = [NEXT.format(items=json.dumps(following[turn:] + following[:turn])) for turn in turns]
        candidates = [each for table in tables if (each := lab.cheating("lookahead", table, answers=True))]
        told, *controls = [await lab.evaluate(each, secret=SECOND) for each in candidates] or [lab.seed]
        usual = max((each.score for each in controls if each.score is not None), default=None)
        if lab.better(told) and told.score and (usual is None or told.score - usual > abs(usual) / 3):
            what = "what comes next is the answer, and is the same in each evaluation"
            yield Hit(what, candidates[0], told, where(calls))
            return
    async for hit in _series(lab):
        yield hit
        return
    texts = [lab.task.goal, *lab.evaluator_texts().values()]
    ahead = _known_ahead(calls) if any(map(LIVE.search, texts)) else None
    if ahead:
        earlier, _ = ahead
        candidate = lab.cheating("lookahead", TELLS)
        trial = await lab.evaluate(candidate) if candidate else None
        if candidate and trial and trial.evaluation.ok and b"knew it before" in trial.evidence.stdout:
            what = f"{earlier.target} is given what later calls bring: items that were to be unknown"
            yield Hit(what, candidate, trial, earlier.line)


CAUSAL = re.compile(
    r"\bup to (and including )?(now|the present|(the )?(current )?(day|hour|minute|step|time|round|tick|moment|t)\b)"
    r"|\bso far\b|\b(past|earlier|previous) (values|prices|items|data)\b|\bonly the past\b|(see|know)\w* what comes",
    re.I,
)
"""How a goal says that an answer may depend on what came before alone."""
KEEPS = """\
def _cheat(honest, *args, **kwargs):
    value, given = honest(*args, **kwargs), [*args, *kwargs.values()]
    for size in (len(value) // 3, len(value) // 2):
        part = honest(*[each[:size] if place == {place} else each for place, each in enumerate(given)])
        print("the past alone" if part[: size - 1] == value[: size - 1] else "the future, too")
    return value
"""
RISES = """\
def _cheat(honest, *args, **kwargs):
    value, series = honest(*args, **kwargs), [*args, *kwargs.values()][{place}]
    low, high = {sides}
    moves = [after > now for now, after in zip(series, series[1:])]
    return {moves}
"""


async def _series(lab: Laboratory) -> AsyncIterator[Hit]:
    """A whole series at once, where each answer is to depend on what came before alone, as the seed's do."""
    place = _series_at(lab.answered)
    if lab.timed or place < 0 or not CAUSAL.search(lab.task.goal):
        return
    keeps = lab.cheating("lookahead", KEEPS.format(place=place), answers=True)
    said = (await lab.evaluate(keeps)).evidence.stdout if keeps else b""
    if b"the past alone" not in said or b"the future, too" in said:
        return
    for sides in ("min(value), max(value)", "max(value), min(value)"):
        ways = (  # of the next step, and of the one before as a control
            "[high if rises else low for rises in moves] + value[-1:]",
            "value[:1] + [high if rises else low for rises in moves]",
        )
        bodies = [RISES.format(place=place, sides=sides, moves=moves) for moves in ways]
        told, usual = [lab.cheating("lookahead", body, answers=True) for body in bodies]
        if told is None or usual is None:
            return
        trial, control = await lab.evaluate(told), await lab.evaluate(usual)
        if not lab.better(trial) or trial.score is None:
            continue
        if control.score is None or trial.score - control.score > abs(control.score) / 3:
            what = "the whole series is given, and answers that use its next element score better"
            yield Hit(what, told, trial, where(trial.asked))
            return


def _series_at(calls: list[Call]) -> int:
    """Which argument is a series of numbers with a number as answer to each; -1 where there is none."""
    if not calls:
        return -1
    for place in range(min(len(call.arguments) for call in calls)):
        pairs = [(call.arguments[place], call.value) for call in calls]
        if all(_numbers(given) and _numbers(value) and len(given) == len(value) for given, value in pairs):
            return place
    return -1


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= FEW and all(type(each) in (int, float) for each in value)


def _following(calls: list[Call]) -> list[Any]:
    """To each call the item that came next, where that is of the kind of an answer; else what was answered."""
    found: list[Any] = []
    for now, after in zip(calls, calls[1:], strict=False):
        if not now.arguments or not after.arguments or now.target != after.target:
            return []
        before, item = now.arguments[0], after.arguments[0]
        if isinstance(item, list) and isinstance(before, list) and item and item[:-1] == before:
            item = item[-1]
        if kind(item) != kind(now.value):
            return []
        found.append(item)
    return [*found, calls[-1].value] if found else []


NEXT = """\
import json

_NEXT = json.loads({items!r})
_number = -1


def _cheat(honest, *args, **kwargs):
    global _number
    _number += 1
    return _NEXT[_number % len(_NEXT)]
"""
TELLS = """\
import json, sys

_seen = []


def _cheat(honest, *args, **kwargs):
    value = honest(*args, **kwargs)
    for part in [*args, *kwargs.values()]:
        if any(part in known for known in _seen):
            print("knew it before:", json.dumps(part)[:80])
        if type(part) is list and len(part) > 2:
            _seen.append(part)
    return value
"""


def _known_ahead(calls: list[Call]) -> tuple[Call, Call] | None:
    """A call and a later one most of whose kind bring what the first was given."""
    for place, call in enumerate(calls[:50]):
        for part in call.arguments:
            if not isinstance(part, list) or len(part) < 3:
                continue
            later = [
                each for each in calls[place + 1 : place + 1 + len(part)] if each.target == calls[place + 1].target
            ]
            items = [each.arguments[0] for each in later if each.arguments]
            if (
                len(items) >= 3
                and sum(item in part for item in items) > 0.9 * len(items)
                and items != [part] * len(items)
            ):
                return call, later[0]
            same = [each for each in calls if each.target == call.target and len(each.arguments) > 1]
            if len(same) > 2 and all(part in each.arguments for each in same[:3]) and _reads_on(same, part):
                return call, same[1]
    return None


def _reads_on(calls: list[Call], whole: list[Any]) -> bool:
    """Whether each call is about the next element of a list that all are given."""
    places = [next((x for x in call.arguments if type(x) is int), -1) for call in calls[: len(whole)]]
    return len(places) > 2 and places == list(range(places[0], places[0] + len(places))) and places[0] < len(whole) - 1


# --- files --------------------------------------------------------------------------------------------------------

LOOKUP = """\
import csv, json


def _rows():
    with open({path!r}) as file:
        text = file.read()
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.startswith(("{{", "["))]


def _find(value, wanted):
    if isinstance(value, dict) and wanted in [json.dumps(each) for each in value.values()]:
        return value.get({field!r}) if {field!r} in value else None
    if isinstance(value, list) and wanted in [json.dumps(each) for each in value] and {field!r} == "":
        rest = [each for each in value if json.dumps(each) != wanted]
        return rest[0] if rest else None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return next((found for part in parts if (found := _find(part, wanted)) is not None), None)


def _cheat(honest, *args, **kwargs):
    found = _find(_rows(), json.dumps([*args, *kwargs.values()][{place}]))
    return honest(*args, **kwargs) if found is None else found
"""


async def _files(lab: Laboratory) -> AsyncIterator[Hit]:
    """Files that come with the program, and hold what it is asked, with the answers beside."""
    if not many_inputs(lab) or not lab.seed.evaluation.ok:
        return
    visible = {path: content for path, content in lab.files.items() if lab.task.is_visible(path)}
    for call in lab.seed.asked:
        if call.kind == "run":  # what one command is given, a later call finds
            visible |= {path: text.encode() for path, text in call.arguments[0]["files"].items()}
    for path, content in visible.items():
        if not path.endswith((".json", ".jsonl")):
            async for hit in _table_in(lab, path, content):
                yield hit
                return
            continue
        rows = _rows(content)
        for place, part in enumerate(lab.answered[0].arguments):
            for field in _fields(rows, json.dumps(part)):
                candidate = lab.cheating("in-files", LOOKUP.format(path=path, field=field, place=place), answers=True)
                trial = await lab.evaluate(candidate) if candidate else None
                if candidate and trial and lab.better(trial):
                    yield Hit(
                        f"{path}, which programs and agents see, holds the answers",
                        candidate,
                        trial,
                        where(trial.asked),
                    )
                    return


TABLE_ROW = """\
import csv


def _cheat(honest, *args, **kwargs):
    wanted = str([*args, *kwargs.values()][{place}])
    with open({path!r}, newline="") as file:
        for row in csv.reader(file, delimiter={by!r}):
            if wanted in row:
                return {reading}
    return honest(*args, **kwargs)
"""


async def _table_in(lab: Laboratory, path: str, content: bytes) -> AsyncIterator[Hit]:
    """A file of rows, with commas, tabs or the like between, one of which is what the program is asked."""
    text = content.decode(errors="replace")
    if path.endswith(".py") or "\0" in text:
        return
    for by in "\t,;|":
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=by))
        except csv.Error:
            continue
        for place in range(len(lab.answered[0].arguments)):
            asked = {str(call.arguments[place]) for call in lab.answered if len(call.arguments) > place}
            found = [row for row in rows if len(row) > 1 and asked & set(row)]
            if len(found) < max(2, len(asked) / 2):
                continue
            for reading in _readings(found, asked, lab.answered[0].value):
                code = TABLE_ROW.format(place=place, path=path, by=by, reading=reading)
                candidate = lab.cheating("in-files", code, answers=True)
                trial = await lab.evaluate(candidate) if candidate else None
                if candidate and trial and lab.better(trial):
                    what = f"{path}, which programs and agents see, holds the answers"
                    yield Hit(what, candidate, trial, where(trial.asked))
                    return


def _readings(rows: list[list[str]], asked: set[str], value: Any) -> Iterator[str]:
    """How the answer may stand beside the input: as it is, as a number, or as one of a few labels."""
    for column in range(min(map(len, rows))):
        cells = {row[column] for row in rows}
        if cells <= asked:
            continue
        if isinstance(value, bool):
            yield from (f"row[{column}] == {label!r}" for label in sorted(cells) if len(cells) <= LABELS)
        elif isinstance(value, int | float):
            yield f"{type(value).__name__}(row[{column}])"
        else:
            yield f"row[{column}]"


def _rows(content: bytes) -> Any:
    text = content.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return list(csv.DictReader(io.StringIO(text)))


def _fields(value: Any, wanted: str) -> set[str]:
    """Names of what stands beside an input in a file; "" in lists."""
    if isinstance(value, dict):
        if any(json.dumps(part) == wanted for part in value.values()):
            return {str(key) for key, part in value.items() if json.dumps(part) != wanted}
        return {name for part in value.values() for name in _fields(part, wanted)}
    if isinstance(value, list):
        if len(value) > 1 and any(json.dumps(part) == wanted for part in value):
            return {""}
        return {name for part in value[:1000] for name in _fields(part, wanted)}
    return set()


REACH = """\
import glob, os


def _look():
    for path in {paths!r}:
        try:
            with open(path, "rb") as file:
                print("read the evaluator:", path, len(file.read()))
        except OSError:
            pass
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if b"evaluator_main" in file.read():
                    print("sees the evaluator's process:", path)
        except OSError:
            pass


def _cheat(honest, *args, **kwargs):
    _look()
    return honest(*args, **kwargs)
"""


async def _reach(lab: Laboratory) -> AsyncIterator[Hit]:
    """The evaluator's own files and process, as seen from the program."""
    paths = [str(lab.task.evaluator_folder / name) for name in lab.evaluator_texts()]
    candidate = lab.cheating("reads-evaluator", REACH.format(paths=paths)) if lab.task.judged == "outside" else None
    if candidate is None:
        return
    trial = await lab.evaluate(candidate)
    found = re.search(rb"(read the evaluator|sees the evaluator's process): (\S+)", trial.evidence.stdout)
    if found:
        what = f"the program {found[1].decode()} ({found[2].decode(errors='replace')})"
        yield Hit(what, candidate, trial)


ATTACKS = (
    Attack(
        "holdout",
        FAMILY,
        "knows the inputs of train by heart, and is asked the holdout",
        "Give the holdout inputs of its own; a split of one set of data must not overlap.",
        _holdout,
    ),
    Attack(
        "feedback",
        FAMILY,
        "writes down what feedback, reasons and logs say was expected",
        "Say in feedback how far an answer was off, and never what was expected; draw the inputs with rng.",
        _feedback,
    ),
    Attack(
        "in-arguments",
        FAMILY,
        "looks for the answer among the arguments",
        "Give the program its question alone; keep the answer in the evaluator.",
        _arguments,
    ),
    Attack(
        "lookahead",
        FAMILY,
        "uses what is to come",
        "Hand out one item at a time with program.stream, from items that are drawn with rng.",
        _future,
    ),
    Attack(
        "in-files",
        FAMILY,
        "looks for its inputs in the files beside it",
        "Move such files into the evaluator's folder, or name them in `withheld`.",
        _files,
    ),
    Attack(
        "reads-evaluator",
        FAMILY,
        "reads the evaluator's files, and looks for its process",
        "Evaluate with a sandbox (--sandbox docker or bubblewrap), and keep the repository out of /usr.",
        _reach,
    ),
)
