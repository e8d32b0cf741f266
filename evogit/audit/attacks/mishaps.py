"""What an evaluator does with programs that fail, and with answers that fail it, that it executes, or that hold it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product

from evogit.audit.attack import Attack, Hit, first_of
from evogit.audit.attacks.answering import (
    CONSTANT,
    FALSE,
    NOTHING,
    ODD,
    changes,
    cheat,
    passes,
    tried_all,
    where,
)
from evogit.audit.candidate import title
from evogit.audit.laboratory import Laboratory

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


SCRIPT = """\
{title}import glob, sys

_number = len(glob.glob(".asked-*"))
open(f".asked-{{_number}}", "w").close()
if {when}:
    sys.exit({code})


"""
"""Ends a script before it has done anything, in some runs."""


async def _ending(lab: Laboratory) -> AsyncIterator[Hit]:
    """Scripts that end at once, with an error or without one."""
    whens = {"each run": "True", "all runs but the first": "_number", "every other run": "_number % 2"}
    for (says, when), code in product(whens.items(), (1, 0)):
        candidate = lab.beginning(SCRIPT.format(title=title("failing"), when=when, code=code))
        trial = await lab.evaluate(candidate) if candidate.files else None
        if trial and lab.better(trial) and await lab.confirmed(candidate):
            what = f"failing pays: ending at once with code {code} in {says} scores better than answering"
            yield Hit(what, candidate, trial, trial.line)
            return


async def _crashing(lab: Laboratory) -> AsyncIterator[Hit]:
    groups = {"nothing": NOTHING, "nan": ODD, "bools": FALSE, "constant": CONSTANT, "broken-rules": changes(lab)}
    async for says, candidate, trial in tried_all(lab, groups):  # most of them are known from these attacks
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
BARE = (
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'catch_warnings'][0]"
    ".__init__.__globals__['__builtins__']['print']('executed by the', 'evaluator')"
)
"""The same without a name, for evaluators that take the builtins away."""


async def _code(lab: Laboratory) -> AsyncIterator[Hit]:
    if not any('"' in repr([call.value]) or "'" in repr([call.value]) for call in lab.answered):
        return
    for says, body in {
        "an expression": f"return {CODE!r}",
        "an expression without a name": f"return {BARE!r}",
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
    if lab.seed.evaluation.cost.cpu > PATIENCE / 4:
        return
    for says, body in LONG.items():
        once = HALF.format(way="== 1", body=body)  # reading that many answers is no fault of the evaluator
        candidate = lab.cheating("slow", once, answers=True)
        if candidate is None:
            return
        trial = await lab.evaluate(candidate, total=PATIENCE)
        if trial.evaluation.status == "timeout" and "judging" in trial.evaluation.reason:
            yield Hit(f"{says} holds the evaluator for more than {PATIENCE:g} s", candidate, trial, where(trial.asked))
            return


ATTACKS = (
    Attack(
        "failing",
        "answers",
        "fails, in all calls or in some",
        "Let CandidateFailedError pass, or score a failed case as the worst; never leave it out.",
        first_of(_failing, _ending),
    ),
    Attack(
        "crash",
        "answers",
        "answers what an evaluator may stumble over",
        "Ask for the type with returns=, check lengths and zero before you index or divide, and raise Invalid.",
        _crashing,
    ),
    Attack(
        "code",
        "answers",
        "answers with code where a text is asked for",
        "Never eval() or exec() what a program says; read it with ast.literal_eval or a parser of your own.",
        _code,
    ),
    Attack(
        "slow",
        "answers",
        "answers what takes an evaluator long",
        "Bound lengths and numbers before loops over them.",
        _holding,
    ),
)
