"""`evogit export`: a candidate's files, or a run as a figure, a page or a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evogit.cli.lines.view import SHORT, on_one_line
from evogit.cli.locate_run import Place, find_repository, open_place
from evogit.cli.options.shared import REVISION, OutputPath, name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.core import UsageError
from evogit.review import SCHEMA, open_run, resolve
from evogit.review.export import export as write

if TYPE_CHECKING:
    from evogit.review.plots import Kind

KINDS = ("svg", "pdf", "png")
"""The formats of figures."""

FILE_ENDINGS = (*KINDS, "html", "csv")
FORMULA_SIGNS = ("=", "+", "-", "@")


@click.command()
@click.argument("words", type=REVISION, nargs=-1, metavar="[REV | RUN...] [PATH]")
@click.option("-o", "--output", type=OutputPath(), metavar="PATH", help="PATH, wherever it stands.")
@click.option(
    "--figure", type=click.Choice(["best", "lineage"]), help="The best so far, or the way to all living ones."
)
@click.option("--redact", is_flag=True, help="For .html: leave out prompts, replies and output.")
@name_option
@with_repo
@with_terminal
def export(
    repo: str | None,
    name: str | None,
    terminal: Terminal,
    words: Sequence[str],
    output: Path | None,
    figure: Kind | None,
    redact: bool,
) -> None:
    """Write a candidate's files, or the run in the format that PATH ends in.

    \b
    evogit export best DIR         the files of a candidate, into an empty or new folder
    evogit export best.pdf         a figure: .svg, .png or .pdf; of several runs: RUN1 RUN2 best.pdf
    evogit export run.html         the page as one file, to send to somebody
    evogit export run.csv          all candidates as a table (RFC 4180)

    Links that lead out of DIR, submodules and unsafe paths are left out and named.
    """  # noqa: D301 - click's mark for lines that stay apart
    words = list(words)
    if output is None and words and (len(words) == 2 or _ending(Path(words[-1]))):
        output = OutputPath().convert(words.pop(), None, click.get_current_context())
    if output is None:
        raise UsageError("expected where to write, such as `evogit export best DIR` or `evogit export best.pdf`")
    ending = _ending(output)
    if ending in KINDS:
        from evogit.review.plots import plot

        repository = find_repository(repo)
        runs = words or [open_run(repository, name).history.run]
        plotted = [open_place(repo, run).history for run in runs]
        _write_file(terminal, output, plot(plotted, figure or "best", ending))
        return
    if figure:
        raise UsageError(f"expected a figure that ends in {', '.join('.' + kind for kind in KINDS)}, got {output}")
    place = open_place(repo, name)
    if words[1:] or (ending and words):
        raise UsageError(f"expected one candidate or run, got {' '.join(words)}")
    if ending == "html":
        from evogit.page.html_file import html_file
        from evogit.page.payload import FollowedRun

        made = html_file(FollowedRun(place.repository, place.history.run), redact=redact)
        if made.left_out:
            left = count(made.left_out, "dead end")
            terminal.note(f"of {left} the file has only what graph and table show, to stay small")
        _write_file(terminal, output, made.text.encode())
    elif ending == "csv":
        _write_file(terminal, output, _table(place).encode())
    else:
        _export_files(place, terminal, words[0] if words else "best", output)


def _ending(path: Path) -> str:
    """The ending that stands for a format; empty for a folder."""
    ending = path.suffix.removeprefix(".").lower()
    return ending if ending in FILE_ENDINGS else ""


def _write_file(terminal: Terminal, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    if terminal.json:
        terminal.data({"schema": SCHEMA, "file": str(path)})
    else:
        terminal.note(f"wrote {path}, {count(len(data), 'byte')}")


def _table(place: Place) -> str:
    """Return all candidates as CSV, the first one that was evaluated first; no cell is a formula."""
    from evogit.review.timeline import table

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    for row in table(place.repository, place.history, set(place.history.phylogeny.ids)):
        cells = [on_one_line(value) if isinstance(value, str) else value for value in row]
        safe = [f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS) else cell for cell in cells]
        writer.writerow(safe)
    return text.getvalue()


def _export_files(place: Place, terminal: Terminal, rev: str, folder: Path) -> None:
    candidate = resolve(place.history, rev)
    exported = write(place.repository, candidate, folder)
    for path, reason in exported.skipped:
        terminal.note(f"left out {escape(path)}: {escape(reason)}", "yellow")
    if terminal.json:
        skipped = [{"path": path, "reason": reason} for path, reason in exported.skipped]
        record: dict[str, Any] = {"commit": candidate.commit, "folder": str(folder), "files": exported.files}
        terminal.data({"schema": SCHEMA, **record, "skipped": skipped})
    else:
        terminal.note(f"{count(exported.files, 'file')} of {candidate.commit[:SHORT]} in {folder}")
