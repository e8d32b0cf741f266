"""A program that looks for the answer among its arguments."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from evogit.audit.attack import Attack, Hit, first_of
from evogit.audit.attacks.answering import where
from evogit.audit.candidate import title
from evogit.audit.laboratory import Call, Laboratory, read_printed
from evogit.audit.parts import scalars, spelled
from evogit.audit.rules import kind

DEEP = 3
"""Fields of fields that are looked into."""
MOST = 12
"""Parts of an argument, or files beside an input, that are tried."""
BESIDE = """\
{title}import os, sys


def _others():
    found = [os.path.relpath(os.path.join(at, name)) for at, _, names in os.walk(".") for name in names]
    return [path for path in found if path not in sys.argv and path not in {own!r}]


def _near(path):
    words = [word for word in sys.argv[1:] if os.path.exists(word)]
    same = [word for word in words if os.path.dirname(path) == word or path.startswith(os.path.splitext(word)[0])]
    return bool(same), int(os.path.getmtime(path)), path  # of what was written together, by name


for _path in sorted(_others(), key=_near, reverse=True)[{number} : {number} + 1]:
    with open(_path) as _file:
        print(_file.read(), end="")
    sys.exit()


"""
ANSWERS = (
    "answer",
    "expected",
    "output",
    "result",
    "target",
    "want",
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
    for place, part in enumerate(calls[0].arguments):
        for path, value in list(_parts(part))[:MOST]:
            at = f"{given}[{place}]" + "".join(f"[{key!r}]" for key in path)
            found |= _taken(at, f"argument {place + 1}{''.join(f'[{key!r}]' for key in path)}", value, calls[0].value)
    for key in calls[0].given[1]:
        if key.lower() in ANSWERS:
            found[f"the argument {key!r}"] = f"kwargs[{key!r}]"
    return found


def _parts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """An argument, its fields and their fields."""
    yield path, value
    if isinstance(value, dict) and len(path) < DEEP:
        for key, part in value.items():
            yield from _parts(part, (*path, key))


def _taken(at: str, says: str, value: Any, answer: Any) -> dict[str, str]:
    """How an answer may be taken from a part of the arguments."""
    if isinstance(value, list) and isinstance(answer, list) and len(value) > len(answer) > 0:
        return {f"the end of {says}": f"{at}[-{len(answer)}:]", f"the begin of {says}": f"{at}[:{len(answer)}]"}
    if isinstance(value, list) and value and kind(value[-1]) == kind(answer):
        return {f"the last of {says}": f"{at}[-1]", f"the first of {says}": f"{at}[0]"}
    return {says: at} if kind(value) == kind(answer) and value not in ([], {}) else {}


async def _beside(lab: Laboratory) -> AsyncIterator[Hit]:
    """A script that prints a file that came with its input."""
    runs = [call for call in lab.answered if call.kind == "run"]
    most = max((len(call.arguments[0]["files"]) for call in runs), default=0)
    for number in range(min(most, MOST)):
        code = BESIDE.format(title=title("in-arguments"), own=sorted(lab.files), number=number)
        candidate = lab.beginning(code)
        trial = await lab.evaluate(candidate) if candidate.files else None
        if trial and lab.better(trial):
            names = {name for call in runs for name in call.arguments[0]["files"]}
            what = f"a file that the program is given beside its input ({', '.join(sorted(names)[:2])}) is the answer"
            yield Hit(what, candidate, trial, where(lab.answered))
            return


QUOTED = """\
{title}import os, re, sys

with open(f"/proc/{{os.getppid()}}/cmdline") as _file:
    _quoted = [text for _, text in re.findall(r"(['\\"])(.*?)\\1", _file.read(), re.DOTALL)]
if len(_quoted) > {number}:
    print(_quoted[{number}])
    sys.exit()


"""
SHELLS = ("sh", "bash")


async def _on_the_line(lab: Laboratory) -> AsyncIterator[Hit]:
    """A script that prints what the shell which runs it was told in quotes."""
    runs = [call for call in lab.answered if call.kind == "run" and call.arguments[0]["argv"][0] in SHELLS]
    for number in range(3) if runs else ():
        candidate = lab.beginning(QUOTED.format(title=title("in-arguments"), number=number))
        trial = await lab.evaluate(candidate) if candidate.files else None
        if trial and lab.better(trial):
            what = "the command line of the shell that runs the program, in /proc, holds the answer"
            yield Hit(what, candidate, trial, where(runs))
            return


SAYS = """\
{title}import json, sys

with open({source!r} or 0) as _file:
    _value = json.load(_file)
for _key in {place!r}:
    _value = _value[_key]
_text = _value if isinstance(_value, str) else json.dumps(_value)
for _name in {out!r}:
    with open(_name, "w") as _file:
        _file.write(_text)
print(_text)
sys.exit()


"""


async def _in_its_input(lab: Laboratory) -> AsyncIterator[Hit]:
    """A script that prints a field of the JSON that it is given, on stdin or in a file."""
    runs = [call for call in lab.answered if call.kind == "run"]
    asked: dict[str, Any] = runs[0].arguments[0] if runs else {"stdin": "", "files": {}, "out": []}
    for source, text in [("", asked["stdin"]), *asked["files"].items()]:
        value = read_printed(text)
        for place in list(scalars(value))[: MOST * 2] if isinstance(value, dict) else ():
            code = SAYS.format(title=title("in-arguments"), source=source, place=place, out=asked["out"])
            candidate = lab.beginning(code)
            trial = await lab.evaluate(candidate) if candidate.files else None
            named = str(place[-1]).lower() in ANSWERS[:-1]
            if trial and (lab.ideal(trial) or (named and lab.better(trial))):
                what = f"the field {spelled(place)} of what the program reads is the answer"
                yield Hit(what, candidate, trial, where(runs))
                return


async def _arguments(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.seed.asked or lab.timed:
        return
    async for hit in first_of(_beside, _on_the_line, _in_its_input)(lab):
        yield hit
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
