"""Keys from the bytes that a terminal sends."""

from __future__ import annotations

import codecs
import re

PASTED = "paste:"
"""What the name of a key begins with that stands for a pasted text."""

_NAMES = {
    **{"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape"},
    **{"\x0c": "redraw", "\x15": "clear", "\x17": "word", "\x06": "page-down", "\x02": "page-up"},
}
_FINALS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "Z": "back-tab"}
_NUMBERS = {"1": "home", "4": "end", "5": "page-up", "6": "page-down", "7": "home", "8": "end", "3": "delete"}
_SEQUENCE = re.compile(r"\x1b(?:\[([0-?]{0,16})[ -/]{0,4}([@-~])|O([ -~])|\[\[[A-E])")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]{0,16}[ -/]{0,4}|O|\[\[)?\Z")
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"

LONGEST_PASTE = 4_000
"""Characters of a pasted text that are taken."""


class Keys:
    """Tells keys apart, also where a sequence comes in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = ""

    @property
    def waiting(self) -> bool:
        """Whether what came last may be the beginning of a sequence: call `flush` if nothing follows soon."""
        return bool(self._left) and not self._left.startswith(_PASTE)

    def feed(self, data: bytes) -> list[str]:
        """The names of the keys: a character, `up`, `enter` and so on, or `paste:TEXT`."""
        self._left += self._decoder.decode(data)
        return self._take(whole=False)

    def flush(self) -> list[str]:
        """The same of what was held back: an escape by itself."""
        return self._take(whole=True)

    def _take(self, *, whole: bool) -> list[str]:
        found = []
        while self._left:
            if self._left.startswith(_PASTE):
                text, end, rest = self._left[len(_PASTE) :].partition(_PASTE_END)
                if not end:
                    break
                found.append(PASTED + text[:LONGEST_PASTE])
                self._left = rest
                continue
            if not whole and _BEGUN.match(self._left):
                break
            key, length = _first(self._left)
            found += [key] if key else []
            self._left = self._left[length:]
        return found


def _first(text: str) -> tuple[str, int]:
    """The first key of a text, empty for one that is unknown, and how many characters it takes."""
    if sequence := _SEQUENCE.match(text):
        numbers, final, simple = sequence.groups()
        name = _NUMBERS.get(numbers.partition(";")[0], "") if final == "~" else _FINALS.get(final or simple or "", "")
        return name, sequence.end()
    character = text[0]
    if character in _NAMES:
        return _NAMES[character], 1
    return (character if character.isprintable() else ""), 1
