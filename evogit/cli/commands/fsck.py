"""`evogit fsck`: whether all that runs are made of is there and fits together."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.text import Text

from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.review import SCHEMA
from evogit.review.runs import find_run
from evogit.review.soundness import Finding, Report, inspect, repair

MOST = 20
"""Findings of one kind that are printed; `--json` has all."""


@click.command()
@click.option("--repair", "repairing", is_flag=True, help="Put right what can be without losing anything.")
@name_option
@with_repo
@with_terminal
def fsck(repo: str | None, terminal: Terminal, name: str | None, repairing: bool) -> None:
    """Check all runs here, or one: journals, candidates, evidence, branches, the snapshot, locks.

    Exit code 1 when something is wrong. Contents of files are for `git fsck` to check. Nothing is changed without
    --repair, which keeps again what is not kept, moves branches to where the journal has them, and removes wrong
    snapshots and locks of dead processes.
    """
    repository = find_repository(repo)
    runs = repository.runs() if name is None else [find_run(repository, name)]
    found = [repair(repository, run) if repairing else ([], inspect(repository, run)) for run in runs]
    if terminal.json:
        terminal.data({"schema": SCHEMA, "runs": [_record(mended, report) for mended, report in found]})
    else:
        terminal.show(line for mended, report in found for line in _lines(mended, report))
        if unfit := repository.unfit_runs():
            terminal.note(f"left out {count(len(unfit), 'run')} whose name EvoGit gives to none", "yellow")
        if not found:
            terminal.note(f"{escape(str(repository.path))} has no run")
    if any(report.wrong for _, report in found):
        sys.exit(1)


def _record(mended: Sequence[Finding], report: Report) -> dict[str, Any]:
    return {
        "run": report.run,
        "entries": report.entries,
        "candidates": report.candidates,
        "evidence": report.evidence,
        "at_work": list(report.at_work),
        "wrong": [_told(finding) for finding in report.wrong],
        "notes": [_told(finding) for finding in report.findings if not finding.wrong],
        "repaired": [_told(finding) for finding in mended],
    }


def _told(finding: Finding) -> dict[str, Any]:
    return {"part": finding.part, "said": finding.said, "repairable": finding.mend is not None}


def _lines(mended: Sequence[Finding], report: Report) -> Iterator[Text]:
    wrong = report.wrong
    state = Text(f"{len(wrong):,} wrong", "bold red") if wrong else Text("sound", "green")
    amount = f"{report.entries:,} entries, {count(report.candidates, 'candidate')}"
    yield Text.assemble((report.run, "bold"), f": {amount}, {report.evidence:,} pieces of evidence: ", state)
    rows = [(Text("  repaired", "green"), each) for each in mended]
    rows += [(Text("  wrong", "bold red") if each.wrong else Text("  note", "dim"), each) for each in report.findings]
    parts = dict.fromkeys((label.plain, each.part) for label, each in rows)
    for kind in parts:
        some = [row for row in rows if (row[0].plain, row[1].part) == kind]
        yield from table(((label, each.part, escape(each.said)) for label, each in some[:MOST]), "lll")
        if some[MOST:]:
            yield Text(f"    and {len(some) - MOST:,} more such; `--json` has all", "dim")
    if report.at_work:
        yield Text(f"  {count(len(report.at_work), 'engine')} at work: branches, snapshot and locks not checked", "dim")
    if any(finding.mend for finding in wrong):
        yield Text("  `evogit fsck --repair` puts right what can be without loss", "dim")
