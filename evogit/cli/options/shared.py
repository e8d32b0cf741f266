"""Options that all commands share, what they mean, and what the shell may complete."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evogit.sandbox import AUTO, provider_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = Callable[..., Any]


repo_option = click.option("-C", "--repo", metavar="DIR", help="The Git repository; default: the one you are in.")
color_option = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), help="Colours; auto: by NO_COLOR."
)
name_option = click.option("--name", metavar="RUN", help="The run's name; needed when there are several.")
sandbox_option = click.option(
    "--sandbox", type=click.Choice(provider_names()), default=AUTO, help="Isolation of candidates."
)


CORES = os.cpu_count() or 1
jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1), default=CORES, metavar="N", help="Evaluated at a time."
)
reason_option = click.option("-m", "--reason", metavar="WHY", default="", help="The reason, which is kept.")


def with_terminal(command: Command) -> Command:
    """Give a command `--json`, `--color` and a `terminal` to write to."""

    @color_option
    @click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
    @click.pass_context
    @functools.wraps(command)
    def wrapped(context: click.Context, /, color: str | None, as_json: bool, **rest: Any) -> None:
        from evogit.cli.terminal import Terminal, silence  # rich, which `--help` has no use for

        try:
            command(terminal=Terminal(color or before(context, "color") or "auto", as_json), **rest)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough
            silence(sys.stdout)

    return wrapped


def with_repo(command: Command) -> Command:
    """Give a command `-C DIR`, as `repo`: the folder that was named there or before the command, or None."""

    @repo_option
    @click.pass_context
    @functools.wraps(command)
    def wrapped(context: click.Context, /, repo: str | None, **rest: Any) -> Any:
        return command(repo=repo or before(context, "repo"), **rest)

    return wrapped


def with_run(command: Command) -> Command:
    """Give a command `-C DIR` and `--name RUN`, and the run that they mean as `place`."""

    @name_option
    @with_repo
    @functools.wraps(command)
    def wrapped(repo: str | None, name: str | None, **rest: Any) -> Any:
        from evogit.cli.locate_run import open_place

        return command(place=open_place(repo, name), **rest)

    return wrapped


def before(context: click.Context, option: str) -> str | None:
    """The value of an option that was given before the command's name."""
    value: str | None = context.find_root().params.get(option)
    return value


class Revision(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """`best`, `seed`, an agent's name or the beginning of an id."""

    name = "rev"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names always, ids once a digit is typed."""
        from click.shell_completion import CompletionItem

        from evogit.cli.lines.view import first_line
        from evogit.cli.locate_run import open_place
        from evogit.core import EvoGitError
        from evogit.review import agents

        try:
            place = open_place(ctx.params.get("repo") or before(ctx, "repo"), ctx.params.get("name"))
        except EvoGitError:
            return []
        history = place.history
        words = [CompletionItem(word) for word in ("best", "seed", *agents(history)) if word.startswith(incomplete)]
        found = history.phylogeny.starting_with(incomplete) if incomplete else []
        return words + [CompletionItem(each.commit[:10], help=first_line(each.title)) for each in found[-50:]]


class TaskName(click.ParamType):  # type: ignore[type-arg]
    """A task of the gallery, or a folder."""

    name = "task"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The gallery's names, then folders."""
        from click.shell_completion import CompletionItem

        from evogit.config import gallery

        names = [CompletionItem(name) for name in gallery() if name.startswith(incomplete)]
        return names or [CompletionItem(incomplete, type="dir")]


REVISION, TASK = Revision(), TaskName()

task_option = click.option("--task", type=TASK, help="The task (a name or a folder), if it cannot be found here.")


def with_judged_run(command: Command) -> Command:
    """Give a command a run as `place`, the `task` by which candidates of it are evaluated, and a `sandbox`."""

    @task_option
    @sandbox_option
    @name_option
    @with_repo
    @functools.wraps(command)
    def wrapped(repo: str | None, name: str | None, task: str | None, **rest: Any) -> Any:
        from evogit.cli.locate_run import open_place, task_of

        place = open_place(repo, name)
        return command(place=place, task=task_of(place.history.run, repo, task), **rest)

    return wrapped


class OutputPath(click.Path):
    """A file or folder to write; a repository's own link must not lead the writing out of the repository.

    Git keeps links: `report.html` of a clone may be one to `~/.bashrc`. In a folder the same holds for what is there.
    """

    def __init__(self, **kinds: bool) -> None:
        super().__init__(path_type=Path, **kinds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fail where a link in a repository leads out of it."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        for link in (link for each in (path, *_below(path)) for link in _links_out(each)):
            target = os.path.realpath(link)
            self.fail(f"{link} is a link out of the repository, to {target}; name that place itself", param, ctx)
        return path


def _below(folder: Path) -> Iterator[Path]:
    """Yield all links below a folder, but for those in Git folders, which no commit brings along."""
    for place, folders, files in os.walk(folder):
        yield from (path for name in (*folders, *files) if (path := Path(place, name)).is_symlink())
        folders[:] = [name for name in folders if name != ".git"]


def _links_out(path: Path) -> Iterator[Path]:
    """Links on the way to `path` that lie in the working tree of a repository and lead out of it, or into `.git`."""
    way = [path := Path(os.path.abspath(path)), *path.parents]  # noqa: PTH100 - resolve() would follow the links
    for link in filter(Path.is_symlink, way):
        tops = (top for top in link.parents if os.path.lexists(top / ".git"))
        target = Path(os.path.realpath(link))
        if ".git" in target.parts or not all(target.is_relative_to(os.path.realpath(top)) for top in tops):
            yield link
