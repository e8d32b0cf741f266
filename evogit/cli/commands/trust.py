"""`evogit trust`: the folders and claims from elsewhere that may have an effect on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.text import Text

from evogit.cli.options.shared import with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape
from evogit.core import NotFoundError, UsageError
from evogit.review import SCHEMA
from evogit.trust import PATHS, Claim, Trust, is_digest


@click.command()
@click.argument("what", nargs=-1)
@click.option("--below", is_flag=True, help="Trust every repository below the folders, too.")
@click.option("--revoke", is_flag=True, help="Forget these records instead.")
@with_terminal
def trust(terminal: Terminal, what: tuple[str, ...], below: bool, revoke: bool) -> None:
    """Trust WHAT on this machine: folders, or the digests that a refused command printed; without WHAT, list all.

    A digest counts only if a command was refused here for what it stands for, and what that is is shown.

    A trusted folder may run its evaluators outside the sandbox and have its files sent to models that you agree to
    pay. Later edits keep the trust, and so does whatever you pull into it. `evogit init` and `evogit new` trust what
    they make.
    """
    trust = Trust.of_user()
    if (below or revoke) and not what:
        raise UsageError("expected folders or digests with --below and --revoke")
    named = list(what)
    if revoke:
        for each in what:
            if not trust.remove(each):
                raise NotFoundError(f"there is no record of {each}; `evogit trust` lists them")
    else:
        # a folder with the name of a digest is ./NAME: a stranger can foresee digests
        claims = [trust.offered(each) if is_digest(each) else _folder(each, below=below) for each in what]
        for claim in claims:
            trust.add(claim)
        named = [claim.effect or claim.subject for claim in claims]
    if terminal.json:
        terminal.data({"schema": SCHEMA, "folder": str(trust.folder), "records": list(trust.records())})
    elif what:
        terminal.note(f"{'forgotten' if revoke else 'trusted'}: {escape(', '.join(named))}", "green")
    else:
        rows: list[list[Text | str]] = []
        for record in trust.records():
            if record["kind"] != "start":  # made here, by the hundred
                digest = f"{record['digest']}  {record['effect'].partition(':')[0]}"
                subject = record["subject"] if record["kind"] in PATHS else digest
                since = time.strftime("%Y-%m-%d", time.localtime(int(record["time"])))
                rows.append([Text(escape(record["kind"]), "bold"), escape(subject), since])
        terminal.show(table(rows, "lll") if rows else [Text("nothing is trusted yet")])


def _folder(named: str, *, below: bool) -> Claim:
    """The claim to a folder, whose name must say which one it is: links may be a stranger's."""
    path = Path(named).resolve()
    if not path.exists():
        raise NotFoundError(f"expected a folder or the digest that a refused command printed, got {named!r}")
    if str(path) != os.path.abspath(named):  # noqa: PTH100 - resolve() would follow the links
        raise UsageError(f"{named} leads through a link to {path}; if you trust that, name it")
    return Claim("tree" if below else "folder", str(path))
