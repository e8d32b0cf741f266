"""Reads a program that prints a number: any script, in any language that is started with one command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from evogit.adopt.foreign_task import File, ForeignTask, name_of, reached
from evogit.adopt.sources import file_at, marked, packages, repeats
from evogit.config.printed_numbers import direction_of, read_of
from evogit.core import Direction

EXPECTED = "a file: a script that prints a number (the last one counts; METRIC name=value, JSON, name: value)"
NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
COMMANDS = {
    ".R": "Rscript {}",
    ".c": "cc -O2 -o .program {} -lm && ./.program",
    ".cc": "c++ -O2 -o .program {} && ./.program",
    ".cpp": "c++ -O2 -o .program {} && ./.program",
    ".go": "go run {}",
    ".jl": "julia {}",
    ".js": "node {}",
    ".lua": "lua {}",
    ".pl": "perl {}",
    ".py": "python3 {}",
    ".r": "Rscript {}",
    ".rb": "ruby {}",
    ".rs": "rustc -O -o .program {} && ./.program",
    ".sh": "bash {}",
}
"""How a file with this ending is started."""
METRIC = re.compile(r"METRIC\s+([A-Za-z_]\w*)\s*=")
LABEL = re.compile(r"[\"'](?:[^\"'\n]*\s)?([A-Za-z_]\w*)\s*[:=]\s*(?:[\"']|\{|%)")
"""A label in front of a number, in a print."""
TIMEOUT = 300.0


def read_script(file: Path) -> ForeignTask | None:
    """The task in a file, None where it is none that can be started."""
    if not file.is_file() or (file.suffix not in COMMANDS and not file.stat().st_mode & 0o100):
        return None
    command = COMMANDS.get(file.suffix, "./{}").format(shlex.quote(file.name))
    beside = {path.name: file_at(path) for path in file.parent.glob("*.py") if path.is_file()}
    seed = {path: each for path, each in beside.items() if path in reached(beside, {file.name})}
    seed[file.name] = file_at(file)
    metric, read = number_of([data.decode(errors="replace") for data, _ in seed.values()])
    direction = direction_of(metric, read)
    way = "higher" if (direction or "maximize") == "maximize" else "lower"
    guess = f"{metric} is taken to be better the {way} it is; `evogit adopt` writes a task in which you can change that"
    return ForeignTask(
        system="a script",
        name=name_of(file),
        goal=goal_of(file, seed, metric, way),
        editable=(file.name,),
        seed=seed,
        theirs={},
        command=command,
        read=read,
        metric=metric,
        direction=direction or "maximize",
        timeout=TIMEOUT,
        packages=packages(seed),
        repeats=repeats(seed),
        notes=() if direction else (guess,),
    )


def goal_of(file: Path, seed: Mapping[str, File], metric: str, way: str) -> str:
    """What agents are told of a program that says nothing of itself."""
    said = f"`{file.name}` prints `{metric}`. Improve it so that this number gets {way}."
    return "\n\n".join(filter(None, [said, "What it computes must stay what it is now.", marked(seed)]))


def number_of(texts: list[str]) -> tuple[str, str]:
    """What the number is called, and how it is read from what a program of these sources prints."""
    for text in texts:
        if found := METRIC.search(text):
            return found[1], metric_line(found[1])
    for metric, read in read_of(texts).items():
        return metric, read
    for text in texts:
        labels = [label for label in LABEL.findall(text) if direction_of(label, "json")]
        if labels:
            return labels[-1].lower(), labelled(labels[-1])
    return "score", f"regex:(?<![\\w.]){NUMBER}"


def metric_line(metric: str) -> str:
    """How a line METRIC name=value is read."""
    return rf"regex:^\s*METRIC\s+{re.escape(metric)}\s*=\s*{NUMBER}"


def labelled(metric: str) -> str:
    """How the number behind a label is read."""
    return rf"regex:\b{re.escape(metric)}\s*[:=]\s*{NUMBER}"


def direction_said(text: str, metric: str) -> Direction | None:
    """Which way is better, as a text for people says of this metric."""
    near = [line.lower() for line in text.splitlines() if metric.lower() in line.lower()]
    for words, direction in (
        ("lower|lowest|minimi[sz]e|smaller", "minimize"),
        ("higher|highest|maximi[sz]e", "maximize"),
    ):
        if any(re.search(rf"\b({words})", line) for line in near):
            return "minimize" if direction == "minimize" else "maximize"
    return direction_of(metric, "json")
