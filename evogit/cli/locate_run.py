"""Where a command works: which repository, which run."""

from __future__ import annotations

import gc
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from evogit.config.names import REPOSITORY_FILE
from evogit.core import NotFoundError, UsageError
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review import open_run
from evogit.review.runs import origin_notes

if TYPE_CHECKING:
    from evogit.config import Task


class Place(StoredRun, frozen=True):
    """A run, and how a person calls it from where they are."""

    @classmethod
    def of(cls, run: StoredRun) -> Place:
        """The place of a run."""
        return cls(run.repository, run.history, run.journal)

    def hint(self, command: str) -> str:
        """A command line that does `command` on this run from where the person is."""
        several = f" --name {self.history.run}" if len(self.repository.runs()) > 1 else ""
        return typed(self.repository, command + several)

    def git(self, command: str, worktree: Path | None = None) -> str:
        """A command line of plain Git's on this repository, or a worktree of it, from where the person is."""
        elsewhere = worktree is not None and worktree.resolve() != self.repository.path
        return f"git {f'-C {shlex.quote(str(worktree))} ' if elsewhere else _from_here(self.repository)}{command}"


def typed(repository: Repository, command: str) -> str:
    """A command line that does `command` in this repository from where the person is."""
    return f"evogit {_from_here(repository)}{command}"


def open_place(repo: str | None, name: str | None) -> Place:
    """Open the run of `-C` and `--name`, or the one here. Raise NotFoundError, or UsageError if there are several."""
    repository = find_repository(repo)
    gc.disable()  # what is read stays until the command ends, and there is much of it
    try:
        run = open_run(repository, name)
    finally:
        gc.enable()
        gc.freeze()
    for note in origin_notes(run):
        click.echo(f"note: {note}", err=True)
    return Place.of(run)


def run_at_work(repository: Repository) -> str | None:
    """The only run of a repository that is at work; None for none or several."""
    busy = [run for run in repository.runs() if repository.engines(run).alive()]
    return busy[0] if len(busy) == 1 else None


def find_repository(repo: str | None) -> Repository:
    """The repository named with `-C`, or the one that the person is in if it has to do with EvoGit."""
    if repo is not None:
        return Repository.discover(Path(repo))
    here = Path.cwd()
    found = _discover(here)
    if found is None or not (found.runs() or (found.path / REPOSITORY_FILE).is_file()):
        below = sorted(path.name for path in here.glob("evogit-*") if (path / ".git").exists())
        perhaps = f"; perhaps: {', '.join(f'-C {name}' for name in below[:3])}" if below else ""
        raise NotFoundError(
            "expected a Git repository with an evogit.toml (`evogit init` makes one) or a run, "
            f"and {here} lies in none{perhaps}"
        )
    return found


def place_to_run(task: Task, repo: str | None, name: str) -> Repository:
    """The repository that a run of `task` begins or goes on in; created when there is none yet."""
    if repo is None and task.seed is None:
        return Repository.discover(task.folder)
    return open_or_create(_folder_to_run(task, repo, name))


def run_before(task: Task, repo: str | None, name: str) -> tuple[Repository | None, History]:
    """The repository that `place_to_run` would give and what the run did so far, but nothing is created."""
    folder = _folder_to_run(task, repo, name)
    repository = _discover(folder) if folder.is_dir() and any(folder.iterdir()) else None
    if repository is None or name not in repository.runs():
        return repository, History(name)
    return repository, open_run(repository, name).history


def _folder_to_run(task: Task, repo: str | None, name: str) -> Path:
    if repo is not None:
        return Path(repo)
    if task.seed is None:
        return task.folder
    here = _discover(Path.cwd())
    runs = here.runs() if here is not None else []
    is_here = name in runs or task.name in runs  # a second run of a task goes beside the first one
    return here.path if here is not None and is_here else Repository.default_folder(task.name)


def named_task(name: str) -> Task:
    """Return the task of this name or folder."""
    from evogit.adopt import find_task  # with all formats of others

    return find_task(name)


def run_of(task: str | None, repo: str | None, name: str | None) -> tuple[Task, Place]:
    """Return a task, named or the one here, and its run. Raise NotFoundError or UsageError if there is none."""
    if task is None:
        found, run = task_here(repo, name)
        return found, open_place(repo, run)
    found = named_task(task)
    run = name or found.name
    repo = str(_folder_to_run(found, repo, run))
    return found, open_place(repo, run)


def task_here(repo: str | None, name: str | None) -> tuple[Task, str]:
    """Return the task of the current repository, and its run's name. Raise NotFoundError or UsageError if none."""
    from evogit.config import load_repository_task  # with all of evaluation's words

    repository = find_repository(repo)
    if (repository.path / REPOSITORY_FILE).is_file():
        own = load_repository_task(repository.path)
        untrusted = None if repository.trust.covers(repository.path, "repository") else repository.path
        return replace(own, untrusted=untrusted), name or own.name
    history = open_run(repository, name).history
    task = history.started.task if history.started else ""
    try:
        return named_task(task), history.run
    except NotFoundError as error:
        if not repository.created:
            here = repository.path / REPOSITORY_FILE
            raise NotFoundError(
                f"expected {here}, which says how the run {history.run} is evaluated; put it back, or make another one "
                "with `evogit init`"
            ) from error
        if history.started and history.started.parts.keys() >= {"evaluate", "seed"}:
            raise UsageError(
                f"{history.run} was evaluated by a function of a Python program; go on from there: evogit.evolve(...) "
                "with the same seed and function (docs/python.md)"
            ) from error
        raise UsageError(f"expected the folder of the task {task}: `run FOLDER` or --task FOLDER") from error


def task_of(run: str, repo: str | None, named: str | None) -> Task:
    """The task of a run: the one that a person named, else the one here; raises as `task_here` does."""
    return named_task(named) if named else task_here(repo, run)[0]


def task_context(task: str | None, repo: str | None, name: str | None) -> tuple[Task, Repository, History]:
    """Return the task, its repository, and the history of its run, begun or not. Raise NotFoundError if none."""
    found, run = task_here(repo, name) if task is None else (named_task(task), name)
    repository, history = run_before(found, repo, run or found.name)
    if repository is None:  # a run is not needed to evaluate something: the objects go when the command ends
        scratch = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="evogit-"))
        repository = Repository.create(Path(scratch) / "objects")
    return found, repository, history


def seed_tree(task: Task, repository: Repository, history: History) -> str:
    """Return the tree of the run's seed, else of the task's, else of HEAD. Raise NotFoundError if none is there."""
    if history.seed:
        return history.phylogeny[history.seed].tree
    if task.seed is None:
        return repository.tree_of(repository.head())
    files = task.seed_files().items()
    return repository.trees.write(
        None, {path: data for path, (data, _) in files}, {path: mode for path, (_, mode) in files}
    )


def open_or_create(path: Path) -> Repository:
    """The repository at `path` or around it; a new one where `path` is absent or an empty folder."""
    try:
        return Repository.open(path)
    except NotFoundError:
        inside = path.is_dir() and any(path.iterdir())
        return Repository.discover(path) if inside and _discover(path) else Repository.create(path)


def _discover(path: Path) -> Repository | None:
    try:
        return Repository.discover(path)
    except NotFoundError:
        return None


def _from_here(repository: Repository) -> str:
    """The option that leads from the current folder to the repository; empty when the person is in it."""
    here, place = Path.cwd(), repository.path
    if here == place or place in here.parents:
        return ""
    return f"-C {shlex.quote(str(place.relative_to(here) if here in place.parents else place))} "
