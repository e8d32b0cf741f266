"""The two streams of a command: data on stdout, progress on stderr; colours, symbols, pager and JSON."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import cached_property
from operator import add
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar, get_args

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Span, Text

from evogit.subprocesses import PIPE, shell, start

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
FIRST_WORD_S, LONGEST_SILENCE_S = 10.0, 60.0
"""Seconds after which something that takes long is said to go on, and from then on the longest without a word."""


class Glyphs(Struct, frozen=True, kw_only=True):
    """Every symbol that is drawn; lines of the graph by the sides they leave on: up 1, down 2, left 4, right 8."""

    lines: str = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"
    broken: str = "┊"
    dotted: str = "┄"
    best: str = "★"
    scored: str = "●"
    failed: str = "○"
    pending: str = "◌"
    seed: str = "◆"
    promoted: str = "✚"
    pruned: str = "✂"
    folded: str = "▸"
    mark: str = "←"
    dot: str = "·"
    give: str = "±"
    more: str = "…"
    full: str = "█"
    empty: str = "░"
    levels: str = "▁▂▃▄▅▆▇█"

    @property
    def pretty(self) -> bool:
        """Whether more than ASCII can be drawn."""
        return not self.full.isascii()

    def cut(self, line: Text, width: int) -> None:
        """Shorten a line to `width` columns."""
        line.truncate(width, overflow="ellipsis" if self.pretty else "crop")


PRETTY = Glyphs()
PLAIN = Glyphs(
    lines=" '.|-'.+-'.+-+++",
    broken=":",
    dotted=".",
    best="@",
    scored="*",
    failed="o",
    pending="?",
    seed="#",
    promoted="+",
    pruned="x",
    folded=">",
    mark="<-",
    dot="-",
    give="+-",
    more="~",
    full="#",
    empty=".",
    levels="_.:-=+*#",
)


Fit = Literal["fold", "ellipsis", "ignore"]
"""What becomes of a line that is longer than a terminal is wide: it goes on below, it is cut, the terminal does it."""

FITS: Mapping[str | None, Fit] = {fit: fit for fit in get_args(Fit)}

Styled = tuple[str, str]


class Terminal:
    """Where a command writes. `color` is `auto`, `always` or `never`; `json` asks for data instead of text."""

    def __init__(self, color: str, json: bool) -> None:
        self.json = json
        self._color = color
        self.glyphs = PRETTY if _speaks_unicode(sys.stdout) else PLAIN
        self.err_glyphs = PRETTY if _speaks_unicode(sys.stderr) else PLAIN

    @cached_property
    def out(self) -> Console:
        """What lays data out for a terminal."""
        return _console(sys.stdout, self._color)

    @cached_property
    def err(self) -> Console:
        """What lays out what is said beside the data."""
        return _console(sys.stderr, self._color)

    @property
    def plain(self) -> bool:
        """Whether data is written as it is, without style and of any width."""
        return self._color != "always" and not sys.stdout.isatty()

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def width(self) -> int | None:
        """Columns of the terminal that data goes to; None where lines may be of any length."""
        return self.out.width if sys.stdout.isatty() else None

    @property
    def live(self) -> bool:
        """Whether progress can be drawn in place."""
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, lines: Iterable[Text], *, fit: Fit = "fold") -> None:
        """Print lines; on a terminal they fit its width, and are paged when they are more than it is high.

        `fit` is for lines that do not say themselves how they `overflow`.
        """
        if self.width is not None:
            width = self.width
            lines = [part for line in lines for part in self._fitted(line, self.out, self.glyphs, width, fit)]
        lines = list(lines)
        pager = _pager() if sys.stdout.isatty() and len(lines) >= self.out.height else None
        if pager is None:
            self.print(lines, fit="ignore")
            return
        with self.out.capture() as captured:
            self.print(lines, fit="ignore")
        environment = {"LESS": "FRX", "LV": "-c", **os.environ}
        with start(shell(pager), env=environment, cwd=None, session=False, stdin=PIPE) as less:
            try:
                less.communicate(captured.get().encode(errors="replace"))
            except (BrokenPipeError, KeyboardInterrupt):  # the reader has seen enough
                less.wait()

    def print(self, lines: Iterable[Text], *, fit: Fit = "fold") -> None:
        """Print lines without a pager."""
        if self.plain:
            self.write(line.plain for line in lines)
            return
        for line in lines:
            width = None if fit == "ignore" else self.width
            for part in self._fitted(line, self.out, self.glyphs, width, fit) if width else [line]:
                self.out.print(part, soft_wrap=True)

    def _fitted(self, line: Text, console: Console, glyphs: Glyphs, width: int, fit: Fit) -> list[Text]:
        """The line as it fits, in one line or, broken between words, in several: the others stand below its text."""
        fit = FITS.get(line.overflow, fit)
        if fit == "ignore" or line.cell_len <= width:
            return [line]
        if fit == "ellipsis":
            glyphs.cut(line, width)
            return [line]
        hang, text = 0, line.plain
        if line.overflow != "fold":  # below the last column, two spaces apart, if that leaves room
            indent = len(text) - len(text.lstrip())
            last = max((match.end() for match in re.finditer(r"\S {2,}(?=\S)", text[: width // 2])), default=0)
            hang = last or indent + 2 * bool(indent)
        first, *_ = line.wrap(console, width)
        first.rstrip()
        below = line[len(first.plain) :]
        below = below[len(below.plain) - len(below.plain.lstrip()) :]
        return [first, *(Text(" " * hang).append_text(part) for part in below.wrap(console, width - hang))]

    def write(self, lines: Iterable[str]) -> None:
        """Print lines as they are: what Rich would write, without its layout, which takes most of a long log."""
        sys.stdout.writelines(f"{line.expandtabs()}\n" if "\t" in line else f"{line}\n" for line in lines)

    def data(self, record: Mapping[str, Any]) -> None:
        """Print one JSON object on a line of its own; nothing in it can reach the terminal unescaped."""
        sys.stdout.write(json.dumps(record, allow_nan=False) + "\n")

    def note(self, text: str | Text, style: str = "", *, fit: Fit = "fold") -> None:
        """Say something beside the data."""
        if self._color != "always" and not sys.stderr.isatty():  # Rich takes twenty times as long, for nothing
            said = text if isinstance(text, Text) else Text(text)  # without control codes
            sys.stderr.write(f"{said.plain.expandtabs()}\n")
            sys.stderr.flush()
            return
        for line in text.split("\n") if isinstance(text, Text) else map(Text, text.split("\n")):
            width = self.err.width if sys.stderr.isatty() else None
            for part in self._fitted(line, self.err, self.err_glyphs, width, fit) if width else [line]:
                self.err.print(part, style=style, soft_wrap=True)

    def run(self, work: Coroutine[Any, Any, T], what: str) -> T:
        """Run what may take long, and say after ten seconds, then less often, that it goes on."""

        async def watched() -> T:
            task, begun, wait = asyncio.ensure_future(work), time.monotonic(), FIRST_WORD_S
            while not (await asyncio.wait({task}, timeout=wait))[0]:
                seconds = time.monotonic() - begun
                self.note(f"still {what}, for {seconds:,.0f} s", "dim")
                wait = min(seconds, LONGEST_SILENCE_S)
            return task.result()

        return asyncio.run(watched())


def silence(stream: TextIO) -> None:
    """Discard everything that is written to the stream from now on, since its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _console(stream: TextIO, color: str) -> Console:
    from rich.console import Console  # with what draws: a pipe has no use for it

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704  # rich would exit; `main` does that for all output alike

    plain = color == "never" or (color == "auto" and ("NO_COLOR" in os.environ or not stream.isatty()))
    return PipedConsole(
        file=stream,
        color_system=None if plain else "auto",
        force_terminal=True if color == "always" else None,
        no_color=plain,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _speaks_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")


def _pager() -> str | None:
    """The pager that Git would use, None for none."""
    for name in ("GIT_PAGER", "PAGER"):
        if name in os.environ:
            return None if os.environ[name] in ("", "cat") else os.environ[name]
    return "less" if shutil.which("less") else None


def padded(rows: Sequence[Sequence[Styled]], align: str) -> list[str]:
    """Return the plain text of `table`, without making Texts; every row has all columns."""
    columns = []
    for cells, side in zip(zip(*rows, strict=True), align, strict=False):
        lengths = [len(text) if text.isascii() else cell_len(text) for text, _ in cells]
        width = max(lengths)
        pads = [" " * (width - length) for length in lengths]
        texts = [text for text, _ in cells]
        columns.append(map(add, *((pads, texts) if side == "r" else (texts, pads))))
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def table(rows: Iterable[Iterable[Text | str]], align: str, heads: Sequence[str] = ()) -> list[Text]:
    """Align rows of cells, below dim `heads` if there are any; `align` has an `l` or `r` for each column."""
    head = [[Text(word, "dim") for word in heads]] if heads else []
    cells = [*head, *([cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows)]
    lengths = [[cell.cell_len for cell in row] for row in cells]
    widths = [max((row[i] for row in lengths if i < len(row)), default=0) for i in range(len(align))]
    lines = []
    for row, taken in zip(cells, lengths, strict=True):
        parts: list[Text | str] = []
        for i, cell in enumerate(row):
            pad = " " * (widths[i] - taken[i])
            parts += ["  " if i else "", *((pad, cell) if align[i] == "r" else (cell, pad))]
        line = joined(parts)
        line.rstrip()
        lines.append(line)
    return lines


def fact_table(facts: Iterable[tuple[str, Text | str]], indent: str = "") -> list[Text]:
    """A line for each name and its text."""
    return table(((Text(indent + name, "dim"), text) for name, text in facts), "ll")


def joined(parts: Iterable[Text | str]) -> Text:
    """Texts one after the other, as `Text.assemble` has it, but made at once: most of the work of a long log."""
    plain: list[str] = []
    spans: list[Span] = []
    at = 0
    for part in parts:
        told = part if isinstance(part, str) else part.plain
        if isinstance(part, Text):
            spans += [Span(at, at + len(told), part.style)] if part.style and told else []
            spans += [span.move(at) for span in part.spans]
        plain.append(told)
        at += len(told)
    return Text("".join(plain), spans=spans)
