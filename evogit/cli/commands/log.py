"""`evogit log`: candidates, or decisions, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import click
from rich.text import Text

from evogit.cli.deciding import decision_table
from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import with_run, with_terminal
from evogit.cli.terminal import Styled, Terminal, padded, table
from evogit.core import Candidate, NotFoundError
from evogit.history import History
from evogit.history.standing import REFUSED, UNMEASURED, status_of
from evogit.history.state import standing
from evogit.review import agents, candidate_record, own_names
from evogit.review.decisions import decision_record

ALIGN = "llrrrl"


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="At most N candidates.")
@click.option("--failed", is_flag=True, help="Only candidates that failed.")
@click.option("--agent", metavar="NAME", help="Only candidates of this agent.")
@click.option("--decisions", is_flag=True, help="List what people decided instead, the newest first.")
@with_run
@with_terminal
def log(place: Place, terminal: Terminal, limit: int | None, failed: bool, agent: str | None, decisions: bool) -> None:
    """List candidates, the newest first.

    Each line: symbol, id, score, gain over the fittest candidate that it comes from (positive is better), age, agent
    (with the class of one of your own), title. With --json: one object per line.
    """
    if decisions:
        _list_decisions(place.history, terminal, limit)
        return
    history = place.history
    known = list(dict.fromkeys([*agents(history), *(candidate.agent for candidate in history.phylogeny)]))
    if agent is not None and agent not in known:
        raise NotFoundError(f"expected an agent of the run {history.run} ({', '.join(known)}), got {agent!r}")
    wanted = (
        candidate
        for candidate in reversed(list(history.phylogeny))
        if agent in (None, candidate.agent)
        and not (failed and status_of(history, candidate.commit) in ("ok", REFUSED, *UNMEASURED))
    )
    chosen = islice(wanted, limit)
    if terminal.json:
        for candidate in chosen:
            terminal.data(candidate_record(history, candidate))
        return
    view = View.of(history, terminal)
    listed = list(chosen)
    own = own_names(history)
    rows = [_row(view, candidate, own) for candidate in listed]
    if terminal.plain:
        lines = []
        for start, candidate in zip(padded(rows, ALIGN), listed, strict=True):
            title = "".join(text for text, _ in view.title(candidate))
            lines.append(f"{start}  {title}{view.marks(candidate.commit)[0]}")
        terminal.write(lines)
    else:
        heads = table(([Text(*cell) for cell in row] for row in rows), ALIGN)
        pairs = zip(heads, listed, strict=True)
        terminal.show((view.finish(line, candidate) for line, candidate in pairs), fit="ellipsis")
    if history.started and history.started.judged == "inside":
        terminal.note("judged: inside", "dim")


def _list_decisions(history: History, terminal: Terminal, limit: int | None) -> None:
    valid = {entry.id for entry in standing(history.decisions)}
    chosen = [(entry, entry.id in valid) for entry in history.decisions[::-1][:limit]]
    if terminal.json:
        for entry, in_force in chosen:
            terminal.data(decision_record(entry, in_force))
    else:
        terminal.show(decision_table(chosen) or [Text("no decisions yet", "dim")])


def _row(view: View, candidate: Candidate, own: Mapping[str, str]) -> list[Styled]:
    commit, known = candidate.commit, view.standing(candidate.commit)
    return [
        view.glyph_styled(commit),
        (commit[:SHORT], "cyan"),
        view.score_styled(known),
        view.gain_styled(known.comparison),
        view.age(candidate),
        (first_line(f"{candidate.agent} {own.get(candidate.agent, '')}".rstrip()), ""),
    ]
