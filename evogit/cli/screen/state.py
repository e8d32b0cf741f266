"""What a person looks at, and what each key makes of that. Pure: what has to be done is returned as an `Order`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace
from rich.text import Text

from evogit.cli.screen.keys import PASTED
from evogit.cli.screen.picture import AXES, SCALES, Picture
from evogit.core import Decision

LONGEST = 500
"""Characters of a reason."""

BEST_LINE = 5
"""On which line of the graph the best one is when it is looked for: what came after it is above."""

SIDEWAYS = 8
"""Columns by which a text moves to the side."""


class Reading(Struct, frozen=True, kw_only=True):
    """A text about a candidate that fills the screen: what `show` or `diff` prints."""

    commit: str
    what: Literal["show", "diff", "keys"]
    lines: tuple[Text, ...]
    top: int = 0
    left: int = 0


class Asking(Struct, frozen=True, kw_only=True):
    """A decision that is not made yet: what it would change, and the reason as far as it is typed."""

    decision: Decision
    plan: tuple[Text, ...]
    reason: str = ""
    about: str = ""
    """What is amiss, such as that the plan is another one by now."""


class State(Struct, frozen=True, kw_only=True):
    """What a person looks at.

    Attributes:
        selected: a candidate's id; None: the best, whichever that is.
        line: on which line of the graph the selected one is kept.
        scale: how scores are spread over the map; None: as it suits the run.
        message: what came of the last key.
    """

    selected: str | None = None
    line: int = 0
    drawn: Literal["graph", "map"] = "graph"
    axis: str = AXES[0]
    scale: str | None = None
    unfolded: frozenset[str] = frozenset()
    reading: Reading | None = None
    asking: Asking | None = None
    message: Text = field(default_factory=Text)

    def chosen(self, picture: Picture) -> str | None:
        """The id of the selected candidate."""
        if self.selected in picture.number:
            return self.selected
        best = picture.history.best
        return best if best in picture.number else picture.history.seed

    def top(self, picture: Picture, height: int) -> int:
        """The number of the first row of the graph that is seen.

        Where nothing was selected these are the youngest; else the selected row stays on its line.
        """
        chosen = self.selected if self.selected in picture.number else None
        if chosen is None:
            return 0
        at = picture.number[chosen]
        line = min(self.line, height - 1)
        return max(min(at - line, len(picture.rows) - height), at - height + 1, 0)


class Order(Struct, frozen=True, kw_only=True):
    """What a key asks for that takes more than the state: a kind and the candidate that it is about."""

    kind: Literal["quit", "redraw", "show", "diff", "keys", "promote", "prune", "undo", "decide"]
    commit: str = ""
    far: bool = False
    """Of prune: all that was bred from it, too; of diff: since the seed."""


Pressed = tuple[State, Order | None]


def press(key: str, state: State, picture: Picture, height: int) -> Pressed:
    """What a key makes of a state; `height` is the number of lines of the graph, or of the text that is read."""
    if state.asking is not None:
        return _asked(key, state, state.asking)
    if key.startswith(PASTED):
        return state, None  # a text that was pasted by mistake must not press keys
    state = replace(state, message=Text())
    if state.reading is not None:
        return _read(key, state, state.reading, picture, height)
    if key in MOVES:
        return _moved(key, state, picture, height), None
    return _looked(key, state, picture)


# --- the graph ----------------------------------------------------------------------------------------------------

MOVES = {
    **{"up": -1, "k": -1, "down": 1, "j": 1, "left": 0, "h": 0, "right": 0, "l": 0},
    **{"page-up": 0, "page-down": 0, "home": 0, "g": 0, "end": 0, "G": 0},
}
"""Keys that select another candidate, and by how many rows."""

_ORDERS: dict[str, tuple[str, bool]] = {
    **{"enter": ("show", False), "d": ("diff", False), "D": ("diff", True), "?": ("keys", False)},
    **{"p": ("promote", False), "x": ("prune", False), "X": ("prune", True), "u": ("undo", False)},
    **{"q": ("quit", False), "redraw": ("redraw", False)},
}


def _looked(key: str, state: State, picture: Picture) -> Pressed:
    chosen = state.chosen(picture)
    if key in _ORDERS:
        kind, far = _ORDERS[key]
        if chosen is None and kind not in ("quit", "keys", "redraw", "undo"):
            return replace(state, message=Text("there is no candidate yet")), None
        return state, Order(kind=kind, commit=chosen or "", far=far)  # type: ignore[arg-type]
    if key == "escape":
        return replace(state, selected=None, line=0), None
    if key == "b" and picture.history.best:
        return replace(state, selected=picture.history.best, line=BEST_LINE), None
    if key in ("v", "tab"):
        return replace(state, drawn="map" if state.drawn == "graph" else "graph"), None
    if key == "c":
        axis = AXES[(AXES.index(state.axis) + 1) % len(AXES)] if state.drawn == "map" else state.axis
        return replace(state, drawn="map", axis=axis), None
    if key == "s":
        before = state.scale or picture.scale if state.drawn == "map" else ""
        return replace(state, drawn="map", scale=SCALES[before == SCALES[0]]), None
    if key in ("e", " ") and chosen:
        unfolded = state.unfolded ^ {chosen}
        return replace(state, selected=chosen, unfolded=frozenset(unfolded)), None
    return state, None


def _moved(key: str, state: State, picture: Picture, height: int) -> State:
    chosen = state.chosen(picture)
    if chosen is None or not picture.rows:
        return state
    if state.drawn == "map" and key in _DIRECTIONS:
        return replace(state, selected=_beside(picture, chosen, state, *_DIRECTIONS[key]))
    at, last = picture.number[chosen], len(picture.rows) - 1
    far = {"home": 0, "g": 0, "end": last, "G": last, "page-up": at - height, "page-down": at + height}
    to = min(max(far.get(key, at + MOVES[key]), 0), last)
    before = state.top(picture, height)
    seen = before <= at < before + height
    line = to - before if seen else height // 2
    return replace(state, selected=picture.rows[to].candidate.commit, line=min(max(line, 0), max(height - 1, 0)))


_DIRECTIONS = {
    **{"up": (0, 1), "k": (0, 1), "down": (0, -1), "j": (0, -1)},
    **{"left": (-1, 0), "h": (-1, 0), "right": (1, 0), "l": (1, 0)},
}


def _beside(picture: Picture, chosen: str, state: State, right: int, up: int) -> str:
    """The nearest candidate on the map in a direction; the same one where there is none."""
    places = picture.map(state.axis, state.scale or picture.scale)
    x, y = places[chosen]

    def distance(commit: str) -> float:
        away, along = places[commit][0] - x, places[commit][1] - y
        ahead, aside = (away * right, along) if right else (along * up, away)
        return ahead + 3 * abs(aside) if ahead > 0 else float("inf")

    nearest = min(places, key=distance)
    return nearest if distance(nearest) < float("inf") else chosen


# --- a text -------------------------------------------------------------------------------------------------------


def _read(key: str, state: State, reading: Reading, picture: Picture, height: int) -> Pressed:
    if key in ("q", "escape", "backspace") or (key == "enter" and reading.what != "diff"):
        return replace(state, reading=None), None
    if key == "redraw" or (key in _ORDERS and reading.commit):
        kind, far = _ORDERS[key]
        return state, Order(kind=kind, commit=reading.commit, far=far)  # type: ignore[arg-type]
    if key in ("n", "N") and reading.commit in picture.number:
        at = picture.number[reading.commit] + (1 if key == "n" else -1)
        beside = picture.rows[min(max(at, 0), len(picture.rows) - 1)].candidate.commit
        return replace(state, selected=beside), Order(kind=reading.what, commit=beside)
    return replace(state, reading=_scrolled(key, reading, height)), None


def _scrolled(key: str, reading: Reading, height: int) -> Reading:
    """The text, moved as a key says."""
    last = max(len(reading.lines) - height, 0)
    steps: dict[str, int] = {
        **{"down": 1, "j": 1, "up": -1, "k": -1, "home": -last, "g": -last, "end": last, "G": last},
        **{"page-down": height, " ": height, "f": height, "page-up": -height, "b": -height},
    }
    aside = {"right": SIDEWAYS, "l": SIDEWAYS, "left": -SIDEWAYS, "h": -SIDEWAYS}.get(key, 0)
    top = min(max(reading.top + steps.get(key, 0), 0), last)
    return replace(reading, top=top, left=max(reading.left + aside, 0))


# --- a decision ---------------------------------------------------------------------------------------------------


def _asked(key: str, state: State, asking: Asking) -> Pressed:
    if key == "escape":
        return replace(state, asking=None, message=Text("nothing was changed", "dim")), None
    if key == "enter":
        if not asking.reason.strip() and asking.decision.kind != "undo":
            return replace(state, asking=replace(asking, about="a reason is needed; Esc changes nothing")), None
        return state, Order(kind="decide")
    if key == "redraw":
        return state, Order(kind="redraw")
    text = asking.reason
    if key == "backspace":
        text = text[:-1]
    elif key == "clear":
        text = ""
    elif key == "word":
        text = text.rstrip().rpartition(" ")[0]
    elif key.startswith(PASTED):
        text += " ".join(key.removeprefix(PASTED).split())
    elif len(key) == 1:
        text += key
    return replace(state, asking=replace(asking, reason=text[:LONGEST], about="")), None
