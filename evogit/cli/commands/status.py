"""`evogit status`: how a run stands, or all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, get_args

import click
from rich.text import Text

from evogit.cli.lines.compare import best_against_seed, front_lines
from evogit.cli.lines.contributions import contribution_tables, legend
from evogit.cli.lines.spending import outage_lines, spending_lines
from evogit.cli.lines.summary import count_words, judge_commands, next_steps, stage_words, take_command
from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place, find_repository, open_place, typed
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import age, count, escape, number
from evogit.config.run_settings import DEFAULT_SELECTOR
from evogit.core import NotFoundError, RepositoryError
from evogit.events import ReviewVerdict
from evogit.history.standing import places
from evogit.repository.faults import has_room
from evogit.review import (
    SCHEMA,
    Costs,
    agents,
    candidate_record,
    contributions,
    last_start,
    own_names,
    resolve,
    status_record,
)
from evogit.review.json_records import diversity_record, host_records, reviews_record
from evogit.review.run_list import RunList, RunOverview

MAX_AGENTS = 24
MAX_CONTRIBUTORS = 6


@click.command()
@click.option("--all", "everywhere", is_flag=True, help="List your runs in all repositories of this machine.")
@click.option("--at", metavar="MOMENT", help="Show the best as of then: @N (N evaluations), a candidate, an entry.")
@name_option
@with_repo
@with_terminal
def status(repo: str | None, name: str | None, terminal: Terminal, everywhere: bool, at: str | None) -> None:
    """Show the state of a run: what was done, the best against the seed, where each agent is, what each contributed.

    Several runs are listed, unless --name names one of them; with --all, or where there is no run, so are those of
    other repositories. Runs that were removed are dropped from that list.
    """
    if not everywhere:
        try:
            repository = find_repository(repo)
        except NotFoundError:
            if repo is not None or at is not None or not RunList.of_person(os.environ).opened():
                raise
            everywhere = True
    if everywhere:
        listed = RunList.of_person(os.environ).opened()
        runs = [
            RunOverview.unreadable(each, opened)
            if isinstance(opened, RepositoryError)
            else RunOverview.of(opened, each.run)
            for each, opened in listed
        ]
        _list(terminal, runs, [], folders=True)
    elif at is not None:
        _show_best(open_place(repo, name), terminal, at)
    elif name is None and len(names := repository.runs()) > 1:
        again = Text.assemble(("try  ", "dim"), typed(repository, f"status --name {names[0]}"))
        _list(terminal, [RunOverview.of(repository, each) for each in names], [Text(""), again], folders=False)
    else:
        _show(open_place(repo, name), terminal)


def _list(terminal: Terminal, runs: Sequence[RunOverview], after: Sequence[Text], *, folders: bool) -> None:
    if terminal.json:
        terminal.data({"schema": SCHEMA, "runs": [run.record() for run in runs]})
    elif runs:
        terminal.show([*run_table(runs, folders=folders), *after])
    else:
        terminal.note("no run was started here yet; begin one with `evogit run`")


def _show_best(place: Place, terminal: Terminal, at: str) -> None:
    from evogit.review.forking import past  # with whole journals: seldom asked

    history = past(place.repository, place.history.run, at)
    candidate = resolve(history, "best")
    if terminal.json:
        record = status_record(place.repository, history)
        keys = ("run", "metric", "best", "seed", "gains", "gap_closed", "gap", "tied", "front")
        terminal.data({**candidate_record(history, candidate), **{key: record[key] for key in keys}, "schema": SCHEMA})
        return
    view = View.of(history, terminal)
    terminal.show([view.line(candidate), Text(""), *best_against_seed(view), *front_lines(view)])


def _show(place: Place, terminal: Terminal) -> None:
    hosts = host_records(place.repository, place.history)
    if len(hosts) == 1:
        hosts = []
    if terminal.json:
        terminal.data({**status_record(place.repository, place.history), **({"hosts": hosts} if hosts else {})})
        return
    view = View.of(place.history, terminal)
    lines = [
        *_headline(view),
        *_state(place),
        Text(f" {view.glyphs.dot} ".join(count_words(view.history)), "dim"),
        Text(""),
        *best_against_seed(view),
        *front_lines(view),
        *_review_lines(view),
        Text(""),
    ]
    lines += [*host_lines(view, hosts), Text("")] if hosts else []
    lines += [*_agents(view), Text("")]
    if spending := spending_lines(view, Costs.of(place.history, place.repository)):
        lines += [*spending, Text("")]
    lines += _contributions(view)
    history, steps = place.history, ["doctor"]
    if history.seed:
        improved = history.best not in (None, history.seed)
        steps = [
            *(("graph", "diff", take_command(place)) if improved else ("log", "show seed")),
            *judge_commands(place),
        ]
    terminal.show([*lines, *next_steps(place, *steps)])


def _headline(view: View) -> list[Text]:
    history, dot = view.history, f" {view.glyphs.dot} "
    started, forked = history.started, history.forked
    if started is None:
        raise NotFoundError(f"the run {history.run} has not started; begin it with `evogit run`")
    better = "higher" if history.metric.direction == "maximize" else "lower"
    parts = [f"task {first_line(started.task)}", f"split {history.split}", f"{history.metric.name}, {better} is better"]
    parts += ["judged: inside"] if started.judged == "inside" else []
    unusual = [f"forked from {first_line(forked.run)} at {forked.entry[:SHORT]}"] if forked else []
    selector = last_start(history).get("selector", DEFAULT_SELECTOR)
    unusual += [f"selector {first_line(selector)}"] if selector != DEFAULT_SELECTOR else []
    head = Text.assemble((history.run, "bold"), dot, dot.join(parts))
    return [head, Text(dot.join(unusual))] if unusual else [head]


def _state(place: Place) -> list[Text]:
    engines, lines = place.repository.engines(place.history.run), outage_lines(place.history)
    alive, stopped = engines.alive(), place.history.stopped
    if alive:
        state = Text(f"running: {count(len(alive), 'engine')}", "green")
    elif stopped is None:
        state = Text("not running, and not stopped cleanly: `evogit run` resumes it", "yellow")
    else:
        detail = f" ({first_line(stopped.detail)})" if stopped.detail else ""
        state = Text(f"stopped: {stopped.reason}{detail}", "red" if stopped.reason == "error" else "")
    if not has_room(place.repository.common):  # which an engine cannot even journal
        where = escape(str(place.repository.common))
        full = f"the disk is full, and an engine waits for room: less than 1 MiB is left at {where}"
        lines.append(Text(full, "yellow"))
    rows = []
    for worker in engines.noted():
        gone = f"gone {count(worker['gone'], 'time')}" if worker["gone"] else ""
        rows.append([Text("worker", "dim"), *(Text(first_line(worker[key])) for key in ("name", "doing")), Text(gone)])
    return [state, *_stage_lines(place), *lines, *server_lines(place), *table(rows, "llll")]


def _stage_lines(place: Place) -> list[Text]:
    """The stage that the run is in, and what a person can do where it waits for one."""
    history = place.history
    lines = [Text(f"stage {stage_words(history)}")] if history.stages else []
    if history.paused and history.review and place.repository.engines(history.run).alive():
        alone = f"; it goes on alone after {history.review.minutes:g} minutes" if history.review.minutes else ""
        look = f"{place.hint('diff seed best')}, then {place.hint('guide TEXT')} says what comes next"
        lines.append(Text(f"waiting for a person: {look}{alone}", "yellow"))
    return lines


def _review_lines(view: View) -> list[Text]:
    """What the reviewer said of would-be bests, and why the best was not reviewed if it was not."""
    history, reviews = view.history, reviews_record(view.history)
    if reviews is None:
        return []
    review, awaiting = history.reviews.get(history.best or ""), history.would_be_best
    lines = [Text(f"reviewed: {', '.join(f'{reviews[key]:,} {key}' for key in get_args(ReviewVerdict))}", "dim")]
    lines += [Text(f"awaits its review: {awaiting[:SHORT]}", "yellow")] if awaiting else []
    if review and review.verdict == "unreviewed":
        lines.append(Text(f"the best was not reviewed: {first_line(review.reason)}", "yellow"))
    return lines


def _agents(view: View) -> list[Text]:
    history = view.history
    if history.seed is None:
        return []
    rows, names, own = [], agents(history), own_names(history)
    values = {name: history.fitness(history.head(name)) for name in names}
    ranked = sorted(names, key=lambda name: (values[name] is None, -history.metric.sign * (values[name] or 0.0)))
    for agent in sorted(ranked[:MAX_AGENTS], key=names.index):
        candidate = history.phylogeny[history.head(agent)]
        cells = [view.glyph(candidate.commit), view.name(candidate.commit), view.score(candidate.commit)]
        who = first_line(f"{agent} {own.get(agent, '')}".rstrip())
        rows.append([Text(who, "dim"), *cells, Text(first_line(candidate.title))])
    rest, diversity = len(names) - len(rows), diversity_record(history)
    lines = [Text(f"and {count(rest, 'agent')} behind them", "dim")] if rest else []
    if diversity and diversity["agents"] > 1:
        lines.append(Text(f"{diversity['agents']:,} agents, worth {diversity['lines']:.1f} lines", "dim"))
    if diversity and diversity["one_line"]:
        lines.append(
            Text("all heads are one line, so nothing is left to cross; --selector islands keeps some", "yellow")
        )
    return [*table(rows, "lllrl"), *lines]


def _contributions(view: View) -> list[Text]:
    if not view.history.counts.proposals:
        return []
    lines: list[Text] = []
    for title, rows, rest in contribution_tables(view, contributions(view.history), MAX_CONTRIBUTORS):
        lines += table(rows[1:], "l" + "r" * (len(rows[0]) - 1), rows[0])
        lines += [Text(f"and {count(rest, f'more {title}')}; `evogit report` has more", "dim")] if rest else []
    return [*lines, Text(legend(view), "dim"), Text("")]


def run_table(runs: Sequence[RunOverview], *, folders: bool) -> list[Text]:
    """Return a table of runs; `folders`: with the folders of their repositories."""
    heads = ("run", "state", "evaluations", "best", "since", "in")
    columns = len(heads) if folders else len(heads) - 1
    rows: list[list[Text | str]] = []
    for run in runs:
        history = run.history
        best = history.fitness(history.best) if history.best else None
        score = "-" if best is None else number(best, places(history))
        numbers = [f"{history.counts.evaluated:,}", score, f"{age(time.time() - run.since)} ago"]
        name, folder = Text(first_line(history.run), "bold"), Text(escape(str(run.path)), "dim")
        row: list[Text | str] = [name, _run_state(run), *numbers, folder]
        rows.append(row[:columns])
    return table(rows, "llrrrl"[:columns], heads[:columns])


def _run_state(run: RunOverview) -> Text:
    if run.engines:
        return Text("at work" + (f": {count(len(run.engines), 'engine')}" if run.engines[1:] else ""), "green")
    if run.trouble:
        return Text(f"cannot be read: {first_line(run.trouble)}", "red")
    stopped = run.history.stopped
    if stopped is None:
        return Text("not stopped cleanly", "yellow")
    return Text(f"ended: {stopped.reason}", "red" if stopped.reason == "error" else "")


def server_lines(place: Place) -> list[Text]:
    """When the run was exchanged with its Git server, and since when that fails; nothing without one."""
    contact = place.repository.contact(place.history.run)
    if contact is None:
        return []
    name, now = first_line(contact.remote), time.time()
    met = f"exchanged {age(now - contact.met)} ago" if contact.met else "never exchanged"
    lines = [Text(f"server {name}: {met}", "dim")]
    if contact.failing:
        tries = count(contact.tries, "attempt")
        said = f"without success for {age(now - contact.failing)}, {tries}: {first_line(contact.why)}"
        lines = [Text(f"server {name}: {met}, {said}", "yellow")]
    return [*lines, *(Text(f"  {first_line(note)}", "yellow") for note in contact.notes)]


def host_lines(view: View, hosts: list[dict[str, Any]]) -> list[Text]:
    """A line for each host; its last entry is told by its own clock."""
    heads = ("host", "agents", "candidates", "evaluated", "records", "best", "", "decisions", "last entry")
    rows: list[list[Text | str]] = []
    for host in hosts:
        best = host["best"]["commit"] if host["best"] else ""
        last = f"{age(max(view.now - host['last'], 0))} ago" if host["last"] else "not here"
        name = first_line(host["host"]) + (" (here)" if host["here"] else "")
        numbers = [f"{host[key]:,}" for key in ("candidates", "evaluated", "records")]
        score, commit = view.score(best) if best else "", Text(best[:SHORT], "yellow")
        agents, decisions = f"{len(host['agents']):,}", f"{host['decisions']:,}"
        rows.append([name, agents, *numbers, score, commit, decisions, Text(last, "dim")])
    return table(rows, "lrrrrrlrl", heads)
