"""`evogit demo`: the main job in a minute, without setup."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import click
from rich.text import Text

from evogit.adopt import find_task
from evogit.cli.foreground import evolve
from evogit.cli.lines.phylogeny import draw, selection
from evogit.cli.lines.summary import next_steps, summary
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place, open_or_create
from evogit.cli.options.agents import MUTATORS
from evogit.cli.options.shared import sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.config.run_settings import AgentSpec, Settings
from evogit.repository import Repository
from evogit.review import status_record

TASK = "circle_packing"
MAX_GRAPH_ROWS = 14

GRACE = 1.5
"""Seconds kept for what is in flight and the holdout, which take a fraction of one."""


@click.command()
@click.option("--seed", type=int, metavar="N", help="Random seed; default: the number of the demo.")
@click.option("--minutes", type=float, default=1.0, show_default=True, metavar="M", help="Minutes that it evolves.")
@sandbox_option
@with_repo
@with_terminal
def demo(terminal: Terminal, repo: str | None, seed: int | None, minutes: float, sandbox: str) -> None:
    """Evolve circle_packing offline for about a minute, then show what came of it.

    It lives in ./evogit-demo. Every demo is a run of its own: demo, demo-2 and so on; the earlier ones stay.
    """
    repository = open_or_create(Path(repo) if repo else Repository.default_folder("demo"))
    taken = repository.runs()
    names = (("demo" if number == 1 else f"demo-{number}", number) for number in itertools.count(1))
    name, number = next(pair for pair in names if pair[0] not in taken)
    settings = settings_of(number if seed is None else seed, minutes, sandbox)
    done = evolve(repository, find_task(TASK), name, settings, terminal, quiet=True)
    place = Place.of(done.run.context)
    if terminal.json:
        terminal.data(status_record(repository, place.history))
    else:
        history, lines = place.history, [*summary(place, terminal, done), Text("")]
        if history.seed is not None and history.best is not None:
            lines += [*draw(View.of(history, terminal), selection(history, MAX_GRAPH_ROWS)), Text("")]
            lines += next_steps(place, "diff seed best", "show best", "export best DIR", "serve --open")
        terminal.print(lines)
    if done.stopped.reason == "interrupted":
        sys.exit(130)


def settings_of(seed: int, minutes: float = 1.0, sandbox: str = "auto") -> Settings:
    """How a demo is driven: by twice as many mutators as a run has.

    While candidates of one half are evaluated, the other half breeds: what counts is what a minute is good for, and a
    mutator's move takes half as long as an evaluation.
    """
    mutators = AgentSpec("mutator", count=2 * MUTATORS)
    grace = min(GRACE, 6 * minutes)
    return Settings(population=(mutators,), minutes=minutes, grace=grace, seed=seed, sandbox=sandbox)
