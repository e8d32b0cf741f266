"""`evogit plot`: figures of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import OutputPath, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.core import UsageError
from evogit.review import SCHEMA, open_run
from evogit.review.figures import KINDS


@click.command()
@click.argument("what", type=click.Choice(["best", "lineage", "shares", "operators"]))
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-o", "--output", type=OutputPath(dir_okay=False), required=True, help="The file: .svg, .pdf or .png.")
@click.option(
    "--against",
    type=click.Choice(["evaluations", "seconds", "dollars"]),
    default="evaluations",
    show_default=True,
    help="What `best` is drawn against.",
)
@click.option("--mean", is_flag=True, help="For `best`: the mean of the runs with its 95 % interval.")
@with_repo
@with_terminal
def plot(
    repo: str | None, terminal: Terminal, what: Any, runs: Sequence[str], output: Path, against: Any, mean: bool
) -> None:
    """Draw a figure of a run for a paper.

    best: the best so far, of several runs; lineage: the candidates that led to the living ones; shares: how the
    lineages of the seed's children fared; operators: what each operator and merge brought.
    """
    from evogit.review.plots import PlottedRun
    from evogit.review.plots import plot as drawn

    kind = output.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise UsageError(f"expected a file that ends in {', '.join(f'.{each}' for each in KINDS)}, got {output.name!r}")
    repository = find_repository(repo)
    names = runs or [open_run(repository).history.run]
    for name in names:
        open_run(repository, name)
    output.write_bytes(drawn([PlottedRun(repository, name) for name in names], what, against, kind, mean=mean))
    if terminal.json:
        terminal.data({"schema": SCHEMA, "file": str(output), "runs": list(names)})
    else:
        terminal.note(f"wrote {output}")
