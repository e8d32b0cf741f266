"""`evogit status` and `evogit best`: how a run stands."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec.structs import replace
from rich.text import Text

from evogit.cli.lines.compare import best_against_seed
from evogit.cli.lines.contributions import choice_lines, contribution_tables, legend
from evogit.cli.lines.counts import count_words
from evogit.cli.lines.front import front_lines
from evogit.cli.lines.hosts import host_lines, server_lines
from evogit.cli.lines.next_steps import judge_commands, next_steps, take_command
from evogit.cli.lines.runs import run_table
from evogit.cli.lines.spending import outage_lines, spending_lines
from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place, find_repository, open_place, typed
from evogit.cli.options.shared import name_option, with_repo, with_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.config.run_settings import DEFAULT_SELECTOR
from evogit.core import NotFoundError
from evogit.history import History
from evogit.repository import Repository
from evogit.repository.faults import has_room
from evogit.review import (
    SCHEMA,
    agents,
    candidate_record,
    contributions,
    last_start,
    own_names,
    resolve,
    status_record,
)
from evogit.review.json_records import host_records
from evogit.review.run_list import RunOverview

MOST_AGENTS = 24
"""Agents that are listed, so that the lines around them stay in sight."""

CONTRIBUTORS = 6
"""Agents, models and operators whose contributions are listed, of each those that brought most."""


@click.command()
@click.option("--all-hosts", is_flag=True, help="Also what each host brought, and when it was heard of.")
@name_option
@with_repo
@with_terminal
def status(repo: str | None, name: str | None, terminal: Terminal, all_hosts: bool) -> None:
    """Show the state of a run: what was done, the best against the seed, where each agent is, what each contributed.

    Without --name, where there are several runs, they are listed.
    """
    repository = find_repository(repo)
    if name is None and len(names := repository.runs()) > 1:
        _list(terminal, repository, [RunOverview.of(repository, each) for each in names])
    else:
        _show(open_place(repo, name), terminal, all_hosts=all_hosts)


def _list(terminal: Terminal, repository: Repository, found: Sequence[RunOverview]) -> None:
    if terminal.json:
        terminal.data({"schema": SCHEMA, "runs": [each.record() for each in found]})
        return
    again = Text.assemble(("try  ", "dim"), typed(repository, f"status --name {found[0].history.run}"))
    terminal.show([*run_table(found, folders=False), Text(""), again])


def _show(place: Place, terminal: Terminal, *, all_hosts: bool) -> None:
    hosts = host_records(place.repository, place.history) if all_hosts else []
    if terminal.json:
        terminal.data({**status_record(place.repository, place.history), **({"hosts": hosts} if all_hosts else {})})
        return
    view = View.of(place.history, terminal)
    lines = [
        _headline(view),
        *_manner(view),
        _state(place),
        *outage_lines(place.history),
        *_room(place),
        *server_lines(place),
        *_workers(place),
        _work(view),
        Text(""),
        *best_against_seed(view),
        *front_lines(view),
        Text(""),
    ]
    lines += [*host_lines(view, hosts), Text("")] if all_hosts else []
    lines += [*_agents(view), Text("")]
    if spending := spending_lines(view):
        lines += [*spending, Text("")]
    lines += [*_contributions(view), *choice_lines(view)]
    terminal.show([*lines, *next_steps(place, *_worth_trying(place))])


@click.command()
@click.option("--at", metavar="MOMENT", help="As the run was then: @N (after N evaluations), a candidate or an entry.")
@with_run
@with_terminal
def best(place: Place, terminal: Terminal, at: str | None) -> None:
    """Show the best candidate against the seed, on the run's split and on the holdout."""
    if at is not None:
        from evogit.review.forking import past  # with whole journals: seldom asked

        place = replace(place, history=past(place.repository, place.history.run, at))
    history = place.history
    found = resolve(history, "best")
    if terminal.json:
        known = status_record(place.repository, history)
        keys = ("run", "metric", "best", "seed", "gains", "gap_closed", "gap", "tied", "front")
        extra = {key: known[key] for key in keys}
        terminal.data({**candidate_record(history, found), **extra, "schema": SCHEMA})
        return
    view = View.of(history, terminal)
    terminal.show([view.line(found), Text(""), *best_against_seed(view), *front_lines(view)])


def _worth_trying(place: Place) -> tuple[str, ...]:
    history = place.history
    if history.best not in (None, history.seed):
        return ("graph", "diff", take_command(place), *judge_commands(place))
    return ("log", "show seed", *judge_commands(place)) if history.seed else ("doctor",)


def _headline(view: View) -> Text:
    history, dot = view.history, f" {view.glyphs.dot} "
    started = history.started
    if started is None:
        raise NotFoundError(f"the run {history.run} has not started; begin it with `evogit run`")
    better = "higher" if history.metric.direction == "maximize" else "lower"
    parts = [f"task {first_line(started.task)}", f"split {history.split}", f"{history.metric.name}, {better} is better"]
    parts += ["judged: inside"] if started.judged == "inside" else []
    return Text.assemble((history.run, "bold"), dot, dot.join(parts))


def _manner(view: View) -> list[Text]:
    """What is not as usual: where the run came from, and how it searches."""
    history, forked = view.history, view.history.forked
    parts = [f"forked from {first_line(forked.run)} at {forked.entry[:SHORT]}"] if forked else []
    selector = last_start(history).get("selector", DEFAULT_SELECTOR)
    parts += [f"selector {first_line(selector)}"] if selector != DEFAULT_SELECTOR else []
    return [Text(f" {view.glyphs.dot} ".join(parts))] if parts else []


def _state(place: Place) -> Text:
    engines = place.repository.engines(place.history.run).alive()
    if engines:
        return Text(f"running: {count(len(engines), 'engine')}", "green")
    stopped = place.history.stopped
    if stopped is None:
        return Text("not running, and not stopped cleanly: `evogit run` resumes it", "yellow")
    detail = f" ({first_line(stopped.detail)})" if stopped.detail else ""
    return Text(f"stopped: {stopped.reason}{detail}", "red" if stopped.reason == "error" else "")


def _room(place: Place) -> list[Text]:
    """What an engine waits for that cannot even journal it."""
    if has_room(place.repository.common):
        return []
    where = escape(str(place.repository.common))
    return [Text(f"the disk is full, and an engine waits for room: less than 1 MiB is left at {where}", "yellow")]


def _workers(place: Place) -> list[Text]:
    """What the workers of engines at work do."""
    rows = []
    for worker in place.repository.engines(place.history.run).noted():
        gone = f"gone {count(worker['gone'], 'time')}" if worker["gone"] else ""
        rows.append([Text("worker", "dim"), *(Text(first_line(worker[key])) for key in ("name", "doing")), Text(gone)])
    return table(rows, "llll")


def _work(view: View) -> Text:
    return Text(f" {view.glyphs.dot} ".join(count_words(view.history)), "dim")


def _agents(view: View) -> list[Text]:
    history = view.history
    if history.seed is None:
        return []
    rows, names, own = [], agents(history), own_names(history)
    for agent in _fittest(history, names):
        candidate = history.phylogeny[history.head(agent)]
        cells = [view.glyph(candidate.commit), view.name(candidate.commit), view.score(candidate.commit)]
        who = first_line(f"{agent} {own.get(agent, '')}".rstrip())
        rows.append([Text(who, "dim"), *cells, Text(first_line(candidate.title))])
    rest = len(names) - len(rows)
    return [*table(rows, "lllrl"), *([Text(f"and {count(rest, 'agent')} behind them", "dim")] if rest else [])]


def _contributions(view: View) -> list[Text]:
    """What each contributed; empty while nothing was tried."""
    if not view.history.counts.proposals:
        return []
    lines: list[Text] = []
    for title, rows, rest in contribution_tables(view, contributions(view.history), CONTRIBUTORS):
        head, *told = table(rows, "l" + "r" * (len(rows[0]) - 1))
        head.stylize("dim")
        lines += [head, *told]
        lines += [Text(f"and {count(rest, f'more {title}')}; `evogit report` has more", "dim")] if rest else []
    return [*lines, Text(legend(view), "dim"), Text("")]


def _fittest(history: History, names: list[str]) -> list[str]:
    """Of many agents those with the fittest individuals, in the order of their names."""
    sign = -1 if history.metric.direction == "maximize" else 1
    known = {name: history.fitness(history.head(name)) for name in names}
    ranked = sorted(names, key=lambda name: (known[name] is None, sign * (known[name] or 0.0)))
    shown = set(ranked[:MOST_AGENTS])
    return [name for name in names if name in shown]
