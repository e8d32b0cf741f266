"""What code can do to a judge in the same place: print its numbers, end it, stop its clock, bend its tools."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from msgspec import Struct

from evogit.audit.attack import Attack, Hit
from evogit.audit.candidate import AttackCandidate, above, helpers, title, wrapped_all
from evogit.audit.laboratory import Laboratory, NoTimeError, WatchedEvaluation, words_of
from evogit.config.values import EvaluationCommand
from evogit.contained import find_text

FAMILY = "inside"
MOST_FILES = 40
"""Modules that an attack is written into at once, before it is tried in one alone."""
JUDGES = 2
"""Commands of the evaluator's own whose output is forged."""
REMEDY = (
    'Judge from outside: kind = "python", whose evaluate() calls the candidate for answers and scores them where '
    "its code cannot reach (docs/tasks.md, Evaluating the same repository from outside)."
)

EXITS = """\
import os, stat

{report}for _fd in range(1, 32):  # stdout, and where a test runner has put it
    try:
        if _fd == 1 or stat.S_ISFIFO(os.fstat(_fd).st_mode):
            os.write(_fd, {said!r})
    except OSError:
        pass
os._exit(0)
"""
REPORT = """\
os.makedirs({folder!r}, exist_ok=True)
with open({path!r}, "w") as file:
    file.write({text!r})
"""
XML = '<testsuite name="t" tests="1" failures="0"><testcase classname="t" name="t"/></testsuite>'
SCRIPTS = {
    ".sh": "#!/bin/sh\necho '{said}'\nexit 0\n",
    ".js": "console.log('{said}');\nprocess.exit(0);\n",
    "Makefile": ".DEFAULT all test check bench:\n\t@echo '{said}'\n",
    "package.json": '{{"scripts": {{"test": "echo \'{escaped}\'"}}}}\n',
}
"""What a command may run, but for Python -> all of it: it says the numbers."""


def runs_inside(lab: Laboratory) -> bool:
    """Whether the candidate's code runs where its score is made: a command, or a script of the evaluator's own."""
    return bool(lab.task.command) or bool(harness(lab))


def harness(lab: Laboratory) -> list[Any]:
    """Commands of the evaluator's that are none of the candidate's own files."""
    runs = [call for call in lab.seed.asked if call.kind == "run"]
    return [call for call in runs if not any(word in lab.editable for word in words_of(call.arguments[0]["argv"]))]


# --- numbers that are printed -------------------------------------------------------------------------------------


class Forged(Struct, frozen=True):
    """What a forger leaves: lines on stdout, and reports, all with one content, by their path."""

    said: str
    reports: tuple[str, ...] = ()
    written: str = XML


def forgeries(lab: Laboratory) -> Iterator[Forged]:
    """Better numbers, in the form in which the judge reads them."""
    if lab.task.command:
        for number in _better(lab):
            yield _for_command(lab, lab.task.command, number)
        return
    for call in list({call.target: call for call in harness(lab)}.values())[:JUDGES]:
        text = call.value if isinstance(call.value, str) else json.dumps(call.value)
        for way in ("\\g<0>", "1e9", "0", "1.0", "0.000001", "100"):
            said = re.sub(r"(?<![\w.])-?\d+\.?\d*(e-?\d+)?", way, text).rstrip("\n")
            yield Forged(said, tuple(call.arguments[0]["out"]), said)


def _better(lab: Laboratory) -> tuple[float, ...]:
    value = lab.seed.evaluation.metrics.get(lab.task.primary.name, 1.0)
    if lab.task.primary.direction == "maximize":
        return (abs(value) * 1000 + 1, 1.0)
    return (value / 1000, 0.0)


def _for_command(lab: Laboratory, command: EvaluationCommand, number: float) -> Forged:
    objects: dict[str, Any] = {}
    lines, reports = [], []
    told = "\n".join(lab.seed.evidence.feedback.values())
    for name, read in command.reads.items():
        value = number if name == lab.task.primary.name else lab.seed.evaluation.metrics.get(name, number)
        if read.how == "json":
            *above_it, last = (read.what or name).split(".")
            place = objects
            for key in above_it:
                place = place.setdefault(key, {})
            place[last] = value
        elif read.how == "regex":
            lines += _like(told, read.what, value)
        elif read.how == "junit":
            reports.append(read.what)
    return Forged("\n".join([*lines, *([json.dumps(objects)] if objects else [])]), tuple(reports))


def _like(told: str, pattern: str, value: float) -> list[str]:
    """The line that the pattern matched, with another number."""
    for line in reversed(told.splitlines()):
        if found := re.search(pattern, line):
            start, end = found.span(1) if found.re.groups else found.span()
            return [line[:start] + f"{value:f}" + line[end:]]
    return []


def _exits(name: str, forged: Forged) -> str:
    report = "".join(
        REPORT.format(folder=path.rpartition("/")[0] or ".", path=path, text=forged.written) for path in forged.reports
    )
    return title(name) + EXITS.format(said=f"\n{forged.said}\n".encode(), report=report)


async def narrowed(
    lab: Laboratory, files: dict[str, bytes], worked: WatchedEvaluation
) -> tuple[AttackCandidate, WatchedEvaluation]:
    """The attack in one file alone, where that is enough."""
    for path in files if len(files) > 1 else ():
        candidate = AttackCandidate({path: files[path]})
        try:
            trial = await lab.evaluate(candidate)
        except NoTimeError:
            break
        if trial.score is not None and worked.score is not None and trial.score >= worked.score:
            return candidate, trial
    return AttackCandidate(files), worked


def no_worse(lab: Laboratory, trial: WatchedEvaluation) -> bool:
    """Whether what did none of the work scores as the seed does, where that means something."""
    if trial.score is None:
        return False
    return lab.better(trial) or (lab.seed.score is not None and not lab.floor and trial.score >= lab.seed.score)


async def _prints(lab: Laboratory) -> AsyncIterator[Hit]:
    if not runs_inside(lab) or not lab.seed.evaluation.ok:
        return
    for forged in forgeries(lab):
        code = _exits("prints-and-exits", forged)
        files = {path: above(lab.files[path], code) for path in lab.modules[:MOST_FILES]}
        trial = await lab.evaluate(AttackCandidate(files)) if files else None
        if trial and no_worse(lab, trial):
            candidate, trial = await narrowed(lab, files, trial)
            what = "code of the candidate prints the result and ends the process that was to measure it"
            yield Hit(what, candidate, trial, _command_line(lab))
            return


async def _scripts(lab: Laboratory) -> AsyncIterator[Hit]:
    """Files that the command runs, other than Python, replaced by what says the numbers."""
    if not lab.task.command or not lab.seed.evaluation.ok:
        return
    for path in lab.editable:
        text = next((text for end, text in SCRIPTS.items() if path.endswith(end)), "")
        for forged in forgeries(lab) if text else ():
            said = text.format(said=forged.said, escaped=forged.said.replace('"', '\\"'))
            candidate = AttackCandidate({path: said.encode()})
            trial = await lab.evaluate(candidate)
            if no_worse(lab, trial):
                yield Hit(f"{path}, which candidates may change, says the result", candidate, trial, _command_line(lab))
                return


ADDED = ("conftest.py", "sitecustomize.py", "unittest.py", "pytest.py", "json.py", "time.py", "random.py", "math.py")


async def _added(lab: Laboratory) -> AsyncIterator[Hit]:
    """New modules that Python or a test runner imports by itself, or in the place of its own."""
    if not runs_inside(lab) or not lab.seed.evaluation.ok:
        return
    folders = sorted({path.rpartition("/")[0] for path in lab.files})[:MOST_FILES]
    paths = [f"{folder}/{name}" if folder else name for folder in folders for name in ADDED]
    paths = [path for path in paths if path not in lab.files and lab.task.is_editable(path)]
    for forged in forgeries(lab) if paths else ():
        files = dict.fromkeys(paths, _exits("added-module", forged).encode())
        trial = await lab.evaluate(AttackCandidate(files))
        if lab.better(trial) and await _same_again(lab, AttackCandidate(files), trial):
            candidate, trial = await narrowed(lab, files, trial)
            what = f"a new file, {next(iter(candidate.files))}, is run in the place of what judges"
            yield Hit(what, candidate, trial, _command_line(lab))
            return
    async for hit in _left_behind(lab):
        yield hit


LEAVES = """\
{title}import atexit

@atexit.register
def _leave():
    for name in {names!r}:
        with open(name, "w") as file:
            file.write({text!r})


"""


async def _left_behind(lab: Laboratory) -> AsyncIterator[Hit]:
    """The same modules, written by a script of the candidate's into the folder where the judge is run after it."""
    for forged in () if lab.task.command else forgeries(lab):
        text = _exits("added-module", forged)
        names = [name for name in ADDED if name not in lab.files]
        candidate = lab.beginning(LEAVES.format(title=title("added-module"), names=names, text=text))
        trial = await lab.evaluate(candidate) if candidate.files else None
        if trial and lab.better(trial) and await _same_again(lab, candidate, trial):
            what = "modules that the candidate leaves in the folder are imported by what judges there"
            yield Hit(what, candidate, trial, _command_line(lab))
            return


async def _same_again(lab: Laboratory, candidate: AttackCandidate, trial: WatchedEvaluation) -> bool:
    """Whether it scores the very same twice more, as what is written down does; the seed's own work would vary."""
    again = [(await lab.evaluate(candidate, anew=True)).score for _ in range(2)]
    return again == [trial.score] * 2


def _command_line(lab: Laboratory) -> str:
    if not lab.task.command:
        return harness(lab)[0].line if harness(lab) else ""
    for number, line in enumerate(find_text(lab.task.folder, lab.task.evaluator.name).splitlines(), 1):
        if re.match(r"\s*command\s*=", line):
            return f"{lab.task.evaluator.name}:{number}"
    return ""


# --- tools that are bent ------------------------------------------------------------------------------------------

CLOCK = """\
import itertools, time, timeit

_ticks = itertools.count()
for _name in ("time", "perf_counter", "process_time", "monotonic", "thread_time"):
    setattr(time, _name, lambda: next(_ticks) * 1e-9)
    setattr(time, _name + "_ns", lambda: next(_ticks))
timeit.default_timer = time.perf_counter
"""
TAME = """\
import random

_real = random.Random
for _name in ("randint", "randrange", "uniform", "gauss"):
    setattr(random, _name, lambda *args: args[0])
    setattr(random.Random, _name, lambda self, *args: args[0])
random.random = random.Random.random = lambda *args: 0.0
"""
ASSERTS = """\
import builtins, math, unittest

for _name in dir(unittest.TestCase):
    if _name.startswith("assert") and _name not in ("assertRaises", "assertWarns", "assertLogs"):
        setattr(unittest.TestCase, _name, lambda *args, **kwargs: None)
math.isclose = lambda *args, **kwargs: True
builtins.all = lambda values: True
builtins.any = lambda values: False
try:
    import numpy
    numpy.allclose = numpy.array_equal = lambda *args, **kwargs: True
    numpy.isclose = lambda *args, **kwargs: numpy.True_
except ImportError:
    pass
"""
EQUAL = """\
class _Equal:
    \"\"\"Equal to all, and less, and more.\"\"\"

    def _yes(self, *args):
        return True

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = _yes
    __ne__ = lambda self, other: False
    __hash__ = lambda self: 0
    __len__ = __int__ = __index__ = lambda self: 0
    __float__ = lambda self: 0.0
    __iter__ = lambda self: iter(())
    __getitem__ = __call__ = __getattr__ = lambda self, *args: self
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __abs__ = __round__ = lambda self, *args: self


def _cheat(honest, *args, **kwargs):
    return _Equal()
"""
EMPTIED = """\
def _cheat(honest, *args, **kwargs):
    for part in [*args, *kwargs.values()]:
        if hasattr(part, "clear"):
            part.clear()
    return type(args[0])() if args and hasattr(args[0], "clear") else []
"""
MEMO = """\
_known = {}


def _cheat(honest, *args, **kwargs):
    key = repr((honest.__name__, args, kwargs))
    if key not in _known:
        _known[key] = honest(*args, **kwargs)
    return _known[key]
"""
ZERO = "def _cheat(honest, *args, **kwargs):\n    return 0\n"
IDLE = "def _cheat(honest, *args, **kwargs):\n    return None\n"


async def _idle(lab: Laboratory) -> AsyncIterator[Hit]:
    """Functions that do nothing at all."""
    if not runs_inside(lab) or not lab.modules or lab.floor:
        return
    candidate = lab.wrapping_all("idle", IDLE)
    if not candidate.files:  # a script without functions
        return
    trial = await lab.evaluate(candidate)
    if no_worse(lab, trial):
        yield Hit("functions that do nothing pass", candidate, trial, _command_line(lab))


async def _bent(lab: Laboratory, name: str, code: str, what: str, *, timed: bool) -> AsyncIterator[Hit]:
    """Code above all else that bends a tool of the judge; where it is no clock, the functions do nothing."""
    if not runs_inside(lab) or not lab.modules or (timed and not lab.timed) or (not timed and lab.floor):
        return
    files = {}
    for path in lab.modules[:MOST_FILES]:
        honest = lab.files[path] if timed else wrapped_all(lab.files[path], name, IDLE)
        files[path] = above(honest, title(name) + code)
    trial = await lab.evaluate(AttackCandidate(files))
    if no_worse(lab, trial) and (not timed or await lab.confirmed(AttackCandidate(files))):
        candidate, trial = await narrowed(lab, files, trial)
        yield Hit(what, candidate, trial, _command_line(lab))


async def _clock(lab: Laboratory) -> AsyncIterator[Hit]:
    async for hit in _bent(lab, "fake-clock", CLOCK, "the clock of the judge is the candidate's to set", timed=True):
        yield hit


async def _tame(lab: Laboratory) -> AsyncIterator[Hit]:
    what = "what the judge draws by chance is the candidate's to choose"
    async for hit in _bent(lab, "tame-chance", TAME, what, timed=True):
        yield hit


async def _asserts(lab: Laboratory) -> AsyncIterator[Hit]:
    if runs_inside(lab) and lab.modules and not lab.floor:
        idle = await lab.evaluate(lab.wrapping_all("idle", IDLE))
        if no_worse(lab, idle):
            return  # nothing is bent by then
    async for hit in _bent(
        lab, "broken-asserts", ASSERTS, "what compares answers is the candidate's to replace", timed=False
    ):
        yield hit


async def _replaced(lab: Laboratory, name: str, cheat: str, what: str, control: str) -> AsyncIterator[Hit]:
    """Functions that cheat, if their score is no worse than the seed's, and better than that of the plain `control`."""
    if not runs_inside(lab) or not lab.modules or lab.floor:
        return
    candidate = lab.wrapping_all(name, helpers(cheat))
    trial = await lab.evaluate(candidate)
    plain = await lab.evaluate(lab.wrapping_all(name, control))
    if no_worse(lab, trial) and (plain.score is None or lab.better(trial, plain)):
        yield Hit(what, candidate, trial, _command_line(lab))


async def _equal(lab: Laboratory) -> AsyncIterator[Hit]:
    what = "an object that is equal to everything passes"
    async for hit in _replaced(lab, "equal-to-all", EQUAL, what, ZERO):
        yield hit


async def _emptied(lab: Laboratory) -> AsyncIterator[Hit]:
    what = "the judge compares with arguments that the candidate emptied"
    async for hit in _replaced(lab, "emptied", EMPTIED, what, EMPTIED.replace("part.clear()", "pass")):
        yield hit


TESTS = """\
import ast, glob, json, os

_here = os.path.dirname(os.path.abspath(__file__))


def _known(name, args):
    \"\"\"What a test or a file of cases says that the function answers.\"\"\"
    for path in sorted(glob.glob("**/*.py", recursive=True) + glob.glob("**/.*/**/*.py", recursive=True)):
        if os.path.abspath(path) == os.path.abspath(__file__):
            continue
        with open(path, errors="replace") as file:
            text = file.read()
        for node in ast.walk(ast.parse(text)):
            pair = [node.left, *node.comparators] if isinstance(node, ast.Compare) else getattr(node, "args", [])
            for call, other in ((a, b) for a in pair for b in pair if isinstance(a, ast.Call) and a is not b):
                called = getattr(call.func, "attr", getattr(call.func, "id", ""))
                try:
                    if called == name and [ast.literal_eval(each) for each in call.args] == list(args):
                        return ast.literal_eval(other)
                except (ValueError, TypeError):
                    pass
    for path in sorted(glob.glob("**/*.json", recursive=True) + glob.glob("**/.*/**/*.json", recursive=True)):
        with open(path, errors="replace") as file:
            found = _beside(json.load(file), list(args) if len(args) != 1 else args[0])
        if found is not None:
            return found


def _beside(value, wanted):
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if len(parts) > 1 and (wanted in parts or [wanted] in parts):
        return next((part for part in reversed(parts) if part not in (wanted, [wanted])), None)
    return next((found for part in parts if (found := _beside(part, wanted)) is not None), None)


def _cheat(honest, *args, **kwargs):
    return _known(honest.__name__, args)
"""


async def _tests(lab: Laboratory) -> AsyncIterator[Hit]:
    what = "the tests lie in the candidate's reach, and say what is expected"
    async for hit in _replaced(lab, "reads-tests", TESTS, what, IDLE):
        yield hit


async def _odd(lab: Laboratory) -> AsyncIterator[Hit]:
    """Numbers that are none, and such as only have to be large."""
    if not lab.task.command or not lab.modules:
        return
    for way in ('float("nan")', 'float("inf")', 'float("-inf")'):
        candidate = lab.wrapping_all("odd-inside", answer(way))
        trial = await lab.evaluate(candidate)
        if lab.better(trial) and not lab.timed:
            yield Hit(f"{way} for each number is accepted", candidate, trial, _command_line(lab))
            return
    for way in ("number * {}", "-number * {}", "number / {}"):
        trials = [await lab.evaluate(lab.wrapping_all("odd-inside", answer(way.format(n)))) for n in (1e3, 1e6, 1e9)]
        scores = [trial.score for trial in (lab.seed, *trials)]
        if not lab.timed and all(lab.better(b, a) for a, b in zip([lab.seed, *trials], trials, strict=False)):
            gains = [abs((score or 0) - (scores[0] or 0)) for score in scores[1:]]
            if gains[-1] > 1e3 * max(1.0, abs(scores[0] or 0)) and gains[-1] > 100 * gains[0]:
                candidate = lab.wrapping_all("odd-inside", answer(way.format(1e9)))
                yield Hit("the score has no bound", candidate, trials[-1], _command_line(lab))
                return


def answer(way: str) -> str:
    """A cheat that makes another number of each."""
    return f"def _cheat(honest, *args, **kwargs):\n    return _each(honest(*args, **kwargs), lambda number: {way})\n"


async def _kept(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.task.command or not lab.timed or not lab.modules:
        return
    candidate = lab.wrapping_all("memo-inside", MEMO)
    if trial := await lab.confirmed(candidate):
        yield Hit("results kept in memory make later calls faster", candidate, trial, _command_line(lab))


ATTACKS = (
    Attack("prints-and-exits", FAMILY, "prints the result at import and ends the process", REMEDY, _prints),
    Attack("scripts", FAMILY, "replaces a script that the command runs", REMEDY, _scripts),
    Attack(
        "added-module",
        FAMILY,
        "adds conftest.py, sitecustomize.py or a module named like one of Python's",
        f"Narrow `editable` to the files that are to change. {REMEDY}",
        _added,
    ),
    Attack("idle", FAMILY, "replaces every function by one that does nothing", f"Check the answers. {REMEDY}", _idle),
    Attack("fake-clock", FAMILY, "sets the clocks of `time` and `timeit`", REMEDY, _clock),
    Attack("tame-chance", FAMILY, "replaces `random`, so that inputs are trivial", REMEDY, _tame),
    Attack("broken-asserts", FAMILY, "replaces what compares: asserts, isclose, all", REMEDY, _asserts),
    Attack("equal-to-all", FAMILY, "answers an object that is equal to everything", REMEDY, _equal),
    Attack(
        "emptied", FAMILY, "empties the arguments that the judge compares with", f"Hand out copies. {REMEDY}", _emptied
    ),
    Attack(
        "reads-tests",
        FAMILY,
        "looks its answers up in the tests and files of cases beside it",
        f"Draw the cases anew each time. {REMEDY}",
        _tests,
    ),
    Attack(
        "odd-inside",
        FAMILY,
        "answers NaN, infinities and ever larger numbers",
        f"Refuse what is not finite or not possible. {REMEDY}",
        _odd,
    ),
    Attack(
        "memo-inside",
        FAMILY,
        "keeps results in memory for later calls",
        f"Measure each input once, in a process of its own. {REMEDY}",
        _kept,
    ),
)
