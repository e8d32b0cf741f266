"""`evogit report`: a summary of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from evogit.cli.lines.compare import best_against_seed, front_lines
from evogit.cli.lines.contributions import contribution_tables, legend
from evogit.cli.lines.events import HALTED, event_line
from evogit.cli.lines.ideas import idea_lines
from evogit.cli.lines.spending import amount, spending_lines
from evogit.cli.lines.summary import count_words, take_command
from evogit.cli.lines.view import SHORT, View, first_line, on_one_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import with_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import change, clock, count, escape
from evogit.config import gallery
from evogit.config.run_settings import DEFAULT_SELECTOR
from evogit.core import NotFoundError
from evogit.history.standing import way
from evogit.review import Costs
from evogit.review.reporting import opening, report_record

MAX_STEPS = 12
MAX_ROWS = 12

Section = tuple[str, list[Text]]
"""A title, and the lines below it."""


@click.command()
@with_run
@with_terminal
def report(place: Place, terminal: Terminal) -> None:
    """Summarise a run on one page.

    What was asked and spent, the best and how it was reached, contributions, failures, what to look at next.
    `evogit export run.html` writes the page as one file, to send around.
    """
    if place.history.started is None:
        raise NotFoundError(f"the run {place.history.run} has not started; begin it with `evogit run`")
    record = report_record(place.repository, place.history)
    if terminal.json:
        terminal.data(record)
        return
    lines: list[Text] = []
    for title, body in _sections(place, View.of(place.history, terminal), record):
        lines += [Text(title, "bold"), *(Text("  ").append_text(line) for line in body), Text("")]
    terminal.show(lines[:-1])


def _sections(place: Place, view: View, record: dict[str, Any]) -> Iterator[Section]:
    yield _head(view, record)
    yield "asked", list(_asked(view, record))
    failed = ", ".join(f"{number} {status}" for status, number in record["spent"]["failed"].items())
    words = [*count_words(view.history), f"evaluation took {clock(record['spent']['judging'])} in all"]
    words[-1] += f", {clock(record['repeated_seconds'])} of it for repeats" if record["repeated"] else ""
    words[-1] += f", {clock(record['reference_seconds'])} more for references" if record["references"] else ""
    lines = [Text(f" {view.glyphs.dot} ".join(words)), *([Text(f"failed: {failed}")] if failed else [])]
    yield "spent", [*lines, *spending_lines(view, Costs.of(view.history, place.repository))]
    if record["interruptions"]:
        lost = record["spending"]["at_most"]["calls"]
        title = f"; {count(lost, 'call')} without a reply may be billed" if lost else "; nothing was lost"
        yield f"what it waited for{title}", _interruptions(view, record["interruptions"])
    history = view.history
    if history.stages:
        yield "stages", [event_line(view, each) for each in history.stages]
    if history.best is None:
        yield "best", [Text("no valid candidate yet")]
    else:
        remarks = [Text(escape(remark), "yellow") for remark in record["remarks"]]
        line = view.line(history.phylogeny[history.best])
        yield "best", [line, *best_against_seed(view), *front_lines(view), *remarks]
    if record["steps"][1:]:
        yield "how it was reached", _lineage(view, record["steps"])
    if changes := record["changes"]:
        rows = [[escape(each["path"]), f"+{each['added']}", f"-{each['removed']}"] for each in changes[:MAX_ROWS]]
        after = _more(len(changes) - MAX_ROWS, "more file")
        yield "what it changes", [*table(rows, "lrr", ("file", "added", "removed")), *after]
    for title, rows, rest in contribution_tables(view, record["contributions"], MAX_ROWS):
        after = _more(rest, f"more {title}") + ([Text(legend(view), "dim")] if title == "agent" else [])
        lines = table(rows[1:], "l" + "r" * (len(rows[0]) - 1), rows[0])
        yield f"what each {title} contributed", [*lines, *after]
    if lines := idea_lines(view):
        after = _more(len(lines) - 1 - MAX_ROWS, "idea", "; see evogit ideas")
        yield "what models tried", [*lines[: MAX_ROWS + 1], *after]
    yield from _crossings(view, record["crossings"])
    yield from _failures(place, record)
    yield from _next(place, record["evidence"])


def _more(rest: int, noun: str, about: str = "") -> list[Text]:
    return [Text(f"and {count(rest, noun)}{about}", "dim")] if rest > 0 else []


def _head(view: View, record: dict[str, Any]) -> Section:
    state = "running" if record["engines"] else record["ended"] or "not finished"
    why = "" if record["engines"] else record["stopped_detail"]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(record["spent"]["began"]))
    where = ", in the background" if record["detached"] else ""
    lines = [Text(f"begun {when}{where}, last entry {clock(record['spent']['seconds'])} later")]
    lines += [Text(first_line(why), "red" if record["stopped_because"] == "error" else "")] if why else []
    return f"report of {record['run']} {view.glyphs.dot} {state}", lines


def _asked(view: View, record: dict[str, Any]) -> Iterator[Text]:
    asked, metric, dot = record["asked"], record["metric"], f" {view.glyphs.dot} "
    better = "higher" if metric["direction"] == "maximize" else "lower"
    words = [f"task {first_line(record['task'])}"]
    words += [f"{first_line(metric['name'])} on {record['split']}, {better} is better"]
    words += [f"target {asked['target']:g}"] if asked["target"] is not None else []
    words += [amount("minutes", asked["minutes"])] if asked["minutes"] is not None else []
    words += [f"patience {asked['patience']:,}"] if asked["patience"] is not None else []
    words += [f"at most {count(asked['confirmations'], 'repeat')}"] if asked["confirmations"] is not None else []
    words += [f"selector {first_line(asked['selector'])}"] if asked["selector"] not in (None, DEFAULT_SELECTOR) else []
    yield Text(dot.join(words))
    if asked["goal"]:
        yield Text(f"goal: {on_one_line(opening(asked['goal']))}")
    specs = []
    for spec in asked["agents"]:  # KIND@MODEL:N, with the model as it is shown
        kind, colon, number = spec.rpartition(":")
        kind, at, model = kind.partition("@")
        specs.append(f"{kind}{at}{view.model(model)}{colon}{number}")
    agents = ", ".join(specs) or count(len(record["agents"]), "agent")
    place = "imported from" if asked["imported"] else "sandbox"
    words = [agents, f"may change {escape(', '.join(asked['editable']))}", f"{place} {escape(asked['provider'])}"]
    yield Text(dot.join(words))
    for text in asked["guidance"]:
        yield Text(f"guidance to all agents: {on_one_line(text)}")
    for tactic in asked["tactics"]:
        text = on_one_line(tactic["text"]) or "none came"
        yield Text(f"tactic of {escape(tactic['agent'])} in move {tactic['move']}: {text}")


def _interruptions(view: View, interruptions: list[dict[str, Any]]) -> list[Text]:
    rows = []
    for each in interruptions[-MAX_ROWS:]:
        since, until = each["since"], each["until"]
        over = [time.strftime("%H:%M:%S", time.localtime(until)), clock(until - since)] if until else ["", ""]
        about = ": ".join(filter(None, [first_line(HALTED.get(each["what"], "")), first_line(each["why"])]))
        if each["what"] == "endpoint":
            attempts = count(each["attempts"], "attempt")
            about = f"{view.model(each['model'])} did not answer, {attempts}: {first_line(each['why'])}"
        rows.append([time.strftime("%m-%d %H:%M:%S", time.localtime(since)), *over, about])
    lines = table(rows, "llrl", ("from", "to", "for", ""))
    return [*lines, *_more(len(interruptions) - MAX_ROWS, "interruption", " before")]


def _lineage(view: View, steps: list[dict[str, Any]]) -> list[Text]:
    better = [step for step in steps if step["gain"] is not None and step["gain"] > 0]
    largest = sorted(better, key=lambda step: -step["gain"])[:MAX_STEPS]
    rows = []
    gains = {each.commit: gain for each, gain in way(view.history, steps[-1]["commit"])}
    for step in steps:
        if step in largest and (gain := gains[step["commit"]]):
            gained = gain.between(view.places, view.glyphs.give) + (f" ({gain.relative})" if gain.relative else "")
            cells = [view.score(step["commit"]).plain, first_line(step["agent"]), step["commit"][:SHORT]]
            lenders = ", ".join(each[:SHORT] for each in step["inspirations"])
            about = first_line(step["title"]) or step["operator"]
            rows.append([gained, *cells, f"{about} (with lines of {lenders})" if lenders else about])
    lines = table(rows, "rrlll", ("gain", view.history.metric.name, "agent", "candidate", ""))
    return [*lines, *_more(len(steps) - 1 - len(largest), "step", " that gained less or nothing")]


def _crossings(view: View, record: dict[str, Any]) -> Iterator[Section]:
    def gain(value: float | None) -> str:
        return "-" if value is None else change(value, view.places)

    keys = ("made", "clean", "valid", "better")
    if record["strategies"]:
        rows = []
        for each in record["strategies"]:
            name = f"{each['operator']} ({each['strategy']})"
            rows.append([name, *(f"{each[key]:,}" for key in keys), gain(each["gain"])])
        after = Text("better: than both parents; gain: over the better one", "dim")
        yield "what merges brought", [*table(rows, "lrrrrr", ("strategy", *keys, "mean gain")), after]


def _failures(place: Place, record: dict[str, Any]) -> Iterator[Section]:
    for what, title, total, head in (
        ("candidates", "why candidates failed", sum(record["spent"]["failed"].values()), ["times", "reason"]),
        ("proposals", "why proposals were not usable", record["unusable"], ["times", "last move", "reason"]),
    ):
        failures = record["failures"][what]
        rows = []
        for each in failures:
            move = [f"{each['move']}"] if what == "proposals" else []  # a proposal has no id
            rows.append([f"{each['count']:,}", *move, first_line(each["reason"])])
        rest = total - sum(each["count"] for each in failures)
        after = [Text(f"and {rest:,} for other reasons", "dim")] if rest > 0 else []
        if failures:
            yield title, [*table(rows, "rrl"[-len(head) :], head), *after]
    if latest := record["failures"]["proposals"]:
        yield "read such an attempt", [Text(place.hint(f"show --move {latest[0]['move']}"))]


def _next(place: Place, evidence: dict[str, Any] | None) -> Iterator[Section]:
    history = place.history
    if history.started is None or evidence is None or history.best == history.seed:
        yield "look at next", [Text(place.hint(step)) for step in ("log -n 20", "show seed")]
        return
    take = "graph -n 20" if place.repository.created else take_command(place)
    yield "look at next", [Text(place.hint(step)) for step in dict.fromkeys(("diff seed best", "show best", take))]
    names = {"candidate": "commit", "tree": "tree", "evaluator": "evaluator", "image": "image"}
    facts = [
        f"{name} {escape(evidence[key].removeprefix('sha256:')[:10])}" for name, key in names.items() if evidence[key]
    ]
    task = "" if not place.repository.created or history.started.task in gallery() else " --task FOLDER"
    steps = (f"verify best{task}", "export best DIR", f"check --uncommitted DIR{task}")
    yield "verify it", [Text(", ".join(facts), "dim"), *(Text(place.hint(step)) for step in steps)]
