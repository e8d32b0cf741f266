"""`evogit diff` and `blame`: what changed between two candidates, and which candidate brought each line."""

from __future__ import annotations

from collections import Counter

import click
from rich.text import Text

from evogit.cli.lines.compare import change_lines
from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, with_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape
from evogit.history.standing import standing
from evogit.review import SCHEMA, candidate_record, resolve
from evogit.review.blaming import blame as blamed
from evogit.review.blaming import changed_texts
from evogit.review.json_records import gain_record


@click.command()
@click.argument("a", type=REVISION, required=False)
@click.argument("b", type=REVISION, required=False)
@with_run
@with_terminal
def diff(place: Place, terminal: Terminal, a: str | None, b: str | None) -> None:
    """Show what changed from A to B: the metrics, then the code.

    With one argument: from its first parent. With none: from the seed to the best.
    """
    history = place.history
    new = resolve(history, (b or a) if a else "best")
    old = history.phylogeny[new.parents[0]] if new.parents else new
    if b or not a:
        old = resolve(history, a or "seed")
    patch = place.repository.diff(old.commit, new.commit)
    if terminal.json:
        records = {name: candidate_record(place.history, each) for name, each in (("a", old), ("b", new))}
        terminal.data({"schema": SCHEMA, **records, "patch": patch})
        return
    terminal.show(change_lines(View.of(place.history, terminal), old, new, patch))


@click.command()
@click.argument("rev", type=REVISION, default="best")
@click.argument("path", required=False)
@with_run
@with_terminal
def blame(place: Place, terminal: Terminal, rev: str, path: str | None) -> None:
    """Show which candidate brought each line of PATH in REV, and what it gained.

    Without PATH: how many lines of the files that differ from the seed each candidate brought. Lines that an agent
    copied from a candidate that it was shown are that candidate's, where Git's own blame gives them to the copy. Lines
    of a candidate that was not valid are those of the first valid one that has them; a definition that no
    file names any more is dim, and counts for no candidate.
    """
    history, commit = place.history, resolve(place.history, rev).commit
    paths = [path] if path else changed_texts(place.repository, history, commit)
    found = {each: blamed(place.repository, history, commit, each) for each in paths}
    lines = Counter(line.commit for each in found.values() for line in each if line.reached)
    order = sorted(lines, key=lambda each: history.phylogeny[each].number)
    if terminal.json:
        brought = [
            {"commit": each, "lines": lines[each], **gain_record(standing(history, each).comparison)} for each in order
        ]
        files = {
            path: [{"commit": line.commit, "text": line.text, "reached": line.reached} for line in blamed_lines]
            for path, blamed_lines in found.items()
        }
        terminal.data({"schema": SCHEMA, "commit": commit, "candidates": brought, "files": files})
        return
    view = View.of(history, terminal)
    if path:
        rows = [
            [
                view.name(line.commit),
                view.gain(line.commit),
                Text(f"{number}", "dim"),
                Text(escape(line.text), "" if line.reached else "dim"),
            ]
            for number, line in enumerate(found[path], 1)
        ]
        terminal.show(table(rows, "lrrl"))
        return
    rows = []
    for each in order:
        candidate = history.phylogeny[each]
        agent, title = Text(first_line(candidate.agent)), Text(first_line(candidate.title))
        rows.append([Text(f"{lines[each]:,}"), view.gain(each), agent, view.name(each), title])
    terminal.show(table(rows, "rrlll", ("lines", "gain", "agent", "candidate", "")))
