"""The attacks that need no understanding of the goal, and what `evogit check` makes of them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from itertools import product
from typing import Any

from evogit.audit.attack import MODEL, Attack, Finding, Hit, audited
from evogit.audit.candidate import SEED, AttackCandidate, above, cheat, template, title
from evogit.audit.laboratory import SECOND, Call, Laboratory, WatchedEvaluation, evaluator_texts, reads_clock, words_of
from evogit.config import Task
from evogit.contained import find_text
from evogit.core import UsageError
from evogit.lazy_exports import gathered
from evogit.sandbox.providers import isolating

QUICK = ("memo", "kept-on-disk", "hard-coded")  # the attacks on timed tasks that `evogit check` tries, too
MAX_TABLE_BYTES = 1 << 20  # the size of answers that are written into a candidate
MAX_FILES = 40  # modules that an attack is written into at once, before it is tried in one alone
MAX_JUDGES = 2  # commands of the evaluator's own whose output is forged
LUCK_TRIES = 4
MEASURE = "Time with program.measure, which gives each measurement a session and files of its own."
ISOLATED = f"Use --sandbox {' or '.join(isolating())}."
OUTSIDE = (
    'Judge from outside: kind = "python", whose evaluate() calls the candidate for answers and scores them where '
    "its code cannot reach (docs/tasks.md, Evaluating the same repository from outside)."
)


def chosen(names: Collection[str]) -> list[Attack]:
    """Return the attacks of these names, or all if there are none; `MODEL` is not one of them.

    Raises:
        UsageError: an attack does not exist.
    """
    attacks: list[Attack] = sorted(gathered("evogit.audit", "ATTACKS"), key=lambda attack: attack.is_last)
    if unknown := set(names) - {MODEL, *(attack.name for attack in attacks)}:
        raise UsageError(f"expected attacks of `evogit audit --list`, got {', '.join(sorted(unknown))}")
    return [attack for attack in attacks if not names or attack.name in names]


async def gamed(task: Task, provider: str, seconds: float) -> list[Finding]:
    """Return how a seed that remembers or predicts gains, if scores are made of times.

    Raises:
        EvoGitError: when the evaluator or the sandbox cannot be used at all.
    """
    if not reads_clock(task) or task.judged == "pairs":
        return []
    async with Laboratory(task, provider, seconds=seconds) as lab:
        if not lab.seed.evaluation.ok:
            return []
        return [finding async for result in audited(lab, chosen(QUICK)) for finding in result.findings]


async def _tried(
    lab: Laboratory, name: str, bodies: Mapping[str, str]
) -> AsyncIterator[tuple[str, AttackCandidate, WatchedEvaluation]]:
    """Evaluate the seed with other answers; yield what the evaluator notices."""
    for what, body in bodies.items():
        candidate = lab.cheating(name, cheat(body))
        if candidate is None:
            return
        trial = await lab.evaluate(candidate)
        if trial.answers != lab.seed.answers:
            yield what, candidate, trial


def _line(calls: list[Call]) -> str:
    return calls[0].line if calls else ""


# --- answers that cannot have earned anything -------------------------------------------------------------------

NOTHING = {
    "nothing": "return None",
    "an empty answer": "return type(honest(*args, **kwargs))()",
    "an empty text": 'return ""',
    "an empty list": "return []",
}
EMPTY: tuple[Any, ...] = (None, "", [], {}, "null", "None", "[]", "{}")  # answers that say nothing, also printed ones
EVERY_NUMBER = "return _each(honest(*args, **kwargs), lambda number: {})"
ODD = {
    "NaN": EVERY_NUMBER.format('float("nan")'),
    "infinity": EVERY_NUMBER.format('float("inf")'),
    "minus infinity": EVERY_NUMBER.format('float("-inf")'),
    'the text "nan" for numbers': EVERY_NUMBER.format('"nan"'),
    'the text "inf" for numbers': EVERY_NUMBER.format('"inf"'),
    'the text "-inf" for numbers': EVERY_NUMBER.format('"-inf"'),
}
CONSTANT = {f"{number} for all numbers": EVERY_NUMBER.format(number) for number in (0, 1, 2)}


async def _nothing(lab: Laboratory) -> AsyncIterator[Hit]:
    async for what, candidate, trial in _tried(lab, "nothing", NOTHING):
        if lab.no_worse(trial) and trial.asked and all(answer in EMPTY for answer in trial.answers):
            yield Hit(f"answering {what} is accepted", candidate, trial, trial.line)
            return


async def _odd(lab: Laboratory) -> AsyncIterator[Hit]:
    """A score that 7 for each number has, too, is not one that NaN gets: numbers may be names, such as of groups."""
    plain = [trial.score async for _, _, trial in _tried(lab, "nan", {"7 for each number": EVERY_NUMBER.format(7)})]
    async for what, candidate, trial in _tried(lab, "nan", ODD):
        if lab.no_worse(trial) and (lab.better(trial) or trial.score not in plain):
            yield Hit(f"{what} is accepted", candidate, trial, trial.line)
            return


async def _constant(lab: Laboratory) -> AsyncIterator[Hit]:
    trials = [result async for result in _tried(lab, "constant", CONSTANT)]
    if len(trials) == len(CONSTANT) and len({trial.score for _, _, trial in trials}) == 1:
        what, candidate, trial = trials[0]
        if lab.better(trial):
            yield Hit(f"{what} scores as well as any constant, and better than the seed", candidate, trial, trial.line)


PART = """\
global _calls
    _calls = globals().get("_calls", 0) + 1
    if _calls {when}:
        {body}
    return honest(*args, **kwargs)"""
CALLS = {"all calls": "", "every other call": "% 2 == 0", "all calls but the first": "> 1", "the first call": "== 1"}
ENDING = template("ending.py.txt")
"""Ends a script before it has done anything, in some runs."""
RUNS = {"each run": "True", "all runs but the first": "_number", "every other run": "_number % 2"}


async def _failing(lab: Laboratory) -> AsyncIterator[Hit]:
    for what, candidate in _failures(lab):
        trial = await lab.evaluate(candidate)
        always = trial.evaluation.ok and not trial.asked and lab.no_worse(trial) and not lab.floor
        if always or (lab.better(trial) and await lab.confirmed(candidate)):
            yield Hit(f"failing pays: {what} scores better than answering", candidate, trial, trial.line)
            return


def _failures(lab: Laboratory) -> Iterator[tuple[str, AttackCandidate]]:
    """Yield candidates that fail in all calls or runs, or in some."""
    bodies = {"raising an exception": 'raise ValueError("no answer")', "answering nothing": "return None"}
    if None in lab.seed.answers:
        del bodies["answering nothing"]
    for (what, body), (where, when) in product(bodies.items(), CALLS.items()):
        if candidate := lab.cheating("failing", cheat(PART.format(when=when, body=body))):
            yield f"{what} in {where}", candidate
    for (where, when), code in product(RUNS.items(), (1, 0)):
        if candidate := lab.beginning(ENDING.format(title=title("failing"), when=when, code=code)):
            yield f"ending at once with code {code} in {where}", candidate


# --- inputs and results that a candidate can know before --------------------------------------------------------

TABLE = template("table.py.txt")
MEMO = TABLE.format(table="{}", otherwise="_TABLE.setdefault(key, honest(*args, **kwargs))")
DISK = template("disk.py.txt")
SCRIPT_DISK = template("script_disk.py.txt")


def _table(calls: list[Call], otherwise: str = "honest(*args, **kwargs)") -> str:
    """Return a cheat that knows the answers to these calls by heart; empty if they are too many, or none."""
    answers = {re.split(r"[:.]", call.target)[-1] + call.key: call.value for call in calls if call.kind != "run"}
    text = json.dumps(answers)
    return TABLE.format(table=text, otherwise=otherwise) if answers and len(text) < MAX_TABLE_BYTES else ""


async def _memo(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.timed:
        return
    candidate = lab.wrapping_all("memo", MEMO) if lab.task.command else lab.cheating("memo", MEMO)
    if candidate and (trial := await lab.confirmed(candidate)):
        line = _command_line(lab) or _line(lab.seed.asked)
        yield Hit("results kept in memory make later calls faster", candidate, trial, line)


async def _disk(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.timed:
        return
    code = SCRIPT_DISK.format(title=title("kept-on-disk"))
    candidate = lab.beginning(code) if lab.scripts else lab.cheating("kept-on-disk", DISK)
    if candidate and (trial := await lab.confirmed(candidate)):
        yield Hit("results kept in files make later calls faster", candidate, trial, _line(lab.seed.asked))


async def _hard_coded(lab: Laboratory) -> AsyncIterator[Hit]:
    """Answers written down in one evaluation, where inputs are drawn with one secret, and used with another one."""
    code = _table(lab.seed.asked) if lab.timed else ""
    candidate = lab.cheating("hard-coded", code) if code else None
    if candidate and (trial := await lab.confirmed(candidate, secret=SECOND)):
        what = "inputs are the same in each evaluation, and their answers can be written down"
        yield Hit(what, candidate, trial, _line(lab.seed.asked))


async def _holdout(lab: Laboratory) -> AsyncIterator[Hit]:
    """Inputs that are drawn are equal by chance; a single one of train is the task itself."""
    if "holdout" not in lab.task.splits or lab.split == "holdout":
        return
    held = await lab.evaluate(SEED, split="holdout")
    other = await lab.evaluate(SEED, secret=SECOND)
    train, inputs, drawn = ({call.key for call in trial.asked} for trial in (lab.seed, held, other))
    if len(train) == 1 or not inputs <= train or drawn != train:
        return
    code = _table(lab.seed.asked, '_TABLE["unknown"]')
    candidate = lab.cheating("holdout", code) if code else None
    trial = await lab.evaluate(candidate, split="holdout") if candidate else None
    if candidate and trial and trial.evaluation.ok:
        what = f"the {len(inputs)} inputs of the holdout are inputs of {lab.split}, and can be learnt"
        yield Hit(what, candidate, trial, _line(held.asked), split="holdout", seed=held)


REACH = template("reach.py.txt")


async def _reach(lab: Laboratory) -> AsyncIterator[Hit]:
    """The evaluator's files, and its process."""
    paths = [str(lab.task.evaluator_folder / name) for name in evaluator_texts(lab.task)]
    candidate = lab.cheating("reads-evaluator", REACH.format(paths=paths)) if lab.task.judged == "outside" else None
    trial = await lab.evaluate(candidate) if candidate else None
    if candidate and trial and (match := re.search(rb"reads the evaluator: (\S+)", trial.evidence.stdout)):
        yield Hit(f"the program reads {match[1].decode(errors='replace')}", candidate, trial)


# --- scores that depend on something else than the candidate ----------------------------------------------------


async def _luck(lab: Laboratory) -> AsyncIterator[Hit]:
    """The same candidate, the same answers, other scores, although the task says that there is no noise."""
    if lab.timed or lab.task.repeats or lab.seed.score is None:
        return
    trials = [lab.seed, lab.again, *[await lab.evaluate(SEED, anew=True) for _ in range(LUCK_TRIES - 2)]]
    other = await lab.evaluate(SEED, process="other")
    if other.score == lab.seed.score:
        return  # what differs later is memory: `state`
    questions = [call.key for call in lab.seed.asked]
    for trial in (*trials, other):
        if trial.answers != lab.seed.answers and [call.key for call in trial.asked] == questions:
            lab.notes.append("the seed answers the same questions in different ways: it draws numbers without a seed")
            return
    values = [trial.evaluation.metrics[lab.task.primary.name] for trial in trials if trial.score is not None]
    what = f"the seed scores from {min(values):g} to {max(values):g} in {len(trials)} evaluations, and repeats is 0"
    if len(set(values)) == 1:
        what = "the seed scores otherwise in another process of the evaluator: the order of a set, or hash()"
    best = max((*trials, other), key=lambda trial: trial.score or float("-inf"))
    yield Hit(what, SEED, best, best.line)


async def _state(lab: Laboratory) -> AsyncIterator[Hit]:
    """A seed that is evaluated after others, and one that is evaluated first."""
    if lab.timed or lab.seed.score is None or (await lab.evaluate(SEED, process="other")).score != lab.seed.score:
        return
    async for _ in _tried(lab, "state", CONSTANT):
        pass  # other candidates, which the evaluator must not remember
    later = await lab.evaluate(SEED, anew=True)
    if later.score != lab.seed.score:
        what = "the evaluator remembers: the same candidate scores otherwise after others were evaluated"
        yield Hit(what, SEED, later, later.line)


# --- a judge that runs beside the candidate ---------------------------------------------------------------------

EXITS = template("exits.py.txt")
JUNIT = '<testsuite name="t" tests="1" failures="0"><testcase classname="t" name="t"/></testsuite>'
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(e-?\d+)?")
FORGED = ("1e9", "0", "1.0", "0.000001", "100", "\\g<0>")
"""Numbers that are written in the place of all others; at last the seed's own, which no work was done for."""


def _judges(lab: Laboratory) -> list[Call]:
    """Return commands of the evaluator's own that run beside the candidate, and none of the candidate's files."""
    runs = [call for call in lab.seed.asked if call.kind == "run"]
    return [call for call in runs if not any(word in lab.editable for word in words_of(call.arguments[0]["argv"]))]


def _forgeries(lab: Laboratory) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield outputs and reports as the judge reads them, with other numbers; none if the judge is out of reach."""
    outputs: list[tuple[str, list[str], str]] = []
    if lab.task.command:
        reports = [read.what for read in lab.task.command.reads.values() if read.how == "junit"]
        outputs.append(("\n".join(lab.seed.evidence.feedback.values()), reports, JUNIT))
    for call in list({call.target: call for call in _judges(lab)}.values())[:MAX_JUDGES]:
        outputs.append((call.value, call.arguments[0]["out"], ""))
    for text, files, content in outputs:
        for number in FORGED:
            printed = NUMBER.sub(number, text).rstrip("\n")
            yield printed, dict.fromkeys(files, content or printed)


async def _prints(lab: Laboratory) -> AsyncIterator[Hit]:
    for printed, reports in _forgeries(lab) if lab.modules else ():
        code = EXITS.format(title=title("prints-and-exits"), printed=f"\n{printed}\n".encode(), files=reports)
        candidate = AttackCandidate({path: above(lab.files[path], code) for path in lab.modules[:MAX_FILES]})
        trial = await lab.evaluate(candidate)
        if lab.no_worse(trial):
            what = "code of the candidate prints the result and ends the process that was to measure it"
            yield Hit(what, candidate, trial, _command_line(lab))
            return


async def _scripts(lab: Laboratory) -> AsyncIterator[Hit]:
    """Files that the command runs, other than Python, replaced by some that print the numbers."""
    for path in lab.editable if lab.task.command else ():
        for printed, _ in _forgeries(lab) if _script(path, "") else ():
            candidate = AttackCandidate({path: _script(path, printed).encode()})
            trial = await lab.evaluate(candidate)
            if lab.no_worse(trial):
                what = f"{path}, which candidates may change, prints the result"
                yield Hit(what, candidate, trial, _command_line(lab))
                return


def _script(path: str, printed: str) -> str:
    """Return a file that prints a text in the place of a script; empty if it is not one, or Python."""
    escaped = printed.replace("\\", "\\\\").replace("\n", "\\n")
    command = f"printf '%b\\n' {shlex.quote(escaped)}"
    if path.endswith(".sh"):
        return f"#!/bin/sh\n{command}\nexit 0\n"
    if path.endswith(".js"):
        return f"console.log({json.dumps(printed)});\nprocess.exit(0);\n"
    if path.endswith("Makefile"):
        return ".DEFAULT all test check bench:\n\t@" + command.replace("$", "$$") + "\n"
    return json.dumps({"scripts": {"test": command}}) if path.endswith("package.json") else ""


async def _idle(lab: Laboratory) -> AsyncIterator[Hit]:
    if lab.floor or not (lab.task.command or _judges(lab)):
        return
    if candidate := lab.wrapping_all("idle", cheat("return None")):
        trial = await lab.evaluate(candidate)
        if lab.no_worse(trial):
            yield Hit("functions that do nothing pass", candidate, trial, _command_line(lab))


def _command_line(lab: Laboratory) -> str:
    if not lab.task.command:
        return _line(_judges(lab))
    for number, line in enumerate(find_text(lab.task.folder, lab.task.evaluator.name).splitlines(), 1):
        if re.match(r"\s*command\s*=", line):
            return f"{lab.task.evaluator.name}:{number}"
    return ""


ATTACKS: tuple[Attack, ...] = (
    Attack("luck", "comes again until it is lucky", "Draw with `rng`; for real noise set `repeats`.", _luck),
    Attack("holdout", "knows train by heart, and is asked the holdout", "Give the holdout its own inputs.", _holdout),
    Attack(
        "reads-evaluator",
        "reads the evaluator's files and process",
        ISOLATED,
        _reach,
    ),
    Attack("memo", "keeps results in memory for later calls", MEASURE, _memo),
    Attack("kept-on-disk", "keeps results in files for later calls", MEASURE, _disk),
    Attack(
        "hard-coded", "has answers of an earlier evaluation", "Draw the inputs with evaluate()'s `rng`.", _hard_coded
    ),
    Attack("nothing", "answers None, an empty list or text", "Check type and length: returns=TYPE, len().", _nothing),
    Attack(
        "nan", "answers NaN and infinities, also as text", "Ask for returns=float, and refuse what is not finite.", _odd
    ),
    Attack("constant", "answers 0, 1 or 2 for every number", "Check each answer against its input.", _constant),
    Attack("failing", "fails, in all calls or in some", "Let CandidateFailedError pass; never skip a case.", _failing),
    Attack("prints-and-exits", "prints the result at import and ends the process", OUTSIDE, _prints),
    Attack("scripts", "replaces a script that the command runs", OUTSIDE, _scripts),
    Attack("idle", "replaces every function by one that does nothing", f"Check the answers. {OUTSIDE}", _idle),
    Attack(
        "state",
        "is evaluated after others",
        "Keep nothing between evaluations: no global, no file.",
        _state,
        is_last=True,
    ),
)
"""The attacks of this file, in the order in which they are tried; other files of this folder may have more."""
