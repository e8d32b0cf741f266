"""`evogit show`: one candidate in full, or the brief for improving it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.lines.candidate import candidate_lines, changed_files, lost, missing_lines, session_lines, show_whole
from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place, find_repository, open_place, task_of
from evogit.cli.options.shared import REVISION, TASK, name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, fact_table, table
from evogit.cli.text import escape
from evogit.core import Candidate, NotFoundError, UsageError
from evogit.history import History
from evogit.history.readded_lines import Readded
from evogit.repository import Repository
from evogit.review import SCHEMA, candidate_record, open_run, resolve
from evogit.review.evidence_files import gone, texts

if TYPE_CHECKING:
    from evogit.config import Task
    from evogit.review.brief import Reader


@click.command()
@click.argument("rev", type=REVISION, required=False)
@click.option("--move", type=click.IntRange(min=1), metavar="N", help="Not a candidate: the failed proposal of move N.")
@click.option("--file", "file", metavar="NAME", help="Print one piece of evidence, such as transcript.txt, whole.")
@click.option("--brief", is_flag=True, help="Show what an agent would be sent to improve REV; no model is asked.")
@click.option("--agent", type=click.Choice(["editor", "coder", "program"]), help="With --brief: the kind of agent.")
@click.option("--task", type=TASK, help="With --brief: the task's folder, if it cannot be found here.")
@name_option
@with_repo
@with_terminal
def show(
    repo: str | None,
    name: str | None,
    terminal: Terminal,
    rev: str | None,
    move: int | None,
    file: str | None,
    brief: bool,
    agent: Reader | None,
    task: str | None,
) -> None:
    """Show one candidate: parents, metrics, cost, what it changed, what the evaluator and the agent said.

    REV is `best`, `seed`, an agent's name or the beginning of an id. With --move: an attempt that made no candidate,
    by its number in `evogit report`. With --brief: rules, goal, code, scores, and what was tried; REV is the best by
    default, and in a repository with an evogit.toml and no run yet the commit at HEAD.
    """
    if brief:
        _show_brief(terminal, repo, name, task, rev, agent or "editor")
        return
    if (rev is None) == (move is None):
        raise UsageError("expected one of REV and --move N, got " + ("neither" if rev is None else "both"))
    place = open_place(repo, name)
    if move is not None:
        _show_failed(place, terminal, move, file)
    elif rev is not None:
        _show_candidate(place, terminal, resolve(place.history, rev), file)


def _show_candidate(place: Place, terminal: Terminal, candidate: Candidate, file: str | None) -> None:
    history, commit = place.history, candidate.commit
    if file is None and not terminal.json:
        terminal.show(candidate_lines(place, View.of(history, terminal), candidate))
        return
    judged = place.repository.trees.kept(history.evidence.get(commit))
    session = place.repository.trees.kept(history.sessions.get(commit))
    if file is not None:
        show_whole(terminal, {**judged, **session}, file, lost(place, commit))
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
    session = place.repository.trees.kept(failed.evidence)
    missing = gone(place.repository, place.history.run, failed.evidence)
    if file is not None:
        show_whole(terminal, session, file, missing)
    elif terminal.json:
        terminal.data({"schema": SCHEMA, **to_builtins(failed), "session": texts(session), "missing": missing})
    else:
        view, phylogeny = View.of(place.history, terminal), place.history.phylogeny
        strategy = f" ({first_line(failed.strategy)})" if failed.strategy else ""
        facts = [("by", Text(f"{first_line(failed.agent)}, {failed.operator}{strategy}"))]
        parents = [phylogeny[commit] for commit in failed.parents if commit in phylogeny]
        facts += [("parent", view.line(parent, score=True)) for parent in parents]
        facts += [("failed", Text(escape(line), "red")) for line in failed.reason.splitlines()]
        head = [Text(f"move {move}, which made no candidate"), *fact_table(facts, "  ")]
        told = session_lines(failed.agent, session, lambda name: place.hint(f"show --move {move} --file {name}"))
        terminal.show([*head, *told, *missing_lines(missing)])


def _show_brief(
    terminal: Terminal, repo: str | None, name: str | None, task: str | None, rev: str | None, agent: Reader
) -> None:
    from evogit.review.brief import written_brief  # agents take a while to load

    repository = find_repository(repo)
    found, history = _briefed(repository, repo, name, task)
    parent = resolve(history, rev or ("best" if history.best else "seed"))
    written = written_brief(repository, found, history, parent, reader=agent)
    if terminal.json:
        parts = {"rules": written.rules, "sections": list(written.sections), "tokens": written.tokens}
        terminal.data({"schema": SCHEMA, "run": history.run, "commit": parent.commit, **parts})
        return
    text = f"{written.rules}\n{written.text}"
    terminal.show((Text(escape(line)) for line in text.removesuffix("\n").split("\n")), fit="ignore")
    total = ("total", f"{sum(written.tokens.values()):,}", "tokens, about")
    for line in table([*((heading, f"{count:,}") for heading, count in written.tokens.items()), total], "lrl"):
        terminal.note(line, "dim")


def _briefed(repository: Repository, repo: str | None, name: str | None, task: str | None) -> tuple[Task, History]:
    from evogit.config import REPOSITORY_FILE, load_repository_task
    from evogit.review.brief import beginning

    if not repository.runs() and (repository.path / REPOSITORY_FILE).is_file():
        own = load_repository_task(repository.path)
        return own, beginning(repository, own, name or own.name)
    history = open_run(repository, name).history
    try:
        return task_of(history.run, repo, task), history
    except UsageError as error:
        raise UsageError(f"{error}; here: evogit show --brief --task FOLDER") from error
