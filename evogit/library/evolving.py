"""`evogit.evolve`: a run from one call, of a task or of a seed and a function."""

from __future__ import annotations

import itertools
import logging
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, Literal, ParamSpec, cast

import msgspec

from evogit.adopt import find_task
from evogit.config import REPOSITORY_FILE, TASK_FILE, Task
from evogit.config.run_settings import DEFAULT_SELECTOR, Settings
from evogit.core import EvoGitError, NotFoundError, RefusedError, UsageError
from evogit.engine.comparability import changed_judge
from evogit.engine.desk import Desk
from evogit.engine.engine import Observer
from evogit.engine.start import only_a_failed_seed
from evogit.events import Entry, RunStarted
from evogit.history.context import StoredRun
from evogit.library.ask_and_tell import ASK, asked_evaluation
from evogit.library.function_backend import Evaluate, FunctionBackend
from evogit.library.function_task import FunctionTask, Metrics, function_task
from evogit.library.notebook import Progress, stream_of_person
from evogit.library.population import AgentLike, Population
from evogit.library.result import Result
from evogit.library.seed import Seed, SeedLike
from evogit.repository import Repository, check_run_name
from evogit.review.removing import remove
from evogit.review.run_list import RunList
from evogit.run import Run
from evogit.selection import Selector
from evogit.selection.custom_selector import Own

logger = logging.getLogger(__name__)

P = ParamSpec("P")

UNPROTECTED = (
    "%s: judged: inside. evaluate runs in this process, beside the candidates' code: nothing protects the score, your "
    "files or this process from it; a task of `evogit new` has a sandbox"
)

AUTHORED = "; whatever your agents write runs here, with your rights"

UNSCORED = "expected evaluate=, a function that says what a candidate is worth, beside a seed"


def prepare(
    task: SeedLike | Task,
    evaluate: Evaluate | Literal["ask"] | None = None,
    *,
    evaluations: int | None = None,
    minutes: float | None = None,
    target: float | None = None,
    patience: int | None = None,
    metrics: Metrics = "score",
    goal: str = "",
    editable: Sequence[str] = (),
    repeats: int = 0,
    jobs: int | None = None,
    timeout: float | None = None,
    isolated: bool = False,
    name: str = "",
    repository: str | Path | Repository | None = None,
    agents: AgentLike | Sequence[AgentLike] = (),
    model: str = "",
    dollars: float | None = None,
    tokens: int | None = None,
    calls: int | None = None,
    proposals: int | None = None,
    selector: str | Selector = DEFAULT_SELECTOR,
    seed: int = 0,
    deterministic: bool = False,
    sandbox: str = "auto",
    observer: Observer | None = None,
) -> Run:
    """A run that is ready: iterate over its events with `for` or `async for`, or `await run.evolve()`.

    Args:
        task: a seed (the path of a file or a folder, a text of several lines, a dict of files) where `evaluate` is
            given; else a task: its name, its folder, or a `Task`.
        evaluate: called with the path of the candidate's file, or its folder where the seed is more than a file;
            returns a number or a dict of numbers, or raises. It may be a coroutine function. It runs in this process:
            nothing protects the score, and the run says so (`judged: inside`). `"ask"`: you are asked (`Run.ask`).
        evaluations: the run ends when so many candidates were evaluated, earlier ones of the run included.
        minutes: it ends after this time.
        target: it ends when the metric that ranks is this good.
        patience: it ends after so many evaluations without a better candidate.
        metrics: names of the numbers, the first one ranks; a dict says which way is better:
            `{"seconds": "minimize"}`. Other numbers that `evaluate` returns are kept.
        goal: what agents are told to do; by default to improve the metric, and the docstring of `evaluate`.
        editable: globs of the paths that may change, where the seed is a folder; by default all.
        repeats: how often a would-be best is evaluated again before it is believed, where scores are noisy.
        jobs: how many candidates are evaluated at a time; by default one by a function, else one for each core. Who is
            asked decides that by when they tell.
        timeout: seconds that a call of `evaluate` may take; by default ten times as long as the slowest so far, ten
            seconds at least.
        isolated: whether each call of `evaluate` is in a process of its own, forked from this one: then a crash, an
            exit or a loop in C is the failure of that candidate, and what the function changes in memory is lost.
        name: the run's; by default the task's.
        repository: the folder in which the run lives; by default `evogit-NAME` here.
        agents: who proposes: `"mutator:4"`, `"editor@MODEL:2"` as for `evogit run --agent`, instances of `Agent`, or
            a list of both; `"ask:2"`: you are asked.
        model: what editors ask; alone, all agents are editors.
        dollars: it ends when models have cost this much; `tokens` and `proposals` are limits, too.
        tokens: it ends when models have read and written this many.
        calls: it ends when models were called so often.
        proposals: it ends when this many changes were proposed, usable or not.
        selector: how parents and survivors are chosen: as for `evogit run --selector`, or an object of yours.
        seed: of all random choices.
        deterministic: two runs with the same `seed` make the same candidates.
        sandbox: where candidates of a task run; a function has none.
        observer: what watches; by default each new best is printed, on a terminal and in notebooks.

    Raises:
        EvoGitError: saying what is wrong with an argument.
    """
    found = _task(task, evaluate, metrics=metrics, goal=goal, editable=editable, repeats=repeats)
    population = Population.of(agents, model, sandbox, [found.folder, _place(found, repository)])
    own = None if isinstance(selector, str) else Own(_name_of(selector), selector)
    ends: dict[str, Any] = {"evaluations": evaluations, "minutes": minutes, "target": target, "patience": patience}
    paid: dict[str, Any] = {"dollars": dollars, "tokens": tokens, "calls": calls, "proposals": proposals}
    settings = Settings(
        population=population.specs,
        jobs=_jobs(found, evaluate, jobs, sum(spec.count for spec in population.specs)),
        selector=selector if isinstance(selector, str) else _name_of(selector),
        seed=seed,
        deterministic=deterministic,
        sandbox=sandbox,
        **ends,
        **paid,
        count_repeats=evaluate is not None,
    )
    population.check(settings, found.models)
    run = replace(_run(_repository(found, repository), found, name, settings, population), selector=own)
    run = replace(run, observer=observer, desk=population.desk or (Desk() if evaluate == ASK else None))
    return shown(listed(replace(run, backend=_backend(run, evaluate, timeout, isolated))))


def _name_of(selector: object) -> str:
    return f"{type(selector).__module__}.{type(selector).__qualname__}"


CREATING = threading.Lock()  # of threads that begin runs in one new repository: the first one creates it


def _jobs(task: Task, evaluate: object, given: int | None, agents: int) -> int:
    """What was given; else one for a function, and where times are measured, and one for each core elsewhere.

    Raises:
        UsageError: it was given, and a person is asked: whoever asked for one more would wait for ever.
    """
    if evaluate == ASK:
        if given is not None:
            raise UsageError(f'expected no jobs= with evaluate="ask", got {given}: tell before you ask for the next')
        return agents
    if given is not None:
        return given
    return 1 if callable(evaluate) or task.environment.exclusive else os.cpu_count() or 1


def _run(repository: Repository, task: Task, name: str, settings: Settings, population: Population) -> Run:
    return Run(
        repository,
        task,
        _run_name(repository, task, name),
        settings,
        models=population.models,
        programs=population.programs,
        secrets=population.secrets,
        agents=population.agents,
        closing=population.closing,
    )


def _task(given: SeedLike | Task, evaluate: Evaluate | str | None, **about: Any) -> Task:
    """The task: one that has an evaluator, or a seed and a function.

    Raises:
        EvoGitError: there is no such task, or it has an evaluator already.
    """
    if evaluate is not None:
        if isinstance(given, Task) or _is_task(given):
            raise UsageError(
                "expected a seed beside evaluate=, got a task, which has an evaluator of its own; leave evaluate= out, "
                "or give the folder of its seed"
            )
        if not callable(evaluate) and evaluate != ASK:
            raise UsageError(f'expected a function as evaluate=, or "{ASK}", got {evaluate!r:.100}')
        return function_task(Seed.of(given), evaluate, **about)
    if isinstance(given, Task):
        return given if given.untrusted is None else msgspec.structs.replace(given, untrusted=None)
    if isinstance(given, Mapping) or "\n" in str(given):
        raise UsageError(UNSCORED)
    if Path(given).is_file():
        logger.warning("%s is run as a script that prints its score, in a sandbox, as evaluate= was not given", given)
    found = find_task(str(given))
    return msgspec.structs.replace(found, untrusted=None)  # the calling program names it, and runs as the user


def _is_task(given: object) -> bool:
    if not isinstance(given, str | Path) or "\n" in str(given):
        return False
    return any((Path(given) / file).is_file() for file in (TASK_FILE, REPOSITORY_FILE))


def _place(task: Task, given: str | Path | Repository | None) -> Path:
    """Where the run lives: in `evogit-TASK`, or in the person's own repository if the seed is a commit of that."""
    if given is None:
        return Repository.default_folder(task.name) if task.seed else task.folder
    return given.path if isinstance(given, Repository) else Path(given)


def _repository(task: Task, given: str | Path | Repository | None) -> Repository:
    if isinstance(given, Repository):
        return given
    place = _place(task, given)
    if given is None and task.seed is None:
        return Repository.discover(place)
    with CREATING:
        try:
            return Repository.open(place)
        except NotFoundError:
            return Repository.create(place)


# --- which run ------------------------------------------------------------------------------------------------------


def _run_name(repository: Repository, task: Task, name: str) -> str:
    """The name of the run: that which is asked for, else that of the task's.

    By a function, a run that another function or another seed began is left as it is, and the next one is `NAME-2`.

    Raises:
        RefusedError: the run that is asked for was begun with another task.
    """
    if name or not isinstance(task, FunctionTask):
        name = check_run_name(name or task.name)
        _make_room(repository, name, task)
        return name
    others = []
    for number in itertools.count(1):
        name = task.name if number == 1 else f"{task.name}-{number}"
        history = StoredRun.open(repository, name).history
        if changed_judge(history, task) is None or only_a_failed_seed(history):
            break
        others.append(name)
    if others and history.started is None:
        logger.warning("%s: %s began with another seed or evaluate=, and stays", name, ", ".join(others))
    _make_room(repository, name, task)
    return name


def _make_room(repository: Repository, name: str, task: Task) -> None:
    """Remove a run that holds nothing but a seed that failed, so that what was mended is its seed.

    Raises:
        RefusedError: the run was begun with another task.
    """
    history = StoredRun.open(repository, name).history
    if only_a_failed_seed(history):
        remove(repository, name)
        return
    changed = changed_judge(history, task)
    if changed is not None and isinstance(task, FunctionTask):
        raise RefusedError(
            f"the run {name!r} in {repository.path} was begun with another {' and '.join(changed) or 'task'}, and "
            "scores must not mix: give it another name=, or leave name= out"
        )


def _backend(
    run: Run, evaluate: Evaluate | str | None, timeout: float | None, isolated: bool
) -> FunctionBackend | None:
    if evaluate is None or not isinstance(run.task, FunctionTask):
        return None
    if not callable(evaluate):
        assert run.desk
        evaluate, timeout = asked_evaluation(run.desk, run.task.primary.name), timeout or math.inf
    seed = run.history.evaluation(run.history.seed) if run.history.seed else None
    return FunctionBackend(
        run.task,
        evaluate,
        run=run.name,
        jobs=run.settings.jobs,
        timeout=timeout,
        isolated=isolated,
        slowest=seed.cost.wall if seed and seed.ok else 0.0,
    )


def listed(run: Run) -> Run:
    """The same run, of which `evogit status --all` knows while it evolves and afterwards."""
    runs = RunList.of_person(os.environ)

    async def end() -> None:
        stopped = run.history.stopped
        with suppress(OSError):  # told when it began
            runs.end(run.repository, run.name, 0 if stopped and stopped.reason != "error" else 1)

    run = replace(run, closing=(*run.closing, end))

    def begun(entry: Entry) -> None:
        if not isinstance(entry.event, RunStarted):
            return
        if isinstance(run.task, FunctionTask) and len(run.history.engines) == 1:
            authored = any(spec.kind != "mutator" for spec in run.settings.population)
            logger.warning(UNPROTECTED + (AUTHORED if authored else ""), run.name)
        try:
            runs.begin(run.repository, run.name)
        except OSError as error:
            logger.warning("`evogit status --all` will not list this run: %s: %s", error.strerror, error.filename)

    run.journal.subscribe(begun)
    return run


def shown(run: Run) -> Run:
    """The same run, whose new bests are printed where nothing else watches it and somebody sees that."""
    stream = stream_of_person()
    if run.observer is None and stream is not None:
        run.journal.subscribe(Progress(run.history, run.settings.evaluations, stream).entry)
    return run


# --- to the end -----------------------------------------------------------------------------------------------------


def _as(original: Callable[P, object]) -> Callable[[Callable[..., Result]], Callable[P, Result]]:

    def decorate(function: Callable[..., Result]) -> Callable[P, Result]:
        shown = signature(original).replace(return_annotation="Result")
        function.__signature__ = shown  # type: ignore[attr-defined]
        _, arguments, said = (original.__doc__ or "").partition("    Args:\n")
        function.__doc__ = f"{function.__doc__}\n{arguments}{said.partition('    Raises:')[0].rstrip()}\n"
        return cast(Callable[P, Result], function)

    return decorate


@_as(prepare)
def evolve(*task: Any, **choices: Any) -> Result:
    """Evolve a task, or a seed by a function of your own, until a limit is reached; the same call goes on later.

    Ctrl-C ends the run cleanly and gives the result so far; a second one raises KeyboardInterrupt at once.

    Raises:
        EvoGitError: an argument is wrong, the seed itself fails, or the world does (a disk, a sandbox).
        KeyboardInterrupt: after a second Ctrl-C.
    """
    try:
        signature(prepare).bind(*task, **choices)
    except TypeError as error:
        raise TypeError(f"evolve: {error}{_meant(choices)}") from None
    run = prepare(*task, **choices)
    try:
        run.evolve_here()
    except EvoGitError as error:
        raise error from _cause(run)
    return Result(run.context)


OTHER_NAMES = {
    **dict.fromkeys(("n_trials", "trials", "iterations", "max_evaluations", "max_metric_calls"), "evaluations="),
    **dict.fromkeys(("direction", "directions", "minimize", "maximize"), 'metrics={"score": "minimize"}'),
    **dict.fromkeys(("callback", "callbacks"), "observer="),
    **dict.fromkeys(("evaluator", "objective", "fitness", "func"), "evaluate="),
    "n_jobs": "jobs=",
}
"""Arguments of other libraries -> what they are here."""


def _meant(choices: Mapping[str, object]) -> str:
    """Return what was probably meant by arguments that there are not."""
    names = list(signature(prepare).parameters)
    for name in choices:
        if name not in names and (meant := OTHER_NAMES.get(name) or "".join(get_close_matches(name, names, 1))):
            return f"; did you mean {meant.rstrip('=')}?" if meant.endswith("=") or meant in names else f"; use {meant}"
    return "; the program is the first argument, seed= is for random choices" if "task" not in choices else ""


def _cause(run: Run) -> BaseException | None:
    """What a function raised about a seed that fails, as nothing else is evaluated before that."""
    errors = run.backend.errors if isinstance(run.backend, FunctionBackend) else []
    seed = run.history.evaluation(run.history.seed) if run.history.seed else None
    return errors[0] if errors and seed and not seed.ok else None
