"""Reads an autoresearch session: `autoresearch.md` and `autoresearch.sh`, or `.auto/prompt.md` and `.auto/measure.sh`.

Only what is said in a form that sessions have is read: the log's configuration, METRIC lines, `**Primary**`, and the
list below `Files in Scope`. Instructions in prose are for models. A script that prints METRIC lines is a task alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct, field

from evogit.adopt.foreign_task import PLAIN, SHIMS, File, ForeignTask, Format, name_of, told_along
from evogit.adopt.packages import TOOLS, commands, installed, merged, normal, packages
from evogit.adopt.past import object_of
from evogit.adopt.sources import MAX_SOURCE_BYTES, files_below, marked
from evogit.config.printed_numbers import NUMBER, direction_of, standing
from evogit.config.values import matches
from evogit.contained import file_at, find_text, has_file, joined_lines, lines_of, text_at, walk
from evogit.core import Direction
from evogit.scaffold.project import ProjectFiles
from evogit.scaffold.python_project import project_requirements

COMMANDS = {
    ".R": "Rscript {}",
    ".c": "cc -O2 -o .program {} -lm && ./.program",
    ".cpp": "c++ -O2 -o .program {} && ./.program",
    ".go": "go run {}",
    ".jl": "julia {}",
    ".js": "node {}",
    ".pl": "perl {}",
    ".py": "python3 {}",
    ".rb": "ruby {}",
    ".rs": "rustc -O -o .program {} && ./.program",
    ".sh": "bash {}",
}
"""Ending of a file's name -> the command that starts it."""
METRIC = re.compile(r"METRIC[ \t]{1,8}([A-Za-z_][\w.µμ-]{0,100})[ \t]{0,8}=")  # a line METRIC name=value
WORD = re.compile(r"[\w.@+/-]{1,200}")
MAX_WORDS = 5000  # words of a source that may name files
PROSE = "program.md"
TIMEOUT = 600.0  # seconds of one experiment
MAX_LOG_LINES = 10_000
MAX_SCRIPT_BYTES = 1 << 16  # bytes of a shell script in which commands are looked for
SPAN = re.compile(r"`([^`\n]{1,200})`")
SCOPE = re.compile(r"^(#{1,6} |\*\*) ?(?:files in scope|in scope|scope)\b", re.IGNORECASE)
LIST = re.compile(r"[ \t]{0,8}(?:[-*+]|\d{1,3}[.)])[ \t]")
HEADING = re.compile(r"(#{1,6}) |\*\*")
PRIMARY = re.compile(
    r"\*\*primary(?: metric)?(?::\*\*|\*\*[ \t]{0,4}:)[ \t]{0,4}`?([A-Za-z_]\w{0,80}(?:[.-]\w{1,80}){0,4})`?(.{0,200})",
    re.IGNORECASE,
)
WAYS: dict[Direction, re.Pattern[str]] = {
    "minimize": re.compile(r"\blower(?: is|,)? (?:is )?better\b", re.IGNORECASE),
    "maximize": re.compile(r"\bhigher(?: is|,)? (?:is )?better\b", re.IGNORECASE),
}
STICK = re.compile(
    r"(^|[/_.-])(bench\w*|eval\w*|measur\w*|scor(er?|ing)|harness|verif\w*|tests?)(?=[/_.-])", re.IGNORECASE
)
"""Names of files that measure."""
PROJECT = "pyproject.toml"
AUTO = ".auto"  # the folder of a session
UNUSED = (f"{AUTO}/hooks/", f"{AUTO}/log.jsonl", f"{AUTO}/ideas.md")  # the files of a session that no experiment needs
PREAMBLE = (
    "These instructions were written for an agent that works alone. Here, EvoGit runs the experiments, keeps what is "
    "better and writes the log: propose one change of {files} at a time, and leave branches, commits and logs alone."
)


class Number(Struct, frozen=True):
    """A number that a program prints: its name, how it is read, which way is better if that is known."""

    metric: str
    read: str
    direction: Direction | None

    @classmethod
    def of(cls, printed: str, direction: Direction | None = None) -> Number:
        """Return the number of a line METRIC name=value."""
        metric = plain_name(printed)
        read = rf"regex:^\s*METRIC\s+{re.escape(printed)}\s*=\s*{NUMBER}"
        return cls(metric, read, direction or direction_of(metric, "json"))

    @property
    def notes(self) -> tuple[str, ...]:
        """The note for a direction that is a guess."""
        guess = (
            f"{self.metric} is taken to be better the higher it is; `evogit new --from` writes a task to change that"
        )
        return () if self.direction else (guess,)


def plain_name(metric: str) -> str:
    """Return a metric's name as a task may have it: `mul_us` of `mul_µs`, `render_ms` of `render.ms`."""
    return re.sub(r"\W+", "_", re.sub("[µμ]", "u", metric), flags=re.ASCII).strip("_") or "score"


class Layout(Struct, frozen=True):
    """The paths of a session's instructions, measuring script, checking script, log, and configuration."""

    program: str
    script: str
    checks: str
    log: str
    config: str

    def is_own(self, path: str) -> bool:
        """Return whether a path is one of the session's, which never change: `.auto/`, or `autoresearch.*`."""
        first = path.split("/")[0].lower()
        return first == AUTO or first.startswith("autoresearch.")


LAYOUTS = (
    Layout(
        "autoresearch.md", "autoresearch.sh", "autoresearch.checks.sh", "autoresearch.jsonl", "autoresearch.config.json"
    ),
    Layout(".auto/prompt.md", ".auto/measure.sh", ".auto/checks.sh", ".auto/log.jsonl", ".auto/config.json"),
)


class _Config(Struct, frozen=True):
    """A line of a session's log."""

    type: str = ""
    metric: str = field(default="", name="metricName")
    direction: str = field(default="", name="bestDirection")


class _Session(Struct, frozen=True):
    """A session's files, the globs of what may change, and the number that counts; empty or None if not named.

    `reached` are the files that an experiment reads; `measuring` are those that the session names to be changed, but
    that the script reaches to measure others.
    """

    layout: Layout
    text: str
    seed: Mapping[str, File]
    reached: Mapping[str, File]
    editable: tuple[str, ...]
    number: Number | None
    measuring: tuple[str, ...] = ()

    @property
    def lacking(self) -> list[str]:
        """Return the parts that it does not name, in words."""
        scope = [] if self.editable else ["a file beside it to change (a list below `Files in Scope`)"]
        metric = "the number that counts (METRIC name=value, **Primary**: name, metricName in the log)"
        return scope + ([] if self.number else [metric])


def read_autoresearch(folder: Path) -> ForeignTask | None:
    """Read the task in a folder; return None if nothing says what to change or what counts."""
    session = _session(folder)
    if session is None or session.number is None or session.lacking:
        return None
    number = session.number
    stays = (
        f"what seems to measure the others stays as it is, though {session.layout.program} names it among what may "
        f"change: {', '.join(session.measuring)}; `evogit new --from` writes a task in which you can change that"
    )
    return ForeignTask(
        system="autoresearch",
        name=name_of(folder),
        goal=f"{PREAMBLE.format(files=', '.join(f'`{path}`' for path in session.editable))}\n\n{session.text}",
        editable=session.editable,
        seed=session.seed,
        theirs={},
        command=_command(session.layout, session.seed),
        read=number.read,
        metric=number.metric,
        direction=number.direction or "maximize",
        timeout=TIMEOUT,
        packages=_packages(session.seed, session.reached),
        notes=(*number.notes, *([stays] if session.measuring else [])),
    )


def lacking(folder: Path) -> str:
    """Explain why a folder with instructions is not a task; empty if it has none, or they suffice."""
    if not folder.is_dir():
        return ""
    if session := _session(folder):
        lacks = ", or ".join(session.lacking)
        return f"{session.layout.program} does not name {lacks}" if lacks else ""
    for layout in LAYOUTS:
        values = object_of(find_text(folder, layout.config))
        if isinstance(values.get("workingDir"), str):
            return f"{layout.config} says that the session is in {values['workingDir']}: name that folder"
        both = (layout.program, layout.script)
        if there := [name for name in both if has_file(folder, name)]:
            return f"{there[0]} has no {next(name for name in both if name not in there)} beside it"
    if has_file(folder, PROSE):
        return (
            f"{PROSE} says in prose what to change, to run and to measure, which is not read; `evogit init --editable "
            "FILE --command COMMAND --read NAME=regex:PATTERN --minimize NAME` makes a task of it"
        )
    return ""


def _session(folder: Path) -> _Session | None:
    layout = next((each for each in LAYOUTS if has_file(folder, each.program) and has_file(folder, each.script)), None)
    if layout is None:
        return None
    text = text_at(folder, layout.program)
    inner = [f"{AUTO}/{path}" for path in walk(folder / AUTO)] if (folder / AUTO).is_dir() else []
    own = [path for path in inner if not path.startswith(UNUSED)]
    own += [layout.program, layout.script, layout.checks, layout.log]
    seed = {**files_below(folder), **{path: file_at(folder, path) for path in own if has_file(folder, path)}}
    reached = _named(seed, [name for name in (layout.script, layout.checks) if name in seed])
    named = tuple(_without_own(_in_scope(text, seed), layout, seed))
    kept = tuple(glob for glob in named if STICK.search(glob) and any(matches(path, [glob]) for path in reached))
    if not (editable := tuple(glob for glob in named if glob not in kept)):
        editable, kept = named, ()
    return _Session(layout, text, seed, reached, editable, _number(layout, text, seed, reached), kept)


def _without_own(globs: Iterable[str], layout: Layout, files: Mapping[str, File]) -> Iterator[str]:
    """Yield the globs of what may change; one that covers a file of the session becomes the other files it covers."""
    for glob in globs:
        covered = [path for path in files if matches(path, [glob])]
        if any(map(layout.is_own, covered)):
            yield from (path for path in covered if not layout.is_own(path))
        elif not layout.is_own(glob):
            yield glob


def _in_scope(text: str, files: Mapping[str, File]) -> tuple[str, ...]:
    """Return the files that a list below `Files in Scope` names first in each of its items; patterns stay as such."""
    globs, level = set[str](), 0
    for line in lines_of(text):
        heading = HEADING.match(line)
        if scope := SCOPE.match(line):
            level = scope[1].count("#") or 7
        elif heading and (len(heading[1] or "") or 7) <= level:
            level = 0
        if level and (scope or LIST.match(line)) and (span := SPAN.search(line)):
            name = span[1].removeprefix("./")
            glob = f"{name}**" if name.endswith("/") else name
            is_pattern = "*" in glob and glob.strip("*./") != ""
            if glob in files or (is_pattern and any(matches(path, [glob]) for path in files)):
                globs.add(glob)
    return tuple(sorted(globs))


def _command(layout: Layout, files: Mapping[str, File]) -> str:
    """Return the command of an experiment, which counts for nothing if the checks fail after it."""
    texts = {name: files[name][0][:MAX_SCRIPT_BYTES] for name in (layout.script, layout.checks) if name in files}
    steps = [f"{_interpreter(text)} {name}" for name, text in texts.items()]
    before = ["git init -q"] * any(b"rev-parse --show-toplevel" in text for text in texts.values())
    if PROJECT in files and any(re.fullmatch(r"src/\w+/__init__\.py", path) for path in files):
        before.append('export PYTHONPATH="$PWD/src:$PYTHONPATH"')  # as if it were installed
    if any(TOOLS.intersection(_started(text.decode(errors="replace"))) for text in texts.values()):
        before.append(f'eval "$(python3 {SHIMS}/foreign_view.py)"')
    return f"{' && '.join([*before, *steps])}{' >&2' if steps[1:] else ''}"


def _interpreter(script: bytes) -> str:
    """Return the language in a script's first line; bash if it is not known here."""
    first = re.match(rb"#![^\n]{0,200}?\b(python[\d.]*|node|ruby|perl|Rscript|julia)[ \t]*\r?\n", script)
    return first[1].decode() if first else "bash"


def _packages(files: Mapping[str, File], reached: Mapping[str, File]) -> tuple[str, ...]:
    """Return the packages of a project and its tests, and those that its scripts install, or start by their names."""
    shell = (data[:MAX_SCRIPT_BYTES] for path, (data, _) in reached.items() if re.search(r"\.(ba)?sh$", path))
    script = joined_lines(b"\n".join(shell).decode(errors="replace"))
    started = set(_started(script))
    source = ProjectFiles(tuple(files), lambda path: files[path][0].decode(errors="replace"))
    return merged(
        packages(files),
        project_requirements(source) if PROJECT in files else (),
        tuple(text for _, text in installed(script)),
        tuple(sorted(started & TOOLS)),
    )


def _started(script: str) -> Iterator[str]:
    """Yield the normal names of the programs that a shell script starts, also by `python -m` and `uv run`."""
    for words in commands(script):
        names = [word.rpartition("/")[2] for word in words]
        if names[:2] == ["uv", "run"]:
            names = [name for name in names[2:] if not name.startswith("-")] or names
        is_module = re.fullmatch(r"python[\d.]*", names[0]) and "-m" in names[:-1]
        yield normal(names[names.index("-m") + 1].partition(".")[0] if is_module else names[0])


def _number(layout: Layout, text: str, files: Mapping[str, File], reached: Mapping[str, File]) -> Number | None:
    """Return the number that counts: as the log says, else the one called primary, else the only METRIC line."""
    for metric, way in (*_logged(files.get(layout.log, (b"", PLAIN))[0]), *_primary(text)):
        return Number.of(metric, way)
    printed = _printed(reached)
    return Number.of(printed[0]) if len(printed) == 1 else None


def _primary(text: str) -> Iterator[tuple[str, Direction | None]]:
    """Yield the metric that instructions call primary, and which way is better."""
    for match in filter(None, map(PRIMARY.search, lines_of(text))):
        ways = [way for way, pattern in WAYS.items() if pattern.search(match[2])]
        yield match[1], ways[0] if len(ways) == 1 else None


def _logged(log: bytes) -> Iterator[tuple[str, Direction]]:
    """Yield the metrics that configurations in the log say to count, the last first, and which way is better."""
    ways: dict[str, Direction] = {"lower": "minimize", "higher": "maximize"}
    for line in reversed(log.splitlines()[-MAX_LOG_LINES:]):
        with suppress(msgspec.DecodeError, RecursionError):
            config = msgspec.json.decode(line, type=_Config)
            if config.type == "config" and re.fullmatch(r"[\w.µμ-]{1,100}", config.metric) and config.direction in ways:
                yield config.metric, ways[config.direction]


# --- scripts ------------------------------------------------------------------------------------------------------


def read_script(file: Path) -> ForeignTask | None:
    """Read the task in a file; return None if it cannot be started or prints no METRIC line.

    Files beside it come along if a source names them, but none of the user's home.
    """
    if not file.is_file() or file.suffix not in COMMANDS:
        return None
    is_home = Path.home().resolve().is_relative_to(file.parent.resolve())
    beside = {} if is_home else files_below(file.parent)
    seed = _named({**beside, file.name: file_at(file.parent, file.name)}, [file.name])
    if not (printed := sorted(_printed(seed), key=standing)):
        return None
    number = Number.of(printed[0])
    started = [path for path in seed if path != file.name and Path(path).suffix in COMMANDS]
    editable = (file.name, *(started if file.suffix == ".sh" and len(started) == 1 else ()))
    way = "lower" if number.direction == "minimize" else "higher"
    names = " and ".join(f"`{path}`" for path in editable)
    improve = f"`{file.name}` prints `{number.metric}`. Improve {names} so that this number gets {way}."
    return ForeignTask(
        system="a script",
        name=name_of(file),
        goal="\n\n".join(filter(None, [improve, "What it computes must stay what it is now.", marked(seed)])),
        editable=editable,
        seed=seed,
        theirs={},
        command=COMMANDS[file.suffix].format(shlex.quote(file.name)),
        read=number.read,
        metric=number.metric,
        direction=number.direction or "maximize",
        packages=packages(seed),
        notes=(*number.notes, *told_along(path for path in seed if path != file.name)),
    )


def _printed(files: Mapping[str, File]) -> list[str]:
    """Return the names of the METRIC lines in these files."""
    texts = (joined_lines(data.decode(errors="replace")) for data, _ in files.values())
    return list(dict.fromkeys(match[1] for text in texts for match in METRIC.finditer(text)))


def _named(files: Mapping[str, File], begin: Iterable[str]) -> dict[str, File]:
    """Return the files that are reached from these paths: those whose path or module stands in a source."""
    reached: dict[str, File] = {}
    queue = list(begin)
    while queue:
        path = queue.pop()
        if path not in files or path in reached:
            continue
        reached[path] = files[path]
        text = re.sub(
            r"\$\{?\w{1,80}\}?/", " ", joined_lines(files[path][0][:MAX_SOURCE_BYTES].decode(errors="replace"))
        )
        words = {word.strip("./") for word in islice(WORD.findall(text), MAX_WORDS)}
        words |= {f"{word.replace('.', '/')}{end}" for word in words for end in (".py", "/__init__.py", ".js", ".rs")}
        here = f"{path.rpartition('/')[0]}/".lstrip("/")
        queue += [each for each in files if each in words or (here and each.removeprefix(here) in words)]
    return dict(sorted(reached.items()))


FORMATS = (
    Format(
        (
            "autoresearch.md with autoresearch.sh (or .auto/prompt.md with .auto/measure.sh) that prints METRIC"
            " name=value lines, and a list of Files in Scope (autoresearch)"
        ),
        read_autoresearch,
        5,
        lacking,
    ),
    Format("a file: a script that prints METRIC name=value", read_script, 6),
)
