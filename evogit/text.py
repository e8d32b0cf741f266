"""Foreign text made short and harmless, and numbers as every face writes them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable

TAIL = 0.6
"""Share of what is shown of a long text that is its end, where programs say why they failed."""

TITLE_LENGTH = 72
"""Characters of a title."""

MAX_FAMILY_CHARS = 40
"""Characters of the key of a family of ideas."""

MOST_BACKTICKS = 20
"""Backticks in a row that are shown; as fences are longer, more of them would multiply the length of a brief."""

SHORTEST_MARKER = 7
"""Characters of a marker of an edit, where the content asks for no longer one."""

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of characters that are not seen, or that change how others are seen."""

BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
"""What is not seen although its category says nothing of it: fillers, joiners, variation selectors; and all tags."""

_SELECTORS = "\u200c\u200d\ufe0e\ufe0f"
"""What belongs to the character before it in emoji, and in scripts whose letters are joined."""

_COLOURS = re.compile(r"\x1b\[[0-?]{0,60}[ -/]{0,9}[@-~]")
_ODD = re.compile(r"[^\n\t\x20-\x7e]")
_FOREIGN = re.compile(r"(?!\A\ufeff)[^\x00-\x7f]")
_MARKER = re.compile(r"^(<{7,}|={7,}|>{7,})", re.MULTILINE)


def plain(text: str) -> str:
    """Text without colours, its lines ended alike, with a replacement for all that is not seen."""
    text = _COLOURS.sub("", text) if "\x1b" in text else text
    return _ODD.sub(_seen, text.replace("\r\n", "\n").replace("\r", "\n"))


def whole(text: str) -> str:
    """Replace each half of a surrogate pair, which JSON can say and UTF-8 cannot."""
    return text.encode(errors="replace").decode()


def _seen(found: re.Match[str]) -> str:
    return found[0] if is_seen(found.string, found.start()) else "\N{REPLACEMENT CHARACTER}"


def is_seen(text: str, at: int) -> bool:
    """Whether a reader sees something of the character at a place of a text, be it by its effect on the one before."""
    character = text[at]
    if character in _SELECTORS:
        before = text[at - 1 : at]
        return before > "\xff" and (_is_visible(before) or (character == "\u200d" and before == "\ufe0f"))
    return _is_visible(character)


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in UNSEEN and not BLANK.match(character)


def code(character: str) -> str:
    r"""A character as `\x1b`, `\u202e` and so on."""
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def escape(text: str) -> str:
    r"""Foreign text with everything but printable characters and tabs as `\x1b`, `\u202e` and so on."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char == "\t" or is_seen(text, at) else code(char) for at, char in enumerate(text))


def escaped(text: str) -> str:
    r"""A file's text with what is not seen as `\u200b` and so on; ASCII and a mark at its begin stay."""
    if text.isascii():
        return text
    return _FOREIGN.sub(lambda found: found[0] if is_seen(text, found.start()) else code(found[0]), text)


def lines_of(content: bytes) -> str | None:
    """A file as lines without their CR; None for what is not text."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")


def _unless_short(lines: str, text: str) -> str:
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


def spaced(line: str) -> str:
    """A line with a space for each character that is not seen, but for tabs."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(char if char == "\t" or is_seen(line, at) else " " for at, char in enumerate(line))


def folded_name(name: str) -> str:
    """The name that a file system may take this one for: without regard to case, or to what is not seen."""
    if name.isascii():
        return name.lower().rstrip(". ")
    seen = "".join(char for char in unicodedata.normalize("NFKC", name) if _is_visible(char))
    return seen.casefold().rstrip(". ")


def one_line(text: str, limit: int = TITLE_LENGTH) -> str:
    """Text as one line of printable characters, shortened to `limit` characters."""
    line = " ".join(spaced(text).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def family_key(text: str) -> str:
    """Return the key of a family of ideas as all faces write it: `simulated-annealing` of ` *Simulated annealing*`."""
    return "-".join(re.findall(r"[^\W_]+", text[:MAX_FAMILY_CHARS].lower()))


def titled(text: str) -> tuple[str, str]:
    """Return family and title of a line such as `[annealing] Cool more slowly`; the family is "" without brackets."""
    bracketed = re.fullmatch(r"\[([^\[\]]{1,60})\][ \t:]*(.*)", text.strip(), re.DOTALL)
    return (family_key(bracketed[1]), bracketed[2]) if bracketed and bracketed[2] else ("", text)


def fence(text: str, kind: str = "") -> str:
    """Text between lines of backticks, more of them than the text itself has anywhere; empty for none."""
    if not text.strip():
        return ""
    text = re.sub(f"`{{{MOST_BACKTICKS},}}", "`" * MOST_BACKTICKS, text)
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{kind}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{marks}"


def marker_length(texts: Iterable[str]) -> int:
    """The length of markers that none of the texts has at the beginning of a line."""
    taken = {len(found) for text in texts for found in _MARKER.findall(text)}
    return next(length for length in range(SHORTEST_MARKER, SHORTEST_MARKER + len(taken) + 1) if length not in taken)


def cut(text: str, tokens: int) -> str:
    """The beginning of a text, of about so many tokens; says how much is missing."""
    content = text.encode(errors="replace")
    if len(content) <= 4 * tokens:
        return text
    return f"{content[: 4 * tokens].decode(errors='ignore')}\n[... {len(content) - 4 * tokens:,} more bytes]"


# --- numbers, written alike by graphs/format.js -----------------------------------------------------------------------


def number(value: float | None, places: int) -> str:
    """Return a value with a fixed number of decimals; a dash for None."""
    return "-" if value is None else f"{value:,.{places}f}"


def measured(value: float | None, margin: float | None, places: int, give: str = "±") -> str:
    """Return a value with half of its interval, such as `77.3 ± 5.0`; ` ± ?` while the noise is not known."""
    if value is None or not margin:
        return number(value, places)
    return f"{number(value, places)} {give} {number(margin, places) if math.isfinite(margin) else '?'}"


def change(value: float | None, places: int) -> str:
    """Return a difference with its sign; a tiny one keeps one digit of its own instead of reading as zero."""
    if value is None:
        return ""
    fixed = f"{value:+,.{places}f}"
    return f"{value:+.0e}" if value and not any(c in "123456789" for c in fixed) else fixed


def percent(share: float | None) -> str:
    """Return a share of one as percent, of nearly one with more digits; a dash for None."""
    if share is None:
        return "-"
    told, left = round(share * 100, 1) + 0.0, abs(1 - share)  # -0.0 + 0.0 is 0.0
    digits = -math.floor(math.log10(100 * left)) if told == 100 and left > 1e-12 else 1
    return f"{share * 100 if digits > 1 else told:.{digits}f} %"
