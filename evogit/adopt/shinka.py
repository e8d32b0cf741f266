"""Reads a ShinkaEvolve folder: `initial.*`, and `evaluate.py` that leaves `metrics.json` and `correct.json`."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, Format, name_of, outside_evaluator, reached
from evogit.adopt.notes import told_needs
from evogit.adopt.packages import packages, requirements
from evogit.adopt.sources import files_below, marked, read_yaml, too_large
from evogit.contained import file_at, find_text

TIMEOUT = 600.0  # seconds of one evaluation where nothing is said
SAID = re.compile(r"\btime[ \t]{0,8}[=:][ \t]{0,8}[\"']?(\d{1,4}):(\d\d):(\d\d)")
MAX_TEXT_CHARS = 1 << 16  # characters of a text that a module puts together
MAX_TEXTS_CHARS = 1 << 24  # characters of all of them, each counted wherever it is used
MESSAGE = "task_sys_msg"  # what they call the instructions
ARGUMENTS = "extra_cmd_args"  # the name of the setting with the arguments that evaluate.py gets beside the program
STARTS = re.compile(r"(^|/)run[^/]*\.py$")
"""Files that begin a run of theirs, which no evaluator needs, where they speak of it."""


def read_shinka(folder: Path) -> ForeignTask | None:
    """Read the task in a folder; return None if it is not one."""
    programs = sorted(path for path in folder.glob("initial.*") if path.is_file())
    if not programs or not (folder / "evaluate.py").is_file():
        return None
    program = next((path for path in programs if path.suffix == ".py"), programs[0]).name
    seed = {program: file_at(folder, program)}
    files = {**files_below(folder), "evaluate.py": file_at(folder, "evaluate.py")}
    used = {path: files[path] for path in reached(files, {"evaluate.py", program})}
    starts = {path for path, (data, _) in files.items() if STARTS.search(path) and b"shinka" in data}
    theirs = {path: file for path, file in files.items() if path in used or path not in starts}
    listed = {path: file for path, file in theirs.items() if path.endswith(".txt")}
    goal = max(filter(lambda text: " " in text, _messages(files)), key=len, default="")
    about = f"The program is `{program}`. A higher `combined_score` is better."
    arguments, notes = _arguments(files)
    outside, why = outside_evaluator("shinka_outside.py.txt", program, theirs["evaluate.py"], arguments=arguments)
    return ForeignTask(
        system="ShinkaEvolve",
        name=name_of(folder),
        goal="\n\n".join(filter(None, [goal or f"Improve the program of {folder.name}.", about, marked(seed)])),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_shinka.py", program, *arguments]),
        timeout=_timeout(files),
        packages=packages({**seed, **used, **listed}),
        notes=(*notes, *too_large(folder, files), *told_needs({**used, **seed}, files)),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, "evaluate.py"),
    )


def lacking(folder: Path) -> str:
    """Explain why a folder with a part of a task of theirs is not one; empty if it has no part, or is one."""
    program, evaluator = next(iter(sorted(folder.glob("initial.*"))), None), find_text(folder, "evaluate.py")
    if program and not (folder / "evaluate.py").is_file():
        return f"{program.name} has no evaluate.py beside it"
    if "--program_path" in evaluator and not program:
        return "its evaluate.py has no initial.* beside it, such as initial.py"
    if program or "--repo_path" not in evaluator:
        return ""
    return "its evaluate.py takes a whole repository (--repo_path), which only a task of your own can have"


# --- what the files that begin a run of theirs say ----------------------------------------------------------------


def _messages(files: Mapping[str, File]) -> Iterator[str]:
    """Yield the instructions in the files that begin a run."""
    for tree in _trees(files, MESSAGE):
        texts = _Texts(tree, files)
        yield from (texts.of(value).strip() for node in ast.walk(tree) for value in _values(node, MESSAGE))
        yield from (text.strip() for name, text in texts.known.items() if MESSAGE in name)
    for values in _configurations(files):
        yield from (text.strip() for text in _below(values, MESSAGE) if isinstance(text, str))


def _arguments(files: Mapping[str, File]) -> tuple[list[str], tuple[str, ...]]:
    """Return the arguments that configurations give to evaluate.py, as on its command line, and notes about them."""
    given: list[object] = [value for values in _configurations(files) for value in _below(values, ARGUMENTS)]
    for tree in _trees(files, ARGUMENTS):
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        assigned = {name.id: node.value for node in nodes for name in node.targets if isinstance(name, ast.Name)}
        for value in (value for node in ast.walk(tree) for value in _values(node, ARGUMENTS)):
            value = assigned.get(value.id, value) if isinstance(value, ast.Name) else value
            try:
                given.append(ast.literal_eval(value))
            except ValueError:
                given.append(None)
    known = [each for each in given if isinstance(each, dict) and each]
    notes = []
    if any(not isinstance(each, dict) for each in given):
        notes.append(f"its files give evaluate.py arguments ({ARGUMENTS}) that only a run knows")
    if any(each != known[0] for each in known):
        notes.append("its files give evaluate.py different arguments: the first ones count")
    first = known[0] if known else {}
    return [word for name, value in first.items() for word in (f"--{name}", str(value))], tuple(notes)


def _timeout(files: Mapping[str, File]) -> float:
    for path, (data, _) in sorted(files.items()):
        if path.endswith((".py", ".yaml", ".yml")) and (match := SAID.search(data.decode(errors="replace"))):
            hours, minutes, seconds = map(int, match.groups())
            return float(3600 * hours + 60 * minutes + seconds) or TIMEOUT
    return TIMEOUT


def _trees(files: Mapping[str, File], word: str) -> Iterator[ast.Module]:
    """Yield the Python files that have a word."""
    for path, (data, _) in sorted(files.items()):
        if path.endswith(".py") and word.encode() in data:
            with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                yield ast.parse(data)


def _configurations(files: Mapping[str, File]) -> Iterator[dict[str, Any]]:
    for path, (data, _) in sorted(files.items()):
        if path.endswith((".yaml", ".yml")):
            yield read_yaml(data.decode(errors="replace"))


def _below(values: Any, name: str) -> Iterator[object]:
    """Yield all values of this name in nested mappings."""
    for key, value in values.items() if isinstance(values, dict) else ():
        yield from [value] if key == name else _below(value, name)


def _values(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield the values that are given by a name: as an argument, in a dictionary, or to a part of something."""
    if isinstance(node, ast.keyword) and node.arg == name:
        yield node.value
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == name)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            key = target.slice if isinstance(target, ast.Subscript) else None
            if (isinstance(key, ast.Constant) and key.value == name) or getattr(target, "attr", "") == name:
                yield node.value


class _Texts:
    """The texts that a module puts together, as far as that can be seen without running it, and within bounds.

    Attributes:
        known: name -> text.
    """

    def __init__(self, tree: ast.Module, files: Mapping[str, File]) -> None:
        self.known: dict[str, str] = {}
        self._files = files
        self._room = MAX_TEXTS_CHARS
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (text := self.of(node.value)):
                self.known |= {target.id: text for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                text = self.known.get(node.target.id, "") + self.of(node.value)
                self.known[node.target.id] = text[:MAX_TEXT_CHARS]

    def of(self, value: ast.expr) -> str:
        """Return the text of an expression; empty if it is not known, or there is no room for it."""
        text = self._of(value)[:MAX_TEXT_CHARS] if self._room > 0 else ""
        self._room -= len(text)
        return text

    def _of(self, value: ast.expr) -> str:
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
        if not isinstance(value, ast.Call):
            return ""
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
        if name in ("read", "read_text"):  # of Path(FILE) or open(FILE)
            paths = (node.value for node in ast.walk(value) if isinstance(node, ast.Constant))
            files = (self._files.get(path.removeprefix("./")) for path in paths if isinstance(path, str))
            return next((file[0].decode(errors="replace") for file in files if file), "")
        if name in ("dedent", "cleandoc") and value.args:
            return inspect.cleandoc(self.of(value.args[0]))
        return (
            self.of(value.func.value) if isinstance(value.func, ast.Attribute) and name in ("strip", "format") else ""
        )


FORMATS = (Format("initial.* with evaluate.py (ShinkaEvolve)", read_shinka, 2, lacking),)
