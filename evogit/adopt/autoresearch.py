"""Reads an autoresearch folder: `program.md` (or `autoresearch.md`) that names a file, a command and a number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, field

from evogit.adopt.foreign_task import PLAIN, File, ForeignTask, name_of
from evogit.adopt.labels import labelled, labels_of
from evogit.adopt.neighbours import among
from evogit.adopt.script import METRIC, Number, metric_line, notes_of, number_of, plain_name, texts_of
from evogit.adopt.sources import files_below, packages, repeats
from evogit.adopt.wanted import direction_said
from evogit.config.printed_numbers import standing
from evogit.config.values import matches
from evogit.core import Direction

EXPECTED = "program.md or autoresearch.md that names a file beside it to change, a command and a number (autoresearch)"
PROGRAMS = ("program.md", "autoresearch.md")
SCRIPT = "autoresearch.sh"
LOG = "autoresearch.jsonl"
"""What was found; a line of it says which metric counts from there on, and which way."""
CHECKS = "autoresearch.checks.sh"
"""What has to pass behind an experiment of `SCRIPT`, or that counts for nothing."""
TOPLEVEL = b"rev-parse --show-toplevel"
"""How a script finds the folder it is in, for which that has to be a repository."""
OWN = {SCRIPT, CHECKS, LOG, *PROGRAMS}
"""What belongs to the instructions, and never changes."""
TIMEOUT = 600.0
"""Seconds of one experiment where nothing is said."""
FORBIDDEN = re.compile(
    r"\b(not (be )?(modif|edit|chang|touch)|read-only|fixed|cannot|never|off.limits|don't|but not)", re.IGNORECASE
)
ALLOWED = re.compile(r"\b(modif|edit|chang|tun|hack|in.scope|evolv|rewrit|optimi[sz]|improv)", re.IGNORECASE)
ABOUT_FILES = re.compile(r"\bfiles?\b|\bscope\b|\boff.limits\b", re.IGNORECASE)
SPAN = re.compile(r"`([^`\n]+)`")
TOLD = re.compile(
    r"^\W*(?:run|command|launch|execute|evaluate|benchmark)\w*[^:`\n]{0,30}:\s*([^`\n]+?)\.?$", re.IGNORECASE
)
RUNNER = re.compile(
    r"(?:(?:uv|poetry|pipenv|pdm|conda) run(?: -\S+)* +)?(?:python[\d.]*|torchrun|bash|sh|node|deno|bun|tsx|npx|npm|"
    r"pnpm|yarn|Rscript|julia|ruby|perl|lua|php|go|cargo|make|just|hyperfine|java)(?!\S)|"
    r"(?:uv|poetry|pipenv|pdm) run\b|\./"
)
"""What a command begins with, behind variables, `time` and `timeout`."""
BUILDS = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
    "cargo": ("Cargo.toml",),
    "go": ("go.mod",),
}
"""What runs a target -> the file that says what that is."""
PLACEHOLDER = re.compile(r"<[A-Za-z][\w ./-]*>|(?<!\$)\{[A-Za-z][\w ./-]*\}")
CONTINUED = re.compile(r"\s*\\\n\s*")
BACKGROUND = re.compile(r"(?<!&)&\s*$")
"""The end of a command that runs beside others, such as a dashboard."""
NUMBERED = re.compile(r"^\s*(?:\d+[.)]\s+|\$\s+)")
LOGGED = re.compile(r"\bgrep\b[^\n`]*?\s([\w./-]*\w\.(?:log|txt|out))\b")
"""The file that a number is looked for in, to which an experiment writes."""
BEFORE = re.compile(r"^(?:(?:time|nohup|env|exec|timeout(?: -\S+)* \d+[smh]?)\s+)+")
VARIABLES = re.compile(r"^(?:[A-Z_][A-Z0-9_]*=\S*\s+)+")
GREP = re.compile(
    r"\bgrep\s+(?:-[\w-]+\s+)*(?!for\b)[\"']?(?:[\^(* ]|\\[sb])*([A-Za-z_]\w*)(?!\w|[:=]\d)\s*([:=]?)|"
    r"\bawk\s+[\"']/\^?([A-Za-z_]\w*)([:=]?)"
)
NAME = r"[A-Za-z_]\w*(?:[.-]\w+)*"
PRIMARY = re.compile(
    r"(?:\*\*(?:primary|primary metric|metric|key metric)(?::\*\*|\*\*\s*:|:)\s*|"
    r"\bprimary metric\b(?:[^\n`\w.]*|[^`\w.]*(?=`)))"
    rf"(?:(?:is|to|the|maximi[sz]e|minimi[sz]e)\s+)*(?P<quoted>`?)[`*]*(?P<name>{NAME})|"
    rf"`(?P<before>{NAME})`[^\w\n`]{{1,5}}(?:the )?primary metric\b",
    re.IGNORECASE,
)
SAID = re.compile(
    r"\bmetric(?:\s+(?:is|name))?\s*:?\s*[`*]*([A-Za-z_]\w*)|"
    r"\b(?:lowest|highest|minimi[sz]e|maximi[sz]e|reduce|increase|improve)\s+(?:the\s+)?[`*]*([A-Za-z_]\w*)",
    re.IGNORECASE,
)
"""How a text names its metric where it says no more."""
NO_METRIC = re.compile(
    r"(errors?|traceback|exceptions?|warnings?|nan|inf|oom|name|feedback|output|the|is|are|a|an|to|of|for|and|it|lower|"
    r"higher|better)$",
    re.IGNORECASE,
)
"""What is grepped for to see whether a run failed, and words that are no names."""
STICK = re.compile(
    r"(^|[/_.-])(bench\w*|eval\w*|measur\w*|scor(er?|ing)|harness|verif\w*|tests?)(?=[/_.-])", re.IGNORECASE
)
"""What the names of files tell that measure."""
SETUP = re.compile(r"(^|/)(prepare|setup|install|download)\w*\.\w+$")
"""Programs that are run once, before experiments."""
DURATION = r"(\d+)\s*(s|m|h)(?:ec(?:ond)?s?|in(?:ute)?s?|ours?|rs?)?\b"
MOST = re.compile(
    rf"exceeds?\s+{DURATION}|{DURATION}[^.\n]*(?:\.[^.\n\d]*\bexceeds?[^.\n\d]*)?\bkill|"
    rf"\bkill[^.\n\d]{{0,40}}\b(?:after|exceeds?|longer than|over)\W+{DURATION}|"
    rf"\btimeout\W{{1,4}}{DURATION}|"
    r"\btimeout(?:\s+-\S+(?:\s+\d+[smh]?(?=\s+\d))?)*\s+(\d+)([smh]?)\s+(?=[A-Za-z_./])",
    re.IGNORECASE,
)
"""After how long an experiment is to be killed."""
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
PREAMBLE = (
    "These instructions were written for an agent that works alone. Here, EvoGit runs the experiments, keeps what is "
    "better and writes the log: propose one change of {files} at a time, and leave branches, commits and logs alone."
)


class Session(Struct, frozen=True):
    """A line of a session's log."""

    type: str = ""
    metric: str = field(default="", name="metricName")
    direction: str = field(default="", name="bestDirection")


class Found(Struct, frozen=True):
    """What instructions name: the files to change, the command, the number; empty or None where they do not.

    `measuring` are files that they name to be changed, but that the command reaches to measure others.
    """

    program: str
    text: str
    seed: Mapping[str, File]
    editable: tuple[str, ...]
    command: str
    number: Number | None
    measuring: tuple[str, ...] = ()

    @property
    def lacking(self) -> list[str]:
        """What they do not name, in words."""
        kinds = {
            "a file beside it to change": self.editable,
            "a command that starts a file beside it": self.command,
            'the number that counts (METRIC name=value, `grep "^name:"`, **Primary**: name)': self.number,
        }
        return [kind for kind, found in kinds.items() if not found]


def read_autoresearch(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where nothing says what to change, what to run or what counts."""
    found = _found(folder)
    if found is None or found.number is None or found.lacking:
        return None
    seed, number = found.seed, found.number
    return ForeignTask(
        system="autoresearch",
        name=name_of(folder),
        goal=f"{PREAMBLE.format(files=', '.join(f'`{path}`' for path in found.editable))}\n\n{found.text}",
        editable=found.editable,
        seed=seed,
        theirs={},
        command=found.command,
        read=number.read,
        metric=number.metric,
        direction=number.direction or "maximize",
        timeout=_timeout(found.text),
        packages=packages({**seed, "project/requirements.txt": seed.get("pyproject.toml", (b"", PLAIN))}),
        repeats=repeats(
            {"command.sh": (found.command.encode(), PLAIN)},
            _run(found.command, seed),
            {path: file for path, file in seed.items() if matches(path, found.editable)},
        ),
        notes=(*notes_of(number), *_told_measuring(found)),
    )


def lacking(folder: Path) -> str:
    """Why a folder with instructions is no task, in a sentence; empty where there are none, or they suffice."""
    found = _found(folder) if folder.is_dir() else None
    return f"{found.program} does not name {', or '.join(found.lacking)}" if found and found.lacking else ""


def _timeout(text: str) -> float:
    """Seconds after which an experiment is to be killed, as a text says, also by the `timeout` of its command."""
    if (match := MOST.search(text)) is None:
        return TIMEOUT
    amount, unit = (each for each in match.groups() if each is not None)
    return int(amount) * UNITS[unit.lower()] or TIMEOUT


def _found(folder: Path) -> Found | None:
    program = next((name for name in PROGRAMS if (folder / name).is_file()), None)
    if program is None:
        return None
    text = (folder / program).read_text(encoding="utf-8", errors="replace")
    seed = files_below(folder)
    command = _command(text, seed)
    named, reached = _editable(text, seed), _run(command, seed)
    kept = tuple(glob for glob in named if STICK.search(glob) and any(matches(path, [glob]) for path in reached))
    if not (editable := tuple(glob for glob in named if glob not in kept)):
        editable, kept = named, ()
    return Found(program, text, seed, editable, command, _number(text, command, seed), kept)


# --- what may change ------------------------------------------------------------------------------------------------


def _editable(text: str, files: Mapping[str, File]) -> tuple[str, ...]:
    """The files that the text allows to change, without those that it forbids; patterns stay what they are."""
    allowed, forbidden, section = set[str](), set[str](), ""
    for line in text.splitlines():
        section = _section(line, section)
        for part, may in _parts(SPAN.sub(lambda span: "" if _commands(span[1], files) else span[0], line), section):
            globs = {glob for name in re.findall(r"[\w./*-]+", part) if (glob := _glob(name, files))}
            allowed |= globs if may else set()
            forbidden |= globs if may is False else set()
    left = {path for glob in allowed - forbidden for path in _apart(glob, forbidden, files)}
    return tuple(sorted((left or allowed) - OWN))


def _told_measuring(found: Found) -> Iterator[str]:
    """What a person is told where files stay as they are that instructions name to be changed."""
    if found.measuring:
        yield (
            f"what seems to measure the others stays as it is, though {found.program} names it among what may change: "
            f"{', '.join(found.measuring)}; `evogit adopt` writes a task in which you can change that"
        )


def _parts(line: str, section: str) -> Iterator[tuple[str, bool | None]]:
    """The parts of a line, and whether what each names may change, as it or else its heading says; None for neither.

    What is excepted from a part is the other way round.
    """
    before: bool | None = None
    for part in re.split(r"(?<=[.;])\s|,?\s(?=(?:but|except|apart from|other than)\b)", line):
        below = next((said for each in reversed(section.split("\n")) if (said := _says(each)) is not None), None)
        may = _says(part)
        if re.match(r"except|apart from|other than", part) and before is not None:
            may = not before
        elif may is None or below is False:
            may = below
        before = may
        yield part, may


def _says(text: str) -> bool | None:
    """Whether a text allows to change what it names, or forbids it; None where it does neither."""
    return False if FORBIDDEN.search(text) else True if ALLOWED.search(text) else None


def _section(line: str, section: str) -> str:
    """The headings that a line stands under: a bold line is one, until a paragraph follows, and one before a list.

    What stands below a heading about files is about these too, whatever its own heading.
    """
    *above, last = section.split("\n")
    bold = not last.startswith("#")
    if re.match(r"#|\*\*[^*]+\*\*:?\s*$", line):
        level = len(line) - len(line.lstrip("#")) or len(line)
        headings = [each for each in (*above, *([] if bold else [last])) if ABOUT_FILES.search(each)]
        return "\n".join([*(each for each in headings if len(each) - len(each.lstrip("#")) < level), line])
    if not re.match(r"[^\s\d*-]|\*\*", line):
        return section
    kept = above if bold else [*above, last]
    return "\n".join([*kept, line] if re.search(r":\W*$", line) else kept)


def _glob(name: str, files: Mapping[str, File]) -> str:
    """The glob that a name means, empty where it means no files: a path, a pattern, a folder with its slash."""
    name = name.strip("*" if name.startswith("**") else "").rstrip(".").removeprefix("./")
    name = name if name.endswith("/**") else name.removesuffix("**")  # the end of what is bold
    if name in files:
        return name
    glob = f"{name}**" if name.endswith("/") else name
    return glob if "*" in glob and glob.strip("*./") and any(matches(path, [glob]) for path in files) else ""


def _apart(glob: str, forbidden: set[str], files: Mapping[str, File]) -> list[str]:
    """A glob, or where it covers what is forbidden, the files that are left of it."""
    covered = [path for path in files if matches(path, [glob])]
    without = [path for path in covered if not matches(path, forbidden) and path not in OWN]
    return [glob] if covered == without else without


# --- what is run ----------------------------------------------------------------------------------------------------


def _command(text: str, files: Mapping[str, File]) -> str:
    """The command of an experiment: of those that write to the log which is looked into, else of all, the commonest."""
    if SCRIPT in files:
        checked = f" && {_interpreter(files[CHECKS][0])} {CHECKS} >&2" if CHECKS in files else ""
        asks = any(TOPLEVEL in files[name][0] for name in (SCRIPT, CHECKS) if name in files)
        return f"{'git init -q && ' if asks else ''}{_interpreter(files[SCRIPT][0])} {SCRIPT}{checked}"
    text = PLACEHOLDER.sub("x", CONTINUED.sub(" ", text))
    plain = [line for line in text.splitlines() if "`" not in line]
    lines = [match[1] if match else line for line in plain for match in (TOLD.match(line),)]
    logs = "|".join(map(re.escape, LOGGED.findall(text)))
    for places in ([*SPAN.findall(text), *plain], lines):
        logged = [place for place in places if logs and re.search(rf"(?:>|\btee(?: -a)?)\s*(?:{logs})(?!\S)", place)]
        for some, setup in ((logged, False), (places, False), (places, True)):
            told = Counter(command for place in some for command in _commands(place, files, setup=setup))
            if told:
                return min(told, key=lambda command: (-told[command], len(command)))
    return ""


def _interpreter(script: bytes) -> str:
    """What a script says that runs it; bash, where that is no language which is known here."""
    first = re.match(rb"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?([\w.]+)", script)
    name = first[1].decode() if first else ""
    return name if re.fullmatch(r"python[\d.]*|node|ruby|perl|Rscript|julia", name) else "bash"


def _commands(text: str, files: Mapping[str, File], *, setup: bool = False) -> list[str]:
    """The command in a line that starts something of the folder's, as it is to be run here; several as one, in turn."""
    found, below, moves = [], "", ""
    for part in re.split(r"\s*(?:&&|;)\s*", NUMBERED.sub("", text.strip())):
        words = re.split(r"\s*(?:\d?>|\||2>|&>|\s&(?:\s|$)|\s#\s)", part, maxsplit=1)[0].strip()
        if moved := re.match(r"cd\s+([\w./-]+)$", words):
            folder = moved[1].strip("/").removeprefix("./")
            below = folder if any(path.startswith(f"{folder}/") for path in files) else ""
            moves = f"cd {below} && " if below else ""
            continue
        words = BEFORE.sub("", words)
        variables = VARIABLES.match(words)
        words = BEFORE.sub("", words[variables.end() :] if variables else words)
        programs = _programs(words, below, files)
        if not RUNNER.match(words) or not programs or BACKGROUND.search(part):
            continue
        if setup or not SETUP.search(programs[0]):
            found.append(f"{moves}{variables[0] if variables else ''}{_plain(words)}")
            moves = ""
    return [" && ".join(found)] if found else []


def _programs(command: str, place: str, files: Mapping[str, File]) -> list[str]:
    """The files that a command names, also as modules, or the file that says what its target is."""
    prefix = f"{place}/" if place else ""
    words = command.split()
    modules = re.findall(r"\s-m\s+([\w.]+)", command)
    names = [*words, *(f"{name.replace('.', '/')}{end}" for name in modules for end in (".py", "/__main__.py"))]
    names += BUILDS.get(words[0], ()) if words else ()
    return [path for name in names if (path := prefix + name.strip("\"'").removeprefix("./")) in files]


def _plain(command: str) -> str:
    """A command without what manages packages, which the sandbox has installed."""
    command = re.sub(r"^(?:uv|poetry|pipenv|pdm)\s+run\s+(?:--?\S+\s+)*(?=\S+\.py\b)", "python3 ", command)
    command = re.sub(r"^(?:uv|poetry|pipenv|pdm)\s+run\s+(?:-(?!m\b)\S+\s+)*(?=-m\b)", "python3 ", command)
    command = re.sub(r"^(?:uv|poetry|pipenv|pdm)\s+run\s+(?:--?\S+\s+)*", "", command)
    return re.sub(r"^python\s", "python3 ", command).strip()


def _run(command: str, files: Mapping[str, File]) -> dict[str, File]:
    """The files that a command reaches."""
    place, programs = "", list[str]()
    for part in command.split(" && "):
        if part.startswith("cd "):
            place = part.removeprefix("cd ")
        programs += _programs(VARIABLES.sub("", part), place, files)
    return among(files, programs)


# --- what counts ----------------------------------------------------------------------------------------------------


def _number(text: str, command: str, files: Mapping[str, File]) -> Number | None:
    """The number that counts: the one that is called primary, then what is grepped for, then what sources print."""
    texts = texts_of(_run(command, files)) or texts_of(files)
    lines = any("METRIC" in source for source in [*texts, text if SCRIPT in files else ""])
    labels = {label.metric: label.read for source in texts for label in labels_of(source)}
    logged = _logged(files)

    def way(name: str) -> Direction | None:
        return logged.get(name) or direction_said(text, name)

    counted = [(name, "=") for name in logged if any(name in each for each in [text, *texts])]
    for name, between in [*counted, *_named(text, texts)]:
        if lines and (
            any(name == match[1] for source in texts for match in METRIC.finditer(source)) or name not in labels
        ):
            return Number(plain_name(name), metric_line(name), way(name))
        return Number(plain_name(name), labels.get(name) or labelled(name, between), way(name))
    number = number_of(texts)
    if re.search(rf"\b{re.escape(number.metric)}\b", text):
        return Number(number.metric, number.read, direction_said(text, number.metric))
    return None


def _logged(files: Mapping[str, File]) -> dict[str, Direction]:
    """The metric that the log of a session says to count, and which way is better; empty where it says neither."""
    ways: dict[str, Direction] = {"lower": "minimize", "higher": "maximize"}
    data, _ = files.get(LOG, (b"", PLAIN))
    for line in reversed(data.splitlines()):
        with suppress(msgspec.DecodeError):
            said = msgspec.json.decode(line, type=Session)
            if said.type == "config" and said.metric and said.direction in ways:
                return {said.metric: ways[said.direction]}
    return {}


def _named(text: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names that instructions and sources give the number, the most certain first, and the sign behind each."""
    everything = "\n".join([text, *texts])

    def printed(name: str) -> bool:
        return re.search(rf"\b{re.escape(name)}\b[`*]*\s*([:=]|[\"']\s*,|\s[{{%$])", everything) is not None

    primary = [(each["name"] or each["before"], each["quoted"] != "") for each in PRIMARY.finditer(text)]
    names = [(name, ":") for name, quoted in primary if quoted or printed(name)]
    names += [(match[1], "=") for match in METRIC.finditer(text)]
    greps = [(match[1] or match[3], match[2] or match[4] or "") for match in GREP.finditer(text)]
    names += [each for each in greps if each[1]]
    names += [each for each in greps if not each[1] and printed(each[0])]
    lines = sorted((match[1] for source in texts for match in METRIC.finditer(source)), key=standing)
    names += [(name, "=") for name in lines]
    names += [(name, "") for match in SAID.finditer(text) if printed(name := match[1] or match[2])]
    names += [(name, ":") for name, _ in primary]
    yield from ((name, between) for name, between in names if not NO_METRIC.match(name))
