"""`evogit log`: candidates, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import click
from rich.text import Text

from evogit.cli.options import with_run, with_terminal
from evogit.cli.place import Place
from evogit.cli.terminal import Terminal, table
from evogit.cli.view import StillView, View, first_line
from evogit.core import Candidate, NotFoundError
from evogit.history import History
from evogit.review import agents, candidate_record, own_names


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="At most N candidates.")
@click.option("--failed", is_flag=True, help="Only candidates that failed.")
@click.option("--agent", metavar="NAME", help="Only candidates of this agent.")
@with_run
@with_terminal
def log(place: Place, terminal: Terminal, limit: int | None, failed: bool, agent: str | None) -> None:
    """List candidates, the newest first.

    Each line: symbol, id, score, change against the fittest parent, age, agent (with the class of one of your own),
    title. With --json: one object per line.
    """
    history = place.history
    known = list(dict.fromkeys([*agents(history), *(candidate.agent for candidate in history.phylogeny)]))
    if agent is not None and agent not in known:
        raise NotFoundError(f"expected an agent of the run {history.run} ({', '.join(known)}), got {agent!r}")
    wanted = (each for each in reversed(list(history.phylogeny)) if _wanted(history, each, failed, agent))
    chosen = islice(wanted, limit)
    if terminal.json:
        for candidate in chosen:
            terminal.data(candidate_record(history, candidate))
        return
    view = StillView.of(history, terminal)
    listed = list(chosen)
    own = own_names(history)
    lines = table((_line(view, candidate, own) for candidate in listed), "llrrrl")
    terminal.show(view.finish(line, candidate) for line, candidate in zip(lines, listed, strict=True))
    if history.started and history.started.judged == "inside":
        terminal.note("judged: inside", "dim")


def _wanted(history: History, candidate: Candidate, failed: bool, agent: str | None) -> bool:
    evaluation = history.evaluation(candidate.commit)
    has_failed = evaluation is not None and evaluation.counts and not evaluation.ok
    return (has_failed or not failed) and agent in (None, candidate.agent)


def _line(view: View, candidate: Candidate, own: Mapping[str, str]) -> list[Text]:
    commit = candidate.commit
    return [
        view.glyph(commit),
        view.name(commit),
        view.score(commit),
        view.gain(commit, candidate.parents),
        view.age(candidate),
        Text(first_line(f"{candidate.agent} {own.get(candidate.agent, '')}".rstrip())),
    ]
