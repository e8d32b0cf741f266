"""Reads an autoresearch folder: `program.md` (or `autoresearch.md`) that names a file, a command and a number."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from evogit.adopt.foreign_task import PLAIN, File, ForeignTask, name_of
from evogit.adopt.script import METRIC, direction_said, labelled, metric_line, number_of
from evogit.adopt.sources import files_below, packages, repeats

EXPECTED = "program.md or autoresearch.md that names a file beside it to change, a command and a number (autoresearch)"
PROGRAMS = ("program.md", "autoresearch.md")
SCRIPT = "autoresearch.sh"
TIMEOUT = 600.0
"""Seconds of one experiment where nothing is said."""
FORBIDDEN = re.compile(
    r"\b(not (be )?(modif|edit|chang|touch)|read-only|fixed|cannot|never|off.limits|don't)", re.IGNORECASE
)
ALLOWED = re.compile(r"\b(modif|edit|chang|tun|hack|in.scope|evolv|rewrit|optimi[sz]|improv)", re.IGNORECASE)
COMMAND = re.compile(
    r"(?:`|^[ \t]*(?:\$ )?)(?:time\s+)?"
    r"((?:(?:uv run|python3?|bash|sh|node|Rscript)\s+(?:python3?\s+)?|\./)([\w./-]+)[^`\n>|]*)",
    re.MULTILINE,
)
GREP = re.compile(r"grep[^\n]*?[\"']\^?([A-Za-z_]\w*)[:=]")
SETUP = re.compile(r"(^|/)(prepare|setup|install|download)\w*\.\w+$")
"""Programs that are run once, before experiments."""
MOST = re.compile(r"exceeds?\s+(\d+)\s+minutes|(\d+)\s+minutes?[^.\n]*\bkill", re.IGNORECASE)
PREAMBLE = (
    "These instructions were written for an agent that works alone. Here, EvoGit runs the experiments, keeps what is "
    "better and writes the log: propose one change of {files} at a time, and leave branches, commits and logs alone."
)


def read_autoresearch(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where nothing says what to change, what to run or what counts."""
    program = next((name for name in PROGRAMS if (folder / name).is_file()), None)
    if program is None:
        return None
    text = (folder / program).read_text(encoding="utf-8", errors="replace")
    seed = files_below(folder)
    editable, command = _editable(text, seed), _command(text, seed)
    found = _metric(text, seed)
    if not editable or not command or found is None:
        return None
    metric, read = found
    minutes = next((int(each[1] or each[2]) for each in MOST.finditer(text)), 0)
    return ForeignTask(
        system="autoresearch",
        name=name_of(folder),
        goal=f"{PREAMBLE.format(files=', '.join(f'`{path}`' for path in editable))}\n\n{text}",
        editable=editable,
        seed=seed,
        theirs={},
        command=command,
        read=read,
        metric=metric,
        direction=direction_said(text, metric) or "maximize",
        timeout=60.0 * minutes or TIMEOUT,
        packages=packages({**seed, "requirements.txt": (_dependencies(seed), PLAIN)}),
        repeats=repeats({path: file for path, file in seed.items() if path in (*editable, SCRIPT)}),
    )


def _editable(text: str, files: Mapping[str, File]) -> tuple[str, ...]:
    """The files that the text allows to change, without those that it forbids."""
    allowed, forbidden, section = set[str](), set[str](), ""
    for line in text.splitlines():
        section = line if line.startswith(("#", "**")) else section
        for part in re.split(r"(?<=[.;])\s", line):
            names = {name.rstrip(".") for name in re.findall(r"[\w./-]+", part)} & files.keys()
            if FORBIDDEN.search(part) or FORBIDDEN.search(section):
                forbidden |= names
            elif ALLOWED.search(part) or ALLOWED.search(section):
                allowed |= names
    allowed -= {SCRIPT, *PROGRAMS}
    return tuple(sorted(allowed - forbidden or allowed))


def _command(text: str, files: Mapping[str, File]) -> str:
    """The command of an experiment: what the text tells to run most often."""
    if SCRIPT in files:
        return f"bash {SCRIPT}"
    told = Counter(
        match[0].strip()
        for match in COMMAND.findall(text)
        if match[1].removeprefix("./") in files and not SETUP.search(match[1])
    )
    for command, _ in told.most_common(1):
        return re.sub(r"^(uv run\s+(python3?\s+)?|python\s+)", "python3 ", command)
    return ""


def _metric(text: str, files: Mapping[str, File]) -> tuple[str, str] | None:
    """What the number is called and how it is read."""
    sources = [
        text,
        *(data.decode(errors="replace") for path, (data, _) in files.items() if path.endswith((".py", ".sh"))),
    ]
    for found in (METRIC.search(source) for source in sources):
        if found and found[1] != "name":
            return found[1], metric_line(found[1])
    if found := re.search(r"\*\*Primary\*\*:\s*`?(\w+)", text):
        return found[1], metric_line(found[1])
    if found := GREP.search(text):
        return found[1], labelled(found[1])
    metric, read = number_of(sources[1:])
    return (metric, read) if metric in text else None


def _dependencies(files: Mapping[str, File]) -> bytes:
    """What a pyproject.toml asks for, as a requirements file."""
    data, _ = files.get("pyproject.toml", (b"", 0))
    try:
        asked = tomllib.loads(data.decode(errors="replace")).get("project", {}).get("dependencies", [])
    except tomllib.TOMLDecodeError:
        return b""
    return "\n".join(each for each in asked if isinstance(each, str)).encode()
