"""The parts of the screen: headline, curve, agents, graph, map, what happened; each is lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from evogit.cli.lines.events import event_line
from evogit.cli.lines.phylogeny import lane_text
from evogit.cli.lines.spending import money, use_text
from evogit.cli.lines.summary import ended_because
from evogit.cli.lines.view import SHORT, first_line
from evogit.cli.screen.canvas import Canvas
from evogit.cli.screen.picture import MOST_AGENT, Now, Picture
from evogit.cli.screen.state import State
from evogit.cli.terminal import PRETTY
from evogit.cli.text import age, bar, clock, count, escape, number, percent
from evogit.history.standing import gap, value_of
from evogit.review import Row, last_limits, uses
from evogit.review.decisions import said_of

SMALL = "\N{BULLET}"
"""What a candidate with a score is on the map, where many lie side by side."""

LABEL = 2
"""Columns between a value beside a drawing and the drawing."""

MOST_LANES = 12
"""Lanes of the graph that are drawn."""

ROUND = 4
"""Of what number the columns of all lanes together are a multiple, so that little moves when they change."""

NARROW = 72
"""Columns below which the graph leaves out who made a candidate."""

EVERY = 5
"""Rows of the map from one value beside it to the next, at least."""

BAR = 10
"""Columns of the bar of the budget."""


# --- above all ----------------------------------------------------------------------------------------------------


def headline(picture: Picture, now: Now, width: int) -> Text:
    """The run, whether it goes on, its best, and for how long."""
    history, view, dot = picture.history, picture.view, f" {picture.view.glyphs.dot} "
    at_work = now.agents is not None
    state = ("running", "green") if at_work else ("stopped" if history.stopped else "not running", "yellow")
    line = Text.assemble((history.run, "bold"), (dot, "dim"), state)
    if history.started and history.started.judged == "inside":
        line.append(dot, "dim").append("judged: inside", "yellow")
    if history.started and history.best:
        line.append(dot, "dim").append_text(_best(picture, history.best))
    first, last = history.span
    spent = clock(last - first if now.began is None else now.time - now.began)
    view.glyphs.cut(line, max(width - len(spent) - 2, 1))
    return line.append(spent.rjust(max(width - line.cell_len, len(spent) + 1)), "dim")


def _best(picture: Picture, best: str) -> Text:
    """The best value, and how it compares with the seed's."""
    history, view = picture.history, picture.view
    line = Text("best ").append_text(view.score(best))
    line.stylize("bold", 5)
    if history.seed is None or best == history.seed:
        return line
    line.append(" ").append_text(view.gain_over(best, history.seed)).append(" over the seed", "dim")
    found = gap(history, best)
    share = found.share if found else None
    return line if share is None else line.append(f", {percent(share)} of the gap", "dim")


def status_line(picture: Picture, now: Now, width: int) -> Text:
    """Evaluations, money, and what the run will come to."""
    history, glyphs = picture.history, picture.view.glyphs
    if history.started is None:
        return Text("the run has not started", "dim")
    counts, spent = history.counts, history.spent
    words = [f"{count(counts.evaluated, 'evaluation')}, {counts.failed:,} failed"]
    pace = f"{now.per_second:.1f}/s" if now.per_second >= 1 else f"{60 * now.per_second:.1f}/min"
    words += [pace] if now.per_second else []
    limits = uses(history, last_limits(history))
    priced = spent.calls > spent.unpriced
    if priced and not any(use.what == "dollars" for use in limits):
        words.append(money(spent.dollars))
    elif spent.calls and not priced:
        words.append(f"{spent.tokens:,} tokens, no price known")
    words += [use_text(use) for use in limits[:2]]
    if now.forecast:
        cost = "" if now.forecast.dollars is None else f", {money(now.forecast.dollars)} by then"
        when = f"ends in {clock(now.forecast.seconds)}" if now.forecast.seconds >= 1 else "about to end"
        words.append(f"{when} ({now.forecast.limit}{cost})")
    line = Text(f" {glyphs.dot} ".join(words))
    share = limits[0].share if limits else None
    if share is not None and line.cell_len + BAR + 2 <= width:
        drawn = bar(share, BAR, glyphs.full, glyphs.empty)
        return Text.assemble((drawn, "cyan"), "  ", line)
    return line


# --- the curve ----------------------------------------------------------------------------------------------------


def curve_part(picture: Picture, now: Now, width: int, height: int) -> Iterator[Text]:
    """The best so far against evaluations."""
    points, history = _points(picture), picture.history
    yield Text("best so far, by evaluations", "dim")
    if history.started and history.scores.shifting:
        yield Text("each verdict moves all values")
        return
    if not points or height < 2:
        yield Text("evaluating the seed" if now.agents is not None else "nothing yet")
        return
    values = [value for _, value in points]
    better = max if picture.history.metric.sign > 0 else min
    worse = min if picture.history.metric.sign > 0 else max
    high, low = better(values), worse(values)
    labels = [number(high, picture.view.places), number(low, picture.view.places)]
    margin = max(map(len, labels)) + LABEL
    canvas = Canvas(max(width - margin, 4), height - 1, picture.view.glyphs.pretty)
    _steps(canvas, points, low, high)
    for row, line in enumerate(canvas.lines()):
        label = labels[0] if row == 0 else labels[1] if row == height - 2 else ""
        yield Text.assemble((label.rjust(margin - LABEL) + " " * LABEL, "dim"), line)


def _points(picture: Picture) -> list[tuple[int, float]]:
    """Evaluations and value at each step, and now."""
    known, history = list(picture.history.phylogeny), picture.history
    steps = [(step.evaluations, known[step.best].commit) for step in picture.steps if step.best is not None]
    values = [(at, history.fitness(commit)) for at, commit in steps]
    points = [(at, value) for at, value in values if value is not None]
    return [*points, (max(history.counts.evaluated, points[-1][0]), points[-1][1])] if points else []


def _steps(canvas: Canvas, points: Sequence[tuple[int, float]], low: float, high: float) -> None:
    right, lower = 2 * canvas.width - 1, 4 * canvas.height - 1
    most = max(points[-1][0], 1)
    span = (high - low) or 1.0
    at = [
        (round(x / most * right), lower - round((value - low) / span * lower) if high != low else lower // 2)
        for x, value in points
    ]
    for (x, y), (to_x, to_y) in zip(at, at[1:], strict=False):
        canvas.line((x, y), (to_x, y), "cyan")
        canvas.line((to_x, y), (to_x, to_y), "cyan")


# --- agents and events --------------------------------------------------------------------------------------------


def agents_part(picture: Picture, now: Now, height: int) -> Iterator[Text]:
    """Who does what now."""
    doing = now.agents
    if doing is None:
        yield Text("agents", "dim")
        yield Text("no engine is at work", "yellow")
        stopped = picture.history.stopped
        yield Text(ended_because(stopped))
        return
    yield Text(f"{count(len(doing), 'agent')} at work" if doing else "agents", "dim")
    names, room = list(doing), max(height - 1, 1)
    titles = {each.agent: each for each in picture.history.pending.values() if each.agent in doing}
    wide = min(max((Text(first_line(name)).cell_len for name in names), default=0), MOST_AGENT)
    for name in names if len(names) <= room else names[: room - 1]:
        known = first_line(name)
        line = Text(known, "dim").append(" " * (max(wide - Text(known).cell_len, 0) + 2)).append(escape(doing[name]))
        waiting = titles.get(name)
        if waiting is not None and waiting.commit[:SHORT] in doing[name]:
            line.append("  ").append(first_line(waiting.title), "dim")
        yield line
    if len(names) > room:
        yield Text(f"and {len(names) - room + 1} more", "dim")


def events_part(picture: Picture, height: int) -> Iterator[Text]:
    """What happened last, the newest on top."""
    if height < 2:
        return
    yield Text("lately", "dim")
    for entry in list(picture.latest)[::-1][: height - 1]:
        yield event_line(picture.view, entry.event)


def selected_part(picture: Picture, now: Now, commit: str | None) -> Iterator[Text]:
    """Some facts about the selected candidate."""
    history, view = picture.history, picture.view
    if commit is None or commit not in history.phylogeny:
        return
    candidate = history.phylogeny[commit]
    yield Text("selected", "dim")
    gain = view.gain(commit)
    yield Text.assemble(view.glyph(commit), " ", view.name(commit), "  ", view.score(commit), "  ", gain)
    holdout = history.evaluation(commit, "holdout") if history.split != "holdout" else None
    if holdout is not None:
        value, margin = value_of(history.scores, commit, "holdout"), history.scores.margin(commit, "holdout")
        told = holdout.status if value is None else view.measured(value, margin, view.places)
        yield Text.assemble(("  holdout  ", "dim"), (told, "" if holdout.ok else "red"))
    yield Text.assemble("  ", view.title(candidate))
    strategy = f" ({first_line(candidate.strategy)})" if candidate.strategy else ""
    yield Text(f"  {first_line(candidate.agent)}, {candidate.operator}{strategy}, {age(now.time - candidate.time)} ago")
    for parent in candidate.parents:
        yield Text.assemble(("  of  ", "dim"), view.glyph(parent), " ", view.name(parent), "  ", view.score(parent))
    children = len(history.phylogeny.children(commit))
    yield Text(f"  {children:,} bred from it{view.marks(commit).plain}", "dim")
    yield from (Text(f"  {escape(line)}") for line in said_of(history, commit))


# --- the graph ----------------------------------------------------------------------------------------------------


def graph_part(picture: Picture, state: State, width: int, height: int) -> Iterator[Text]:
    """The skeleton, a candidate on each line, the youngest on top; second edges lead to the second parents."""
    if not picture.rows:
        yield Text("no candidate yet", "dim")
        return
    top, chosen = state.top(picture, height), state.chosen(picture)
    seen = range(top, min(top + height, len(picture.rows)))
    widest = min(MOST_LANES, max((width - 34) // 3, 2))
    drawn = [lane_text(picture.view, picture.rows[at].candidate.commit, picture.lanes[at], widest) for at in seen]
    room = ROUND * -(-max(lanes.cell_len for lanes in drawn) // ROUND)
    for at, lanes in zip(seen, drawn, strict=True):
        row = picture.rows[at]
        line = _row(picture, row, lanes, room, width)
        yield _marked(picture, line, width, selected=row.candidate.commit == chosen)


def _row(picture: Picture, row: Row, lanes: Text, room: int, width: int) -> Text:
    view, commit = picture.view, row.candidate.commit
    line = Text(" ").append_text(lanes)
    line.append(" " * max(room + 2 - line.cell_len, 1))
    line.append_text(_right(view.score(commit), picture.widths[0])).append("  ")
    if width >= NARROW:
        gain = view.gain(commit)
        line.append_text(_right(gain, picture.widths[1])).append("  ")
        line.append(first_line(row.candidate.agent)[: picture.widths[2]].ljust(picture.widths[2]), "dim").append("  ")
    line.append_text(view.name(commit))
    tail = Text(f"  {view.glyphs.folded}{row.folded:,}" if row.folded else "", "dim").append_text(view.marks(commit))
    title = view.title(row.candidate)
    view.glyphs.cut(title, max(width - line.cell_len - tail.cell_len - 2, 4))
    return line.append("  ").append_text(title).append_text(tail)


def _right(text: Text, width: int) -> Text:
    return Text(" " * max(width - text.cell_len, 0)).append_text(text)


def _marked(picture: Picture, line: Text, width: int, *, selected: bool) -> Text:
    """The line as selected: in reverse, and with a mark for where no styles are drawn."""
    if not selected:
        return line
    picture.view.glyphs.cut(line, width)
    return Text(f">{line.plain[1:]}{' ' * (width - line.cell_len)}", "reverse")


# --- the map ------------------------------------------------------------------------------------------------------


def map_part(picture: Picture, state: State, width: int, height: int) -> Iterator[Text]:
    """The skeleton with a place for each candidate; second edges are dotted."""
    ends = picture.ends
    if ends is None or height < 3:
        yield Text("no score yet", "dim")
        return
    labels = list(_labels(picture, state, height - 1))
    upright = state.axis != "score"
    margin = max(map(len, labels)) + LABEL if upright else 0
    canvas = Canvas(max(width - margin, 4), height - 1, picture.view.glyphs.pretty)
    _edges(picture, canvas, state)
    _nodes(picture, canvas, state)
    for label, line in zip(labels, canvas.lines(), strict=True):
        yield Text.assemble((label.rjust(margin - LABEL) + " " * LABEL if upright else "", "dim"), line)
    yield Text(" " * margin).append_text(_axis(picture, state, canvas.width, (labels[-1], labels[0])))


def _labels(picture: Picture, state: State, height: int) -> Iterator[str]:
    """The value at the height of some rows, the uppermost and the lowest among them; empty for the others."""
    parts = max((height - 1) // EVERY, 1)
    told = {round(part * (height - 1) / parts): 1 - part / parts for part in range(parts + 1)}
    for row in range(height):
        value = picture.value_at(told[row], state.scale or picture.scale) if row in told else None
        yield "" if value is None else number(value, picture.view.places)


def _axis(picture: Picture, state: State, width: int, labels: Sequence[str]) -> Text:
    """What is to the left and to the right, and what the columns and the scale are."""
    first, last = {
        "candidates": ("0", f"{len(picture.history.phylogeny) - 1:,}"),
        "time": ("0:00", clock(picture.history.span[1] - picture.history.span[0])),
        "score": (labels[0], labels[1]),
    }[state.axis]
    scale = f"scores {state.scale or picture.scale}"
    middle = f"{scale}; later is up" if state.axis == "score" else f"{state.axis}; {scale}"
    spare = max(width - len(first) - len(last) - len(middle), 2)
    return Text(first + " " * (spare // 2) + middle + " " * (spare - spare // 2) + last, "dim")


def _edges(picture: Picture, canvas: Canvas, state: State) -> None:
    """Lines from parents to children, those to the best last, so that they are on top."""
    places = {
        each: _dot(canvas, *place) for each, place in picture.map(state.axis, state.scale or picture.scale).items()
    }
    edges = [(row.candidate.commit, edge, index) for row in picture.rows for index, edge in enumerate(row.edges)]
    for child, edge, index in sorted(edges, key=lambda each: each[0] in picture.trunk):
        trunk = index == 0 and child in picture.trunk and edge.parent in picture.trunk
        style = "yellow" if trunk else "magenta" if index else "dim"
        canvas.line(places[edge.parent], places[child], style, every=1 + 2 * bool(index))


def _nodes(picture: Picture, canvas: Canvas, state: State) -> None:
    """Symbols of the candidates, the telling ones on top, and brackets around the selected one."""
    history, view, chosen = picture.history, picture.view, state.chosen(picture)
    places = picture.map(state.axis, state.scale or picture.scale)
    telling = [history.seed, *history.promoted, history.best, chosen]
    for commit in [*places, *(each for each in telling if each in places)]:
        x, y = _dot(canvas, *places[commit])
        symbol, style = view.glyph_styled(commit)
        canvas.mark(x // 2, y // 4, SMALL if symbol == PRETTY.scored else symbol, style)
    if chosen in places:
        x, y = _dot(canvas, *places[chosen])
        canvas.mark(x // 2, y // 4, view.glyph_styled(chosen)[0], "bold reverse")
        canvas.mark(x // 2 - 1, y // 4, "[", "bold")
        canvas.mark(x // 2 + 1, y // 4, "]", "bold")


def _dot(canvas: Canvas, across: float, up: float) -> tuple[int, int]:
    """The dot at a place; a column at each side is kept for brackets."""
    return 2 + round(across * (2 * canvas.width - 5)), round((1 - up) * (4 * canvas.height - 1))
