"""`evogit bench`: methods compared on tasks at equal cost, so that evolution has to earn its own."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from evogit.bench.comparison import Standing, standing, summaries
from evogit.bench.driver import Bench
from evogit.bench.lane import Course
from evogit.bench.methods import CONTROLS, DEFAULT, methods
from evogit.bench.outcome import save
from evogit.bench.report import Table, markdown, record, summary_table, tables
from evogit.cli.agents import Asked, hire, with_agents
from evogit.cli.options import TASK, sandbox_option, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count
from evogit.config import find_task
from evogit.core import UsageError
from evogit.history import History
from evogit.settings import Settings

ALL = ",".join([DEFAULT, *(method.name for method in CONTROLS)])


@click.command()
@click.argument("task", type=TASK, nargs=-1, required=True)
@click.option("--methods", "names", default=ALL, show_default=True, metavar="NAME,...", help="What is compared.")
@click.option("--selector", "selectors", multiple=True, metavar="SPEC", help="A selector as a further method.")
@click.option("--method", "own", multiple=True, metavar="NAME=SPEC", help="The same with a name, or --agent ... in it.")
@click.option("--evaluations", type=click.IntRange(2), default=200, show_default=True, metavar="N", help="Of each run.")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True, metavar="K", help="Runs of a method.")
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True, metavar="S", help="And so on.")
@click.option("--split", default="train", show_default=True, metavar="NAME", help="The split that runs are ranked on.")
@click.option("--curve-of", default="", metavar="SPLIT", help="Compare what runs believe by its value on this split.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Runs at a time; default: one per core.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("evogit-bench"),
    show_default=True,
    metavar="DIR",
    help="Where the runs' records and the report go.",
)
@click.option("--keep", is_flag=True, help="Keep the repositories of new runs, in DIR/runs/TASK/repositories.")
@with_agents
@sandbox_option
@with_terminal
def bench(
    terminal: Terminal,
    task: tuple[str, ...],
    names: str,
    selectors: tuple[str, ...],
    own: tuple[str, ...],
    evaluations: int,
    seeds: int,
    first_seed: int,
    split: str,
    curve_of: str,
    jobs: int | None,
    out: Path,
    keep: bool,
    asked: Asked,
    sandbox: str,
    dollars: float | None,
    tokens: int | None,
) -> None:
    """Compare methods on each TASK with equal numbers of evaluations, seed by seed.

    What is done is kept in DIR: the same command again does only what is missing or has changed.
    """
    chosen = methods(filter(None, names.split(",")), selectors, own)
    crew = hire(asked, Settings(dollars=dollars, tokens=tokens), History(""))
    if crew.asking:
        raise UsageError("agents that ask models cannot be compared yet")
    benches = []
    for name in task:
        found = find_task(name)
        found.check_split(split)
        course = Course(
            task=found,
            evaluations=evaluations,
            split=split,
            truth=curve_of,
            agents=crew.settings.population,
            sandbox=sandbox,
        )
        numbers = range(first_seed, first_seed + seeds)
        benches.append(Bench(course=course, methods=chosen, seeds=numbers, folder=out / "runs" / found.name))
    standings = [_race(terminal, each, jobs or os.cpu_count() or 1, keep) for each in benches]
    _report(terminal, standings, out)


def _race(terminal: Terminal, bench: Bench, jobs: int, keep: bool) -> Standing:
    done, stale = bench.done(), bench.stale()
    name, total = bench.course.task.name, len(bench.orders)
    if done:
        terminal.note(f"{name}: {count(len(done), 'run')} of {total} done before")
    if stale:
        terminal.note(f"{name}: {count(stale, 'run')} of another EvoGit, task or settings made again", "yellow")
    methods = {method.name: method for method in bench.methods}
    jobs = 1 if bench.course.task.environment.exclusive else jobs
    for outcome in bench.race(jobs=jobs, keep=keep):
        done[methods[outcome.method], outcome.seed] = outcome
    return standing(bench, done)


def _report(terminal: Terminal, standings: Sequence[Standing], out: Path) -> None:
    found = summaries(standings)
    data = record(standings, found)
    command = shlex.join(["evogit", *sys.argv[1:]])
    save(out / "bench.json", json.dumps(data, allow_nan=False) + "\n")
    save(out / "bench.md", markdown(standings, found, command, pictures=False))
    if terminal.json:
        terminal.data(data)
        return
    shown = [each for one in standings for each in tables(one)]
    if len(standings) > 1:
        shown.append(summary_table(found))
    terminal.show(line for each in shown for line in _lines(each))
    terminal.note(f"written to {out}/: bench.md, bench.json", "dim")


def _lines(found: Table) -> list[Text]:
    return [Text(found.title, "bold"), *table(found.rows, found.align), Text()]
