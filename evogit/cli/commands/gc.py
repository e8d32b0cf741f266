"""`evogit gc`: lets go of evidence that nobody will miss; candidates and journals stay."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count
from evogit.review import SCHEMA
from evogit.review.evidence_collection import WISHES, Collected, Owner, Plan, Share, Wish, collect, plan
from evogit.review.runs import find_run

WHAT: Mapping[Owner, str] = {
    "lineages": "lineages of what counts",
    "other candidates": "other candidates",
    "failed candidates": "candidates that failed",
    "failed proposals": "proposals that failed",
    "advice and verdicts": "advice and verdicts",
}


@click.command()
@click.option(
    "--evidence", type=click.Choice(list(WISHES)), default="failed", show_default=True, help="Whose evidence goes."
)
@click.option(
    "--older-than", type=click.FloatRange(min=0), default=0.0, metavar="DAYS", help="Only what is as old as that."
)
@click.option("-y", "--yes", is_flag=True, help="Do it; else nothing is changed.")
@name_option
@with_repo
@with_terminal
def gc(repo: str | None, terminal: Terminal, name: str | None, evidence: str, older_than: float, yes: bool) -> None:
    """Show what evidence (logs, transcripts) would go and what would stay; with --yes, let it go.

    Candidates and journals never go. Nor does the evidence of what counts, and of what that was bred from: the seed,
    the best and former ones, the agents' individuals, what you brought, promoted or decided about. `failed`: of
    candidates and proposals that failed. `all-but-best`: of all the rest. Agents of a run that goes on are told less
    then. No engine may be at work. This cannot be undone.
    """
    repository = find_repository(repo)
    run, wish = find_run(repository, name), cast(Wish, evidence)
    if not yes:
        made, space = plan(repository, run, wish, older_than, time.time()), repository.space()
        if terminal.json:
            terminal.data({**_record(made), "before": space, "done": False})
            return
        terminal.show([*_lines(made), Text(f"  the repository's objects take {_size(space)}", "dim")])
        terminal.note("nothing was changed; --yes does it", "dim")
        return
    done = collect(repository, run, wish, older_than, time.time())
    if terminal.json:
        told = {"before": done.before, "after": done.after, "removed": done.removed}
        terminal.data({**_record(done.plan), **told, "young": done.young, "held": done.held, "done": True})
        return
    terminal.show([*_lines(done.plan), *_came(done)])


def _record(made: Plan) -> dict[str, Any]:
    shares = {kind: {owner: to_builtins(share) for owner, share in told.items()} for kind, told in _both(made).items()}
    about = {"run": made.run, "candidates": made.candidates, "entries": made.entries, "lineages": made.lineages}
    return {"schema": SCHEMA, **about, **shares, "thinned_before": made.thinned}


def _both(made: Plan) -> dict[str, dict[Owner, Share]]:
    return {"goes": made.going, "stays": made.staying}


def _lines(made: Plan) -> Iterator[Text]:
    yield Text.assemble(
        (made.run, "bold"),
        f": {count(made.candidates, 'candidate')} ({made.lineages:,} in lineages of what counts) and "
        f"{made.entries:,} journal entries, all of which stay",
    )
    styles = {"goes": "yellow", "stays": "dim"}
    rows = [
        (
            Text(f"  {kind}", styles[kind]),
            "evidence of " + WHAT[owner],
            count(share.pieces, "piece"),
            _size(share.bytes),
        )
        for kind, told in _both(made).items()
        for owner, share in told.items()
    ]
    yield from table(rows, "llrr")
    if not made.going:
        mine = (
            "nothing is there to go" if made.staying else "this clone keeps no evidence of it; others let go of theirs"
        )
        yield Text(f"  {mine}", "dim")
    if made.thinned:
        yield Text(f"  {count(made.thinned, 'piece')} went before", "dim")


def _came(done: Collected) -> Iterator[Text]:
    freed = max(done.before - done.after, 0)
    yield Text(f"  objects took {_size(done.before)}, now {_size(done.after)}: {_size(freed)} less", "green")
    if done.young:
        said = (
            f"{count(done.young, 'object')} of it were written in the last minute and stay until the next `evogit gc`"
        )
        yield Text(f"  {said}", "dim")
    if done.held:
        said = f"{count(done.held, 'piece')} of it something else has, too: a run that was forked, or a log of refs"
        yield Text(f"  {said}", "dim")


def _size(amount: int) -> str:
    return f"{amount / 1e6:,.1f} MB" if amount >= 100_000 else f"{amount / 1e3:,.1f} kB"
