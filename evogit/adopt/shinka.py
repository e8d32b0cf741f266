"""Reads a ShinkaEvolve folder: `initial.*`, and `evaluate.py` that leaves `metrics.json` and `correct.json`."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, name_of, reached
from evogit.adopt.outside import shinka_outside
from evogit.adopt.sources import file_at, files_below, marked, packages, repeats, requirements, too_large
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
    evaluated_with = reached(found, {"evaluate.py", program})
    used = {path: file for path, file in found.items() if path in evaluated_with}
    theirs = {path: file for path, file in found.items() if path in used or not STARTS.search(path)}
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
        notes=too_large(folder, found),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, "evaluate.py"),
    )


def lacking(folder: Path) -> str:
    """Why a folder with an evaluator of theirs is no task, in a sentence; empty where there is none, or it is one."""
    evaluator = folder / "evaluate.py"
    if not evaluator.is_file() or b"--repo_path" not in evaluator.read_bytes():
        return ""
    return "its evaluate.py takes a whole repository (--repo_path), not a program, and such tasks are not supported"


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
        texts = _Texts(files)
        for node in ast.walk(tree):
            texts.take(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == MESSAGE and (said := texts.of(node.value)):
                yield said
        yield from (text for name, text in texts.known.items() if MESSAGE in name)


class _Texts:
    """The texts that a module puts together, as far as that can be seen without running it.

    Attributes:
        known: name -> text.
    """

    def __init__(self, files: Mapping[str, File]) -> None:
        self.known: dict[str, str] = {}
        self._files = files

    def take(self, node: ast.AST) -> None:
        """Learn what a statement assigns."""
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            self.known |= dict.fromkeys(names, said) if (said := self.of(node.value)) else {}
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            self.known[node.target.id] = self.known.get(node.target.id, "") + self.of(node.value)

    def of(self, value: ast.expr) -> str:
        """The text of an expression; empty where it is none that is known."""
        if isinstance(value, ast.Constant):
            return value.value if isinstance(value.value, str) else ""
        if isinstance(value, ast.Name):
            return self.known.get(value.id, "")
        if isinstance(value, ast.JoinedStr):
            return "".join(map(self.of, value.values))
        if isinstance(value, ast.FormattedValue):
            return self.of(value.value) or f"{{{ast.unparse(value.value)}}}"
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            return self.of(value.left) + self.of(value.right)
        return self._of_call(value) if isinstance(value, ast.Call) else ""

    def _of_call(self, call: ast.Call) -> str:
        """What `dedent(TEXT)`, `TEXT.strip()`, `Path(FILE).read_text()` and `open(FILE).read()` give."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in ("read", "read_text"):
            paths = (node.value for node in ast.walk(call) if isinstance(node, ast.Constant))
            found = (self._files.get(path.removeprefix("./")) for path in paths if isinstance(path, str))
            return next((file[0].decode(errors="replace") for file in found if file), "")
        if name in ("dedent", "cleandoc") and call.args:
            return inspect.cleandoc(self.of(call.args[0]))
        if name in ("strip", "lstrip", "rstrip", "format", "replace") and isinstance(call.func, ast.Attribute):
            return self.of(call.func.value)
        return ""


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
