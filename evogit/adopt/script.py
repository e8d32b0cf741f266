"""Reads a program that prints a number: any script, in any language that is started with one command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from evogit.adopt import alphaevolve
from evogit.adopt.foreign_task import File, ForeignTask, name_of, told_along
from evogit.adopt.labels import best_label, time_of
from evogit.adopt.neighbours import beside, is_source, modules_started, words_of
from evogit.adopt.sources import marked, packages
from evogit.config.printed_numbers import (
    NUMBER,
    direction_of,
    read_of_object,
    read_of_time,
    standing,
)
from evogit.contained import lines_of
from evogit.core import Direction

EXPECTED = "a file: a script that prints a number (the last one counts; METRIC name=value, JSON, name: value)"
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
METRIC = re.compile(r"METRIC[ \t]{1,8}([A-Za-z_][\w.µμ-]{0,100})[ \t]{0,8}=(\d?)")
"""A line METRIC name=value, and the first digit where the value is always the same."""
GROUPS = re.compile(r"\{[^{}\n]{0,60}:[^{}\n\"',]{0,60},[^{}\n]{0,60}\}|toLocaleString|%'")
"""What prints a number with commas between its thousands."""
LAST = rf"regex:(?<![\w.]){NUMBER}"
"""How the last number is read."""
TIMEOUT = 300.0


class Number(Struct, frozen=True):
    """A number that a program prints: what it is called, how it is read, which way is better where that is known."""

    metric: str
    read: str
    direction: Direction | None


def read_script(file: Path) -> ForeignTask | None:
    """The task in a file, None where it is none that can be started."""
    if not file.is_file() or (file.suffix not in COMMANDS and not file.stat().st_mode & 0o100):
        return None
    if alphaevolve.lacking(file):  # started, it would print nothing
        return None
    command = COMMANDS.get(file.suffix, "./{}").format(shlex.quote(file.name))
    seed, large = beside(file)
    texts = texts_of(seed)
    number = number_of(texts)
    editable = (file.name, *started(file.name, seed))
    left_out = f"{', '.join(large)} did not come along, as it is too large; what reads it will fail"
    return ForeignTask(
        system="a script",
        name=name_of(file),
        goal=goal_of(editable, seed, number),
        editable=editable,
        seed=seed,
        theirs={},
        command=command,
        read=number.read,
        metric=number.metric,
        direction=number.direction or "maximize",
        timeout=TIMEOUT,
        packages=packages(seed),
        decimal="." if any(map(GROUPS.search, texts)) else "",
        notes=(
            *notes_of(number),
            *told_along(path for path in seed if path != file.name),
            *([left_out] if large else []),
        ),
    )


def texts_of(files: Mapping[str, File]) -> list[str]:
    """The texts of those files that are sources, without what no pattern looks at."""
    return ["\n".join(lines_of(data.decode(errors="replace"))) for path, (data, _) in files.items() if is_source(path)]


def started(script: str, seed: Mapping[str, File]) -> tuple[str, ...]:
    """The program that a shell script starts, where it is the only one that it names."""
    if not script.endswith((".sh", ".bash")):
        return ()
    lines = (line for line in lines_of(seed[script][0].decode(errors="replace")) if not line.lstrip().startswith("#"))
    text = "\n".join(lines)
    words = {word.lstrip("./") for word in words_of(text)}
    words |= set(modules_started(text))
    programs = [path for path in seed if path in words and Path(path).suffix in COMMANDS and path != script]
    return tuple(programs) if len(programs) == 1 else ()


def goal_of(editable: Sequence[str], seed: Mapping[str, File], number: Number) -> str:
    """What agents are told of a program that says nothing of itself."""
    way = "lower" if number.direction == "minimize" else "higher"
    program, *started = (f"`{path}`" for path in editable)
    it = f"it, or {started[0]}, which it starts," if started else "it"
    said = f"{program} prints `{number.metric}`. Improve {it} so that this number gets {way}."
    return "\n\n".join(filter(None, [said, "What it computes must stay what it is now.", marked(seed)]))


def notes_of(number: Number) -> tuple[str, ...]:
    """Return the note for a number or a direction that is a guess."""
    told, change = list[str](), "`evogit adopt` writes a task in which you can change that"
    if number.read == LAST:
        told.append("no label tells which number counts: the last one that is printed is read")
    if number.direction:
        return (f"{told[0]}; {change}",) if told else ()
    told.append(f"{number.metric} is taken to be better the higher it is")
    return (f"{'; '.join(told)}; {change}",)


def number_of(texts: Sequence[str]) -> Number:
    """The number that a program of these sources prints; the first one is what is started."""
    if found := [match for text in texts for match in METRIC.finditer(text)]:
        metric = min(found, key=lambda each: (each[2] != "", standing(each[1])))[1]
        return Number(plain_name(metric), metric_line(metric), direction_of(plain_name(metric), "regex:"))
    for metric, read in [item for text in texts for item in read_of_object(text).items()][:1]:
        return Number(metric, read, direction_of(metric, read))
    for text in texts:
        label, timed = best_label(text), read_of_time(text)
        if label and not (timed and standing(label.metric) > 1):
            return Number(label.metric, label.read, direction_of(label.metric, label.read))
        for metric, read in timed.items():
            return Number(metric, read, direction_of(metric, read))
    for metric, read in filter(None, map(time_of, texts)):
        return Number(metric, read or LAST, "minimize")
    return Number("score", LAST, None)


def plain_name(metric: str) -> str:
    """A metric's name as a task may have it: `mul_us` of `mul_µs`, `render_ms` of `render.ms`."""
    return re.sub(r"\W+", "_", re.sub("[µμ]", "u", metric), flags=re.ASCII).strip("_") or "score"


def metric_line(metric: str) -> str:
    """How a line METRIC name=value is read."""
    return rf"regex:^\s*METRIC\s+{re.escape(metric)}\s*=\s*{NUMBER}"
