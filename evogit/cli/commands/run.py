"""`evogit run`: evolve until a limit is reached or a stop is asked for; the same command resumes."""

from __future__ import annotations

import sys
from functools import partial

import click
from msgspec.structs import replace

from evogit.agents.mutation.mutator import check_edited
from evogit.cli.background_process import detach
from evogit.cli.consent import check_programs, confirm_costs, prepare
from evogit.cli.foreground import evolve
from evogit.cli.hooks import INTERRUPTED, NO_GAIN, RunEnd
from evogit.cli.lines.summary import Done, ending
from evogit.cli.locate_run import Place, place_to_run
from evogit.cli.options.agents import AgentOptions, resolve_agents, with_agents
from evogit.cli.options.run import (
    RunTarget,
    list_selectors,
    meet,
    parse_review,
    parse_workers,
    resolve_run,
    selector_before,
    server_of,
)
from evogit.cli.options.shared import TASK, name_option, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.config.run_settings import Settings
from evogit.core import RefusedError, UsageError
from evogit.engine.comparability import check_comparable
from evogit.engine.quota import bound
from evogit.engine.start import only_a_failed_seed
from evogit.history import History
from evogit.llm.script import SCRIPT
from evogit.repository import Repository
from evogit.review import EarlierStarts, status_record
from evogit.review.forking import make
from evogit.review.removing import remains, remove
from evogit.selection.pareto import OVER_METRICS
from evogit.trust import Trust


@click.command()
@click.argument("task", type=TASK, required=False)
@with_agents
@click.option("-j", "--jobs", type=int, metavar="N", help="Candidates evaluated at a time; default: one per core.")
@click.option(
    "--workers",
    multiple=True,
    metavar="COMMAND[:N]",
    callback=parse_workers,
    help="Evaluate N at a time there, too, such as 'ssh gpu1 evogit worker:4', ray:HOST:PORT:8, "
    "or a name of your settings.",
)
@click.option(
    "--trust",
    type=click.Choice(["believe", "verify"]),
    default="believe",
    show_default=True,
    help="Believe workers, or evaluate a tenth of what they say, and what seems best, again here.",
)
@click.option("--evaluations", type=int, metavar="N", help="Stop when the run has this many, earlier ones included.")
@click.option("--proposals", type=int, metavar="N", help="Stop when this many proposals were made, usable or not.")
@click.option("--minutes", type=float, metavar="M", help="Finish within this time, start-up and holdout included.")
@click.option("--target", type=float, metavar="VALUE", help="Stop when the primary metric is this good.")
@click.option("--patience", type=int, metavar="N", help="Stop after N evaluations without a better candidate.")
@click.option(
    "--review-every",
    metavar="N|stage",
    callback=parse_review,
    help="Wait for a person after N evaluations, or after each stage; `evogit guide` goes on.",
)
@click.option("--review-minutes", type=float, metavar="M", help="Go on alone after so long.")
@click.option(
    "--selector",
    metavar="NAME",
    is_eager=True,
    callback=list_selectors,
    help="How parents and survivors are chosen: NAME:KEY=VALUE,... or FILE.py:Name; `--selector help` lists them.",
)
@click.option("--split", default="train", show_default=True, metavar="NAME", help="The split that ranks candidates.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Random seed.")
@click.option("--deterministic", is_flag=True, help="Two runs with the same seed make the same candidates.")
@click.option("--join", is_flag=True, help="Work beside an engine that is already running.")
@click.option("--detach", "detached", is_flag=True, help="Go on without this terminal; `evogit watch` shows the run.")
@click.option(
    "--remote",
    default="",
    metavar="NAME",
    help="Work with engines on other hosts through this Git server: a remote of the repository, or an address.",
)
@click.option("--host", default="", metavar="NAME", help="Name of this clone on the server; remembered.")
@click.option(
    "--own-key",
    is_flag=True,
    help="With --remote: begin with a key of this clone's own, so that what others have is evaluated here first.",
)
@click.option(
    "--at",
    metavar="[RUN:]ENTRY",
    help="Fork: begin the run --name from another one, as it was after a candidate (`best`, an id), at an entry of "
    "its journal (an id), or when N were evaluated (`@N`). RUN:ENTRY names one of several runs.",
)
@click.option("--lessons-from", multiple=True, metavar="RUN|DIR", help="Whose lessons briefs tell; `none`: no lessons.")
@click.option("--exit-code", is_flag=True, help=f"Exit with {NO_GAIN} if no candidate is better than the seed.")
@click.option("--on-end", metavar="CMD", help="Run this shell command when the run ended, also when it failed.")
@sandbox_option
@name_option
@with_repo
@with_terminal
def run(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    task: str | None,
    asked: AgentOptions,
    at: str | None,
    jobs: int | None,
    remote: str,
    host: str,
    own_key: bool,
    exit_code: bool,
    on_end: str | None,
    selector: str | None,
    detached: bool,
    **chosen: object,
) -> None:
    """Evolve TASK (a name or a folder; default: the task of the repository that you are in).

    The run lives in the repository named with -C, else in the one you are in if it has this run, else in
    ./evogit-TASK. The same command again resumes it. Ctrl-C stops cleanly, a second one at once.
    Without a limit it goes on until Ctrl-C, on a terminal only. With --detach it goes on when the terminal is closed.

    Agents, selector and limits on models are those of the run's last start until others are given. Models that cost
    money are asked only after you agree, and for $5 at most unless you set a limit.
    """
    chosen |= {} if jobs is None else {"jobs": jobs}
    server = server_of(remote, host, own_key=own_key)
    settings = Settings(detached=detached, remote=server.name, sync_every=server.sync_every, **chosen)  # type: ignore[arg-type]
    read = partial(resolve_run, task, repo, name, at)
    target = meet(terminal, read(), server, read) if server.name else read()
    found, history = target.task, target.history
    before = _trusted(target, settings, asked, selector)
    anew = _begins_anew(target, settings)
    settings = replace(settings, selector=selector_before(selector, found, before))
    kind = "coder" if found.command else "editor"  # a repository takes reading, profiling and measuring
    setup = resolve_agents(
        asked, settings, history, before, found.models, target.private, asking_kind=kind, variables=found.variables
    )
    programs = [spec.kind for spec in setup.settings.population if setup.programs.find(spec.kind)]
    found.check_trust(settings.sandbox, ", ".join([*setup.reached, *programs]))
    if not (terminal.live and not detached) and not setup.will_end:
        limits = ", ".join(f"--{limit}" for limit in settings.ends)
        raise UsageError(f"expected a limit, since no terminal shows the run: {limits}")
    to_prepare = check_programs(setup)
    settings = confirm_costs(terminal, setup, found, target.repository, history, yes=asked.yes)
    prepare(terminal, setup, to_prepare)
    if target.fork is not None and target.repository is not None:
        make(target.repository, target.fork)
    repository = _ready(terminal, target, settings, anew=anew, durable=setup.durable)
    if found.environment.exclusive:
        settings = replace(settings, jobs=min(settings.jobs, 1))
    background = detach(terminal, repository, target.name) if detached else None
    terminal = background.terminal if background else terminal
    with RunEnd(on_end, repository, target.name, terminal, setup.models.secrets) as end:
        done = evolve(repository, found, target.name, settings, terminal, setup=setup, background=background)
        end.reason = done.stopped.reason
        _print_end(terminal, done, no_gain=NO_GAIN if exit_code else 0)


def _print_end(terminal: Terminal, done: Done, *, no_gain: int) -> None:
    """Print how a run ended; exit with `no_gain` if that is not 0 and nothing is better than the seed."""
    place = Place.of(done.run.context)
    if terminal.json:
        terminal.data(status_record(place.repository, place.history))
    else:
        terminal.show(ending(place, terminal, done))
    if done.stopped.reason == "interrupted":
        sys.exit(INTERRUPTED)
    best, seed = place.history.best, place.history.seed
    if no_gain and not (best and seed and place.history.surely_fitter(best, seed)):
        sys.exit(no_gain)


def _trusted(target: RunTarget, settings: Settings, asked: AgentOptions, selector: str | None) -> EarlierStarts:
    """Return the run's earlier starts. Raise UntrustedError before anything untrusted is loaded, asked or paid."""
    run = target.fork.origin if target.fork else target.name
    before = EarlierStarts.of(target.repository, target.history, run)
    named = bool(asked.agent or asked.agents or asked.model)
    models = {model for model in (asked.model, *(spec.model for spec in asked.agent)) if model and not asked.replay}
    models = {model for model in models if not model.startswith(SCRIPT)}  # a file of replies gets nothing
    claims = [*before.claims(agents=not named, selector=selector is None)]
    if target.repository:
        claims += target.repository.keys.origin(run, target.history.first_start)
    Trust.of_user().check([*claims, *target.task.claims(settings.sandbox, ", ".join(sorted(models)))])
    return before


def _ready(terminal: Terminal, target: RunTarget, settings: Settings, *, anew: bool, durable: bool) -> Repository:
    task = target.task
    if task.seed and not target.history.started and any(spec.kind == "mutator" for spec in settings.population):
        check_edited([path for path in task.seed_files() if task.is_editable(path)])
    repository = place_to_run(task, target.repo, target.name)
    if anew:
        _clear(terminal, repository, target.history)
    if durable:
        repository.survive_power_loss()
    if task.seed is None and repository.dirty():
        about = "uncommitted edits are not in the seed, which is the commit at HEAD when the run begins"
        terminal.note(about, "yellow")
    if task.environment.exclusive:
        terminal.note(
            "exclusive = true: candidates are evaluated one at a time, on a core that the rest of EvoGit leaves"
        )
    metric = target.history.metric if target.history.started else task.primary
    over_metrics, most = OVER_METRICS(settings.selector), bound(metric, settings.split)
    if most is not None and not over_metrics:
        terminal.note(f"the run ends when {metric.name} reaches {most:.10g}, the best possible value")
    return repository


def _begins_anew(target: RunTarget, settings: Settings) -> bool:
    """Return whether the run has only a failed seed. Raise RefusedError if it is at work, or its evaluator changed."""
    if target.repository and not settings.join:
        target.repository.engines(target.name).check_idle()
    if not settings.join and target.fork is None and only_a_failed_seed(target.history):
        return True
    check_comparable(target.history, target.task, settings.split)
    return False


def _clear(terminal: Terminal, repository: Repository, history: History) -> None:
    """Remove a run that has only a failed seed. Raise RefusedError if an engine or people's commits hold it."""
    if human := remains(repository, history.run).human:
        raise RefusedError(
            f"the run {history.run!r} has only a seed that failed, and would begin anew but for your commits on "
            f"{', '.join(human)}; rename these branches, or begin another run (--name NAME)"
        )
    remove(repository, history.run)
    seed = (history.seed or "")[:7]
    terminal.note(f"{escape(history.run)} had only its seed {seed}, which failed: it begins anew", "yellow")
