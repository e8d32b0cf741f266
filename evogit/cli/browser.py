"""The screen of `evogit watch`: the lines of `screen`, and the lineage, from which keys open candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from msgspec.structs import replace
from rich.cells import chop_cells
from rich.text import Text

from evogit.cli.lines.candidate import candidate_lines
from evogit.cli.lines.compare import change_lines
from evogit.cli.lines.phylogeny import row_lines
from evogit.cli.lines.view import SHORT, StillView
from evogit.cli.locate_run import Place
from evogit.cli.screen import Now, agent_lines, facts, fit
from evogit.config.run_settings import Settings
from evogit.review import rows
from evogit.review.graph import skeleton

MAX_LINE_CHARS = 4_000
FAR = 1_000_000_000
MARK_COLUMNS = 2
"""Before each line of the lineage, for the mark of the selected one."""

TEXTS = {"enter": "show", "d": "diff", "D": "diff since the seed"}
COMMANDS = {"p": "promote {} -m WHY", "x": "prune {} -m WHY", "X": "prune {} --all -m WHY", "u": "undo"}
HINT = "j k select   b best   Enter show   d D diff   p x u decide   q leave"


class Browser:
    """The state of the screen: which candidate is selected or open, and how far it is scrolled."""

    def __init__(self, place: Place, settings: Settings, message: str = "") -> None:
        self._place = place
        self._settings = settings
        self._message = Text(message, "yellow")
        self._selected: str | None = None  # None: the best, whichever that is
        self._line = 0  # of the lineage on the screen: there the selected candidate stays
        self._opened = ""  # one of TEXTS, of the selected candidate
        self._text: list[Text] = []
        self._top = 0  # the first line of the text in sight
        self._page = 1  # lines of the lineage, or of the text
        self._ids: list[str] = []  # of the lineage, the youngest first
        self._lines: list[Text] = []
        self._view: StillView

    def read(self, view: StillView) -> None:
        """Take a new state of the history."""
        history = view.history
        shown = skeleton(history) | history.phylogeny.skeleton([self._selected] if self._selected else [])
        lineage = rows(history, shown) if history.seed else []
        self._view = view
        self._ids = [row.candidate.commit for row in lineage]
        self._lines = row_lines(replace(view, width=(view.width or FAR) - MARK_COLUMNS), lineage)

    @property
    def selected(self) -> str | None:
        """The selected candidate's id."""
        history = self._view.history
        return next((commit for commit in (self._selected, history.best, history.seed) if commit in self._ids), None)

    def press(self, key: str) -> bool:
        """Obey a key. Return False for the one that leaves the screen."""
        self._message = Text()
        if key == "q" and not self._opened:
            return False
        if key in ("q", "escape"):
            self._selected = self._selected if self._opened else None
            self._opened = ""
            return True
        steps = {"up": -1, "down": 1, "page-up": -self._page, "page-down": self._page, "home": -FAR, "end": FAR}
        commit = self.selected
        if commit is None:
            self._message = Text("there is no candidate yet")
        elif key in TEXTS:
            self._open(TEXTS[key], commit)
        elif key in COMMANDS:
            self._message = Text(f"evogit {COMMANDS[key].format(commit[:SHORT])}", "yellow")
        elif self._opened and key in steps:
            self._top += steps[key]
        elif self._opened and key in ("n", "N"):
            self._open(self._opened, self._select(commit, 1 if key == "n" else -1))
        elif key in steps:
            self._select(commit, steps[key])
        elif key == "b":
            self._select(self._view.history.best or commit, 0)
        return True

    def _select(self, commit: str, step: int) -> str:
        """Select the candidate that is `step` rows below another one. Return its id."""
        number = min(max(self._ids.index(commit) + step, 0), len(self._ids) - 1)
        self._line += number - self._ids.index(self.selected or commit)
        self._selected = self._ids[number]
        return self._selected

    def _open(self, kind: str, commit: str) -> None:
        """Show a candidate, or what it changed, in the place of the lineage."""
        phylogeny = self._view.history.phylogeny
        candidate = phylogeny[commit]
        if kind == "show":
            self._text = list(candidate_lines(self._place, self._view, candidate))
        else:
            parent = next(iter(candidate.parents), commit) if kind == "diff" else self._view.history.seed or commit
            patch = self._place.repository.diff(parent, commit)
            self._text = list(change_lines(self._view, phylogeny[parent], candidate, patch))
        self._opened, self._selected, self._top = kind, commit, 0

    # --- drawing --------------------------------------------------------------------------------------------------

    def draw(self, now: Now, width: int, height: int) -> list[Text]:
        """Return the lines of the screen, as many as it is high."""
        commit = self.selected
        about = (
            self._view.line(self._view.history.phylogeny[commit], score=True) if commit else Text("no candidate yet")
        )
        if self._opened:
            top = [Text(f"{self._opened}  ", "bold").append_text(about)]
            body = [part for line in self._text for part in _wrapped(line, width)]
            self._page = max(height - 2, 1)
            self._top = max(min(self._top, len(body) - self._page), 0)
            seen = body[self._top : self._top + self._page]
            where = f"{self._top + 1} to {self._top + len(seen)} of {len(body)}"
            bottom = [self._message or Text(f"j k scroll   Enter show   d diff   n next   q back   {where}", "dim")]
        else:
            gap = [Text("")] if height >= 12 else []
            top = [*facts(self._view, self._settings, now, width)[: max(height - 4, 1)], *gap]
            if height >= 16:
                top += [*agent_lines(self._view, now, max(height // 6, 2)), *gap]
            bottom = [*gap, self._message or about, Text(HINT, "dim")]
            self._page = max(height - len(top) - len(bottom), 1)
            seen = list(self._lineage(commit, width))
        filler = [Text("")] * (self._page - len(seen))
        return fit(self._view, [*top, *seen, *filler, *bottom][:height], width)

    def _lineage(self, selected: str | None, width: int) -> Iterator[Text]:
        """Yield the lines that are in sight; the selected candidate stays on its line while others are added."""
        at = self._ids.index(selected) if selected else 0
        line = min(max(self._line, 0), self._page - 1)
        top = max(min(at - line, len(self._ids) - self._page), 0) if self._selected else 0
        self._line = at - top
        for number, text in enumerate(self._lines[top : top + self._page], top):
            marked = Text(f"> {text.plain}".ljust(width), "reverse")
            yield marked if number == at else Text("  ").append_text(text)


def _wrapped(line: Text, width: int) -> Iterable[Text]:
    """Return the pieces of a long line."""
    line = line[:MAX_LINE_CHARS]
    line.expand_tabs(4)
    if line.cell_len <= width:
        return [line]
    ends = accumulate(map(len, chop_cells(line.plain, width)))
    return line.divide(list(ends)[:-1])
