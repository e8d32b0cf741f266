"""Reads a ShinkaEvolve folder: `initial.*`, and `evaluate.py` that leaves `metrics.json` and `correct.json`."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, name_of, reached
from evogit.adopt.outside import shinka_outside
from evogit.adopt.sources import file_at, files_below, marked, packages, repeats, requirements
from evogit.adopt.yaml_subset import at, read_yaml

EXPECTED = "initial.* with evaluate.py (ShinkaEvolve)"
TIMEOUT = 600.0
"""Seconds of one evaluation where nothing is said."""
SAID = re.compile(r"\btime\s*[=:]\s*[\"']?(\d+):(\d\d):(\d\d)")
MESSAGE = "task_sys_msg"
"""What they call the instructions."""
STARTS = re.compile(r"(^|/)run[^/]*\.py$")
"""Files that begin a run of theirs, which no evaluator needs."""


def read_shinka(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where it is no such folder."""
    programs = sorted(path for path in folder.glob("initial.*") if path.is_file())
    if not programs or not (folder / "evaluate.py").is_file():
        return None
    program = programs[0].name
    seed = {program: file_at(programs[0])}
    found = files_below(folder)
    theirs = {path: file for path, file in found.items() if not STARTS.search(path)}
    used = {path: file for path, file in theirs.items() if path in reached(theirs, {"evaluate.py", program})}
    goal = next(_messages(found), "") or f"Improve the program of {folder.name}."
    outside, why = shinka_outside(program, theirs["evaluate.py"])
    ends = f"The program is `{program}`. A higher `combined_score` is better."
    return ForeignTask(
        system="ShinkaEvolve",
        name=name_of(folder),
        goal="\n\n".join(filter(None, [goal, ends, marked(seed)])),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_shinka.py", program]),
        timeout=_timeout(found),
        packages=packages({**used, **{path: file for path, file in theirs.items() if path.endswith(".txt")}}),
        repeats=repeats(used),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, "evaluate.py"),
    )


def _messages(files: Mapping[str, File]) -> Iterator[str]:
    """What agents are told, as the files that begin a run say it, the longest one first."""
    found = [*_in_python(files), *_in_yaml(files)]
    yield from sorted((text.strip() for text in found if " " in text.strip()), key=len, reverse=True)


def _in_python(files: Mapping[str, File]) -> Iterator[str]:
    for path, (data, _) in sorted(files.items()):
        if not path.endswith(".py") or MESSAGE.encode() not in data:
            continue
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        texts = {name: value for node in ast.walk(tree) for name, value in _assigned(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == MESSAGE:
                yield from _texts(node.value, texts)
        yield from (text for name, text in texts.items() if MESSAGE in name)


def _assigned(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        yield from ((target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name))


def _texts(value: ast.expr, known: Mapping[str, str]) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.Name) and value.id in known:
        yield known[value.id]


def _in_yaml(files: Mapping[str, File]) -> Iterator[str]:
    for path, (data, _) in sorted(files.items()):
        if path.endswith((".yaml", ".yml")):
            values: Any = read_yaml(data.decode(errors="replace"))
            for said in (at(values, "evo_config", MESSAGE), at(values, MESSAGE)):
                if isinstance(said, str):
                    yield said


def _timeout(files: Mapping[str, File]) -> float:
    for path, (data, _) in sorted(files.items()):
        if path.endswith((".py", ".yaml", ".yml")) and (match := SAID.search(data.decode(errors="replace"))):
            hours, minutes, seconds = map(int, match.groups())
            return float(3600 * hours + 60 * minutes + seconds) or TIMEOUT
    return TIMEOUT
