"""A frame: which text stands where on a screen of some size. Pure: a picture and a state in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from evogit.cli.screen.parts import (
    agents_part,
    curve_part,
    events_part,
    graph_part,
    headline,
    map_part,
    selected_part,
    status_line,
)
from evogit.cli.screen.picture import Now, Picture
from evogit.cli.screen.state import Asking, Reading, State
from evogit.cli.terminal import Glyphs
from evogit.cli.text import escape

WIDE, TALL = 110, 24
"""Columns and rows from which on there is a part beside the graph."""

SIDE = 46
"""Columns of that part."""

LONGEST = 4_000
"""Characters of a line of a text that are looked at."""

KEYS = (
    ("j k  arrows", "select; Page Up, Page Down, g newest, G oldest, b best"),
    ("Esc", "follow the best and the newest again"),
    ("Enter", "all about it: what `evogit show` prints"),
    ("d  D", "what it changed: what `evogit diff` prints; D since the seed"),
    ("n  N", "the next older, or younger, candidate while one is read"),
    ("p", "promote it: favour it as a parent; the plan first, then a reason"),
    ("x  X", "prune it; X also everything bred from it"),
    ("u", "undo the last decision"),
    ("v  Tab", "the graph, or a map of scores"),
    ("c  s", "columns of the map: candidates, time, score; its scale"),
    ("e  Space", "unfold what was bred from it, or fold it again"),
    ("?", "these keys"),
    ("q", "leave; the run goes on"),
)


@dataclass(slots=True)
class Frame:
    """Texts by row and column; what is put later covers what is there."""

    width: int
    height: int
    glyphs: Glyphs
    pieces: list[list[tuple[int, Text]]] = field(default_factory=list)
    cursor: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.pieces = [[] for _ in range(self.height)]

    def put(self, row: int, column: int, width: int, line: Text) -> None:
        """Put a line somewhere, cut to a width; outside of the screen nothing happens."""
        if 0 <= row < self.height and width > 0:
            line = harmless(line)
            self.glyphs.cut(line, min(width, self.width - column))
            self.pieces[row].append((column, line))

    def fill(self, row: int, column: int, width: int, height: int, lines: Iterable[Text]) -> None:
        """Put lines one below the other, as many as there is room for."""
        for number, line in zip(range(height), lines, strict=False):
            self.put(row + number, column, width, line)

    def lines(self) -> list[Text]:
        """Each row as one text: for a frame that is printed."""
        found = []
        for pieces in self.pieces:
            line = Text()
            for column, piece in pieces:
                line.append(" " * max(column - line.cell_len, 0)).append_text(piece)
            line.rstrip()
            found.append(line)
        return found


def harmless(line: Text) -> Text:
    """The same without anything that a terminal would obey; what is drawn should have none of it already."""
    line = line.copy()
    if "\t" in line.plain:
        line.expand_tabs(4)
    seen = escape(line.plain)
    return line if seen == line.plain else Text(seen, line.style)


def draw(picture: Picture, now: Now, state: State, width: int, height: int) -> Frame:
    """The whole screen."""
    frame = Frame(width, height, picture.view.glyphs)
    if state.reading is not None:
        _text(frame, picture, state.reading, state.message)
    else:
        _overview(frame, picture, now, state)
    if state.asking is not None:
        _dialog(frame, state.asking)
    return frame


def text_height(height: int) -> int:
    """Lines of a text that are seen."""
    return max(height - 2, 1)


def graph_height(width: int, height: int) -> int:
    """Lines of the graph that are seen."""
    top, bottom = _bounds(width, height)
    return max(bottom - top, 1)


def _bounds(width: int, height: int) -> tuple[int, int]:
    """The rows between which the graph is, the second one not included."""
    head = 3 if height >= 12 else 2 if height >= 6 else 1
    if not _has_side(width, height) and height >= 16:
        head += _band(height) + 1
    foot = 2 if height >= 8 else 1 if height >= 4 else 0
    return head, max(height - foot, head)


def _has_side(width: int, height: int) -> bool:
    return width >= WIDE and height >= TALL


def _band(height: int) -> int:
    """Lines of what stands above the graph where there is no room beside it."""
    return min(max(height // 4, 4), 8)


# --- the overview -------------------------------------------------------------------------------------------------


def _overview(frame: Frame, picture: Picture, now: Now, state: State) -> None:
    width, height = frame.width, frame.height
    top, bottom = _bounds(width, height)
    frame.put(0, 0, width, headline(picture, now, width))
    if height >= 6:
        frame.put(1, 0, width, status_line(picture, now, width))
    side = _has_side(width, height)
    if not side and height >= 16:
        _above(frame, picture, now, 3, _band(height))
    room = width - SIDE - 3 if side else width
    part = graph_part if state.drawn == "graph" else map_part
    frame.fill(top, 0, room, bottom - top, part(picture, state, room, bottom - top))
    if side:
        _side(frame, picture, now, state, width - SIDE, 3, bottom)
    _foot(frame, picture, state, bottom)


def _foot(frame: Frame, picture: Picture, state: State, row: int) -> None:
    hint = Text("? keys   q leave", "dim")
    keys = Text("Enter show   d diff   p promote   x prune   u undo   v map   ? keys   q leave", "dim")
    if frame.height - row >= 2:
        chosen = state.chosen(picture)
        line = state.message if state.message else selected_line(picture, chosen)
        frame.put(row, 0, frame.width, line)
        frame.put(row + 1, 0, frame.width, keys if keys.cell_len <= frame.width else hint)
    elif frame.height - row == 1:
        frame.put(row, 0, frame.width, state.message if state.message else hint)


def selected_line(picture: Picture, commit: str | None) -> Text:
    """The selected candidate in one line."""
    if commit is None or commit not in picture.history.phylogeny:
        return Text("no candidate yet", "dim")
    return picture.view.line(picture.history.phylogeny[commit], score=True)


def _above(frame: Frame, picture: Picture, now: Now, row: int, height: int) -> None:
    half = frame.width * 3 // 5
    frame.fill(row, 0, half - 2, height, curve_part(picture, now, half - 2, height))
    frame.fill(row, half, frame.width - half, height, agents_part(picture, now, height))


def _side(frame: Frame, picture: Picture, now: Now, state: State, column: int, top: int, bottom: int) -> None:
    upright = frame.glyphs.lines[3]
    for row in range(top, bottom):
        frame.put(row, column - 2, 1, Text(upright, "dim"))
    curve, agents, about, events = _shares(bottom - top, max(len(now.agents or {}), 2))
    parts = [
        (curve, curve_part(picture, now, SIDE, curve - 1)),
        (agents, agents_part(picture, now, agents - 1)),
        (about, selected_part(picture, now, state.chosen(picture))),
        (events, events_part(picture, events - 1)),
    ]
    row = top
    for height, lines in parts:
        frame.fill(row, column, SIDE, height - 1, lines)
        row += height


def _shares(height: int, agents: int) -> tuple[int, int, int, int]:
    """How many lines curve, agents, the selected candidate and what happened have, each with an empty one below."""
    curve = max(height // 4, 5)
    busy = min(agents + 2, max(height // 4, 4))
    about = min(9, max(height - curve - busy, 0))
    return curve, busy, about, max(height - curve - busy - about + 1, 0)


# --- a text, and a question ---------------------------------------------------------------------------------------


def _text(frame: Frame, picture: Picture, reading: Reading, message: Text) -> None:
    width, height = frame.width, text_height(frame.height)
    last = min(reading.top + height, len(reading.lines))
    if reading.commit:
        title = Text.assemble((f"{reading.what}  ", "bold"), selected_line(picture, reading.commit))
    else:
        title = Text("keys", "bold")
    frame.put(0, 0, width, title)
    for number, line in enumerate(reading.lines[reading.top : last]):
        frame.put(1 + number, 0, width, _aside(line, reading.left))
    if frame.height > 2:
        where = f"{reading.top + 1 if reading.lines else 0} to {last} of {len(reading.lines)}"
        other = {"show": "d diff   n next   ", "diff": "Enter show   n next   "}.get(reading.what, "")
        hint = Text(f"j k scroll   {other}q back   {where}", "dim")
        frame.put(frame.height - 1, 0, width, message if message else hint)


def _aside(line: Text, left: int) -> Text:
    line = line[: left + LONGEST] if len(line) > left + LONGEST else line
    return line[left:] if left else line


def _dialog(frame: Frame, asking: Asking) -> None:
    """What would change, and the reason that is typed, at the lower edge."""
    room = max(frame.height - 4, 0)
    plan = [*asking.plan[:room]]
    rule = Text(frame.glyphs.lines[12] * frame.width, "dim")
    optional = " (may be empty)" if asking.decision.kind == "undo" else ""
    advice = f"Enter does it{optional}, Esc changes nothing"
    last = Text(asking.about or advice, "yellow" if asking.about else "dim")
    prompt = "reason: "
    shown = escape(asking.reason)
    visible = shown[-max(frame.width - len(prompt) - 2, 1) :]
    lines: Sequence[Text] = [rule, *plan, Text.assemble((prompt, "bold"), visible), last]
    top = max(frame.height - len(lines), 0)
    for number, line in enumerate(lines):
        if top + number < frame.height:
            frame.pieces[top + number] = []
            frame.put(top + number, 0, frame.width, line)
    row = min(top + len(lines) - 2, frame.height - 1)
    frame.cursor = row, min(len(prompt) + Text(visible).cell_len, frame.width - 1)
