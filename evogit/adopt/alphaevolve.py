"""Reads an AlphaEvolve folder: a marked `program.py` whose `evaluate(inputs)` scores itself, and what calls that.

Three layouts are published. `src/evaluate.py` (or `evaluator.py`) has a function that takes the candidate's text; or it
is a command with `--output-file`; or nothing is beside the program, and its own `evaluate` needs no inputs.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, name_of, reached
from evogit.adopt.notes import told_needs
from evogit.adopt.openevolve import PATH_CALLS, hands_to
from evogit.adopt.packages import packages
from evogit.adopt.sources import files_below, marked, too_large
from evogit.contained import file_at, find_text, has_file
from evogit.source.marks import blocks

EXPECTED = "src/program.py or program.py whose evaluate(inputs) scores itself, with src/evaluate.py (AlphaEvolve)"
PROGRAMS = ("src/program.py", "program.py", "src/initial_program.py", "initial_program.py")
EVALUATORS = ("src/evaluate.py", "src/evaluator.py", "evaluate.py", "evaluator.py")
INSTRUCTIONS = ("instructions.md", "problem_description.md", "src/instructions.md")
LISTS = ("requirements.txt", "src/requirements.txt")
OPTIONS = {"--input-program-file": "file", "--program-dir": "folder"}
"""The arguments with which their commands are told the program."""
METRIC = re.compile(r"(^|_)(METRIC|SCORE|OBJECTIVE)(_(NAME|KEY))?$")
"""The constant in which they name the score that is optimised."""
METRIC_NAME = re.compile(rb"METRIC|SCORE|OBJECTIVE")
RUNS_TEXT = frozenset({"exec", "compile"})
"""Functions that are given the text of a program."""
TIMEOUT = 300.0


class _Parts(Struct, frozen=True):
    """Paths of a folder's program and evaluator, and how the evaluator is called.

    Attributes:
        kind: what the function takes ("mapping", "text", "path"); "command"; "self" where the program evaluates itself.
        called: the function's name, or the option of the command.
    """

    program: str
    evaluator: str
    kind: str
    called: str


def read_alphaevolve(place: Path) -> ForeignTask | None:
    """The task in a folder, or of a program or an evaluator in it; None where it is none."""
    folder = _root(place)
    parts = _parts(folder)
    if parts is None or (place.is_file() and place not in (folder / parts.program, folder / parts.evaluator)):
        return None
    files = {**files_below(folder), parts.program: file_at(folder, parts.program)}
    used = {path: files[path] for path in reached(files, {parts.program, parts.evaluator}) if path in files}
    listed = {path: files[path] for path in LISTS if path in files}
    seed = {parts.program: files[parts.program]}
    top = {path: file for path, file in files.items() if "/" not in path}
    metrics = list(dict.fromkeys([*_metrics({**used, **top})] or [*_metrics(files)]))
    about = {"evaluator": parts.evaluator, "kind": parts.kind, "called": parts.called, "metrics": metrics}
    text = next(filter(None, (find_text(folder, path) for path in INSTRUCTIONS)), "")
    goal = text.strip() or f"Improve the program of {folder.name}."
    program = f"The program is `{parts.program}`. A higher score is better."
    return ForeignTask(
        system="AlphaEvolve",
        name=name_of(folder),
        goal="\n\n".join(filter(None, [goal, program, marked(seed)])),
        editable=(parts.program,),
        seed=seed,
        theirs=files,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_alphaevolve.py", parts.program, json.dumps(about)]),
        timeout=TIMEOUT,
        packages=packages({**used, **listed}),
        notes=(*too_large(folder, files), *told_needs(used, files)),
        why_inside="its evaluator runs the program in its own process",
    )


def lacking(place: Path) -> str:
    """Return a sentence on why a part of such a folder is no task; empty if there is none, or it is one."""
    folder = _root(place)
    program = _program(folder)
    evaluators = [path for path in EVALUATORS if _of_candidate(find_text(folder, path))[1] == "mapping"]
    is_other = place.is_file() and place not in [folder / path for path in (program, *evaluators) if path]
    if is_other or _parts(folder) or not (program or evaluators):
        return ""
    if not program:
        return f"{evaluators[0]} evaluates candidates of AlphaEvolve, and none of {', '.join(PROGRAMS)} has marks"
    named = [path for path in EVALUATORS if path != program and has_file(folder, path)]
    if named:
        return f"{named[0]} has no function that takes a candidate of AlphaEvolve, by its files, its text or its path"
    return (
        f"{program} scores itself by evaluate({_parameter(folder, program)}), as programs of AlphaEvolve do, and "
        "nothing beside it says with which inputs: write src/evaluate.py, with a function of the candidate"
    )


def _root(place: Path) -> Path:
    """The folder of the task at a path: that above `src`."""
    folder = place.parent if place.is_file() else place
    return folder.parent if folder.name == "src" and any(has_file(folder.parent, path) for path in PROGRAMS) else folder


def _parts(folder: Path) -> _Parts | None:
    if not (program := _program(folder)):
        return None
    for evaluator in (path for path in EVALUATORS if path != program and has_file(folder, path)):
        text = find_text(folder, evaluator)
        option = next((option for option in OPTIONS if option in text and "--output-file" in text), "")
        name, kind = _of_candidate(text)
        if name:
            return _Parts(program, evaluator, kind, name)
        if option:
            return _Parts(program, evaluator, "command", option)
    return None if _parameter(folder, program) else _Parts(program, program, "self", "evaluate")


def _program(folder: Path) -> str:
    """The first program that has marks; empty where none has, or where none could be scored by a published layout."""
    marked = [path for path in PROGRAMS if has_file(folder, path) and blocks(file_at(folder, path)[0])]
    for path in marked:
        if _functions(find_text(folder, path)).get("evaluate"):
            return path
    takes = any(_of_candidate(find_text(folder, path))[1] == "mapping" for path in EVALUATORS)
    return marked[0] if marked and takes else ""


def _tree(text: str) -> ast.Module | None:
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(text)
    return None


def _functions(text: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return name -> function at the top level of a source."""
    nodes = tree.body if (tree := _tree(text)) else []
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _of_candidate(text: str) -> tuple[str, str]:
    """The function that takes a candidate, and as what: a "mapping" with its files, its "text" or its "path".

    Both are empty where there is none.
    """
    for name, function in _functions(text).items():
        words = {node.value for node in ast.walk(function) if isinstance(node, ast.Constant)}
        required = function.args.args[: len(function.args.args) - len(function.args.defaults)]
        if len(required) != 1:
            continue
        if {"content", "files"} <= words:
            return name, "mapping"
        if hands_to(function, required[0].arg, RUNS_TEXT):
            return name, "text"
        if name.startswith("evaluat") and hands_to(function, required[0].arg, PATH_CALLS):
            return name, "path"
    return "", ""


def _parameter(folder: Path, program: str) -> str:
    """The parameter that a program's `evaluate` reads; empty where it reads none."""
    function = _functions(find_text(folder, program)).get("evaluate")
    names = [each.arg for each in function.args.args] if function else ["inputs"]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} if function else set(names)
    return ", ".join(name for name in names if name in used)


def _metrics(files: Mapping[str, File]) -> Iterator[str]:
    """Yield the texts that sources call METRIC: which of several scores is optimised."""
    for path, (data, _) in sorted(files.items()):
        tree = _tree(data.decode(errors="replace")) if path.endswith(".py") and METRIC_NAME.search(data) else None
        for node in tree.body if tree else ():
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                names = (target.id for target in node.targets if isinstance(target, ast.Name))
                if isinstance(node.value.value, str) and any(map(METRIC.search, names)):
                    yield node.value.value
