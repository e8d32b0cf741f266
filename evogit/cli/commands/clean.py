"""`evogit clean`: frees room: what sandboxes left, evidence that does not count, or a whole run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.confirming import asks, confirm
from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, size
from evogit.core import EvoGitError, SandboxError, UsageError
from evogit.repository import Repository
from evogit.review import SCHEMA
from evogit.review.evidence_collection import WISHES, Owner, Plan, Wish, collect, plan
from evogit.review.removing import remains, remove
from evogit.review.runs import find_run
from evogit.sandbox import Environment

UNUSED_S = 30 * 86400.0
"""Seconds after which a prepared seed that was not used is removed; which tasks it belongs to cannot be told."""

WHAT: Mapping[Owner, str] = {
    "lineages": "lineages of what counts",
    "other candidates": "other candidates",
    "failed candidates": "candidates that failed",
    "failed proposals": "proposals that failed",
    "advice and verdicts": "advice and verdicts",
}


Removed = tuple[str, str, int]
"""The kind, the name and the bytes of something that was removed."""


@click.command()
@click.argument("run", required=False)
@click.option("--evidence", type=click.Choice(list(WISHES)), help="Whose evidence goes in RUN; default: failed.")
@click.option("--all", "everything", is_flag=True, help="Remove RUN whole; without RUN also what the tasks here use.")
@asks
@name_option
@with_repo
@with_terminal
def clean(
    repo: str | None,
    terminal: Terminal,
    run: str | None,
    name: str | None,
    evidence: Wish | None,
    everything: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Remove what sandboxes left; or, with RUN, evidence of a run (logs, transcripts); or with --all the run.

    Without RUN: containers of dead engines, images and packages that no task here uses, and what was made long ago.
    Tasks here are those of the gallery, and those in this folder and the folders in it. What a task needs is made
    again.

    With RUN: shows what evidence would go and what would stay; with --yes, lets it go. Candidates and journals never
    go. Nor does the evidence of what counts, and of what that was bred from: the seed, the best and former ones, the
    agents' individuals, what you brought, promoted or decided about. `failed`: of candidates and proposals that failed.
    `all-but-best`: of all the rest. Agents of a run that continues see less then. No engine may be at work.

    With RUN --all: its candidates, journals, branches and notes go; what you merged of it stays. Git collects the
    objects in its own time, or with `git gc --prune=now`. Copies on other hosts stay there. Evidence and runs cannot be
    brought back.
    """
    if run is not None and name not in (None, run):
        raise UsageError(f"expected one run, got {run} and --name {name}")
    run = run or name
    if run is None and evidence is None:
        if dry_run:
            raise UsageError("--dry-run is for RUN; what sandboxes left is made again if a task needs it")
        if everything and not yes:
            terminal.note("packages, prepared seeds and adopted tasks go, those that runs at work use included")
            confirm(terminal)
        _clean_sandboxes(terminal, everything)
    elif everything:
        if run is None or evidence is not None:
            raise UsageError("expected RUN without --evidence, to remove it with --all")
        _remove_run(repo, terminal, run, yes, dry_run)
    else:
        repository = find_repository(repo)
        _thin(terminal, repository, find_run(repository, run), evidence or "failed", yes=yes and not dry_run)


def _thin(terminal: Terminal, repository: Repository, run: str, wish: Wish, *, yes: bool) -> None:
    if not yes:
        made, space = plan(repository, run, wish), repository.space()
        if terminal.json:
            terminal.data({**_record(made), "before": space, "done": False})
            return
        terminal.show([*_lines(made), Text(f"  the repository's objects take {size(space)}", "dim")])
        terminal.note("nothing was changed; --yes does it", "dim")
        return
    done = collect(repository, run, wish)
    if terminal.json:
        about = {"before": done.before, "after": done.after, "removed": done.removed}
        terminal.data({**_record(done.plan), **about, "young": done.young, "held": done.held, "done": True})
        return
    freed = max(done.before - done.after, 0)
    lines = [*_lines(done.plan)]
    lines.append(Text(f"  objects took {size(done.before)}, now {size(done.after)}: {size(freed)} less", "green"))
    for number, noun, why in (
        (done.young, "object", "of it were written in the last minute and stay until the next time"),
        (done.held, "piece", "of it something else has, too: a run that was forked, or a log of refs"),
    ):
        lines += [Text(f"  {count(number, noun)} {why}", "dim")] if number else []
    terminal.show(lines)


def _record(made: Plan) -> dict[str, Any]:
    shares = {
        kind: {owner: to_builtins(share) for owner, share in owners.items()}
        for kind, owners in (("goes", made.going), ("stays", made.staying))
    }
    about = {"run": made.run, "candidates": made.candidates, "entries": made.entries, "lineages": made.lineages}
    return {"schema": SCHEMA, **about, **shares, "thinned_before": made.thinned}


def _lines(made: Plan) -> Iterator[Text]:
    yield Text.assemble(
        (made.run, "bold"),
        f": {count(made.candidates, 'candidate')} ({made.lineages:,} in lineages of what counts) and "
        f"{made.entries:,} journal entries, all of which stay",
    )
    rows = [
        (Text(f"  {kind}", style), "evidence of " + WHAT[owner], count(share.pieces, "piece"), size(share.bytes))
        for kind, style, owners in (("goes", "yellow", made.going), ("stays", "dim", made.staying))
        for owner, share in owners.items()
    ]
    yield from table(rows, "llrr")
    if not made.going:
        others = "this clone keeps no evidence of it; others let go of theirs"
        yield Text(f"  {'nothing is there to go' if made.staying else others}", "dim")
    if made.thinned:
        yield Text(f"  {count(made.thinned, 'piece')} went before", "dim")


def _remove_run(repo: str | None, terminal: Terminal, run: str, yes: bool, dry_run: bool) -> None:
    repository = find_repository(repo)
    found = remains(repository, run)
    terminal.note(Text.assemble(("remove  ", "bold"), f"{found.run}, with all its candidates, for good"))
    terminal.note(f"  {count(len(found.refs), 'ref')}, of which {len(found.branches):,} are plain branches")
    for branch in found.human:
        terminal.note(f"    {escape(branch)}, with what you committed there", "yellow")
    others = [branch for branch in found.branches if branch not in found.human]
    for branch in others[:10]:
        terminal.note(f"    {escape(branch)}", "dim")
    if others[10:]:
        terminal.note(f"    and {len(others) - 10} more", "dim")
    if not dry_run:
        if not yes:
            confirm(terminal)
        found = remove(repository, run)
    if terminal.json:
        terminal.data({"schema": SCHEMA, "run": run, "removed": not dry_run, "refs": found.refs})
    if dry_run:
        terminal.note("nothing was changed", "dim")
    elif repository.created and not repository.runs():
        terminal.note(f"{escape(str(repository.path))} was made for runs and has none now; you can delete it")


def _clean_sandboxes(terminal: Terminal, everything: bool) -> None:
    keep = [] if everything else list(_environments_here())
    removed = [*_clean_docker(keep, terminal), *_clean_folders(keep, 0 if everything else UNUSED_S)]
    total = sum(freed for _, _, freed in removed)
    if terminal.json:
        records = [{"kind": kind, "name": name, "bytes": freed} for kind, name, freed in removed]
        terminal.data({"schema": SCHEMA, "removed": records, "bytes": total})
        return
    rows = ((Text(kind, "dim"), escape(name), size(freed) if freed else "") for kind, name, freed in removed)
    terminal.show([*table(rows, "llr"), Text(f"{size(total)} freed" if removed else "nothing to remove", "green")])


def _environments_here() -> Iterator[Environment]:
    """Of all tasks that can be read; what the others need is made again."""
    from evogit.adopt import find_task
    from evogit.config import gallery
    from evogit.sandbox.packages import requirements

    yield Environment()
    for name in (*gallery(), ".", *(str(folder) for folder in sorted(Path().iterdir()) if folder.is_dir())):
        try:
            environment = find_task(name).environment
            requirements(environment)
        except (EvoGitError, OSError):
            continue
        yield environment


def _clean_docker(keep: list[Environment], terminal: Terminal) -> list[Removed]:
    """Remove containers and images; the bytes of all images, which share some, stand at the last one."""
    from evogit.sandbox.docker.daemon import connect, patiently
    from evogit.sandbox.docker.images import remove_images
    from evogit.sandbox.docker.worker import clean

    try:
        with closing(connect()) as client:
            containers = patiently(lambda: clean(client), patience=0.0)
            before = client.df()["LayersSize"]
            names = list(remove_images(client, keep))
            freed = max(before - client.df()["LayersSize"], 0)
    except SandboxError as error:
        terminal.note(f"containers and images stay: {escape(str(error))}", "yellow")
        return []
    images = [("image", name, freed if name == names[-1] else 0) for name in names]
    return [*(("container", name[:12], 0) for name in containers), *images]


def _clean_folders(keep: list[Environment], unused_s: float) -> Iterator[Removed]:
    from evogit.adopt.foreign_task import remove_kept
    from evogit.evaluation.prepare import remove_layers
    from evogit.sandbox.packages import remove_folders

    yield from (("packages", name[:16], freed) for name, freed in remove_folders(keep))
    yield from (("prepared", name[:16], freed) for name, freed in remove_layers(unused_s))
    yield from (("task", name, freed) for name, freed in remove_kept(unused_s))
