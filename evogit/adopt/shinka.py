"""Reads a ShinkaEvolve folder: `initial.*`, and `evaluate.py` that leaves `metrics.json` and `correct.json`.

Where that takes a whole repository, candidates are all files of the folder that a configuration calls its seed.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, name_of, reached
from evogit.adopt.needs import told_needs
from evogit.adopt.outside import shinka_outside
from evogit.adopt.sources import all_below, files_below, marked, packages, requirements, too_large
from evogit.adopt.yaml_text import at, read_yaml
from evogit.config.values import matches
from evogit.contained import file_at, find_text

EXPECTED = "initial.* or seed_repo/ with evaluate.py (ShinkaEvolve)"
TIMEOUT = 600.0
"""Seconds of one evaluation where nothing is said."""
SAID = re.compile(r"\btime[ \t]{0,8}[=:][ \t]{0,8}[\"']?(\d{1,4}):(\d\d):(\d\d)")
MAX_TEXT_CHARS = 1 << 16
"""Characters of a text that a module puts together."""
MAX_TEXTS_CHARS = 1 << 24
"""Characters of all of them, each counted wherever it is used."""
MESSAGE = "task_sys_msg"
"""What they call the instructions."""
ARGUMENTS = "extra_cmd_args"
"""The name of the setting with the arguments that evaluate.py gets beside the program."""
STARTS = re.compile(r"(^|/)run[^/]*\.py$")
"""Files that begin a run of theirs, which no evaluator needs, where they speak of it."""


class _Begin(Struct, frozen=True):
    """What candidates are made of.

    Attributes:
        what: what the evaluator is given: a program, or the folder of a repository.
        seed: path -> file of the first one.
        editable: globs of what may change.
        folder: where it lies, below the task's; empty for a program, which lies in it.
    """

    what: str
    seed: Mapping[str, File]
    editable: tuple[str, ...]
    folder: str = ""

    @property
    def told(self) -> str:
        """A sentence for agents."""
        files = ", ".join(f"`{path}`" for path in self.editable)
        return f"You work on a repository, in which {files} may change." if self.folder else f"The program is {files}."


def read_shinka(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where it is no such folder."""
    if not (folder / "evaluate.py").is_file() or (begin := _program(folder) or _repository(folder)) is None:
        return None
    found = {path: file for path, file in files_below(folder).items() if not _is_inside(path, begin.folder)}
    found["evaluate.py"] = file_at(folder, "evaluate.py")
    evaluated_with = reached(found, {"evaluate.py", begin.what})
    used = {path: file for path, file in found.items() if path in evaluated_with}
    theirs = {path: file for path, file in found.items() if path in used or not _starts(path, file)}
    beside = {f"{begin.folder}/{path}": file for path, file in begin.seed.items()}
    goal = next(_messages(found), "") or f"Improve the program of {folder.name}."
    arguments, told = _arguments(found)
    outside, why = shinka_outside(begin.what, theirs["evaluate.py"], arguments)
    return ForeignTask(
        system="ShinkaEvolve",
        name=name_of(folder),
        goal="\n\n".join(
            filter(None, [goal, f"{begin.told} A higher `combined_score` is better.", marked(begin.seed)])
        ),
        editable=begin.editable,
        seed=begin.seed,
        theirs=theirs,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_shinka.py", begin.what, *arguments]),
        timeout=_timeout(found),
        packages=packages({**begin.seed, **used, **{p: file for p, file in theirs.items() if p.endswith(".txt")}}),
        notes=(*told, *too_large(folder, {**found, **beside}), *told_needs({**used, **begin.seed}, found)),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, "evaluate.py"),
    )


def _starts(path: str, file: File) -> bool:
    return STARTS.search(path) is not None and b"shinka" in file[0]


def _program(folder: Path) -> _Begin | None:
    """The program that the folder has; None where it has none."""
    programs = sorted(path for path in folder.glob("initial.*") if path.is_file())
    if not programs:
        return None
    first = next((path for path in programs if path.suffix == ".py"), programs[0])
    return _Begin(first.name, {first.name: file_at(folder, first.name)}, (first.name,))


def _repository(folder: Path) -> _Begin | None:
    """The repository that a configuration names, or that is called as in examples; None where there is none."""
    if not _takes_repository(folder):
        return None
    said = next((evo for evo in map(_evolution, sorted(folder.glob("*.y*ml"))) if "seed_repo_path" in evo), {})
    place = folder / str(said.get("seed_repo_path", "seed_repo"))
    if not place.is_dir() or folder.resolve() not in place.resolve().parents:
        return None
    seed = all_below(folder, place.resolve().relative_to(folder.resolve()).as_posix())
    mutable, immutable = (_globs(place, said.get(key)) for key in ("mutable_paths", "immutable_paths"))
    kept = [path for path in seed if matches(path, mutable or ("**",)) and not matches(path, immutable)]
    inner = place.resolve().relative_to(folder.resolve()).as_posix()
    return _Begin(".", seed, tuple(kept) if immutable else mutable or ("**",), inner) if kept else None


def _evolution(file: Path) -> dict[str, Any]:
    """What a configuration says of the evolution."""
    said = at(read_yaml(find_text(file.parent, file.name)), "evo")
    return said if isinstance(said, dict) else {}


def _globs(place: Path, paths: Any) -> tuple[str, ...]:
    """Globs of these paths below a place; of a folder, of all that is below it."""
    named = [str(path).rstrip("/") for path in paths] if isinstance(paths, list) else []
    return tuple(f"{path}/**" if (place / path).is_dir() else path for path in named)


def _is_inside(path: str, folder: str) -> bool:
    return folder != "" and path.startswith(f"{folder}/")


def _takes_repository(folder: Path) -> bool:
    return "--repo_path" in find_text(folder, "evaluate.py")


def lacking(folder: Path) -> str:
    """Why a folder with a part of a task of theirs is none, in a sentence; empty where it has no part, or is one."""
    evaluator, program = folder / "evaluate.py", next(iter(sorted(folder.glob("initial.*"))), None)
    if program and not evaluator.is_file():
        return f"{program.name} has no evaluate.py beside it"
    if "--program_path" in find_text(folder, "evaluate.py") and not program:
        return "its evaluate.py has no initial.* beside it, such as initial.py"
    if program or not _takes_repository(folder):
        return ""
    return "its evaluate.py takes a whole repository (--repo_path), and no .yaml file here says which (seed_repo_path)"


def _messages(files: Mapping[str, File]) -> Iterator[str]:
    """What agents are told, as the files that begin a run say it, the longest one first."""
    found = [*_in_python(files), *_in_yaml(files)]
    yield from sorted((text.strip() for text in found if " " in text.strip()), key=len, reverse=True)


def _in_python(files: Mapping[str, File]) -> Iterator[str]:
    for path, (data, _) in sorted(files.items()):
        if not path.endswith(".py") or MESSAGE.encode() not in data:
            continue
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            yield from list(_in_tree(ast.parse(data), files))


def _in_tree(tree: ast.Module, files: Mapping[str, File]) -> Iterator[str]:
    texts = _Texts(files)
    for node in ast.walk(tree):
        texts.take(node)
    yield from filter(None, (texts.of(value) for node in ast.walk(tree) for value in _given(node)))
    yield from (text for name, text in texts.known.items() if MESSAGE in name)


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """What is given as the message: as an argument, in a dictionary, or by an assignment to a part of something."""
    if isinstance(node, ast.keyword) and node.arg == MESSAGE:
        yield node.value
    elif isinstance(node, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values, strict=True) if _is_message(key))
    elif isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Subscript)
        and _is_message(target.slice)
        or isinstance(target, ast.Attribute)
        and target.attr == MESSAGE
        for target in node.targets
    ):
        yield node.value


def _is_message(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == MESSAGE


class _Texts:
    """The texts that a module puts together, as far as that can be seen without running it, and within bounds.

    Attributes:
        known: name -> text.
    """

    def __init__(self, files: Mapping[str, File]) -> None:
        self.known: dict[str, str] = {}
        self._files = files
        self._room = MAX_TEXTS_CHARS

    def take(self, node: ast.AST) -> None:
        """Learn what a statement assigns."""
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            self.known |= dict.fromkeys(names, said) if (said := self.of(node.value)) else {}
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            self.known[node.target.id] = (self.known.get(node.target.id, "") + self.of(node.value))[:MAX_TEXT_CHARS]

    def of(self, value: ast.expr) -> str:
        """The text of an expression; empty where it is none that is known, or there is no room for it."""
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


def _arguments(files: Mapping[str, File]) -> tuple[list[str], tuple[str, ...]]:
    """The arguments that configurations give to evaluate.py, as they become its command line, and notes about them."""
    found = [item for item in _given_arguments(files) if item[1] != {}]
    known = [(path, values) for path, values in found if isinstance(values, dict)]
    told = [f"{path} gives evaluate.py arguments ({ARGUMENTS}) that only a run knows" for path, _ in found]
    notes = [told[at] for at, (_, values) in enumerate(found) if not isinstance(values, dict)]
    if any(values != known[0][1] for _, values in known):
        notes.append(
            f"{', '.join(path for path, _ in known)} give evaluate.py different arguments: the first ones count"
        )
    values = known[0][1] if known else {}
    return [word for name, value in values.items() for word in (f"--{name}", str(value))], tuple(notes)


def _given_arguments(files: Mapping[str, File]) -> Iterator[tuple[str, object]]:
    """Path -> the arguments that a file gives to evaluate.py; None for those that cannot be read."""
    for path, (data, _) in sorted(files.items()):
        if ARGUMENTS.encode() not in data:
            continue
        text = data.decode(errors="replace")
        if path.endswith((".yaml", ".yml")):
            yield from ((path, values) for values in _below(read_yaml(text), ARGUMENTS))
        elif path.endswith(".py"):
            with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                yield from [(path, values) for values in _literals(ast.parse(text), ARGUMENTS)]


def _below(values: Any, name: str) -> Iterator[object]:
    """All values of this name in nested mappings."""
    for key, value in values.items() if isinstance(values, dict) else ():
        yield from [value] if key == name else _below(value, name)


def _literals(tree: ast.Module, name: str) -> Iterator[object]:
    """Return the literal that a module gives as an argument, or an entry, of this name; None for anything else."""
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        given: list[ast.expr] = [node.value] if isinstance(node, ast.keyword) and node.arg == name else []
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            given = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == name]
        for value in given:
            value = assigned.get(value.id, value) if isinstance(value, ast.Name) else value
            try:
                yield ast.literal_eval(value)
            except ValueError:
                yield None


def _timeout(files: Mapping[str, File]) -> float:
    for path, (data, _) in sorted(files.items()):
        if path.endswith((".py", ".yaml", ".yml")) and (match := SAID.search(data.decode(errors="replace"))):
            hours, minutes, seconds = map(int, match.groups())
            return float(3600 * hours + 60 * minutes + seconds) or TIMEOUT
    return TIMEOUT
