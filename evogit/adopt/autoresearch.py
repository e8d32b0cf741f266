"""Reads an autoresearch session: `autoresearch.md` and `autoresearch.sh`, or `.auto/prompt.md` and `.auto/measure.sh`.

Only what is said in a form that sessions have is read: the log's configuration, METRIC lines, `**Primary**`, and the
list below `Files in Scope`. Instructions in prose are for models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, field

from evogit.adopt.foreign_task import PLAIN, SHIMS, File, ForeignTask, name_of
from evogit.adopt.installs import TOOLS, commands, installed
from evogit.adopt.neighbours import among
from evogit.adopt.past import object_of
from evogit.adopt.script import METRIC, Number, metric_line, notes_of, plain_name, texts_of
from evogit.adopt.sources import PACKAGES, files_below, imported, merged, normal, packages
from evogit.config.printed_numbers import direction_of
from evogit.config.values import matches
from evogit.contained import file_at, find_text, has_file, joined_lines, lines_of, text_at, walk
from evogit.core import Direction
from evogit.scaffold.project import ProjectFiles
from evogit.scaffold.python_project import project_requirements, serves_tests

EXPECTED = (
    "autoresearch.md with autoresearch.sh (or .auto/prompt.md with .auto/measure.sh) that prints METRIC name=value "
    "lines, and a list of Files in Scope (autoresearch)"
)
PROSE = "program.md"
TOPLEVEL = b"rev-parse --show-toplevel"
"""How a script finds the folder it is in, for which that has to be a repository."""
TIMEOUT = 600.0
"""Seconds of one experiment."""
MAX_LOG_LINES = 10_000
SPAN = re.compile(r"`([^`\n]{1,200})`")
SCOPE = re.compile(r"^(#{1,6} |\*\*) ?(?:files in scope|in scope|scope)\b", re.IGNORECASE)
LIST = re.compile(r"[ \t]{0,8}(?:[-*+]|\d{1,3}[.)])[ \t]")
HEADING = re.compile(r"(#{1,6}) |\*\*")
PRIMARY = re.compile(
    r"\*\*primary(?: metric)?(?::\*\*|\*\*[ \t]{0,4}:)[ \t]{0,4}`?([A-Za-z_]\w{0,80}(?:[.-]\w{1,80}){0,4})`?(.{0,200})",
    re.IGNORECASE,
)
WAYS: dict[Direction, re.Pattern[str]] = {
    "minimize": re.compile(r"\blower(?: is|,)? (?:is )?better\b|\bminimi[sz]e\b", re.IGNORECASE),
    "maximize": re.compile(r"\bhigher(?: is|,)? (?:is )?better\b|\bmaximi[sz]e\b", re.IGNORECASE),
}
STICK = re.compile(
    r"(^|[/_.-])(bench\w*|eval\w*|measur\w*|scor(er?|ing)|harness|verif\w*|tests?)(?=[/_.-])", re.IGNORECASE
)
"""What the names of files tell that measure."""
PROJECT = "pyproject.toml"
AUTO = ".auto"
"""The folder of a session."""
UNUSED = (f"{AUTO}/hooks/", f"{AUTO}/log.jsonl", f"{AUTO}/ideas.md")
"""The files of a session that no experiment needs."""
SHELL = re.compile(r"\.(ba)?sh$|(^|/)Makefile$")
MAX_SCRIPT_BYTES = 1 << 16
"""Bytes of a shell script in which commands are looked for."""
BENCHMARKS = re.compile(r"bench(marks?|marking)?$|perf(ormance)?$")
"""Groups of optional dependencies that are for measuring."""
PREAMBLE = (
    "These instructions were written for an agent that works alone. Here, EvoGit runs the experiments, keeps what is "
    "better and writes the log: propose one change of {files} at a time, and leave branches, commits and logs alone."
)


class Layout(Struct, frozen=True):
    """The paths of a session's instructions, measuring script, checking script, log, and configuration."""

    program: str
    script: str
    checks: str
    log: str
    config: str

    @property
    def own(self) -> tuple[str, ...]:
        """The files of the session that are read."""
        return self.program, self.script, self.checks, self.log

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


class Session(Struct, frozen=True):
    """A line of a session's log."""

    type: str = ""
    metric: str = field(default="", name="metricName")
    direction: str = field(default="", name="bestDirection")


class Found(Struct, frozen=True):
    """Return the files to change and the number that a session names; empty or None if it names none.

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
        kinds = {
            "a file beside it to change (a list below `Files in Scope`)": self.editable,
            "the number that counts (METRIC name=value, **Primary**: name, metricName in the log)": self.number,
        }
        return [kind for kind, found in kinds.items() if not found]


def read_autoresearch(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where nothing says what to change or what counts."""
    found = _found(folder)
    if found is None or found.number is None or found.lacking:
        return None
    seed, number, layout = found.seed, found.number, found.layout
    return ForeignTask(
        system="autoresearch",
        name=name_of(folder),
        goal=f"{PREAMBLE.format(files=', '.join(f'`{path}`' for path in found.editable))}\n\n{found.text}",
        editable=found.editable,
        seed=seed,
        theirs={},
        command=_command(layout, seed),
        read=number.read,
        metric=number.metric,
        direction=number.direction or "maximize",
        timeout=TIMEOUT,
        packages=_packages(seed, found.reached),
        notes=(*notes_of(number), *_told_measuring(found)),
    )


def lacking(folder: Path) -> str:
    """Why a folder with instructions is no task, in a sentence; empty where there are none, or they suffice."""
    found = _found(folder) if folder.is_dir() else None
    if found and found.lacking:
        return f"{found.layout.program} does not name {', or '.join(found.lacking)}"
    if found is None and (reason := _lacking_part(folder)):
        return reason
    if found is None and folder.is_dir() and has_file(folder, PROSE):
        return (
            f"{PROSE} says in prose what to change, to run and to measure, which is not read; `evogit init --editable "
            "FILE --command COMMAND --read NAME=regex:PATTERN --minimize NAME` makes a task of it"
        )
    return ""


def _lacking_part(folder: Path) -> str:
    """Return why a folder with a part of a session is none; empty if it has no part."""
    for layout in LAYOUTS:
        values = object_of(find_text(folder, layout.config))
        if isinstance(values.get("workingDir"), str):
            return f"{layout.config} says that the session is in {values['workingDir']}: name that folder"
        has = [name for name in (layout.program, layout.script) if has_file(folder, name)]
        if has:
            lacks = next(name for name in (layout.program, layout.script) if name not in has)
            return f"{has[0]} has no {lacks} beside it"
    return ""


def _found(folder: Path) -> Found | None:
    layout = next((each for each in LAYOUTS if all(has_file(folder, name) for name in each.own[:2])), None)
    if layout is None:
        return None
    text = text_at(folder, layout.program)
    own = {name: file_at(folder, name) for name in layout.own if has_file(folder, name)}
    seed = {**files_below(folder), **_inside(folder), **own}
    named, reached = tuple(_without_own(_editable(text, seed), layout, seed)), _reached(layout, seed)
    kept = tuple(glob for glob in named if STICK.search(glob) and any(matches(path, [glob]) for path in reached))
    if not (editable := tuple(glob for glob in named if glob not in kept)):
        editable, kept = named, ()
    return Found(layout, text, seed, reached, editable, _number(layout, text, seed, reached), kept)


def _inside(folder: Path) -> dict[str, File]:
    """The files in the session's folder that scripts may start."""
    paths = [f"{AUTO}/{path}" for path in walk(folder / AUTO)] if (folder / AUTO).is_dir() else []
    return {path: file_at(folder, path) for path in paths if not path.startswith(UNUSED) and has_file(folder, path)}


def _without_own(globs: Iterable[str], layout: Layout, files: Mapping[str, File]) -> Iterator[str]:
    """The globs of what may change; one that covers a file of the session becomes the other files that it covers."""
    for glob in globs:
        covered = [path for path in files if matches(path, [glob])]
        if any(map(layout.is_own, covered)):
            yield from (path for path in covered if not layout.is_own(path))
        elif not layout.is_own(glob):
            yield glob


def _editable(text: str, files: Mapping[str, File]) -> tuple[str, ...]:
    """The files that a list below `Files in Scope` names first in each of its items; patterns stay what they are."""
    found, level = dict[str, None](), 0
    for line in lines_of(text):
        heading = HEADING.match(line)
        if scope := SCOPE.match(line):
            level = scope[1].count("#") or 7
        elif heading and (len(heading[1] or "") or 7) <= level:
            level = 0
        if level and (scope or LIST.match(line)) and (span := SPAN.search(line)) and (glob := _glob(span[1], files)):
            found[glob] = None
    return tuple(sorted(found))


def _glob(name: str, files: Mapping[str, File]) -> str:
    """The glob that a name means, empty where it means no files: a path, a pattern, a folder with its slash."""
    name = name.removeprefix("./")
    glob = f"{name}**" if name.endswith("/") else name
    is_pattern = "*" in glob and glob.strip("*./") != ""
    return glob if glob in files or is_pattern and any(matches(path, [glob]) for path in files) else ""


def _told_measuring(found: Found) -> Iterator[str]:
    """What a person is told where files stay as they are that instructions name to be changed."""
    if found.measuring:
        yield (
            f"what seems to measure the others stays as it is, though {found.layout.program} names it among what may "
            f"change: {', '.join(found.measuring)}; `evogit adopt` writes a task in which you can change that"
        )


def _command(layout: Layout, files: Mapping[str, File]) -> str:
    """The command of an experiment, which counts for nothing if the checks fail after it."""
    scripts = [name for name in (layout.script, layout.checks) if name in files]
    steps = [f"{_interpreter(files[name][0])} {name}" for name in scripts]
    before = ["git init -q"] * any(TOPLEVEL in files[name][0] for name in scripts)
    if PROJECT in files and any(re.fullmatch(r"src/\w+/__init__\.py", path) for path in files):
        before.append('export PYTHONPATH="$PWD/src:$PYTHONPATH"')  # as if it were installed
    if any(
        TOOLS.intersection(_started(files[name][0][:MAX_SCRIPT_BYTES].decode(errors="replace"))) for name in scripts
    ):
        before.append(f'eval "$(python3 {SHIMS}/foreign_programs.py)"')
    return f"{' && '.join([*before, *steps])}{' >&2' if steps[1:] else ''}"


def _interpreter(script: bytes) -> str:
    """What a script says that runs it; bash, where that is no language which is known here."""
    first = re.match(
        rb"#![ \t]{0,8}(?:[^\s]{0,200}/env[ \t]{1,8}(?:-S[ \t]{1,8})?)?(?:[^\s]{0,200}/)?([\w.]{1,40})", script
    )
    name = first[1].decode() if first else ""
    return name if re.fullmatch(r"python[\d.]*|node|ruby|perl|Rscript|julia", name) else "bash"


def _reached(layout: Layout, files: Mapping[str, File]) -> dict[str, File]:
    """The files that an experiment reaches."""
    return among(files, [name for name in (layout.script, layout.checks) if name in files])


def _packages(files: Mapping[str, File], reached: Mapping[str, File]) -> tuple[str, ...]:
    """The packages of a project; of its optional ones those for benchmarks and tests, and what an experiment imports.

    Those that its scripts install, or start by their names, come along.
    """
    shell = (data[:MAX_SCRIPT_BYTES] for path, (data, _) in reached.items() if SHELL.search(path))
    script = joined_lines(b"\n".join(shell).decode(errors="replace"))
    started = set(_started(script))
    used = started | {normal(PACKAGES.get(module, module)) for module in imported(reached)}

    def is_needed(group: str, requirement: str) -> bool:
        name = re.match(r"[\w.-]*", requirement)
        is_used = name is not None and normal(name[0]) in used
        return is_used or BENCHMARKS.match(group) is not None or serves_tests(group, requirement)

    source = ProjectFiles(tuple(files), lambda path: files[path][0].decode(errors="replace"))
    plugins = ("pytest-benchmark",) if "pytest" in started and "--benchmark" in script else ()
    return merged(
        packages(files),
        project_requirements(source, is_needed) if PROJECT in files else (),
        tuple(text for _, text in installed(script)),
        (*sorted(started & TOOLS), *plugins),
    )


def _started(script: str) -> Iterator[str]:
    """Normal names of the programs that a shell script starts, also by `python -m` and `uv run`."""
    for words in commands(script):
        names = [word.rpartition("/")[2] for word in words]
        if names[0] in ("uv", "uvx", "poetry", "hatch", "pdm"):
            names = [name for name in names[1:] if name != "run" and not name.startswith("-")] or names
        is_module = re.fullmatch(r"python[\d.]*", names[0]) and "-m" in names[:-1]
        yield normal(names[names.index("-m") + 1].partition(".")[0] if is_module else names[0])


def _number(layout: Layout, text: str, files: Mapping[str, File], reached: Mapping[str, File]) -> Number | None:
    """The number that counts: as the log says, else the one called primary, else the only one of the METRIC lines."""
    for metric, way in (*_logged(files.get(layout.log, (b"", PLAIN))[0]), *_primary(text)):
        return Number(plain_name(metric), metric_line(metric), way or direction_of(plain_name(metric), "json"))
    printed = {match[1] for source in texts_of(reached) for match in METRIC.finditer(source)}
    for metric in printed if len(printed) == 1 else ():
        return Number(plain_name(metric), metric_line(metric), direction_of(plain_name(metric), "json"))
    return None


def _primary(text: str) -> Iterator[tuple[str, Direction | None]]:
    """The metric that instructions call primary, and which way is better."""
    for match in filter(None, map(PRIMARY.search, lines_of(text))):
        ways = [way for way, pattern in WAYS.items() if pattern.search(match[2])]
        yield match[1], ways[0] if len(ways) == 1 else None


def _logged(log: bytes) -> Iterator[tuple[str, Direction]]:
    """The metric that the last configuration in the log says to count, and which way is better."""
    ways: dict[str, Direction] = {"lower": "minimize", "higher": "maximize"}
    for line in reversed(log.splitlines()[-MAX_LOG_LINES:]):
        with suppress(msgspec.DecodeError, RecursionError):
            said = msgspec.json.decode(line, type=Session)
            if said.type == "config" and re.fullmatch(r"[\w.µμ-]{1,100}", said.metric) and said.direction in ways:
                yield said.metric, ways[said.direction]
