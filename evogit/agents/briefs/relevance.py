"""Which files matter: those that a profile names, that the goal's names are defined in, that are measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from evogit.agents import Background
from evogit.scaffold.project import ASIDE, SOURCE
from evogit.source.imports import reached

MAX_HOT = 10
"""Files that are shown for a profile's sake."""
MAX_DEFINING = 2
"""Files that define a name of a profile or a goal; a name that more define says little."""

_PLACED = re.compile(r"([\w./@-]*[\w-]\.\w+:\d+)[ (]#?[\w$.]+\)?")
_TOKEN = re.compile(r"([\w./@-]*[\w-]\.\w+)(?::\d+)?|([A-Za-z_$][\w$]{3,})")
_IDENTIFIER = re.compile(r"`([A-Za-z_]\w*)`|\b([A-Z]\w{2,}|[a-z]\w*_\w+|[a-z]+[A-Z]\w*)\b")


def is_code(path: str) -> bool:
    """Return whether a file is source that neither tests, measures nor explains other source."""
    return bool(SOURCE.search(path)) and not ASIDE.search(path)


def profile_places(profile: str, paths: Iterable[str]) -> str:
    """Return a profile without the names of functions whose file is one of the paths, and of what is built in."""
    names = {path.rpartition("/")[2] for path in paths}
    rows = "\n".join(line for line in profile.split("\n") if any(map(str.isdigit, line)))
    bare = re.sub(r"<[^<>\n]{2,80}>", "", rows)
    return _PLACED.sub(lambda found: found[1] if found[1].rpartition("/")[2].split(":")[0] in names else found[0], bare)


def hot_files(background: Background, paths: Sequence[str]) -> dict[str, int]:
    """Count how often a profile names functions of each file, in its order: by place, else by names that few define."""
    text = profile_places(background.profile, paths)
    tokens = [found.groups("") for found in _TOKEN.finditer(text)]
    by_name = dict[str, list[str]]()
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    defining = _defining(background, [word for _, word in tokens if word], paths)
    hot = Counter[str]()
    for place, word in tokens:
        near = by_name.get(place.rpartition("/")[2], ()) if place else defining.get(word, ())
        ends = [path for path in near if not place or f"/{path}".endswith(f"/{place}") or place.endswith(f"/{path}")]
        hot.update(ends[:MAX_DEFINING])
    return dict(list(hot.items())[:MAX_HOT])


def ranked(background: Background, paths: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return all paths, the relevant first: what defines a name of the texts, what is measured, other code by size."""
    words = [word for text in texts for found in _IDENTIFIER.findall(text) for word in found if word]
    defining = Counter(path for files in _defining(background, words, paths).values() for path in files)
    goal = [path for path, _ in defining.most_common()]
    code = [path for path in paths if is_code(path)]
    measured = reached(background.starts, code, background.imports)
    rest = sorted(paths, key=lambda path: (not is_code(path), -background.sizes[path], path))
    return list(dict.fromkeys([*goal, *measured, *rest]))


def _defining(background: Background, words: Sequence[str], paths: Sequence[str]) -> dict[str, list[str]]:
    """The files of code that define each of the words, where they are few."""
    wanted, files = frozenset(words), dict[str, list[str]]()
    for path in filter(is_code, paths) if wanted else ():
        for word in background.defines(path, wanted):
            files.setdefault(word, []).append(path)
    return {word: files[word] for word in dict.fromkeys(words) if 0 < len(files.get(word, ())) <= MAX_DEFINING}


def words_of(command: str) -> Iterator[str]:
    """Yield what may name a file or a module in a shell command."""
    yield from (word.removeprefix("./").rstrip("/") for word in re.findall(r"[\w./:-]+", command))
