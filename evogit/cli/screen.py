"""The lines that `run` and `watch` show of a run while it goes on: its best, counts, budget and agents."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from rich.text import Text

from evogit.cli.lines.spending import money, spent_words, use_text
from evogit.cli.lines.summary import count_words, ended_because, stage_words
from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.text import bar, clock, count, escape, percent, sparkline
from evogit.config.run_settings import Settings
from evogit.history import History
from evogit.history.standing import gap
from evogit.review import Costs, uses
from evogit.review.forecast import Pace

MAX_SPARK_COLUMNS = 40
MAX_BAR_COLUMNS = 40


class Now(Struct, frozen=True, kw_only=True):
    """The state of a run that is not in its journal.

    Attributes:
        time: now, in seconds since the epoch.
        agents: agent -> its activity; None if no engine is at work.
        began: when the engine at work began, in seconds since the epoch.
    """

    time: float
    agents: Mapping[str, str] | None = None
    began: float | None = None


def facts(view: View, settings: Settings, now: Now, width: int) -> list[Text]:
    """Return a line each: the run, its stage if any, its best, its counts, its budget."""
    pace = Pace(view.history)
    return [
        _headline(view, settings, now, width),
        *([_fact("stage", Text(stage_words(view.history)))] if view.history.stages else []),
        _fact("best", _best(view, now, width)),
        _fact("done", _done(view, pace, now)),
        _fact("budget", _budget(view, pace, settings, now, width)),
    ]


def _fact(name: str, text: Text) -> Text:
    return Text(f"{name:<8}", "dim").append_text(text)


def _headline(view: View, settings: Settings, now: Now, width: int) -> Text:
    history, dot = view.history, f" {view.glyphs.dot} "
    state = ("running", "green") if now.agents is not None else ("stopped" if history.stopped else "not running", "")
    words = ["", count(settings.agents, "agent"), f"{settings.jobs} evaluated at a time"]
    words += [count(len(settings.workers), "worker")] if settings.workers else []
    line = Text.assemble((history.run, "bold"), dot, state, (dot.join([*words, settings.split]), "dim"))
    if history.started and history.started.judged == "inside":
        line.append(dot, "dim").append("judged: inside", "yellow")
    first, last = history.span
    spent = clock(last - first if now.began is None else now.time - now.began)
    view.glyphs.cut(line, max(width - len(spent) - 2, 1))
    return line.append(spent.rjust(max(width - line.cell_len, len(spent) + 1)), "dim")


def _best(view: View, now: Now, width: int) -> Text:
    history = view.history
    if history.started is None or history.best is None:
        return Text("evaluating the seed" if now.agents is not None else "nothing yet", "dim")
    value = view.score(history.best)
    value.stylize("bold")
    columns = max(min(width - 64, MAX_SPARK_COLUMNS), 12)
    falling = history.metric.direction == "minimize"
    spark = sparkline(best_values(history, columns), columns, view.glyphs.levels, falling=falling)
    line = Text.assemble(value, "  ", (spark, "cyan"))
    if history.seed and history.best != history.seed:
        line.append("  ").append_text(view.gain(history.best, history.seed)).append(" over the seed", "dim")
        distance = gap(history, history.best)
        if distance and distance.share is not None:
            line.append(f", {percent(distance.share)} of the gap", "dim")
    return line


def best_values(history: History, columns: int) -> list[float]:
    """Return the best value after each evaluation, or at `columns` of them."""
    ids = history.phylogeny.ids
    values = [
        (step.evaluations, history.fitness(ids[step.best])) for step in history.best_so_far() if step.best is not None
    ]
    steps = [(evaluations, value) for evaluations, value in values if value is not None]
    if not steps:
        return []
    starts = [evaluations for evaluations, _ in steps]
    span = max(history.counts.evaluated, starts[-1]) - starts[0] + 1
    columns = min(columns, span)
    moments = (starts[0] - 1 + span * (column + 1) // columns for column in range(columns))
    return [steps[bisect_right(starts, moment) - 1][1] for moment in moments]


def _done(view: View, pace: Pace, now: Now) -> Text:
    if view.history.started is None:
        return Text("starting" if now.agents is not None else "the run has not started", "dim")
    words, rate = count_words(view.history)[:4], pace.per_second("evaluations", now.time)
    if rate and now.agents is not None:
        words.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
    return Text(f" {view.glyphs.dot} ".join(words))


def _budget(view: View, pace: Pace, settings: Settings, now: Now, width: int) -> Text:
    shares = [(use.share, use_text(use)) for use in uses(view.history, settings)]
    forecast = None
    if now.began is not None:
        forecast = pace.forecast(settings, now.began, now.time)
        if settings.minutes is not None:
            seconds, limit = now.time - now.began, 60 * settings.minutes
            shares.append((seconds / limit, f"{clock(seconds)} of {clock(limit)}"))
    shares.sort(reverse=True)
    words = [text for _, text in shares[:2]]
    if forecast:
        cost = "" if forecast.dollars is None else f", {money(forecast.dollars)} by then"
        words.append(f"ends in {clock(forecast.seconds)} ({forecast.limit}{cost})")
    words += [] if settings.target is None else [f"until {settings.target:g} is reached"]
    words += spent_words(view.history, Costs.of(view.history))[:0:-1]  # money first: the end of a long line is cut
    if not shares:
        return Text(", ".join(words) or "no limit", "dim")
    told = ", ".join(words)
    room = max(min(width - len(told) - 12, MAX_BAR_COLUMNS), 10)
    return Text.assemble((bar(shares[0][0], room, view.glyphs.full, view.glyphs.empty), "cyan"), f"  {told}")


def agent_lines(view: View, now: Now, room: int) -> Iterator[Text]:
    """Yield the activity of each agent; if there are more than `room`, the last line counts the others."""
    if now.agents is None:
        yield Text(f"no engine is at work: {ended_because(view.history.stopped)}", "dim")
        return
    busy = list(now.agents.items())
    pending = {candidate.agent: candidate for candidate in view.history.pending.values()}
    for name, activity in busy if len(busy) <= room else busy[: max(room - 1, 0)]:
        line = _fact(first_line(name), Text(escape(activity) or "done", "" if activity else "dim"))
        candidate = pending.get(name)
        if candidate is not None and candidate.commit[:SHORT] in activity:
            line.append("  ").append(first_line(candidate.title), "dim")
        yield line
    if len(busy) > room:
        yield Text(f"and {count(len(busy) - room + 1, 'more agent')}", "dim")


def fit(view: View, lines: Iterable[Text], width: int) -> list[Text]:
    """Return the lines, each cut to the width, without anything that a terminal obeys."""
    fitted = []
    for line in lines:
        safe = escape(line.plain)
        line = line.copy() if safe == line.plain else Text(safe, line.style)
        view.glyphs.cut(line, width)
        fitted.append(line)
    return fitted
