"""The files of `graphs/`, as scripts within a page, and how a page's policy names those."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from evogit.content import content

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function|class|const)", re.MULTILINE)

AGAIN = (content("graphs") / "again.js").read_text(encoding="utf-8")
"""Loads a page again if one of its files did not arrive."""


def source_hash(text: str) -> str:
    """Return how a Content-Security-Policy allows one script or style within a page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def script(*starts: str) -> str:
    """Return these modules and all that they import as one script, each after what it needs.

    `import` lines and the word `export` are cut, so no two modules may have the same name at their top.
    """
    folder, done = content("graphs"), dict[str, None]()
    for start in starts:
        done |= dict.fromkeys(_needed(folder, start, ()))
    return "\n".join(EXPORT.sub("", IMPORT.sub("", (folder / name).read_text(encoding="utf-8"))) for name in done)


def _needed(folder: Path, name: str, above: tuple[str, ...]) -> Iterator[str]:
    for other in IMPORT.findall((folder / name).read_text(encoding="utf-8")):
        if other not in above:
            yield from _needed(folder, other, (*above, name))
    yield name
