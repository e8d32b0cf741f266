"""`evogit brief`: what an agent would be told about a candidate, without asking any model."""

from __future__ import annotations

import click
from rich.text import Text

from evogit.cli.locate_run import find_repository, task_of
from evogit.cli.options.shared import REVISION, TASK, name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape
from evogit.config import REPOSITORY_FILE, Task, load_repository_task
from evogit.core import UsageError
from evogit.history import History
from evogit.repository import Repository
from evogit.review import SCHEMA, open_run, resolve
from evogit.review.brief import Reader, beginning, written_brief


@click.command()
@click.argument("rev", type=REVISION, required=False)
@click.option("--donor", type=REVISION, metavar="REV", help="Another candidate to show as an inspiration.")
@click.option(
    "--context",
    type=click.IntRange(min=1_000),
    default=100_000,
    show_default=True,
    metavar="TOKENS",
    help="Tokens of a question at most.",
)
@click.option(
    "--agent",
    type=click.Choice(["editor", "coder", "program"]),
    default="editor",
    show_default=True,
    help="The kind of agent to brief.",
)
@click.option("--task", type=TASK, help="The task's folder, where it is not found by itself.")
@name_option
@with_repo
@with_terminal
def brief(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    rev: str | None,
    donor: str | None,
    context: int,
    agent: Reader,
    task: str | None,
) -> None:
    """Show what an agent would be told to improve REV: rules, goal, code, scores, and what was tried.

    REV is `best` (the default), `seed`, an agent's name or the beginning of an id. In a repository with an evogit.toml
    and no run yet it is the commit at HEAD. The tokens of each section, about four bytes each, are shown beside it. No
    model is asked.
    """
    repository = find_repository(repo)
    found, history = _run(repository, repo, name, task)
    parent = resolve(history, rev or ("best" if history.best else "seed"))
    other = resolve(history, donor) if donor else None
    written = written_brief(repository, found, history, parent, other, reader=agent, context=context)
    if terminal.json:
        parts = {"rules": written.rules, "sections": list(written.sections), "tokens": written.tokens}
        terminal.data({"schema": SCHEMA, "run": history.run, "commit": parent.commit, **parts})
        return
    text = f"{written.rules}\n{written.text}"
    terminal.show((Text(escape(line)) for line in text.removesuffix("\n").split("\n")), fit="ignore")
    total = ("total", f"{sum(written.tokens.values()):,}", "tokens, about")
    for line in table([*((heading, f"{count:,}") for heading, count in written.tokens.items()), total], "lrl"):
        terminal.note(line, "dim")


def _run(repository: Repository, repo: str | None, name: str | None, task: str | None) -> tuple[Task, History]:
    """The task and the run; one that would begin, where there is none yet."""
    if not repository.runs() and (repository.path / REPOSITORY_FILE).is_file():
        own = load_repository_task(repository.path)
        return own, beginning(repository, own, name or own.name)
    history = open_run(repository, name).history
    try:
        return task_of(history.run, repo, task), history
    except UsageError as error:
        raise UsageError(f"{error}; here: evogit brief --task FOLDER") from error
