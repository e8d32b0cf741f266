"""`evogit init`: makes a Git repository ready to be improved: asks, writes evogit.toml, evaluates HEAD."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from msgspec.structs import replace
from rich.text import Text

from evogit.cli.init_questions import Given, choose
from evogit.cli.locate_run import typed
from evogit.cli.options.shared import sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape, number
from evogit.config import REPOSITORY_FILE, Task, load_repository_task
from evogit.config.values import REPEATS, SLOW_REPEATS
from evogit.core import RefusedError
from evogit.evaluation.seed_files import check_tree
from evogit.history.standing import decimals
from evogit.repository import Repository
from evogit.sandbox.providers import likely
from evogit.scaffold.detect import detect
from evogit.scaffold.project import Project, ProjectFiles
from evogit.scaffold.repository_files import FOLDER, Choices, fetches, files, tried, write
from evogit.trust import Claim, Kind

if TYPE_CHECKING:
    from evogit.review.checking import SeedEvaluation

MAX_SOURCE_BYTES = 1 << 20

HELP = """\
Command  for the shell, in a sandbox: committed files, and no network; what installs has this machine's
Metric   its name, and how its number is read from what the command does:
         seconds=json           key of the last line that is a JSON object
         seconds=json:run.time  another key
         seconds=regex:PATTERN  group 1 of the last match in its output
         passed=junit:FILE      share of passed tests in a JUnit file
         passed=exit            1 if it exits with 0, else 0
         seconds=cpu            measured by the sandbox; also: wall
Agents   globs of paths, such as src/** lib/*.c
"""


@click.command()
@click.argument(
    "folder", metavar="[DIR]", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False
)
@click.option("--goal", metavar="TEXT", help="The goal that agents are given.")
@click.option("--editable", multiple=True, metavar="GLOB", help="Files that agents may edit, below DIR. Repeatable.")
@click.option("--command", metavar="CMD", help="The shell command that is measured: in the sandbox, in DIR.")
@click.option("--tests", metavar="CMD", help="Command that must exit with 0 before, and is not measured.")
@click.option(
    "--read",
    "reads",
    multiple=True,
    metavar="METRIC=HOW",
    help="HOW a number is read: exit, junit:FILE, regex:PATTERN, json[:KEY], cpu, wall; repeatable.",
)
@click.option("--maximize", multiple=True, metavar="METRIC", help="Metric of which higher values are better.")
@click.option("--minimize", multiple=True, metavar="METRIC", help="Metric of which lower values are better.")
@click.option("--prepare", metavar="CMD", help="Command that installs or builds once, before candidates are evaluated.")
@click.option(
    "--timeout", default="5m", metavar="TIME", help="CPU time for the command (5m); the clock allows three times that."
)
@click.option("--name", metavar="NAME", help="The run's name; default: DIR's.")
@click.option("--python", is_flag=True, help="Write a Python evaluator, which works from outside the sandbox.")
@sandbox_option
@click.option("-y", "--yes", is_flag=True, help="Accept what was found, ask nothing; needed without a terminal.")
@click.option("--force", is_flag=True, help="Replace an existing evogit.toml.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@with_repo
@with_terminal
def init(
    terminal: Terminal,
    repo: str | None,
    folder: Path | None,
    sandbox: str,
    yes: bool,
    force: bool,
    dry_run: bool,
    **given: Any,
) -> None:
    """Make the Git repository that DIR lies in ready to be improved: evogit.toml, .evogit/, and a first evaluation.

    Looks at the files of HEAD for tests, a benchmark and sources, asks for what is not given, and writes evogit.toml
    and .evogit/ at the repository's root, nothing else; then evaluates HEAD as candidates will be.
    """
    folder = (folder or Path(repo or ".")).resolve()
    repository = Repository.discover(folder)
    if repository.bare:
        raise RefusedError(f"{repository.path} is bare, without a place for {REPOSITORY_FILE}; go to a clone of it")
    if (repository.path / REPOSITORY_FILE).exists() and not (force or dry_run):
        raise RefusedError(f"{repository.path / REPOSITORY_FILE} is there already; --force replaces it")
    directory = "" if folder == repository.path else folder.relative_to(repository.path).as_posix()
    source = _source(repository, f"{directory}/" if directory else "")
    project = detect(source)
    asks = Given(**given, ask=terminal.interactive and not yes and not terminal.json, take=yes)
    provider = likely(sandbox)
    with_image = provider is not None and provider.needs_image
    if asks.ask:
        title = project.kind[0].upper() + project.kind[1:]
        terminal.note(Text.assemble((title, "bold"), f" in {escape(str(folder))}"))
        terminal.note(f"HEAD is {repository.head()[:7]}. Enter takes what is in [brackets], Ctrl-C changes nothing.\n")
        for line in (*(f"  {line}" for line in HELP.splitlines()), ""):
            terminal.note(line, "dim")
    choices = choose(asks, project, source.paths, folder, directory, with_image)
    if given["prepare"] is None and not asks.ask and not dry_run:
        _check_network(repository, choices.prepare)
    made = files(choices)
    task = tried(made, repository.path)
    if dry_run:
        for note in check_tree(task, repository, repository.tree_of(repository.head())):
            terminal.note(escape(note), "yellow")
        _warn_of_edits(terminal, repository)
        _show(terminal, made)
        return
    ours = is_ours(repository, made, task)
    written = write(repository.path, made, force=force)  # before anything can fail, as answers are work
    terminal.note(f"wrote {', '.join(written)} in {escape(str(repository.path))}", "green")
    _say_how_to_commit(terminal, repository.ignores(list(made)))
    kind: Kind = "repository" if ours else "sent"
    repository.trust.add(Claim(kind, str(repository.path)))
    task, judged = tried_out(terminal, repository, choices, sandbox)
    _tell(terminal, repository, project, task, written, judged)


def tried_out(
    terminal: Terminal, repository: Repository, choices: Choices, sandbox: str
) -> tuple[Task, SeedEvaluation]:
    """Evaluate HEAD, and write evogit.toml again if that asks for a retry or other repeats, or the profile fails."""
    task = load_repository_task(repository.path)
    _warn_of_edits(terminal, repository)
    judged = judge(task, sandbox, terminal)
    if judged.failed and not judged.flaky and choices.checks:
        without = replace(choices, checks="", checkers=())
        again = judge(_rewritten(repository, without), sandbox, terminal)
        if not again.failed or again.flaky:
            terminal.note(f"HEAD does not pass `{escape(choices.checks)}`, so that is not among the tests", "yellow")
            choices, judged = without, again
        task = _rewritten(repository, choices)
    if judged.flaky:
        terminal.note("HEAD fails now and then, so retry = 1 is set: what fails is run again", "yellow")
        choices = replace(choices, retry=1)
        task = _rewritten(repository, choices)
        judged = judge(task, sandbox, terminal)
    repeats, profiles = repeats_for(task, judged), not judged.profile.failure
    if repeats != task.repeats or not profiles:
        task = _rewritten(repository, replace(choices, repeats=repeats, profiles=profiles))
    return task, judged


def _rewritten(repository: Repository, choices: Choices) -> Task:
    """Write evogit.toml again, as HEAD's evaluation asks for."""
    write(repository.path, {REPOSITORY_FILE: files(choices)[REPOSITORY_FILE]}, force=True)
    return load_repository_task(repository.path)


def _check_network(repository: Repository, prepare: str) -> None:
    """Raise UntrustedError if a command that the user has not seen would have this machine's network."""
    if fetches(prepare) and not repository.trust.covers(repository.path, "repository"):
        network = "with the network of this machine, its local servers included"
        effect = f"`{prepare}` runs what the packages of {repository.path} say, {network}; or type it with --prepare"
        repository.trust.check([Claim("folder", str(repository.path), effect)])


def is_ours(repository: Repository, made: Mapping[str, str], task: Task) -> bool:
    """Return whether the evaluator's folder holds only what is made now. Raise UntrustedError if others would run."""

    def fail(error: OSError) -> None:
        raise RefusedError(f"{error.filename}: cannot be listed ({error.strerror}); make it readable, or remove it")

    place = repository.path / FOLDER
    tree = os.walk(place, onerror=fail) if os.path.lexists(place) else ()
    there = (Path(below, name) for below, folders, names in tree for name in (*folders, *names))
    found = sorted({path.relative_to(repository.path).as_posix() for path in there} - made.keys())
    if found and task.judged == "outside" and not repository.trust.covers(repository.path, "repository"):
        effect = f"the evaluator would run beside {', '.join(found)}, outside the sandbox and with your rights"
        repository.trust.check([Claim("folder", str(repository.path), effect)])
    return not found


def _warn_of_edits(terminal: Terminal, repository: Repository) -> None:
    if repository.dirty():
        terminal.note("uncommitted edits are not evaluated, and not in the seed of a run: both take HEAD", "yellow")


def _say_how_to_commit(terminal: Terminal, ignored: Sequence[str]) -> None:
    if ignored:
        names = " ".join(dict.fromkeys(f"{FOLDER}/" if path.startswith(f"{FOLDER}/") else path for path in ignored))
        terminal.note(f"Git ignores {names}, which works too; `git add -f {names}` commits what is there", "yellow")
    else:
        terminal.note(f"Commit {REPOSITORY_FILE} and {FOLDER}/ or leave them untracked; both work.", "dim")


def _source(repository: Repository, prefix: str) -> ProjectFiles:
    trees = repository.trees
    files = [entry for entry in trees.entries(repository.tree_of(repository.head())) if entry.is_file]
    blobs = {entry.path.removeprefix(prefix): entry.blob for entry in files if entry.path.startswith(prefix)}
    if not blobs:
        raise RefusedError(f"the commit at HEAD of {repository.path} has no file below {prefix or './'}; commit some")

    def read(path: str) -> str:
        blob = blobs[path]
        return trees.blob(blob).decode(errors="replace") if trees.size(blob) <= MAX_SOURCE_BYTES else ""

    return ProjectFiles(list(blobs), read, repository.last_version())


def _show(terminal: Terminal, made: dict[str, str]) -> None:
    if terminal.json:
        terminal.data({"schema": 1, "files": made})
        return
    for path, text in made.items():
        terminal.show([Text(f"── {path}" if terminal.glyphs.pretty else f"-- {path}", "bold")])
        terminal.show([Text(escape(line)) for line in text.splitlines()], fit="ignore")


def _tell(
    terminal: Terminal, repository: Repository, project: Project, task: Task, written: list[str], judged: SeedEvaluation
) -> None:
    if terminal.json:
        about = {"schema": 1, "task": task.name, "kind": project.kind, "written": written}
        metrics = [to_builtins(metric) for metric in task.metrics]
        terminal.data({**about, "metrics_declared": metrics, **record(task, judged)})
    else:
        terminal.show(outcome(repository, task, judged))
    if judged.failed:
        sys.exit(1)


NEXT = {
    "run --model MODEL --evaluations 50": "let agents read, profile, measure and improve it",
    "show --brief": "what it will be told",
    "audit": "how its score could be had without earning it",
    "check": "evaluate HEAD again",
}
AGAIN = {"check": "evaluate HEAD again"}
MAX_OUTPUT_LINES = 15


def judge(task: Task, sandbox: str, terminal: Terminal) -> SeedEvaluation:
    """Evaluate HEAD on train, several times, and say meanwhile why it takes time."""
    from evogit.review.checking import judge_seed

    async def only() -> SeedEvaluation:
        return [each async for each in judge_seed(task, ["train"], sandbox, again=True)][0]

    packages = ", ".join(task.environment.packages)
    why = f"; the first time with {packages} takes a while" if packages else ""
    said = f"evaluating HEAD in a sandbox several times, to see whether its score repeats{why}"
    if not terminal.live:
        terminal.note(said, "dim")
    with terminal.err.status(Text(said)) if terminal.live else nullcontext():
        return asyncio.run(only())


def is_noisy(task: Task, judged: SeedEvaluation) -> bool:
    """Return True if the ranking score differed between valid evaluations of HEAD."""
    return not judged.failed and judged.spread(task.primary.name) is not None


def repeats_for(task: Task, judged: SeedEvaluation) -> int:
    """Return the repeats of a would-be best: none if scores repeat, fewer if evaluations take long."""
    noisy = task.repeats or is_noisy(task, judged)
    return (SLOW_REPEATS if judged.slow else REPEATS) if noisy else 0


def outcome(repository: Repository, task: Task, judged: SeedEvaluation) -> list[Text]:
    """Return the seed's metrics and what to run next, or why there are none and what to change."""
    lines = _measured(task, judged) if judged.evaluation.ok else _failed(task, judged)
    steps = AGAIN if judged.failed else NEXT
    rows = ((Text(f"  {typed(repository, step)}"), Text(why, "dim")) for step, why in steps.items())
    return [*lines, Text(""), *table(rows, "ll")]


def record(task: Task, judged: SeedEvaluation) -> dict[str, Any]:
    """The evaluation as data, and what came of repeating it."""
    from evogit.review.checking import advice, flaky
    from evogit.review.provable import provable

    found = to_builtins(judged.evaluation)
    evaluation = {key: found[key] for key in ("split", "status", "metrics", "cases", "reason", "cost", "judged")}
    about = {"provider": judged.provider, "evaluation": evaluation, "evaluations": judged.times}
    if judged.failed:
        remedy = flaky(task, judged) if judged.flaky else advice(task, judged)
        return {**about, "advice": remedy, "output": _output(judged)}
    spread = {metric.name: judged.spread(metric.name) for metric in task.metrics}
    return {**about, "spread": spread, "repeats": task.repeats, "provable": to_builtins(provable(task, judged))}


def _measured(task: Task, judged: SeedEvaluation) -> Iterator[Text]:
    from evogit.review.seed_numbers import sources_of

    evaluation = judged.evaluation
    took = f" in {evaluation.cost.wall:.1f} s with {judged.provider}; judged: {evaluation.judged}"
    yield Text.assemble(("HEAD is evaluated", "bold green"), (took, "dim"))
    rows: list[list[Text | str]] = []
    for metric in task.metrics:
        value = evaluation.metrics[metric.name]
        better = "higher is better" if metric.direction == "maximize" else "lower is better"
        rank = ", ranks candidates" if metric.primary and len(task.metrics) > 1 else ""
        rows.append([f"  {metric.name}", Text(number(value, decimals(value)), "bold"), Text(better + rank, "dim")])
    yield from table(rows, "lrl")
    sources = sources_of(task, evaluation, judged.evidence)
    yield from (Text(f"  {escape(line)}", "dim") for each in sources for line in each.lines())
    yield from (Text(escape(each.unread), "yellow") for each in sources if each.unread)
    yield from _repeated(task, judged)
    yield from _profiled(judged)
    how = task.command.reads[task.primary.name].how if task.command else ""
    if evaluation.metrics[task.primary.name] == 1 and how in ("exit", "junit"):  # shares
        yield Text(f"No candidate can have more {task.primary.name} than HEAD: choose another metric.", "yellow")


def _profiled(judged: SeedEvaluation) -> Iterator[Text]:
    """Return the lines about where the time goes, or why that is not known."""
    if judged.profile.failure:
        yield Text("no profile, so its line in evogit.toml is a comment; the command's last words:", "yellow")
        yield from (Text(f"  {escape(line)}", "dim") for line in judged.profile.output.splitlines()[-MAX_OUTPUT_LINES:])
    elif judged.profile.text:
        yield Text("Agents are shown where the time goes, by `profile` in evogit.toml; first of all:", "dim")
        yield from (Text(f"  {escape(line)}", "dim") for line in judged.profile.text.splitlines()[1:4])


def _repeated(task: Task, judged: SeedEvaluation) -> Iterator[Text]:
    from evogit.review.checking import flaky
    from evogit.review.provable import told_provable

    yield from (
        Text(f"  {escape(line)}", "dim") for log in judged.logs for line in log.splitlines()[-MAX_OUTPUT_LINES:]
    )
    if judged.flaky:
        yield Text(escape(flaky(task, judged)), "red")
        return
    for metric in task.metrics:
        if said := judged.told_spread(metric.name):
            yield Text(f"{metric.name} {said}", "yellow")
    if not is_noisy(task, judged):
        again = f", with repeats = {task.repeats}" if task.repeats else ", so repeats = 0"
        yield Text(f"{task.primary.name} was the same in {judged.times} evaluations{again}", "dim")
    elif task.repeats:
        yield Text(
            f"repeats = {task.repeats}: what seems best is evaluated {task.repeats} more times before it is believed",
            "dim",
        )
    else:
        yield Text("With repeats = 0 such noise is taken for progress: set repeats in [evaluator]", "yellow")
    yield from (Text(escape(said), "dim") for said in told_provable(task, judged))


def _failed(task: Task, judged: SeedEvaluation) -> Iterator[Text]:
    from evogit.review.checking import advice, flaky

    evaluation = judged.evaluation
    yield Text.assemble(("HEAD fails", "bold red"), f" ({evaluation.status}): {escape(evaluation.reason)}")
    yield from (Text(f"  {escape(line)}", "dim") for line in _output(judged))
    if sentence := flaky(task, judged) if judged.flaky else advice(task, judged):
        yield Text(escape(sentence))


def _output(judged: SeedEvaluation) -> list[str]:
    evidence = judged.evidence
    said = evidence.log or (evidence.stdout + evidence.stderr).decode(errors="replace")
    return said.splitlines()[-MAX_OUTPUT_LINES:]
