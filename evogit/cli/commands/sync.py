"""`evogit sync`: fetch and push a run by hand, as `evogit run --remote` does all the time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.locate_run import find_repository
from evogit.cli.options.run import address, exchange
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.core import NotFoundError, RefusedError, RepositoryError
from evogit.repository import Repository
from evogit.repository.person_git import shown
from evogit.repository.remote import Exchanged
from evogit.review import SCHEMA
from evogit.text import one_line

MAX_NEW_RUNS = 100
"""Runs of a server that are fetched at once for the first time: anybody may push thousands."""


@click.command()
@click.argument("remote", required=False)
@name_option
@with_repo
@with_terminal
def sync(repo: str | None, terminal: Terminal, name: str | None, remote: str | None) -> None:
    """Fetch what other hosts did in a run, and push what was written here: candidates, evaluations, decisions.

    REMOTE is a remote of the repository or an address; default: the remote that was used last, else `origin`.
    Without --name all runs are exchanged, those of the server too that are not here. Nothing is overwritten, there
    or here. `git config --global evogit.sign true` signs what is pushed with your ssh key; with evogit.trustedSigners
    only what gpg.ssh.allowedSignersFile names signers of is taken in.
    """
    repository = Repository.discover(Path(repo or ".")) if remote else find_repository(repo)
    server = address(remote or _usual(repository, name))
    there, unfit = ([], []) if name else asyncio.run(repository.runs_there(server))
    here = repository.runs()
    new = sorted({*there} - {*here})
    runs = [name] if name else sorted([*here, *new[:MAX_NEW_RUNS]])
    if len(new) > MAX_NEW_RUNS:
        left = count(len(new) - MAX_NEW_RUNS, "run")
        terminal.note(f"left out {left} there that are not here; sync again, or name one by --name", "yellow")
    if unfit:
        terminal.note(f"left out {count(len(unfit), 'run')} there whose name EvoGit gives to none", "yellow")
    if not runs:
        raise NotFoundError(f"expected a run here or on {server}; begin one with `evogit run --remote`")
    done, failed = dict[str, Exchanged](), dict[str, str]()
    for run in runs:
        try:
            done[run] = exchange(repository, run, server)
        except (RefusedError, RepositoryError) as error:
            failed[run] = str(error)
    if terminal.json:
        told = {run: to_builtins(each) for run, each in done.items()}
        terminal.data({"schema": SCHEMA, "remote": server, "done": told, "failed": failed})
    else:
        lines, where = [], (f"({one_line(shown(server), 200)})", "dim")
        for run, each in done.items():
            came = f"{each.came:,} journal entries" if each.came else "nothing new"
            went = "what was written here went" if each.went else "nothing new of this one went"
            lines.append(Text.assemble((run, "bold"), f": {came} of other hosts came, {went} ", where))
            lines += [Text(f"  {escape(note)}", "yellow") for note in each.notes]
        terminal.show(lines)
    if failed:
        raise RepositoryError("; ".join(f"{run}: {why}" for run, why in failed.items()))


def _usual(repository: Repository, name: str | None) -> str:
    """Return the remote that a run here was exchanged with, else `origin`.

    An address is not believed: an archive may bring the note along, so the person types it again.
    """
    remotes = repository.branches.remotes()
    contacts = [found for run in repository.runs() if name in (None, run) and (found := repository.contact(run))]
    noted = [contact.remote for contact in contacts if contact.remote in remotes]
    if not noted and "origin" not in remotes:
        raise NotFoundError(f"expected a remote `origin` in {repository.path}, or a server: `evogit sync SERVER`")
    return noted[0] if noted else "origin"
