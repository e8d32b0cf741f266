"""What `evogit init` must know: from options, from the person at the terminal, or as it was found."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct

from evogit.config.printed_numbers import direction_of
from evogit.config.values import MetricReader, is_safe_path, matches, nearest
from evogit.core import Direction, UsageError
from evogit.scaffold.project import Project
from evogit.scaffold.repository_files import Choices, fetches

DEFAULT_READ = {"cpu_seconds": "cpu"}
"""What is measured where no benchmark prints a number: the sandbox counts it, so it is hard to forge."""
SAME = "What the code does must stay the same; its tests must pass."
BY_PYTHON: dict[str, Direction] = {"speedup": "maximize"}
"""The metric of the Python evaluator that `init` writes."""


class Given(Struct, frozen=True, kw_only=True):
    """The options of `evogit init`; None or empty: not given. `ask`: there is a person; `take`: what was found will do.

    Globs and commands are as seen from the folder that is to be improved.
    """

    goal: str | None
    editable: tuple[str, ...]
    command: str | None
    reads: tuple[str, ...]
    maximize: tuple[str, ...]
    minimize: tuple[str, ...]
    prepare: str | None
    timeout: str
    name: str | None
    tests: str | None
    python: bool
    ask: bool
    take: bool


def choose(
    given: Given, project: Project, paths: Sequence[str], folder: Path, directory: str, with_image: bool
) -> Choices:
    """Choose what to write; `paths` are the project's files. Raise UsageError if an answer is missing."""
    if given.python and (given.reads or given.maximize or given.minimize):
        raise UsageError("--python takes no --read, --maximize, --minimize: evaluate.py says what its metrics are")
    if both := set(given.maximize) & set(given.minimize):
        raise UsageError(f"expected --maximize or --minimize, got both for {', '.join(sorted(both))}")
    tests, work = _commands(given, project)
    checks = "" if given.python or given.tests is not None or given.command else project.checks
    if given.ask and checks:
        checks = _asked("Formatters and type checkers that must pass, too", checks)
    prepare = _prepare(given, project, with_image)
    reads = {} if given.python else _reads(given, project, own=work not in (project.benchmark, project.tests))
    directions = BY_PYTHON if given.python else {metric: _direction(given, metric, reads[metric]) for metric in reads}
    said = [metric for metric in directions if metric in (*given.maximize, *given.minimize)]
    primary = next(iter(said or directions))
    editable, withheld = _editable(given, project, paths), tuple[str, ...]()
    if given.ask:
        question = "Agents are not shown (Enter: all is shown)"
        withheld = click.prompt(question, default="", show_default=False, value_proc=_globs, err=True)
    packages = (*project.python, *(f"apt:{name}" for name in project.debian if with_image))
    prefix = f"{directory}/" if directory else ""
    verb = "Raise" if directions[primary] == "maximize" else "Lower"
    goal = f"{verb} {primary}, as the evaluator measures it. {SAME}"
    return Choices(
        name=given.name or re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:60] or "project",
        goal=given.goal or _answer(given, "--goal", "Goal", goal),
        editable=tuple(prefix + glob for glob in editable),
        withheld=tuple(prefix + glob for glob in withheld),
        directory=directory,
        tests=tests,
        work=work,
        prepare=prepare,
        reads=reads,
        directions=directions,
        primary=primary,
        python=given.python,
        timeout=given.timeout,
        packages=packages,
        checks=checks,
        checkers=project.checkers if checks else (),
        missing=() if with_image else tuple(f"apt:{name}" for name in project.debian),
    )


def _commands(given: Given, project: Project) -> tuple[str, str]:
    """What must pass first, and the command that is measured; the tests are measured where there is nothing else."""
    measured = project.benchmark or project.tests
    found = " && ".join(filter(None, (project.build, project.tests if project.benchmark else "")))
    work = given.command or _answer(given, "--command", "Command that is measured", measured)
    if given.tests is not None:
        return given.tests, work
    if given.command:
        return "", work
    if given.ask:
        return _asked("Tests that must pass before", found), work
    return found, work


def _reads(given: Given, project: Project, *, own: bool) -> Mapping[str, str]:
    found = "" if own else _written(project.reads or DEFAULT_READ)
    if given.ask and not given.reads:
        default = found or _written(DEFAULT_READ)
        return dict([click.prompt("Metric, as METRIC=HOW", default=default, value_proc=_pair, err=True)])
    reads = dict(map(_pair, given.reads)) or dict([_pair(_answer(given, "--read", "", found))])
    for metric in (*given.maximize, *given.minimize):
        if metric not in reads:
            raise UsageError(f"expected --read {metric}=HOW beside --maximize or --minimize; {nearest(metric, reads)}")
    return reads


def _pair(text: str) -> tuple[str, str]:
    """The metric and how it is read; click asks again where a question was answered with something else."""
    metric, _, how = text.partition("=")
    if not metric.isidentifier() or metric in ("name", "feedback"):
        raise click.UsageError(f"expected METRIC=HOW with a metric such as seconds, got {text!r}")
    try:
        MetricReader.parse(how)
    except ValueError as error:
        raise click.UsageError(f"{metric}: {error}") from None
    return metric, how


def _direction(given: Given, metric: str, how: str) -> Direction:
    if metric in given.maximize or metric in given.minimize:
        return "maximize" if metric in given.maximize else "minimize"
    found = direction_of(metric, how)
    if given.ask:
        default = {"maximize": "higher", "minimize": "lower", None: None}[found]
        kinds = click.Choice(["higher", "lower"])
        said = click.prompt(f"Which {metric} is better", default=default, type=kinds, err=True)
        return "maximize" if said == "higher" else "minimize"
    if found is None:
        raise UsageError(f"expected --maximize {metric} or --minimize {metric}; its name does not tell which is better")
    return found


def _editable(given: Given, project: Project, paths: Sequence[str]) -> tuple[str, ...]:
    if given.editable:
        return given.editable
    found = " ".join(shlex.quote(glob) if re.search(r"[\s'\"\\]", glob) else glob for glob in project.editable)
    if not given.ask:
        return _globs(_answer(given, "--editable", "", found))

    def read(text: str) -> tuple[str, ...]:
        globs = _globs(text)
        if not any(matches(path, globs) for path in paths):
            raise click.UsageError(f"expected globs of files that HEAD has, got {text!r}, which matches none")
        return globs

    return tuple(click.prompt("Agents may change", default=found or None, value_proc=read, err=True))


def _asked(question: str, found: str) -> str:
    """What a person wants of something that need not be: Enter takes what was found, `-` nothing."""
    none = " (-: none)" if found else " (Enter: none)"
    said = str(click.prompt(question + none, default=found, show_default=bool(found), err=True)).strip()
    return "" if said == "-" else said


def _prepare(given: Given, project: Project, with_image: bool) -> str:
    """What installs, and builds where that lasts: in Docker each candidate has a folder of another name."""
    if given.prepare is not None:
        return given.prepare
    builds = project.build if not given.command and not with_image else ""
    found = " && ".join(filter(None, (project.prepare, builds)))
    network = ", with this machine's network" if fetches(found) else ""
    return _asked(f"Command that installs or builds, once{network}", found) if given.ask else found


def _globs(text: str) -> tuple[str, ...]:
    """Globs as a shell reads words; click asks again where a question was answered with something else."""
    try:
        globs = tuple(shlex.split(text))
    except ValueError as error:
        raise click.UsageError(f"expected globs such as src/**, got {text!r}: {str(error).lower()}") from None
    for glob in globs:
        if not is_safe_path(glob):
            raise click.UsageError(f"expected globs such as src/**, without .. and a / in front, got {glob!r}")
    return globs


def _answer(given: Given, option: str, question: str, found: str) -> str:
    """Return what was found if the user, or --yes, agrees. Raise UsageError if nobody does, or nothing was found."""
    if given.ask:
        return str(click.prompt(question, default=found or None, err=True))
    if not found:
        raise UsageError(f"expected {option}: the files of HEAD do not tell it")
    if not given.take:
        raise UsageError(
            f"expected {option} or --yes, which takes what was found ({found!r}), since there is no terminal to ask on"
        )
    return found


def _written(reads: Mapping[str, str]) -> str:
    return next(f"{metric}={how}" for metric, how in reads.items())
