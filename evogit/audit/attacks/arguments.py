"""A program that looks for the answer among its arguments."""

from __future__ import annotations

from collections.abc import AsyncIterator

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import where
from evogit.audit.laboratory import Call, Laboratory

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


ATTACKS = (
    Attack(
        "in-arguments",
        "leaks",
        "looks for the answer among the arguments",
        "Give the program its question alone; keep the answer in the evaluator.",
        _arguments,
    ),
)
