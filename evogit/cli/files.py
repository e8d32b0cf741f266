"""A run as one file, for the commands that write one: a page, a figure, a table."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TextIO

from evogit.cli.lines.view import on_one_line
from evogit.cli.locate_run import Place
from evogit.cli.terminal import Terminal
from evogit.cli.text import count

if TYPE_CHECKING:
    from evogit.review.plots import Kind

FORMULA = ("=", "+", "-", "@")
"""The first characters of a formula in a spreadsheet."""


def page_file(place: Place, terminal: Terminal, page: str, *, redact: bool = False) -> str:
    """Return the run as one HTML file that shows `page` first, `graph` or `run`; a note tells if it is incomplete."""
    from evogit.page.html_file import html_file
    from evogit.page.payload import FollowedRun

    made = html_file(FollowedRun(place.repository, place.history.run), redact=redact, page=page)
    if made.left_out:
        terminal.note(
            f"of {count(made.left_out, 'dead end')} the file has only what graph and table show, to stay small"
        )
    return made.text


def figure_file(places: Sequence[Place], figure: Kind, ending: str) -> bytes:
    """Return a figure of one or several runs as a file of the kind `ending`."""
    from evogit.review.plots import plot

    return plot([place.history for place in places], figure, ending)


def write_table(place: Place, chosen: Collection[str], file: TextIO) -> None:
    """Write the chosen candidates as CSV, the first one that was evaluated first."""
    from evogit.review.timeline import table

    writer = csv.writer(file, lineterminator="\r\n")
    for row in table(place.repository, place.history, set(chosen)):
        cells = [on_one_line(value) if isinstance(value, str) else value for value in row]
        writer.writerow([f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell for cell in cells])
