"""Finds lines such as `# ... rest unchanged ...`, which stand for code that a model left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.paths import is_prose
from evogit.text import one_line

_COMMENT = re.compile(r"(?:#+|//+|/\*+|\*|<!--|--|;+|%+|\{/\*)")
_LEFT_OUT = re.compile(
    r"\b(?:rest|remain\w*|remainder|exist\w*|unchanged|unmodified|same|omitted|elided|previous|other|as before)\b",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"[\[(]?\b(?:rest|remainder) of .*\b(?:unchanged|(?:stays|is|remains) the same|as before)\b.*", re.I
)


def refuse_placeholders(path: str, old: Sequence[str], new: Sequence[str]) -> None:
    """Check the lines that a file is to have in some place.

    Raises EditError: one of them stands for code, and the file does not have it already.
    """
    if is_prose(path):
        return
    left_out = [line for line in new if _is_placeholder(line, path)]
    if left_out and (fresh := set(left_out) - set(old)):
        raise EditError(
            f"the new lines of {one_line(path)!r} leave out code: {one_line(min(fresh), 100)!r}",
            "Write every line of a new content; SEARCH and REPLACE only the lines that change.",
        )


def _is_placeholder(line: str, path: str) -> bool:
    """Whether a line stands for others. `...` inside a Python function is a statement."""
    text = line[:300].strip()
    comment = _COMMENT.match(text)
    said = (text[comment.end() :] if comment else text).removesuffix("*/}").removesuffix("*/").removesuffix("-->")
    said = said.strip()
    if said in ("...", "…"):
        return bool(comment) or not (path.endswith((".py", ".pyi")) and line[:1].isspace())
    if said.startswith(("...", "…")) or said.rstrip(")]").endswith(("...", "…")):
        return bool(_LEFT_OUT.search(said)) and (bool(comment) or said.startswith(("... ", "…", "[")))
    return bool(comment) and bool(_WHOLE.fullmatch(said))
