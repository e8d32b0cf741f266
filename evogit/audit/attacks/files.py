"""A program that reads the files beside it, and those of the evaluator."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import many_inputs, where
from evogit.audit.laboratory import Laboratory

LABELS = 4
"""Different texts of a column that may be the names of what is true and false."""
WORD = re.compile(r"-?\d+\.?\d*|\w+")
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
            for search in (_table_in, _on_lines):
                async for hit in search(lab, path, content):
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


LINE = """\
import re


def _words(text):
    return re.findall(r"-?\\d+\\.?\\d*|\\w+", text)


def _cheat(honest, *args, **kwargs):
    value, wanted = honest(*args, **kwargs), _words(str([*args, *kwargs.values()][{first}:{last}]))
    with open({path!r}) as file:
        lines = file.read().splitlines()
    for line in lines:
        words = _words(line)
        at = next((n for n in range(len(words)) if words[n : n + len(wanted)] == wanted), -1)
        rest = words[at + len(wanted) :] if at >= 0 else []
        if rest and isinstance(value, bool):
            return rest[0].lower() in ("true", "yes", "1")
        if rest and isinstance(value, str):
            return line[line.rindex(wanted[-1]) + len(wanted[-1]) :].strip(" \\t,;:|='\\"->)]")
        try:
            if isinstance(value, list):
                return [type(part)(word) for part, word in zip(value, rest)]
            return type(value)(rest[0])
        except (ValueError, TypeError, IndexError):
            pass
    return value
"""


async def _on_lines(lab: Laboratory, path: str, content: bytes) -> AsyncIterator[Hit]:
    """A text that has what the program is asked on a line, and the answer after it."""
    text = content.decode(errors="replace")
    words = [set(WORD.findall(line)) for line in text.splitlines()]
    count = len(lab.answered[0].arguments)
    for first, last in dict.fromkeys([(0, count), *((place, place + 1) for place in range(count))]):
        asked = [set(WORD.findall(str(call.arguments[first:last]))) for call in lab.answered]
        if not any(each and any(each < line for line in words) for each in asked):
            continue
        code = LINE.format(path=path, first=first, last=last)
        candidate = lab.cheating("in-files", code, answers=True)
        trial = await lab.evaluate(candidate) if candidate else None
        if candidate and trial and lab.better(trial):
            yield Hit(f"{path}, which programs and agents see, holds the answers", candidate, trial, where(trial.asked))
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
        "in-files",
        "leaks",
        "looks for its inputs in the files beside it",
        "Move such files into the evaluator's folder, or name them in `withheld`.",
        _files,
    ),
    Attack(
        "reads-evaluator",
        "leaks",
        "reads the evaluator's files, and looks for its process",
        "Evaluate with a sandbox (--sandbox docker or bubblewrap), and keep the repository out of /usr.",
        _reach,
    ),
)
