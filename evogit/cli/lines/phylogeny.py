"""The phylogeny of a run, drawn as text: which candidates are shown, and the lines that join them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text

from evogit.cli.lines.view import View, first_line
from evogit.cli.terminal import Glyphs, table
from evogit.cli.text import count
from evogit.history import History
from evogit.review import Cell, Row, agents, most_telling, rows
from evogit.review.graph import lanes, skeleton

MAX_LANES = 12

HEADS = ("score", "gain", "", "age", "agent", "candidate")


def selection(history: History, limit: int | None, everything: bool = False) -> set[str]:
    """Ids of the candidates to show."""
    shown = {candidate.commit for candidate in history.phylogeny} if everything else skeleton(history)
    return most_telling(history, shown, limit) if limit else shown


def draw(view: View, shown: Collection[str]) -> list[Text]:
    """The graph as lines: a header, one line per candidate, a legend."""
    history, glyphs = view.history, view.glyphs
    drawn = rows(history, shown)
    about = [f"run {history.run}", count(len(history.phylogeny), "candidate"), count(len(agents(history)), "agent")]
    hosts = {each.host for each in history.phylogeny} - {""}
    about += [count(len(hosts), "host")] if len(hosts) > 1 else []
    about += ["judged: inside"] if history.started and history.started.judged == "inside" else []
    dotted = any(edge.inspiration for row in drawn for edge in row.edges)
    return [
        Text(f" {glyphs.dot} ".join(about), "dim"),
        *row_lines(view, drawn, HEADS),
        *_legend(glyphs, len(history.phylogeny) - len(drawn), dotted),
    ]


def row_lines(view: View, drawn: Sequence[Row], heads: Sequence[str] = ()) -> list[Text]:
    """The heads of the columns, if there are any, and a line for each row."""
    best = view.history.best
    trunk = best if any(row.candidate.commit == best for row in drawn) else None
    cells = [_cells(view, row, lane) for row, lane in zip(drawn, lanes(drawn, trunk, MAX_LANES + 1), strict=True)]
    lines = table(cells, "rrlrll", heads)
    first = len(lines) - len(drawn)
    finished = []
    for line, row in zip(lines[first:], drawn, strict=True):
        folded = Text(f"  {view.glyphs.folded}{row.folded:,}" if row.folded else "", "dim")
        finished.append(view.finish(line, row.candidate, folded))
    return [*lines[:first], *finished]


def _cells(view: View, row: Row, lane: Sequence[Cell]) -> list[Text]:
    commit = row.candidate.commit
    return [
        view.score(commit),
        view.gain(commit),
        lane_text(view, commit, lane),
        Text(*view.age(row.candidate)),
        Text(first_line(row.candidate.agent)),
        view.name(commit),
    ]


def lane_text(view: View, commit: str, cells: Sequence[Cell], widest: int = MAX_LANES) -> Text:
    """The lines beside one candidate, of at most `widest` lanes."""
    text = Text()
    for cell, after in zip(cells[:widest], [*cells[1:], Cell()], strict=False):
        if cell.node:
            text.append_text(view.glyph(commit))
        else:
            line = view.glyphs.lines[cell.ways]
            if cell.broken and cell.ways == 3:
                line = view.glyphs.broken
            elif cell.dotted and cell.ways == 12:
                line = view.glyphs.dotted
            text.append(line, "dim")
        level = view.glyphs.dotted if cell.dotted else view.glyphs.lines[12]
        text.append(level if cell.ways & 8 and after.ways & 4 else " ", "dim")
    if len(cells) > widest:
        text.append(view.glyphs.more, "dim")
    text.rstrip()
    return text


def _legend(glyphs: Glyphs, folded: int, dotted: bool) -> list[Text]:
    marks = [
        (glyphs.best, "best"),
        (glyphs.scored, "scored"),
        (glyphs.failed, "failed"),
        (glyphs.seed, "seed"),
        (glyphs.promoted, "promoted"),
        (glyphs.pruned, "pruned"),
    ]
    marked = "  ".join(f"{glyph} {word}" for glyph, word in marks)
    lines = [f"{marked}  two parents: merge or graft"]
    if dotted:
        lines.append(f"{glyphs.dotted * 3} no parent, but what its agent was shown, and took lines from")
    if folded:
        lines.append(f"{glyphs.folded} {count(folded, 'candidate')} folded: --all shows them")
    return [Text(line, "dim", overflow="fold") for line in lines]
