"""`evogit export`: a candidate's files, or a run as a figure, a page or a table."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evogit.cli.files import figure_file, page_file, write_table
from evogit.cli.lines.view import SHORT
from evogit.cli.locate_run import Place, find_repository, open_place
from evogit.cli.options.shared import REVISION, OutputPath, name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.core import NotFoundError, UsageError
from evogit.review import SCHEMA, open_run, resolve
from evogit.review.export import check_empty
from evogit.review.export import export as write
from evogit.review.json_records import front_record

if TYPE_CHECKING:
    from evogit.review.plots import Kind

KINDS = ("svg", "pdf", "png")
"""The formats of figures."""

FILE_ENDINGS = (*KINDS, "html", "csv")


@click.command()
@click.argument("words", type=REVISION, nargs=-1, metavar="[REV | RUN...] [PATH]")
@click.option("-o", "--output", type=OutputPath(), metavar="PATH", help="PATH, wherever it stands.")
@click.option(
    "--figure",
    type=click.Choice(["best", "lineage"]),
    help="For .svg, .png and .pdf: the best so far (default), or the candidates that led to the living ones.",
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
    evogit export front DIR        the same of all candidates that are unbeaten on several objectives
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
        repository = find_repository(repo)
        runs = words or [open_run(repository, name).history.run]
        places = [open_place(repo, run) for run in runs]
        _write_file(terminal, output, figure_file(places, figure or "best", ending))
        return
    if figure:
        raise UsageError(f"expected a figure that ends in {', '.join('.' + kind for kind in KINDS)}, got {output}")
    place = open_place(repo, name)
    if words[1:] or (ending and words):
        raise UsageError(f"expected one candidate or run, got {' '.join(words)}")
    if ending == "html":
        _write_file(terminal, output, page_file(place, terminal, "graph", redact=redact).encode())
    elif ending == "csv":
        table = io.StringIO(newline="")
        write_table(place, place.history.phylogeny.ids, table)
        _write_file(terminal, output, table.getvalue().encode())
    elif words == ["front"]:
        _export_front(place, terminal, output)
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


# --- a candidate's files ------------------------------------------------------------------------------------------


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


def _export_front(place: Place, terminal: Terminal, folder: Path) -> None:
    front = front_record(place.history)
    if not front or not front["members"]:
        raise NotFoundError(
            f"expected a run with several objectives (--selector pareto:over=metrics), got {place.history.run}"
        )
    check_empty(folder)
    for member in front["members"]:
        commit = member["commit"]
        for path, reason in write(place.repository, place.history.phylogeny[commit], folder / commit[:SHORT]).skipped:
            terminal.note(f"left out {commit[:SHORT]}/{escape(path)}: {escape(reason)}", "yellow")
    (folder / "front.json").write_text(
        json.dumps({"schema": SCHEMA, "run": place.history.run, **front}, indent=2) + "\n"
    )
    if terminal.json:
        terminal.data({"schema": SCHEMA, "folder": str(folder), **front})
    else:
        terminal.note(f"{count(len(front['members']), 'candidate')} and front.json in {folder}")
