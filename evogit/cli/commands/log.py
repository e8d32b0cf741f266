"""`evogit log`: candidates, the newest first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import islice

import click
from rich.text import Text

from evogit.cli.files import write_table
from evogit.cli.lines.view import SHORT, StillView, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import with_run, with_terminal
from evogit.cli.terminal import Styled, Terminal, padded, table
from evogit.core import Candidate, NotFoundError, UsageError
from evogit.history import History
from evogit.history.standing import UNMEASURED, status_of
from evogit.review import agents, candidate_record, own_names

ALIGN = "llrrrl"
"""The sides to which the columns are aligned."""


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="At most N candidates.")
@click.option("--failed", is_flag=True, help="Only candidates that failed.")
@click.option("--agent", metavar="NAME", help="Only candidates of this agent.")
@click.option("--csv", "as_csv", is_flag=True, help="A table in the order of evaluation (RFC 4180).")
@with_run
@with_terminal
def log(place: Place, terminal: Terminal, limit: int | None, failed: bool, agent: str | None, as_csv: bool) -> None:
    """List candidates, the newest first.

    Each line: symbol, id, score, gain over the fittest candidate that it comes from (positive is better), age, agent
    (with the class of one of your own), title. With --json: one object per line. With --csv: scores, cases, times,
    tokens and dollars of each, the first one that was evaluated first; `docs/guide.md` describes the columns.
    """
    if as_csv and terminal.json:
        raise UsageError("expected one of --csv and --json, got both")
    history = place.history
    known = list(dict.fromkeys([*agents(history), *(candidate.agent for candidate in history.phylogeny)]))
    if agent is not None and agent not in known:
        raise NotFoundError(f"expected an agent of the run {history.run} ({', '.join(known)}), got {agent!r}")
    wanted = (each for each in reversed(list(history.phylogeny)) if _wanted(history, each, failed, agent))
    chosen = islice(wanted, limit)
    if as_csv:
        write_table(place, {candidate.commit for candidate in chosen}, sys.stdout)
        return
    if terminal.json:
        for candidate in chosen:
            terminal.data(candidate_record(history, candidate))
        return
    view = StillView.of(history, terminal)
    listed = list(chosen)
    own = own_names(history)
    rows = [_row(view, candidate, own) for candidate in listed]
    if terminal.plain:
        terminal.write(_line(view, *each) for each in zip(padded(rows, ALIGN), listed, strict=True))
    else:
        lines = table(([Text(*cell) for cell in row] for row in rows), ALIGN)
        terminal.show(
            (view.finish(line, candidate) for line, candidate in zip(lines, listed, strict=True)), fit="ellipsis"
        )
    if history.started and history.started.judged == "inside":
        terminal.note("judged: inside", "dim")


def _wanted(history: History, candidate: Candidate, failed: bool, agent: str | None) -> bool:
    return agent in (None, candidate.agent) and (not failed or _has_failed(history, candidate.commit))


def _has_failed(history: History, commit: str) -> bool:
    return status_of(history, commit) not in ("ok", *UNMEASURED)


def _row(view: View, candidate: Candidate, own: Mapping[str, str]) -> list[Styled]:
    commit, known = candidate.commit, view.standing(candidate.commit)
    return [
        view.glyph_styled(commit),
        (commit[:SHORT], "cyan"),
        view.score_styled(known),
        view.gain_styled(known.comparison),
        view.age_styled(candidate),
        (first_line(f"{candidate.agent} {own.get(candidate.agent, '')}".rstrip()), ""),
    ]


def _line(view: View, start: str, candidate: Candidate) -> str:
    """A line without style, of which a log may have a hundred thousand."""
    title = "".join(text for text, _ in view.title_styled(candidate))
    return f"{start}  {title}{view.marks_styled(candidate.commit)[0]}"
