"""Files that mark what may change: lines with EVOLVE-BLOCK-START and EVOLVE-BLOCK-END, in any language's comments."""

from __future__ import annotations

import functools
import re

START, END = "EVOLVE-BLOCK-START", "EVOLVE-BLOCK-END"
_MARK = re.compile(rb"^[^\w\n]*EVOLVE-BLOCK-(START|END)\b[^\n]*(?:\n|\Z)", re.MULTILINE)


@functools.lru_cache(maxsize=64)
def blocks(content: bytes) -> tuple[tuple[int, int], ...]:
    """The bytes between each pair of marks; nothing where there are none, or they are no pairs."""
    found = list(_MARK.finditer(content))
    if len(found) % 2 or any(each[1] != (b"START", b"END")[n % 2] for n, each in enumerate(found)):
        return ()
    return tuple((first.end(), last.start()) for first, last in zip(found[::2], found[1::2], strict=True))


def may_change(content: bytes, start: int, end: int) -> bool:
    """Whether these bytes may be replaced: those of one block, or any in a file without marks."""
    spans = blocks(content)
    return not spans or any(first <= start and end <= last for first, last in spans)


def keeps_marks(old: bytes, new: bytes | None) -> bool:
    """Whether all that stands outside of the blocks of `old`, the marks among it, is as it was; None: deleted."""
    return not blocks(old) or (new is not None and _outside(old) == _outside(new))


def _outside(content: bytes) -> list[bytes]:
    places = [0, *(place for span in blocks(content) for place in span), len(content)]
    return [content[start:end] for start, end in zip(places[::2], places[1::2], strict=True)]
