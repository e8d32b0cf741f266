"""`evogit report`: a summary of a run."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click
from msgspec import Struct, field
from rich.text import Text

from evogit.cli.files import page_file
from evogit.cli.lines.compare import best_against_seed, front_lines
from evogit.cli.lines.contributions import contribution_tables, legend
from evogit.cli.lines.events import HALTED
from evogit.cli.lines.spending import amount, money, spending_lines
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
from evogit.repository import inert
from evogit.review import SCHEMA
from evogit.review.reporting import opening, report_record

STEPS = 12
"""Steps of the best's lineage that are shown, the largest gains."""

ROWS = 12
"""Lines of a table."""


class Section(Struct, frozen=True, kw_only=True):
    """A part of the page: lines, something drawn, a table whose first row is its head, more lines, commands."""

    title: str
    lines: list[Text] = field(default_factory=list)
    drawn: list[Text] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    sides: str = ""
    after: list[Text] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    @property
    def align(self) -> str:
        """The sides of the columns: by default names on the left and numbers on the right."""
        return self.sides or "l" + "r" * (len(self.rows[0]) - 1)


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html", "json"]),
    default="text",
    show_default=True,
    help="html: one file with all of the run, to send to somebody.",
)
@click.option("--target", "until", type=float, metavar="VALUE", help="Only show what it cost to reach VALUE.")
@with_run
@with_terminal
def report(place: Place, terminal: Terminal, form: str, until: float | None) -> None:
    """Summarise a run on one page.

    What was asked and spent, the best and how it was reached, contributions, failures, what to look at next.
    """
    if until is not None and place.history.started is not None:
        _until(place, terminal, until, as_json=terminal.json or form == "json")
        return
    if place.history.started is None:
        raise NotFoundError(f"the run {place.history.run} has not started; begin it with `evogit run`")
    if form == "html":
        sys.stdout.write(page_file(place, terminal, "run"))
        return
    record = report_record(place.repository, place.history)
    if terminal.json or form == "json":
        terminal.data(record)
        return
    view = View.of(place.history, terminal)
    page = list(_sections(place, view, record))
    if form == "text":
        lines: list[Text] = []
        for section in page:
            rows = table(section.rows[1:], section.align, section.rows[0]) if section.rows else []
            body = [*section.lines, *section.drawn, *rows, *section.after, *map(Text, section.commands)]
            lines += [Text(section.title, "bold"), *(Text("  ").append_text(line) for line in body), Text("")]
        terminal.show(lines[:-1])
        return
    for line in _markdown(page):
        terminal.out.print(Text(line), soft_wrap=True)


def _until(place: Place, terminal: Terminal, value: float, *, as_json: bool) -> None:
    """When the best was as good as a value first, and what that took."""
    from evogit.review.timeline import reached  # with whole journals: seldom asked

    history, found = place.history, reached(place.repository, place.history, value)
    if as_json:
        terminal.data({"schema": SCHEMA, "run": history.run, "until": value, "reached": found})
        return
    name = first_line(history.metric.name)
    if found is None:
        known = history.fitness(history.best) if history.best else None
        rest = "" if known is None else f": the best has {known:.10g}"
        terminal.show([Text(f"{name} {value:.10g} was not reached{rest}")])
        return
    words = [count(found["evaluations"], "evaluation"), count(found["proposals"], "proposal")]
    words += [count(found["repeats"], "repeat")] if found["repeats"] else []
    words += [clock(found["elapsed"] / 1000)]
    if found["calls"]:
        paid = "unknown dollars" if found["dollars"] is None else money(found["dollars"])
        words += [count(found["calls"], "call"), f"{found['tokens']:,} tokens", paid]
    reached_by = f"{name} {value:.10g} was reached by {found['best'][:SHORT]} ({found['value']:.10g})"
    terminal.show([Text(reached_by), Text(f"after {f' {terminal.glyphs.dot} '.join(words)}")])


def _markdown(page: list[Section]) -> Iterator[str]:
    for section in page:
        yield f"{'#' if section is page[0] else '##'} {_plain(section.title)}\n"
        yield from (f"{_plain(line.plain)}\n" for line in section.lines)
        yield from _block(line.plain for line in section.drawn)
        for row in section.rows:
            yield f"| {' | '.join(map(_plain, row))} |"
            if row is section.rows[0]:
                yield f"|{'|'.join('---:' if side == 'r' else '---' for side in section.align)}|"
        yield from [""][: len(section.rows)]
        yield from (f"{_plain(line.plain)}\n" for line in section.after)
        yield from _block(section.commands)


def _block(lines: Iterable[str]) -> Iterator[str]:
    """Lines as they are, between two that say so."""
    lines = [f"    {line}" for line in lines]
    yield from [*lines, ""] if lines else ()


def _plain(text: str) -> str:
    """Text in which nothing is markup, and nobody is called."""
    return re.sub(r"([\\`*_\[\]<>|#~&!])", r"\\\1", inert(text.strip()))


# --- what is on the page ------------------------------------------------------------------------------------------


def _sections(place: Place, view: View, record: dict[str, Any]) -> Iterator[Section]:
    yield _head(view, record)
    yield Section(title="asked", lines=list(_asked(view, record)))
    yield Section(title="spent", lines=_spent(view, record), drawn=spending_lines(view))
    if record["interruptions"]:
        yield _interruptions(view, record["interruptions"])
    yield _best(view, record)
    if record["steps"][1:]:
        yield _lineage(view, record["steps"])
    if changes := record["changes"]:
        rows = [[escape(each["path"]), f"+{each['added']}", f"-{each['removed']}"] for each in changes[:ROWS]]
        after = _more(len(changes) - ROWS, "more file")
        yield Section(title="what it changes", rows=[["file", "added", "removed"], *rows], sides="lrr", after=after)
    for title, rows, rest in contribution_tables(view, record["contributions"], ROWS):
        after = _more(rest, f"more {title}") + ([Text(legend(view), "dim")] if title == "agent" else [])
        yield Section(title=f"what each {title} contributed", rows=rows, after=after)
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
    return Section(title=f"report of {record['run']} {view.glyphs.dot} {state}", lines=lines)


def _asked(view: View, record: dict[str, Any]) -> Iterator[Text]:
    asked, metric, dot = record["asked"], record["metric"], f" {view.glyphs.dot} "
    better = "higher" if metric["direction"] == "maximize" else "lower"
    words = [
        f"task {first_line(record['task'])}",
        f"{first_line(metric['name'])} on {record['split']}, {better} is better",
    ]
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


def _spent(view: View, record: dict[str, Any]) -> list[Text]:
    failed = ", ".join(f"{number} {status}" for status, number in record["spent"]["failed"].items())
    words = [*count_words(view.history), f"evaluation took {clock(record['spent']['judging'])} in all"]
    words[-1] += f", {clock(record['repeated_seconds'])} of it for repeats" if record["repeated"] else ""
    words[-1] += f", {clock(record['reference_seconds'])} more for references" if record["references"] else ""
    return [Text(f" {view.glyphs.dot} ".join(words)), *([Text(f"failed: {failed}")] if failed else [])]


def _interruptions(view: View, interruptions: list[dict[str, Any]]) -> Section:
    """When nothing went on, for how long, and why; the last ones of many."""
    rows = [["from", "to", "for", ""]]
    for each in interruptions[-ROWS:]:
        since, until = each["since"], each["until"]
        over = [time.strftime("%H:%M:%S", time.localtime(until)), clock(until - since)] if until else ["", ""]
        about = ": ".join(filter(None, [first_line(HALTED.get(each["what"], "")), first_line(each["why"])]))
        if each["what"] == "endpoint":
            attempts = count(each["attempts"], "attempt")
            about = f"{view.model(each['model'])} did not answer, {attempts}: {first_line(each['why'])}"
        rows.append([time.strftime("%m-%d %H:%M:%S", time.localtime(since)), *over, about])
    after = _more(len(interruptions) - ROWS, "interruption", " before")
    return Section(title="what it waited for; nothing was lost", rows=rows, sides="llrl", after=after)


def _best(view: View, record: dict[str, Any]) -> Section:
    history = view.history
    if history.best is None:
        return Section(title="best", lines=[Text("no valid candidate yet")])
    remarks = [Text(escape(remark), "yellow") for remark in record["remarks"]]
    drawn = [*best_against_seed(view), *front_lines(view)]
    return Section(title="best", lines=[view.line(history.phylogeny[history.best])], drawn=drawn, after=remarks)


def _lineage(view: View, steps: list[dict[str, Any]]) -> Section:
    """The largest steps in the order in which they came, and how many others there were."""
    better = [step for step in steps if step["gain"] is not None and step["gain"] > 0]
    largest = sorted(better, key=lambda step: -step["gain"])[:STEPS]
    rows = [["gain", view.history.metric.name, "agent", "candidate", ""]]
    gains = {each.commit: gain for each, gain in way(view.history, steps[-1]["commit"])}
    for step in steps:
        if step in largest and (gain := gains[step["commit"]]):
            gained = gain.between(view.places, view.glyphs.give) + (f" ({gain.relative})" if gain.relative else "")
            cells = [view.score(step["commit"]).plain, first_line(step["agent"]), step["commit"][:SHORT]]
            lenders = ", ".join(each[:SHORT] for each in step["inspirations"])
            about = first_line(step["title"]) or step["operator"]
            rows.append([gained, *cells, f"{about} (with lines of {lenders})" if lenders else about])
    after = _more(len(steps) - 1 - len(largest), "step", " that gained less or nothing")
    return Section(title="how it was reached", rows=rows, sides="rrlll", after=after)


def _crossings(view: View, record: dict[str, Any]) -> Iterator[Section]:
    """Print the gains of each strategy of merges."""

    def gain(value: float | None) -> str:
        return "-" if value is None else change(value, view.places)

    keys = ("made", "clean", "valid", "better")
    if record["strategies"]:
        rows = [["strategy", *keys, "mean gain"]]
        for each in record["strategies"]:
            name = f"{each['operator']} ({each['strategy']})"
            rows.append([name, *(f"{each[key]:,}" for key in keys), gain(each["gain"])])
        after = [Text("better: than both parents; gain: over the better one", "dim")]
        yield Section(title="what merges brought", rows=rows, after=after)


def _failures(place: Place, record: dict[str, Any]) -> Iterator[Section]:
    for what, title, total, head in (
        ("candidates", "why candidates failed", sum(record["spent"]["failed"].values()), ["times", "reason"]),
        ("proposals", "why proposals were not usable", record["unusable"], ["times", "last move", "reason"]),
    ):
        failures = record["failures"][what]
        rows = [head]
        for each in failures:
            move = [f"{each['move']}"] if what == "proposals" else []  # a proposal has no id
            rows.append([f"{each['count']:,}", *move, first_line(each["reason"])])
        rest = total - sum(each["count"] for each in failures)
        after = [Text(f"and {rest:,} for other reasons", "dim")] if rest > 0 else []
        if failures:
            yield Section(title=title, rows=rows, sides="rrl"[-len(head) :], after=after)
    if latest := record["failures"]["proposals"]:
        yield Section(title="read such an attempt", commands=[place.hint(f"show --move {latest[0]['move']}")])


def _next(place: Place, evidence: dict[str, Any] | None) -> Iterator[Section]:
    history = place.history
    if history.started is None or evidence is None or history.best == history.seed:
        yield Section(title="look at next", commands=[place.hint("log -n 20"), place.hint("show seed")])
        return
    take = "graph -n 20" if place.repository.created else take_command(place)
    steps = dict.fromkeys(("diff seed best", "show best", take))
    yield Section(title="look at next", commands=[place.hint(each) for each in steps])
    names = {"candidate": "commit", "tree": "tree", "evaluator": "evaluator", "image": "image"}
    facts = [
        f"{name} {escape(evidence[key].removeprefix('sha256:')[:10])}" for name, key in names.items() if evidence[key]
    ]
    task = "" if not place.repository.created or history.started.task in gallery() else " --task FOLDER"
    steps = dict.fromkeys((f"verify best{task}", "export best DIR", f"check --uncommitted DIR{task}"))
    commands = [place.hint(step) for step in steps]
    yield Section(title="verify it", lines=[Text(", ".join(facts), "dim")], commands=commands)
