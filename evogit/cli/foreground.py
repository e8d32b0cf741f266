"""Runs an engine in this process: displays progress, and stops on signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from evogit.agents.population import no_models, no_programs
from evogit.cli.background_process import BackgroundProcess
from evogit.cli.lines.summary import Done
from evogit.cli.options.agents import AgentSetup
from evogit.cli.terminal import Terminal, silence
from evogit.cli.watch import Dashboard, EventLines, Watch
from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.engine.halts import AwakeLoop
from evogit.events import Entry, RunStarted, Stopped
from evogit.llm.registry import OpenModels
from evogit.repository import Repository
from evogit.review.run_list import RunList
from evogit.run import Run


def evolve(
    repository: Repository,
    task: Task,
    name: str,
    settings: Settings,
    terminal: Terminal,
    *,
    quiet: bool = False,
    setup: AgentSetup | None = None,
    background: BackgroundProcess | None = None,
) -> Done:
    """Evolve until a limit, a signal (cleanly) or a second one (at once); `quiet`: log only a new best."""
    watch: Watch = Dashboard(terminal, settings) if terminal.live else EventLines(terminal, quiet)
    run = Run(
        repository,
        task,
        name,
        settings,
        watch,
        models=setup.models.get if setup else no_models,
        programs=setup.programs.make_agents if setup else no_programs,
        secrets=setup.models.secrets if setup else (),
        order=setup.models.order if setup else None,
    )
    watch.follow(run.history)
    if background:
        run.journal.subscribe(lambda entry: background.take(run.context))

    def list_started(entry: Entry) -> None:
        """Have `evogit status --all` know of the run."""
        if isinstance(entry.event, RunStarted):
            try:
                RunList.of_person(os.environ).begin(run.repository, run.name)
            except OSError as error:
                why = f"{error.strerror}: {error.filename}"
                terminal.note(f"`evogit status --all` will not list this run: {why}", "yellow")

    run.journal.subscribe(list_started)
    began, before = time.monotonic(), run.history.counts.evaluated
    with asyncio.Runner(loop_factory=AwakeLoop) as runner:
        stopped = runner.run(_evolve(run, watch, setup.models if setup else None, hangs_up=background is None))
    return Done(run, stopped, time.monotonic() - began, run.history.counts.evaluated - before)


async def _evolve(run: Run, watch: Watch, models: OpenModels | None, *, hangs_up: bool) -> Stopped:
    evolving = asyncio.create_task(run.evolve())
    drawing = asyncio.create_task(watch.draw())
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            evolving.cancel()  # everything that was journalled is safe, whatever is cut off
        asked = True
        run.stop("interrupted")
        watch.stopping()

    def hang_up() -> None:  # comes twice from a closed terminal, from the kernel and from the shell: no second request
        for stream in (sys.stdout, sys.stderr):
            if stream.isatty():
                silence(stream)
        if not asked:
            stop()

    loop = asyncio.get_running_loop()
    on_hang_up = hang_up if hangs_up else lambda: None
    for number, act in ((signal.SIGINT, stop), (signal.SIGTERM, stop), (signal.SIGHUP, on_hang_up)):
        loop.add_signal_handler(number, act)
    try:
        return await evolving
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        drawing.cancel()
        watch.close()
        if models:
            await models.close()
