"""What `evogit run` and `evogit demo` say at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from msgspec import Struct
from rich.text import Text

from evogit.cli.lines.compare import best_against_seed
from evogit.cli.lines.spending import amount, outage_lines, spent_words
from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.terminal import Terminal
from evogit.cli.text import clock, count, escape
from evogit.config.run_settings import Total
from evogit.events import Stopped
from evogit.history import History
from evogit.history.ideas import ideas
from evogit.history.standing import compare
from evogit.review import Costs
from evogit.review.json_records import how_ended
from evogit.review.reporting import remarks

if TYPE_CHECKING:
    from evogit.run import Run


class Done(Struct, frozen=True):
    """Return the summary of a run: `evaluated` candidates in `seconds` by this engine."""

    run: Run
    stopped: Stopped
    seconds: float
    evaluated: int


def summary(place: Place, terminal: Terminal, done: Done | None = None) -> list[Text]:
    """Return how the run ended and how its best compares with the seed; with `done` also what was asked and spent."""
    history, view = place.history, View.of(place.history, terminal)
    dot = f" {view.glyphs.dot} "
    ended = Text.assemble((history.run, "bold"), dot, ended_because(done.stopped if done else history.stopped))
    lines = [ended, Text(dot.join(count_words(history)), "dim")]
    if done:
        settings = done.run.settings
        limits = (*reversed(settings.totals.items()), ("minutes", settings.minutes))
        asked = [amount(name, limit) for name, limit in limits if limit]
        asked += [f"target {settings.target:g}"] if settings.target is not None else []
        asked += [f"patience {settings.patience:,}"] if settings.patience else []
        asked += [f"at most {count(settings.confirmations, 'repeat')}"] if settings.confirmations else []
        if asked:
            ended.append(f"{dot}asked: {', '.join(asked)}", "dim")
        used_up = done.stopped.reason in get_args(Total)
        time = f"this time {count(done.evaluated, 'evaluation')} in {clock(done.seconds)}"
        why = f": --{done.stopped.reason} was used up already; raise it to continue" if used_up else ""
        rate = f", {done.evaluated / done.seconds:.1f}/s"
        lines.append(Text(time + rate if done.evaluated else f"nothing was evaluated{why}", "dim"))
        words = spent_words(history, Costs.of(history, done.run.repository))
        lines += [Text(f"spent {dot.join(words)}", "dim")] if words else []
    best = [view.line(history.phylogeny[history.best]), Text("")] if history.best else []
    return [*lines, Text(""), *best, *best_against_seed(view)]


def ending(place: Place, terminal: Terminal, done: Done | None = None) -> list[Text]:
    """Return the summary, and what to look at next."""
    return [*summary(place, terminal, done), Text(""), *afterwards(place)]


def afterwards(place: Place) -> list[Text]:
    """What to know before the best is trusted, where everything is, and what to look at next."""
    where = Text.assemble(("in   ", "dim"), first_line(str(place.repository.path)))
    improved = place.history.best not in (None, place.history.seed)
    failed = None if improved or not place.history.failures else place.history.failures[-1]
    steps = ("graph -n 20", "diff seed best", take_command(place)) if improved else ("log -n 20",)
    known = [*outage_lines(place.history), *(Text(escape(remark), "yellow") for remark in remarks(place.history))]
    if failed:
        known.append(Text(f"the last proposal failed: {first_line(failed.reason)}", "yellow"))
        steps = (f"show --move {failed.move}", *steps)
    return [*known, where, *next_steps(place, "report", *steps, *judge_commands(place))]


def ended_because(stopped: Stopped | None) -> str:
    """Why a run ended, in one line; None: that was not journalled."""
    if stopped is None:
        return "not stopped cleanly; nothing that was journalled is lost"
    told = f": {first_line(stopped.detail)}" if stopped.reason == "error" else ""
    return how_ended(stopped) + told


def next_steps(place: Place, *commands: str) -> list[Text]:
    """Commands to try, as they are typed from here."""
    return [Text.assemble(("try  " if i == 0 else "     ", "dim"), place.hint(each)) for i, each in enumerate(commands)]


def take_command(place: Place) -> str:
    """The command that takes the best one: onto the branch of a person whose repository it is, else as files.

    One that is not better than the seed beyond noise is only looked at.
    """
    history = place.history
    gain = compare(history.scores, history.best, history.seed) if history.best and history.seed else None
    if gain is not None and gain.verdict != "better":
        return "show best"
    return "export best DIR" if place.repository.created else "land best --squash"


def judge_commands(place: Place) -> tuple[str, ...]:
    """The command with which people compare candidates, where these are not measured."""
    return ("judge",) if place.history.strengths is not None else ()


def stage_words(history: History) -> str:
    """Return the stage that the run is in, what ends it and how much of that is used, and what is to be done."""
    now = history.stages[-1]
    used = history.stage_use()
    ends = [f"until {first_line(now.until)}"] if now.until else []
    for name, limit in now.budget.items():
        ends.append(f"{used[name]:,.0f} of {limit:,.0f} {name}" if name in used else f"{limit:g} {first_line(name)}")
    return f"{now.number} of {now.of} ({', '.join(ends)}): {first_line(now.goal)}"


def count_words(history: History) -> list[str]:
    """Return counts of the work so far, which add up.

    What is evaluated or pending is the seed, the candidates among the proposals, and what people and `minimize` added.
    """
    counts = history.counts
    words = [f"{counts.evaluated:,} evaluated", f"{counts.failed:,} failed"]
    words += [count(counts.repeated, "repeat")] if counts.repeated else []
    words += [f"{count(counts.references, 'evaluation')} of references"] if counts.references else []
    words += [f"{counts.cached:,} cached"] if counts.cached else []
    if counts.proposals:
        parts = [count(counts.proposed, "candidate")]
        alike = f" ({counts.alike:,} nearly the same)" if counts.alike else ""
        parts += [count(counts.duplicates, "duplicate") + alike] if counts.duplicates else []
        parts += [f"{counts.unusable:,} unusable"] if counts.unusable else []
        words.append(f"{count(counts.proposals, 'proposal')}: {', '.join(parts)}")
    words += [f"{count(counts.unanswered, 'question')} dropped or without a reply"] if counts.unanswered else []
    words += [count(counts.tactics, "tactic")] if counts.tactics else []
    repeats = sum(idea.repeats for idea in ideas(history)) if history.spent.calls else 0
    words += [f"{count(repeats, 'idea')} repeated unawares"] if repeats else []
    others = len(history.phylogeny) - (history.seed is not None) - counts.proposed
    words += [f"{others:,} by people or minimize"] if others else []
    words += [f"{len(history.set_aside):,} set aside"] if history.set_aside else []
    words += [f"{len(history.unmeasured):,} not measured (the machine was busy)"] if history.unmeasured else []
    return [*words, *([f"{len(history.pending):,} pending"] if history.pending else [])]
