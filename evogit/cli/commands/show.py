"""`evogit show`: one candidate in full."""

from __future__ import annotations

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.lines import evidence
from evogit.cli.lines.candidate import candidate_lines, changed_files, lost
from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, with_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape
from evogit.core import Candidate, FailedProposal, NotFoundError, UsageError
from evogit.history.readded_lines import Readded
from evogit.review import SCHEMA, candidate_record, resolve
from evogit.review.evidence_files import gone, read, texts


@click.command()
@click.argument("rev", type=REVISION, required=False)
@click.option("--move", type=click.IntRange(min=1), metavar="N", help="Not a candidate: the failed proposal of move N.")
@click.option("--file", "file", metavar="NAME", help="Print one piece of evidence, such as transcript.txt, whole.")
@with_run
@with_terminal
def show(place: Place, terminal: Terminal, rev: str | None, move: int | None, file: str | None) -> None:
    """Show one candidate: parents, metrics, cost, what it changed, what the evaluator and the agent said.

    REV is `best`, `seed`, an agent's name or the beginning of an id. With --move: an attempt that made no candidate,
    by its number in `evogit report`.
    """
    if (rev is None) == (move is None):
        raise UsageError("expected one of REV and --move N, got " + ("neither" if rev is None else "both"))
    if move is not None:
        _show_failed(place, terminal, move, file)
    elif rev is not None:
        _show_candidate(place, terminal, resolve(place.history, rev), file)


def _show_candidate(place: Place, terminal: Terminal, candidate: Candidate, file: str | None) -> None:
    history, commit = place.history, candidate.commit
    if file is None and not terminal.json:
        terminal.show(candidate_lines(place, View.of(history, terminal), candidate))
        return
    judged = read(place.repository, history.evidence.get(commit))
    session = read(place.repository, history.sessions.get(commit))
    if file is not None:
        evidence.whole(terminal, {**judged, **session}, file, lost(place, commit))
        return
    files, readded = changed_files(place, candidate), Readded(place.repository, history).by(candidate)
    more = {"children": list(history.phylogeny.children(commit)), "files": files, "readded": readded}
    told = {"evidence": texts(judged), "session": texts(session), "missing": lost(place, commit)}
    terminal.data({**candidate_record(history, candidate), **more, **told})


def _show_failed(place: Place, terminal: Terminal, move: int, file: str | None) -> None:
    failed = next((each for each in reversed(place.history.failures) if each.move == move), None)
    if failed is None:
        known = ", ".join(str(each.move) for each in list(place.history.failures)[-10:]) or "there is none"
        raise NotFoundError(f"expected the move of a failed proposal (the latest: {known}), got {move}")
    session = read(place.repository, failed.evidence)
    missing = gone(place.repository, place.history.run, failed.evidence)
    if file is not None:
        evidence.whole(terminal, session, file, missing)
    elif terminal.json:
        terminal.data({"schema": SCHEMA, **to_builtins(failed), "session": texts(session), "missing": missing})
    else:
        told = evidence.session(failed.agent, session, lambda name: place.hint(f"show --move {move} --file {name}"))
        terminal.show([*_failed(View.of(place.history, terminal), failed), *told, *evidence.missing(missing)])


def _failed(view: View, failed: FailedProposal) -> list[Text]:
    strategy = f" ({first_line(failed.strategy)})" if failed.strategy else ""
    facts = [("by", Text(f"{first_line(failed.agent)}, {failed.operator}{strategy}"))]
    known = [view.history.phylogeny[each] for each in failed.parents if each in view.history.phylogeny]
    facts += [("parent", view.line(parent, score=True)) for parent in known]
    facts += [("failed", Text(escape(line), "red")) for line in failed.reason.splitlines()]
    return [
        Text(f"move {failed.move}, which made no candidate"),
        *table(((Text(f"  {name}", "dim"), text) for name, text in facts), "ll"),
    ]
