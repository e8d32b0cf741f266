"""The files that `evogit init` gives a repository: evogit.toml and the evaluator's folder."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from msgspec import Struct, field
from msgspec.structs import replace

from evogit.config import REPOSITORY_FILE, Task, load_repository_task
from evogit.config.values import REPEATS, measure_of
from evogit.core import ConfigError, Direction, RefusedError

FOLDER = ".evogit"
RATIOS = re.compile(r"(^|_)(speed_?up|ratio)(_|$)")
"""Metrics whose noise grows with their value, though they do not depend on the machine's pace."""

PROFILER = "profiler.py"
"""The script that profiles commands, in the evaluator's folder; this package has its original."""
PROFILED = re.compile(r"\b(python3?|pytest|node|npm|npx|go test)\b")
"""Commands that need no callgrind for a profile."""
COMPILED = re.compile(r"\b(g\+\+|gcc|clang|make|cmake|ninja|meson|cargo)(\b|\s)|(^|[;&|\s])\./")
"""Commands that run what a compiler made."""

FETCHES = re.compile(r"\b(npm|npx|yarn|pnpm|uv|poetry|cargo|go|mvn|curl|wget|git|fetch|download|install|deps)\b")
"""Commands that seem to need a network."""

TEMPLATES = Path(__file__).parent / "templates" / "repository"


class Choices(Struct, frozen=True, kw_only=True):
    """What a person decided about a repository, or let be detected.

    `reads` and `directions` have an entry for each metric; `tests` (perhaps none) and `work`, which is measured after
    them, are shell commands, run in `directory` (empty: the root). `missing` are Debian packages that Docker would need
    and another sandbox has from the machine. `checks` follow the tests, and need the packages `checkers`. `repeats` is
    how often a would-be best is evaluated again; None: a few times where a metric seems to be a time.
    """

    name: str
    goal: str
    editable: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    directory: str = ""
    tests: str = ""
    work: str = ""
    prepare: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    directions: Mapping[str, Direction] = field(default_factory=dict)
    primary: str = ""
    python: bool = False
    timeout: str = "5m"
    memory: str = "1g"
    packages: tuple[str, ...] = ()
    checks: str = ""
    checkers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    repeats: int | None = None
    retry: int = 0
    profiles: bool = True  # False: the command that profiles failed

    @property
    def profile(self) -> str:
        """The command that profiles the one that is measured, where time is measured and a profiler is known."""
        compiled = COMPILED.search(self.work) and shutil.which("valgrind")
        if not _measures_time(self) or not (PROFILED.search(self.work) or compiled):
            return ""
        helper = posixpath.relpath(f"{FOLDER}/{PROFILER}", self.directory or ".")
        return f"python3 {helper} {shlex.quote(self.work)}"


def files(choices: Choices) -> dict[str, str]:
    """Path from the root of the repository -> text."""
    made = {REPOSITORY_FILE: "\n".join(_toml(choices)) + "\n", f"{FOLDER}/README.md": _filled("README.md")}
    if choices.profile and not choices.python:
        made[f"{FOLDER}/{PROFILER}"] = Path(__file__).with_name(PROFILER).read_text(encoding="utf-8")
    if choices.python:
        made[f"{FOLDER}/evaluate.py"] = _evaluate(choices)
    return made


def tried(made: Mapping[str, str], root: Path) -> Task:
    """The task that the files will make of the repository at `root`, read as a run would, before they are there.

    Raises:
        ConfigError: when EvoGit would not accept them.
    """
    with TemporaryDirectory(prefix="evogit-init-") as folder:
        scratch = Path(folder).resolve()
        (scratch / FOLDER).mkdir()
        for path, text in made.items():
            (scratch / path).write_text(text, encoding="utf-8")
        try:
            return replace(load_repository_task(scratch), folder=root)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(scratch), str(root))) from None


def write(root: Path, made: Mapping[str, str], *, force: bool) -> list[str]:
    """Write the files below `root`, none through a link; the paths of those written. A README that is there stays.

    Raises:
        RefusedError: when one is there already, unless `force`, or a link is in the way; nothing is written.
    """
    wanted = [path for path in made if path != f"{FOLDER}/README.md" or not (root / path).exists()]
    for path in wanted:
        if any((root / part).is_symlink() for part in (path, FOLDER)):
            raise RefusedError(f"expected no symbolic link at {root / path} or {root / FOLDER}; remove it")
        if (root / path).exists() and not force:
            raise RefusedError(f"{root / path} is there already; --force replaces it")
    (root / FOLDER).mkdir(exist_ok=True)
    for path in wanted:
        (root / path).write_text(made[path], encoding="utf-8")
    return wanted


# --- evogit.toml --------------------------------------------------------------------------------------------------


def _toml(choices: Choices) -> Iterator[str]:
    yield "# What EvoGit improves in this repository, and how it is evaluated. `evogit check` tries it out on HEAD."
    yield f"name = {_text(choices.name)}"
    yield from ("# what agents are told", f"goal = {_text(choices.goal)}")
    yield "# globs, from the root on: what agents may change; all else is protected, the tests too"
    yield f"editable = {_texts(choices.editable)}"
    if choices.withheld:
        yield f"withheld = {_texts(choices.withheld)} # what no agent is shown"
    else:
        yield '# withheld = ["tests/hidden/**"] # what no agent is shown'
    for metric, direction in choices.directions.items():
        yield from ("", f"[metrics.{metric}]", f'direction = "{direction}"')
        if (kind := measure_of(metric)) and choices.reads.get(metric) not in ("cpu", "wall"):
            ranks = metric == (choices.primary or metric)
            yield f'measures = "{kind}" # of the machine: gains are measured side by side' if ranks else 'scale = "log"'
        elif RATIOS.search(metric):
            yield 'scale = "log" # noise grows with the value'
        if len(choices.directions) > 1 and metric == choices.primary:
            yield "primary = true # candidates are ranked by this one"
    yield ""
    if choices.python:
        yield "# Python code that runs outside of the sandbox; the code that it evaluates cannot reach it."
        yield from ("[evaluator]", 'kind = "python"', f'file = "{FOLDER}/evaluate.py"', *_repeats(choices))
    else:
        yield from _by_command(choices)
    yield from ("", *_sandbox(choices))


def _by_command(choices: Choices) -> Iterator[str]:
    yield "# A command evaluates inside the sandbox, where code could forge its own score; read what wins before you"
    yield "# merge it, or write an evaluator that works from outside with `evogit init --python --force`."
    yield from ("[evaluator]", 'kind = "command"', f"command = {_text(choices.work)}")
    if tests := " && ".join(filter(None, (choices.tests, choices.checks))):
        yield f"tests = {_text(tests)} # must exit with 0 before; not measured"
    if choices.directory:
        yield f"directory = {_text(choices.directory)} # where it runs"
    if choices.prepare:
        yield f"prepare = {_text(choices.prepare)} # once, on the seed; candidates start from what it leaves"
    else:
        yield '# prepare = "make deps" # once, on the seed; candidates start from what it leaves'
    if choices.profile:
        comment = "" if choices.profiles else "# "
        yield f"{comment}profile = {_text(choices.profile)} # agents see what it prints: where the time goes"
    yield from _repeats(choices)
    yield from ("", "# exit, junit:FILE, regex:PATTERN, json or json:KEY (the last line that is an object), cpu, wall;")
    yield "# a candidate is invalid when the command does not exit with 0, unless exit or junit is read"
    yield "[evaluator.read]"
    yield from (f"{metric} = {_text(how)}" for metric, how in choices.reads.items())


def _repeats(choices: Choices) -> Iterator[str]:
    if choices.retry:
        yield f"retry = {choices.retry} # HEAD fails now and then: what fails is run again, so many times"
    repeats = REPEATS if choices.repeats is None and _measures_time(choices) else choices.repeats
    if repeats:
        yield f"repeats = {repeats} # scores are noisy: what seems best is evaluated so many more times"


def fetches(command: str) -> bool:
    """Return whether a command seems to need a network."""
    return bool(FETCHES.search(command))


def _measures_time(choices: Choices) -> bool:
    by_name = any(measure_of(metric) in ("time", "rate") for metric in choices.directions)
    return by_name or not {"cpu", "wall"}.isdisjoint(choices.reads.values())


def _sandbox(choices: Choices) -> Iterator[str]:
    yield "# what one candidate may use; of wall clock three times as much as of CPU"
    yield from ("[sandbox]", f"memory = {_text(choices.memory)}", f"cpu = {_text(choices.timeout)}", "pids = 256")
    if fetches(choices.prepare):
        yield "network = true # for prepare alone; candidates never have one"
    packages = tuple(dict.fromkeys((*choices.packages, *choices.checkers)))
    if packages:
        yield f"packages = {_texts(packages)}"
    if any(name.startswith("apt:") for name in packages):
        yield "# Only Docker has the apt: ones; without them, bubblewrap shows programs those of the machine's /usr."
    if choices.missing:
        yield "# Without Docker, programs find those of this machine in /usr. With Docker they need:"
        yield f"# packages = {_texts((*packages, *choices.missing))}"
    if _measures_time(choices):
        yield "# exclusive = true # one candidate at a time, on a core of its own: slower, but times are steadier"


def _texts(values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    """As TOML, in quotes that need no backslashes where there are such."""
    if ("\\" in value or '"' in value) and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- evaluate.py --------------------------------------------------------------------------------------------------


def _evaluate(choices: Choices) -> str:
    there = f"cd {shlex.quote(choices.directory)} && " if choices.directory else ""
    commands = (choices.tests, choices.work, choices.prepare)
    tests, work, prepare = (repr(there + command) if command else '""' for command in commands)
    prepared = _filled("prepare.py.txt", prepare=prepare) if choices.prepare else ""
    return _filled("evaluate.py.txt", tests=tests, work=work, prepare=prepared)


def _filled(name: str, **values: str) -> str:
    return Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)
