"""Lines drawn with dots: eight to a character in braille, two where only ASCII can be drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text

_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800
_ASCII = " '.:"
"""By whether there are dots in the upper half (1), the lower half (2), or both."""


@dataclass(slots=True)
class Canvas:
    """A rectangle of `width` by `height` characters; dots count from the upper left, `2 * width` by `4 * height`."""

    width: int
    height: int
    pretty: bool = True
    _dots: dict[tuple[int, int], int] = field(default_factory=dict)
    _styles: dict[tuple[int, int], str] = field(default_factory=dict)
    _marks: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)

    def dot(self, x: int, y: int, style: str = "") -> None:
        """Draw a dot, if there is such a place."""
        if 0 <= x < 2 * self.width and 0 <= y < 4 * self.height:
            cell = x // 2, y // 4
            self._dots[cell] = self._dots.get(cell, 0) | _BITS[y % 4][x % 2]
            self._styles[cell] = style

    def line(self, start: tuple[int, int], end: tuple[int, int], style: str = "", every: int = 1) -> None:
        """Draw a straight line; of its dots `every` second or third one, say."""
        (x, y), (to_x, to_y) = start, end
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(0, steps + 1, every):
            self.dot(round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps), style)

    def mark(self, column: int, row: int, symbol: str, style: str = "") -> None:
        """Put a character on top of all dots."""
        if 0 <= column < self.width and 0 <= row < self.height:
            self._marks[column, row] = symbol, style

    def lines(self) -> list[Text]:
        """What was drawn."""
        return [self._row(row) for row in range(self.height)]

    def _row(self, row: int) -> Text:
        text = Text()
        for column in range(self.width):
            cell = column, row
            symbol, style = self._marks.get(cell) or (self._symbol(self._dots.get(cell, 0)), self._styles.get(cell, ""))
            text.append(symbol, style)
        return text

    def _symbol(self, dots: int) -> str:
        if self.pretty:
            return chr(_BRAILLE + dots) if dots else " "
        return _ASCII[bool(dots & 0x1B) + 2 * bool(dots & 0xE4)]
