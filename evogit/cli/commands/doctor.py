"""`evogit doctor`: whether everything that a run needs is in place and whole, and what to do where it is not."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import Struct, to_builtins
from rich.text import Text

from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import TASK, name_option, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, fact_table, table
from evogit.cli.text import count, escape, size
from evogit.core import EvoGitError, NotFoundError, RepositoryError, SandboxError, UsageError
from evogit.repository import Repository
from evogit.repository.git import git_version
from evogit.review import SCHEMA
from evogit.review.runs import find_run
from evogit.sandbox import AUTO, Environment

if TYPE_CHECKING:
    from evogit.review import soundness
    from evogit.sandbox.providers import Check

OLDEST_GIT = (2, 38)
"""The first Git with `merge-tree --write-tree`."""

LEAST_SPACE = 1024**3
"""Bytes free below which a long run may fill the disk."""

Level = Literal["ok", "warn", "fail"]
STYLES: dict[Level, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
MIN_SENTENCE_COLUMNS = 30
MAX_FINDINGS = 20


class Finding(Struct, frozen=True):
    """One line of the report."""

    level: Level
    what: str
    said: str
    sandbox: str = ""


@click.command()
@click.argument("part", type=click.Choice(["runs", "sandbox", "build"]), required=False)
@click.argument("task", type=TASK, required=False)
@click.option("--repair", is_flag=True, help="With `runs`: put right what can be without losing anything.")
@sandbox_option
@name_option
@with_repo
@with_terminal
def doctor(
    repo: str | None,
    terminal: Terminal,
    part: str | None,
    task: str | None,
    repair: bool,
    sandbox: str,
    name: str | None,
) -> None:
    """Look at Python, Git, the sandbox, disk space and the repository; exit code 1 when something fails.

    `doctor sandbox [TASK]` tests what every sandbox guarantees, with programs that break the rules. `doctor build
    [TASK]` builds what candidates of TASK run in, so that the first run need not wait.

    `doctor runs` looks for damage in all runs here, or in the one that --name names: journals, candidates, evidence,
    branches, the snapshot, locks; contents of files are for `git fsck` to check. --repair keeps again what is not kept,
    moves branches to where the journal has them, and removes wrong snapshots and locks of dead processes.
    """
    if repair and part != "runs":
        raise UsageError("expected --repair with `evogit doctor runs`")
    if task is not None and part not in ("sandbox", "build"):
        raise UsageError("expected a task with `evogit doctor sandbox` or `evogit doctor build`")
    if part == "runs":
        _check_runs(repo, terminal, name, repair)
    elif part == "sandbox":
        tried = _findings(sandbox, _environment(task), lambda name: terminal.note(f"trying {name} ...", "dim"))
        findings = list(tried)
        _report(terminal, findings, _shown(findings, terminal.width))
    elif part == "build":
        _build(terminal, _environment(task), sandbox)
    else:
        _check_all(terminal, repo, sandbox)


def _check_all(terminal: Terminal, repo: str | None, sandbox: str) -> None:
    from evogit.sandbox.providers import self_check

    found = [Finding("ok", "Python", f"{sys.version.split()[0]}, {sys.executable}"), _git()]
    found += [Finding("ok" if well else "fail", what, said) for what, well, said in self_check(sandbox)]
    here = Path(repo or ".")
    here = here if here.exists() else Path()
    free = shutil.disk_usage(here).free
    said = f"{free / 1e9:.1f} GB free at {here.resolve()}"
    full = f"{said}; 10,000 small candidates take up to 0.4 GB until they are packed"
    found.append(Finding("warn", "disk", full) if free < LEAST_SPACE else Finding("ok", "disk", said))
    found += _repository(repo)
    lines = table(((Text(f.level, STYLES[f.level]), f.what, escape(f.said)) for f in found), "lll")
    _report(terminal, found, lines)


def _report(terminal: Terminal, findings: Sequence[Finding], lines: Iterable[Text]) -> None:
    if terminal.json:
        terminal.data({"schema": 1, "checks": to_builtins(findings)})
    else:
        terminal.show(lines)
    if any(finding.level == "fail" for finding in findings):
        sys.exit(1)


def _git() -> Finding:
    try:
        said = git_version()
    except RepositoryError:
        return Finding("fail", "Git", "there is no git command on the PATH; install git 2.38 or newer")
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GIT:
        return Finding("fail", "Git", f"{said}: merges need 2.38 or newer; upgrade git")
    return Finding("ok", "Git", said)


def _repository(repo: str | None) -> Iterator[Finding]:
    try:
        repository = find_repository(repo)
    except EvoGitError as error:
        if repo is None and isinstance(error, NotFoundError):
            yield Finding("ok", "repository", "none here; `evogit run TASK` makes one")
        else:
            yield Finding("fail", "repository", str(error))
        return
    runs = repository.runs()
    yield Finding("ok", "repository", f"{repository.path}, {count(len(runs), 'run')}: {', '.join(runs) or 'none'}")
    yield Finding("ok", "host", f"{repository.host} is this clone's name in journals")
    locks = [path.relative_to(repository.common).as_posix() for path in repository.common.glob("refs/**/*.lock")]
    stale = f"{', '.join(locks[:3])} left by a dead process, it seems; `evogit run` removes its own after some seconds"
    yield Finding("warn", "locks", stale) if locks else Finding("ok", "locks", "no stale ref locks")
    for run in runs:
        yield _run(repository, run)


def _run(repository: Repository, run: str) -> Finding:
    from evogit.review import open_run

    try:
        history = open_run(repository, run).history
    except EvoGitError as error:
        return Finding("fail", f"run {run}", str(error))
    alive = repository.engines(run).alive()
    state = f"{count(len(alive), 'engine')} at work" if alive else "no engine at work"
    said = f"{count(len(history.phylogeny), 'candidate')}, {state}"
    if history.pending and not alive:
        return Finding("warn", f"run {run}", f"{said}; {len(history.pending)} await evaluation: `evogit run` goes on")
    return Finding("ok", f"run {run}", said)


def _check_runs(repo: str | None, terminal: Terminal, name: str | None, repairing: bool) -> None:
    from evogit.review.soundness import inspect, repair

    repository = find_repository(repo)
    runs = repository.runs() if name is None else [find_run(repository, name)]
    found = [repair(repository, run) if repairing else ([], inspect(repository, run)) for run in runs]
    if terminal.json:
        terminal.data({"schema": SCHEMA, "runs": [_run_record(*each) for each in found]})
    else:
        terminal.show(line for repaired, report in found for line in _lines(repaired, report))
        if unfit := repository.unfit_runs():
            terminal.note(f"left out {count(len(unfit), 'run')} whose name EvoGit gives to none", "yellow")
        if not found:
            terminal.note(f"{escape(str(repository.path))} has no run")
    if any(report.wrong for _, report in found):
        sys.exit(1)


def _run_record(repaired: Sequence[soundness.Finding], report: soundness.Report) -> dict[str, Any]:
    notes = [finding for finding in report.findings if not finding.wrong]
    about = {key: getattr(report, key) for key in ("run", "entries", "candidates", "evidence")}
    lists = {
        key: [{"part": each.part, "said": each.said, "repairable": each.mend is not None} for each in part]
        for key, part in (("wrong", report.wrong), ("notes", notes), ("repaired", repaired))
    }
    return {**about, "at_work": list(report.at_work), **lists}


def _lines(repaired: Sequence[soundness.Finding], report: soundness.Report) -> Iterator[Text]:
    wrong = report.wrong
    state = Text(f"{len(wrong):,} wrong", "bold red") if wrong else Text("sound", "green")
    amount = f"{report.entries:,} entries, {count(report.candidates, 'candidate')}"
    yield Text.assemble((report.run, "bold"), f": {amount}, {report.evidence:,} pieces of evidence: ", state)
    rows = [(Text("  repaired", "green"), each) for each in repaired]
    rows += [(Text("  wrong", "bold red") if each.wrong else Text("  note", "dim"), each) for each in report.findings]
    parts = dict.fromkeys((label.plain, each.part) for label, each in rows)
    for kind in parts:
        some = [row for row in rows if (row[0].plain, row[1].part) == kind]
        yield from table(((label, each.part, escape(each.said)) for label, each in some[:MAX_FINDINGS]), "lll")
        if some[MAX_FINDINGS:]:
            yield Text(f"    and {len(some) - MAX_FINDINGS:,} more such; `--json` has all", "dim")
    if report.at_work:
        yield Text(f"  {count(len(report.at_work), 'engine')} at work: branches, snapshot and locks not checked", "dim")
    if any(finding.mend for finding in wrong):
        yield Text("  `evogit doctor runs --repair` puts right what can be without loss", "dim")


def _environment(name: str | None) -> Environment:
    if name is None:
        return Environment()
    from evogit.adopt import find_task

    task = find_task(name)
    task.check_trust(evaluates=False)
    return task.environment


def _build(terminal: Terminal, environment: Environment, sandbox: str) -> None:
    """Build what the environment asks for: an image, or a folder with the packages."""
    from evogit.sandbox.providers import likely

    began = time.monotonic()

    def say(text: str) -> None:
        terminal.note(escape(text), "dim")

    kind = likely(sandbox)
    assert kind
    about = kind.build(environment, say)
    made = {
        "sandbox": kind.name,
        **{key: size(value) if isinstance(value, int) else value for key, value in about.items()},
    }
    if terminal.json:
        terminal.data({"schema": 1, **made})
        return
    terminal.show(fact_table([*made.items(), ("took", f"{time.monotonic() - began:.1f} s")]))


def _findings(name: str, environment: Environment, say: Callable[[str], None]) -> Iterator[Finding]:
    """Test the named sandbox, or all that isolate, of which only one has to work; then this machine."""
    from evogit.sandbox.cores import exclusive_core
    from evogit.sandbox.providers import isolating, kinds

    found: dict[str, list[Check]] = {}
    for each in isolating() if name == AUTO else (name,):
        say(each)
        found[each] = list(_tried(each, environment))
    works = [each for each in found if all(well for _, well, _ in found[each])]
    for each, checks in found.items():
        for what, well, said in checks:
            bad: Level = "warn" if works and what == "sandbox" else "fail"  # one that does not open harms nobody
            yield Finding("ok" if well else bad, what, said, each)
    for kind in (kinds()[each] for each in works):
        for what, well, said in kind.details(environment):
            yield Finding("ok" if well else "fail", what, said, kind.name)
        for variant, other in kind.variants(environment).items():
            say(variant)
            for what, well, said in _tried(kind.name, other):
                yield Finding("ok" if well else "warn", what, said, variant)
    try:
        core = f"core {exclusive_core()} is for tasks with exclusive = true"
    except SandboxError as error:
        yield Finding("fail" if environment.exclusive else "warn", "exclusive core", str(error), "this machine")
    else:
        yield Finding("ok", "exclusive core", core, "this machine")


def _tried(name: str, environment: Environment) -> Iterator[Check]:
    from evogit.sandbox.mechanisms import mechanisms
    from evogit.sandbox.providers import provider, self_check

    checks = self_check(name, environment)
    yield from checks
    if not checks[0][1]:
        return
    sandbox = provider(name, environment)
    try:
        yield from mechanisms(sandbox)
    except SandboxError as error:
        yield "mechanisms", False, str(error)
    finally:
        sandbox.close()


def _shown(found: list[Finding], width: int | None) -> Iterator[Text]:
    """Yield a heading for each sandbox, and its findings, with sentences folded to the width of the terminal."""
    for name in dict.fromkeys(finding.sandbox for finding in found):
        yield Text(name, "bold")
        for finding in (each for each in found if each.sandbox == name):
            head = Text.assemble((f"{finding.level:<5}", STYLES[finding.level]), f"{finding.what:<18}")
            room = max(width - head.cell_len - 2, MIN_SENTENCE_COLUMNS) if width else sys.maxsize
            first, *more = textwrap.wrap(escape(finding.said), room) or [""]
            yield Text.assemble("  ", head, first)
            yield from (Text(" " * (head.cell_len + 2) + line) for line in more)
