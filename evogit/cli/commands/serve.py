"""`evogit serve`: the review page."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import suppress

import click

from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.core import EvoGitError, NotFoundError
from evogit.repository.state_folder import StateFolder
from evogit.review import SCHEMA, open_run

PORT = 8765
PASSAGE = "page.html"


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port; 0: any free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others are read only.")
@click.option("--read-only", is_flag=True, help="Nothing can be decided on the page.")
@name_option
@with_repo
@with_terminal
def serve(
    repo: str | None, name: str | None, terminal: Terminal, opens: bool, port: int, host: str, read_only: bool
) -> None:
    """Show the runs of a repository as a page: the graph, each candidate, what it costs, and what you decide.

    The address has a key in it that lets only your browser in. Ctrl-C ends it; runs go on.
    """
    repository = find_repository(repo)
    if not repository.runs():
        raise NotFoundError(f"{repository.path} has no run yet; begin one with `evogit run`")
    if name is not None:
        open_run(repository, name)
    try:
        from evogit.page import serving
    except ModuleNotFoundError as error:
        raise EvoGitError(
            f"expected the package {error.name}, which the page needs: pip install 'evogit[web]'"
        ) from error

    def ready(address: serving.Address) -> None:
        if terminal.json:
            terminal.data({"schema": SCHEMA, "url": address.url, "port": address.port})
            sys.stdout.flush()  # whoever started this reads it while the server is at work
        else:
            click.echo(address.url)
            terminal.note("the page is at this address until Ctrl-C", "dim")
        if opens:
            write_passage(repository.state, address.url)
            webbrowser.open((repository.state.path / PASSAGE).as_uri())

    try:
        serving.serve(repository, name, host, port, read_only=read_only, ready=ready)
    finally:
        with suppress(FileNotFoundError), repository.state.opened() as folder:
            folder.remove(PASSAGE)


def write_passage(state: StateFolder, url: str) -> None:
    """A file that leads to the page: who else is on this machine sees what a browser is started with, but not this."""
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">EvoGit</a>\n'
    with state.opened(make=True) as folder:
        folder.replace(PASSAGE, [text.encode()], 0o600)
