"""A task of another system in EvoGit's words, and the task folder that is written from it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from string import Template

from msgspec import Struct, field

from evogit.config.names import SYSTEM
from evogit.config.values import REPEATS, SEED, measure_of
from evogit.contained import MAX_DEPTH
from evogit.content import content
from evogit.core import ConfigError, Direction
from evogit.sandbox.cache import cache_folder

File = tuple[bytes, int]  # content and Git mode

OURS = "run"  # the folder of the evaluator's in which our stand-ins lie
THEIRS = "task"  # the folder of the evaluator's in which the files of the other system lie, as they were
SHIMS = f".evogit/{OURS}"
VIEW = ".foreign"  # the folder among the candidate's files in which their evaluator finds its own, and may write
INSIDE = (
    "# Its evaluator runs beside the candidate, in the candidate's sandbox: what it says can be forged, so scores are",
    "# marked `judged: inside`. docs/tasks.md tells how to evaluate from outside.",
)
OUTSIDE = (
    "# Its evaluator runs outside of the sandbox, on what the candidate's functions return. It is code of the task's",
    "# author that runs with your rights.",
)
MAX_NAME_BYTES = 255  # bytes of a file's name
PLAIN, EXECUTABLE = 0o100644, 0o100755
CORES = 4  # CPU seconds per second of wall clock that an evaluation may take: these systems limit the latter alone
MEMORY, DISK = 4096, 512  # MB that an evaluation may take where nothing says more
IMPORTS = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]{1,500})", re.MULTILINE)
"""The module that a line of Python imports."""
SCORED_FAILURES = (SEED, "traceback")
"""Signs of failure that do not count for other systems' evaluators: they score a seed that fails, and print what they
catch."""


class ForeignTask(Struct, frozen=True, kw_only=True):
    """What is evolved and how it is evaluated, in EvoGit's words."""

    system: str  # whose format it is, such as "OpenEvolve"
    name: str  # of the task
    goal: str  # what agents are told
    editable: tuple[str, ...]  # globs of what may change
    seed: Mapping[str, File]  # path -> file of the first candidate
    theirs: Mapping[str, File]  # path -> file that evaluates or is read by what does; candidates run beside them
    command: str  # the shell command that evaluates
    read: str = "json"  # how the score is read from it
    metric: str = "combined_score"  # what the score is called
    direction: Direction = "maximize"  # which way is better
    timeout: float = 300.0  # seconds of one evaluation
    memory: int = MEMORY  # MB that programs of it may take
    disk: int = DISK  # MB that programs of it may take
    packages: tuple[str, ...] = ()  # Python requirements
    # absolute path that their programs expect -> folder of the candidate's that it leads to
    links: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a person should know
    # the text of a Python evaluator that evaluates where no candidate can reach it; empty where none can
    outside: str = ""
    why_inside: str = "the candidate itself says its number"  # why there is none
    requirements: tuple[str, ...] = ()  # packages that it imports, which have to be where EvoGit is

    @property
    def origin(self) -> str:
        """What it was made of, in a sentence."""
        return self.system if self.system.startswith("a ") else f"a task of {self.system}"

    def files(self, *, outside: bool = False) -> Iterator[tuple[str, File]]:
        """The files of a task folder: path -> content and mode; with an evaluator `outside` of the sandbox or in it."""
        evaluator = "evaluator" if outside else ".evogit"
        yield "task.toml", (self._toml(outside=outside).encode(errors="replace"), PLAIN)
        yield "goal.md", (self.goal.strip().encode(errors="replace") + b"\n", PLAIN)
        for path, file in self.seed.items():
            yield f"seed/{path}", file
        for path, file in self.theirs.items():
            yield f"{evaluator}/{THEIRS}/{path}", file
        root = content("sandbox") / "foreign"
        for stand_in in sorted(root.rglob("*.py")) if outside or SHIMS in self.command else ():
            yield f"{evaluator}/{OURS}/{stand_in.relative_to(root).as_posix()}", (stand_in.read_bytes(), PLAIN)
        if outside:
            yield "evaluator/evaluate.py", (self.outside.encode(), PLAIN)
            reach = {path.rpartition("/")[2] for path in self.seed}
            beside = {path: file for path, file in self.theirs.items() if path in reached(self.theirs, reach)}
            yield from ((f"seed/{path}", file) for path, file in beside.items() if path not in self.seed)

    def _toml(self, *, outside: bool) -> str:
        reads = f"read.{self.metric} = {json.dumps(self.read)}"
        python = [
            'kind = "python"',
            'file = "evaluator/evaluate.py"',
        ]
        command = ['kind = "command"', f"command = {json.dumps(self.command)}", reads]
        links = ", ".join(f"{json.dumps(path)} = {json.dumps(leads)}" for path, leads in self.links.items())
        rows = [
            f"# Made by `evogit new --from` from {self.origin}.",
            *(OUTSIDE if outside else INSIDE),
            f"name = {json.dumps(self.name)}",
            f"editable = {json.dumps(self.editable)}",
            "",
            f"[metrics.{self.metric}]",
            f'direction = "{self.direction}"',
            *([f'measures = "{kind}"'] if (kind := measure_of(self.metric)) else []),
            "",
            "[evaluator]",
            *(python if outside else command),
            f"repeats = {REPEATS} # unless those of the seed agree to the last digit",
            *([f"ignored_failures = {json.dumps(SCORED_FAILURES)}"] if SHIMS in self.command else []),
            "",
            "[sandbox]",
            f"timeout = {self.timeout:g}",
            f"cpu = {CORES * self.timeout:g}",
            f'memory = "{self.memory}m"',
            f'disk = "{self.disk}m"',
            "pids = 256",
            f"packages = {json.dumps(self.packages)}",
            *([f"links = {{ {links} }}"] if self.links else []),
        ]
        return "\n".join(rows) + "\n"

    def write(self, folder: Path, *, outside: bool = False) -> None:
        """Write the task folder, with an evaluator `outside` of the sandbox or in it.

        Raises:
            ConfigError: a file's path leads out of it, is too deep or has too long a name.
        """
        write_files(folder, dict(self.files(outside=outside)))

    def kept(self) -> Path:
        """A folder of the user's cache that holds the task, written once for each content."""
        digest = hashlib.sha256()
        for path, (data, mode) in self.files():
            digest.update(json.dumps([path, mode, len(data)]).encode() + data)
        folder = kept_folder() / digest.hexdigest()[:32] / self.name
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                self.write(Path(scratch) / self.name)
                try:
                    os.rename(Path(scratch) / self.name, folder)  # noqa: PTH104 - whole or not at all
                except OSError:
                    shutil.rmtree(Path(scratch) / self.name)  # another process was faster
        os.utime(folder.parent)
        return folder


def write_files(folder: Path, files: Mapping[str, File]) -> None:
    """Write files below a folder: path -> content and mode.

    Raises:
        ConfigError: a file's path leads out of it, is too deep or has too long a name.
    """
    for path, (data, mode) in files.items():
        if path.startswith("/") or ".." in path.split("/"):
            raise ConfigError(f"expected files below the task's folder, got {path}")
        if path.count("/") > MAX_DEPTH or max(map(len, path.encode().split(b"/"))) > MAX_NAME_BYTES:
            raise ConfigError(f"expected a path that every system can have, got {path:.200}")
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if mode == EXECUTABLE else 0o644)


def remove_kept(unused: float) -> Iterator[tuple[str, int]]:
    """Remove tasks that were not used for so many seconds: the name and bytes of each."""
    for folder in sorted(kept_folder().glob("*")):
        if time.time() - folder.stat().st_mtime >= unused:
            size = sum(path.lstat().st_size for path in folder.rglob("*"))
            shutil.rmtree(folder)
            yield folder.name, size


def reached(files: Mapping[str, File], begin: set[str]) -> set[str]:
    """The files that an evaluation imports, and those that it begins with."""
    reached, left = set[str](), list(begin)
    while left:
        path = left.pop()
        if path in files and path not in reached:
            reached.add(path)
            text = files[path][0].decode(errors="replace")
            names = IMPORTS.findall(text)
            folders = dict.fromkeys(("", path[: path.rfind("/") + 1]))
            left += [f"{folder}{name.replace('.', '/')}.py" for name in names for folder in folders]
    return reached


def told_along(paths: Iterable[str], where: str = "") -> tuple[str, ...]:
    """A note that names files of the user's which come along only as a source names them."""
    names = ", ".join(paths)
    return (f"these files{where} come along, as its sources name them: {names}",) if names else ()


def may_link(path: str) -> bool:
    """Whether a sandbox can lead this absolute path elsewhere: the system is there before."""
    return re.fullmatch(r"(/[\w.-]+)+", path) is not None and ".." not in path and path.split("/")[1] not in SYSTEM


def kept_folder() -> Path:
    """Where tasks of other systems are kept as task folders, which nobody edits."""
    return cache_folder() / "adopted"


def name_of(folder: Path) -> str:
    """A name for the task in this folder or file: its own, behind that of the folder above where it is a number."""
    place = folder.resolve()
    name = f"{place.parent.name}-{place.stem}" if place.stem.isdigit() else place.stem
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_") or "task"


# --- evaluators that run outside of the sandbox -------------------------------------------------------------------

READS_TEXT = re.compile(
    r"\.read_text\(|\.readlines?\(|\.read\(\)|getsource|open\(\s*program_path|ast\.parse|py_compile"
)
"""Signs of an evaluator that reads the program's text, which differs in a stand-in."""


def outside_evaluator(template: str, program: str, evaluator: File, **values: object) -> tuple[str, str]:
    """Return the evaluator to be written from a template, and why there is none; one of the two is empty."""
    if why := unfit(program, evaluator):
        return "", why
    text = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    return Template(text).substitute(program=repr(program), **{name: repr(value) for name, value in values.items()}), ""


def unfit(program: str, evaluator: File) -> str:
    """Why an evaluator cannot be given a stand-in for the program; empty when it may be tried."""
    if not program.endswith(".py"):
        return f"{program} is no Python, so that its functions cannot be called from outside"
    text = evaluator[0].decode(errors="replace")
    if found := READS_TEXT.search(text):
        return f"the evaluator reads a text ({found[0]}): if it is the program's, a stand-in has another one"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "the evaluator is no Python that can be read"
    return ""


class Format(Struct, frozen=True):
    """A format of other systems' tasks; a module of this folder lists its own as `FORMATS`.

    `expected` describes its files, `read` returns the task of a path or None, the lowest `rank` first. `lacking`
    describes what a path lacks that is nearly in this format; empty if it is not.
    """

    expected: str
    read: Callable[[Path], ForeignTask | None]
    rank: int
    lacking: Callable[[Path], str] = lambda path: ""
