"""What EvoGit costs, beside what the last release cost and what the design allows: `make bench`.

Run: `python benchmarks/budget.py [--only GROUP...] [--candidates N] [--renew]`; under two minutes on two quiet cores.
CPU is user and system time of the engine and all that it started. A figure is the median of its rounds, each in a
process of its own. It is `worse` where it is beyond the committed one by more than NOISE, and by more than either's
rounds differ among themselves; times are compared after the pace of the two machines. The last column
says which limits are missed, too. Exits with 1 if anything got worse. docs/design/performance.md explains the figures.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

COMMITTED = Path(__file__).with_name("budget.json")
NOISE = 0.1
"""Share by which figures of the same code differ on a quiet machine."""
PACE = "pace"
"""The figure that tells how fast the machine is."""

Values = Mapping[str, Sequence[float]]
"""Name of a figure -> its value in each round."""
Mark = Literal["", "worse", "better"]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the table.

    Attributes:
        name: what it is kept by.
        text: what it is, with its unit.
        limit: the most that the design allows, or the least where `more` is better.
        slack: what it may differ by beside noise, in its unit.
        is_time: whether it depends on how fast the machine is.
    """

    name: str
    text: str
    limit: float | None = None
    more: bool = False
    slack: float = 0.0
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that are measured together, under a heading."""

    heading: str
    rows: tuple[Row, ...]


def _engine(selector: str) -> Group:
    rows = (
        Row(f"{selector}.first", "CPU ms per candidate, first 100", 5, is_time=True),
        Row(f"{selector}.last", "CPU ms per candidate, last 100", 5, is_time=True),
        Row(f"{selector}.ratio", "last / first", 1.2, slack=0.2),
        Row(f"{selector}.wall", "wall ms per candidate, last 100, median", is_time=True),
        Row(f"{selector}.gits", "git processes per evaluation", slack=0.05),
        Row(f"{selector}.moves", "moves per evaluation", slack=0.05),
    )
    return Group(f"engine alone, 4 null agents, {selector}", rows)


def _editors(number: int) -> Group:
    name = f"editors{number}"
    rows = (
        Row(f"{name}.cpu", "CPU ms per candidate, engine and evaluators", 12, is_time=True),
        Row(f"{name}.supervisors", "CPU ms per candidate, sandbox supervisors", is_time=True),
        Row(f"{name}.own", "CPU ms per candidate, its own", is_time=True),
        Row(f"{name}.duplicates", "duplicates, % of attempts", 5, slack=2),
        Row(f"{name}.tokens", "tokens per candidate", slack=20),
    )
    return Group(f"{number} editors, 200 evaluations of curve_fit, instant model", rows)


READING = ("status", "log", "show best", "graph -n 20", "report")
"""Commands that look at a run."""

TABLE: Mapping[str, Group] = {
    "elitist": _engine("elitist"),
    "sequential": _engine("sequential"),
    "write": Group(
        "write path: tree, commit, journal, evidence",
        (
            Row("write.cpu", "CPU ms per candidate", 1.5, is_time=True),
            Row("write.wall", "wall ms per candidate, median", is_time=True),
        ),
    ),
    "mutator": Group(
        "2 mutators of circle_packing, evaluated in memory",
        (
            Row("mutator.first", "CPU ms per move, first 100", 8, is_time=True),
            Row("mutator.last", "CPU ms per move, last 100", 8, is_time=True),
            Row("mutator.ratio", "last / first", 1.2, slack=0.2),
            Row("mutator.barren", "duplicate or failed moves, %", 5, slack=2),
        ),
    ),
    "editors2": _editors(2),
    "editors4": _editors(4),
    "proposals": Group(
        "4 editors, --proposals 200",
        (Row("proposals.evaluated", "evaluations", 200, more=True, slack=5),),
    ),
    "sandboxes": Group(
        "evaluating a program of one file, 2 at a time",
        (
            Row("sandbox.rate", "bubblewrap, evaluations per second", more=True),
            Row("sandbox.ratio", "the same / a bare subprocess", more=True),
        ),
    ),
    "starts": Group(
        "commands",
        (
            Row("start.bare", "python -c pass, CPU s", is_time=True),
            Row("start.help", "evogit --help, CPU s", 0.15, is_time=True),
            Row("start.version", "evogit --version, CPU s", 0.15, is_time=True),
            Row("start.run", "import evogit.cli.commands.run, CPU s", is_time=True),
            Row("start.status", "evogit status of 30 candidates, CPU s", 0.3, is_time=True),
            Row("start.help_ratio", "--help / python -c pass"),
            Row("start.status_ratio", "status / python -c pass"),
        ),
    ),
    "reading": Group(
        "reading commands, 2 000 candidates",
        tuple(Row(f"reading.{command}", f"evogit {command}, CPU s", 0.3, is_time=True) for command in READING),
    ),
    "demo": Group(
        "demo: circle_packing, two mutators for each slot, 60 s",
        (
            Row("demo.load", "load of the machine before", slack=10),
            Row("demo.evaluated", "candidates evaluated", 4000, more=True),
            Row("demo.busy", "slot time spent evaluating, %", 80, more=True),
            Row("demo.duplicates", "duplicates", slack=20),
            Row("demo.failed", "failed moves", slack=20),
            Row("demo.barren", "duplicate or failed moves, %", 5, slack=1),
            Row("demo.cpu", "CPU ms per candidate, engine and evaluators", is_time=True),
            Row("demo.supervisors", "CPU ms per candidate, sandbox supervisors", is_time=True),
            Row("demo.own", "CPU ms per candidate, its own", is_time=True),
        ),
    ),
    "suite": Group("the suite", (Row("suite.seconds", "the last `make test`, wall s", 480),)),
}
"""Name of a group in figures.py -> what it measures, in the order of the table."""


def pace() -> float:
    """Milliseconds of CPU of a fixed piece of Python."""
    begun = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number % 7 * 3
    return 1000 * (time.process_time() - begun)


def one_round(name: str, candidates: int, number: int) -> dict[str, float]:
    """The figures of a group, in a new process that imports what it takes."""
    figures: dict[str, float] = import_module("figures").GROUPS[name](candidates, number)
    return figures


def work_in(folder: str) -> None:
    """Have this process make its temporary folders in there."""
    tempfile.tempdir = folder


def measure(names: Sequence[str], candidates: int, rounds: int) -> dict[str, list[float]]:
    """All figures of these groups; the groups take turns, so that a busy minute does not fall on one alone."""
    found: dict[str, list[float]] = {PACE: [pace()]}
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, rounds + 1):
            for name in names:
                print(f"round {number}: {name}", file=sys.stderr)
                with ProcessPoolExecutor(1, mp_context=context, initializer=work_in, initargs=(folder,)) as process:
                    figures = process.submit(one_round, name, candidates, number).result()
                for key, value in figures.items():
                    found.setdefault(key, []).append(value)
            found[PACE].append(pace())
    return found


# --- comparing ----------------------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> float:
    """How far the rounds are from their median at most, as a share of it."""
    middle = statistics.median(values)
    return max(abs(value - middle) for value in values) / abs(middle) if middle else 0.0


def compare(row: Row, now: Sequence[float], then: Sequence[float], slower: float) -> Mark:
    """How a figure stands to the committed one, where this machine takes `slower` times as long for anything."""
    before = statistics.median(then) * (slower if row.is_time else 1)
    noise = max(NOISE, spread(now), spread(then)) * abs(before) + row.slack
    change = statistics.median(now) - before
    if abs(change) <= noise:
        return ""
    return "better" if (change > 0) == row.more else "worse"


def missed(row: Row, now: Sequence[float]) -> str:
    """Which side of its limit a figure is on; nothing where it keeps to it or has none."""
    value = statistics.median(now)
    if row.limit is None or value == row.limit or (value > row.limit) == row.more:
        return ""
    return "below limit" if row.more else "over limit"


def marks(now: Values, then: Values) -> dict[str, Mark]:
    """Of every figure that is known of both."""
    slower = statistics.median(now[PACE]) / statistics.median(then[PACE]) if PACE in then else 1.0
    rows = [row for group in TABLE.values() for row in group.rows if row.name in now and row.name in then]
    return {row.name: compare(row, now[row.name], then[row.name], slower) for row in rows}


# --- what is printed, and what is kept ----------------------------------------------------------------------------


def shown(values: Sequence[float] | None) -> str:
    """The median with as many digits as mean something."""
    if not values:
        return "-"
    value = statistics.median(values)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(now: Values, then: Values, label: str) -> None:
    """The table, one line a figure, group by group."""
    found = marks(now, then)
    print(f"{'':54}{'now':>9}{label:>12}{'limit':>8}")
    for group in TABLE.values():
        rows = [row for row in group.rows if row.name in now]
        if rows:
            print(group.heading)
        for row in rows:
            values, limit = now[row.name], "" if row.limit is None else f"{row.limit:g}"
            notes = ", ".join(filter(None, [found.get(row.name, ""), missed(row, values)]))
            print(f"  {row.text:52}{shown(values):>9}{shown(then.get(row.name)):>12}{limit:>8}  {notes}".rstrip())
    print(f"a fixed piece of Python: {shown(now[PACE])} ms of CPU now, {shown(then.get(PACE))} then")


def version() -> str:
    """The commit that is measured."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def read(file: Path) -> tuple[str, dict[str, list[float]]]:
    """The commit and the figures that were kept; nothing where there is no such file."""
    if not file.exists():
        return "-", {}
    kept = json.loads(file.read_text())
    return kept["commit"], kept["figures"]


def keep(file: Path, now: Values, then: Values) -> None:
    """Write the figures down, one line each; those that were not measured this time stay."""
    figures = {**then, **now}
    lines = [
        f'  "{name}": {json.dumps([float(f"{value:.5g}") for value in figures[name]])}' for name in sorted(figures)
    ]
    head = f'{{\n "commit": {json.dumps(version())},\n "figures": {{\n'
    file.write_text(head + ",\n".join(lines) + "\n }\n}\n")


def main() -> int:
    """Measure, print the table, and keep the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="extend", nargs="+", choices=TABLE, help="measure these groups alone")
    parser.add_argument("--candidates", type=int, default=1000, metavar="N", help="of the longest runs")
    parser.add_argument("--rounds", type=int, default=2, metavar="N")
    parser.add_argument("--demo", action="store_true", help="a minute of circle_packing, too")
    parser.add_argument("--renew", action="store_true", help="keep the figures as those of the last release")
    parser.add_argument("--against", type=Path, default=COMMITTED, metavar="FILE", help="figures to compare with")
    asked = parser.parse_args()
    if asked.renew and asked.only:
        parser.error("expected all groups with --renew, since figures of one file are of one commit")
    usual = [name for name in TABLE if name != "demo" or asked.demo]
    now = measure(asked.only or usual, asked.candidates, asked.rounds)
    label, then = read(asked.against)
    show(now, then, label)
    if asked.renew:
        keep(asked.against, now, then)
        return 0
    return int("worse" in marks(now, then).values())


if __name__ == "__main__":
    sys.exit(main())
