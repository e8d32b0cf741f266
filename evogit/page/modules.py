"""The modules of `graphs/` as one script: for QuickJS, and for a page that is one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evogit.content import content

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function|class|const)", re.MULTILINE)


def script(*starts: str) -> str:
    """These modules and all that they import, each after what it needs, with imports and the word `export` cut.

    So no two modules may have the same name at their top.
    """
    folder, done = content("graphs"), dict[str, None]()
    for start in starts:
        done |= dict.fromkeys(_needed(folder, start, ()))
    return "\n".join(_body(folder / name) for name in done)


def _needed(folder: Path, name: str, above: tuple[str, ...]) -> Iterator[str]:
    for other in IMPORT.findall((folder / name).read_text(encoding="utf-8")):
        if other not in above:
            yield from _needed(folder, other, (*above, name))
    yield name


def _body(file: Path) -> str:
    return EXPORT.sub("", IMPORT.sub("", file.read_text(encoding="utf-8")))
