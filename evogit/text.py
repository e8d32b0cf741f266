"""Foreign text made short and harmless: what programs print, for those who read it as plain text."""

from __future__ import annotations

import re
import unicodedata

TAIL = 0.6
"""Share of what is shown of a long text that is its end, where programs say why they failed."""

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of characters that are not seen, or that change how others are seen."""

_COLOURS = re.compile(r"\x1b\[[0-?]{0,60}[ -/]{0,9}[@-~]")
_ODD = re.compile(r"[^\n\t\x20-\x7e]")


def plain(text: str) -> str:
    """Text without colours, its lines ended alike, with a replacement for all that is not seen."""
    text = _COLOURS.sub("", text) if "\x1b" in text else text
    return _ODD.sub(_seen, text.replace("\r\n", "\n").replace("\r", "\n"))


def _seen(found: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(found[0]) in UNSEEN else found[0]


def _unless_short(lines: str, text: str) -> str:
    """Its whole lines, unless these are less than half of a text."""
    return lines if 2 * len(lines) > len(text) else text


def ends(text: str, most: int) -> str:
    """Beginning and end of a text of more than `most` bytes, in whole lines if it can be; says how much is missing."""
    content = text.encode(errors="replace")
    if len(content) <= most:
        return text
    tail = int(TAIL * most)
    first, last = content[: most - tail].decode(errors="ignore"), content[-tail:].decode(errors="ignore")
    first, last = _unless_short(first.rpartition("\n")[0], first), _unless_short(last.partition("\n")[2], last)
    missing = len(content) - len(first.encode()) - len(last.encode())
    return f"{first}\n[... {missing:,} more bytes ...]\n{last}"
