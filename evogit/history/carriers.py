"""Candidates that carry the code of a pruned one: by descent, because their authors were shown it, or independently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from evogit.history.history import History
from evogit.repository import Repository
from evogit.repository.changes import SHORTEST_LINE
from evogit.source.collector import parse
from evogit.source.pieces import is_python

RUN_LINES = 3
"""Consecutive lines of a pruned step, without trivial ones, that make a candidate a carrier."""

MAX_BLOBS = 100_000
"""Files of which is remembered whether they have pruned code."""

_IMPORT = re.compile(rb"(?:import|from|using|use|#include)\b")

Lines = tuple[bytes, ...]


class Code(Struct, frozen=True):
    """The code that a step brought, without white space around lines.

    `definitions` are Python definitions that it added or changed. `runs` are consecutive lines without trivial ones.
    """

    definitions: frozenset[Lines]
    runs: frozenset[Lines]

    def __bool__(self) -> bool:
        return bool(self.definitions or self.runs)

    def is_in(self, content: bytes) -> bool:
        """Return whether a file has one of the definitions or runs."""
        lines = _lines(content)
        text = _joined(lines)
        return any(_joined(each) in text for each in self.definitions) or not self.runs.isdisjoint(_runs(lines))


class Carriers(Struct, frozen=True):
    """The ids of candidates with the code of another one, oldest first.

    `copies` have it by descent or because their authors were shown it; `independent` ones have it by neither.
    """

    copies: tuple[str, ...]
    independent: tuple[str, ...]


class CarriedCode:
    """Compares the candidates of one run with the code of pruned ones; what was compared once is remembered."""

    def __init__(self, repository: Repository, history: History) -> None:
        self._trees = repository.trees
        self._history = history
        self._brought_by = lru_cache(maxsize=64)(self._read_brought_by)
        self._is_in_blob = lru_cache(MAX_BLOBS)(lambda code, blob: code.is_in(self._trees.blob(blob)))

    def of(self, commit: str) -> Carriers:
        """Return the other candidates with the code that `commit` brought."""
        history, code = self._history, self._brought_by(commit)
        copies, independent = list[str](), list[str]()
        descendants, having = {commit}, {commit}
        for each in history.phylogeny.ids if code else ():
            descends = not descendants.isdisjoint(history.phylogeny.parents(each))
            seen = {*history.shown.get(each, ()), *history.inspirations.get(each, ()), history.written_on.get(each)}
            if descends:
                descendants.add(each)
            if each != commit and self._has(each, code):
                is_copy = descends or not having.isdisjoint(seen)
                (copies if is_copy else independent).append(each)
                if is_copy:
                    having.add(each)
                    descendants.add(each)
        return Carriers(tuple(copies), tuple(independent))

    def refusal(self, tree: str, parents: Sequence[str]) -> str:
        """Return why a tree with quarantined code cannot become a candidate; "" if it can.

        A parent that has the code independently was not pruned, and may hand it on.
        """
        parents = [parent for parent in parents if parent not in self._history.pruned]
        for commit in self._history.quarantined:
            code = self._brought_by(commit)
            if self._is_in(tree, code) and not any(self._has(parent, code) for parent in parents):
                return f"it has code of {commit[:7]}, which was pruned with all that carry its code"
        return ""

    def _has(self, commit: str, code: Code) -> bool:
        return self._is_in(self._history.phylogeny[commit].tree, code)

    def _is_in(self, tree: str, code: Code) -> bool:
        """Return whether a tree has the code, in files that are not the seed's, which lacks it."""
        pairs = self._trees.differences(next(iter(self._history.phylogeny)).tree, tree) if code else ()
        return any(self._is_in_blob(code, new.blob) for _, new in pairs if new and new.is_file)

    def _read_brought_by(self, commit: str) -> Code:
        """Return the code that a candidate has, and neither the seed nor one of its parents."""
        graph = self._history.phylogeny
        candidate, seed = graph[commit], next(iter(graph))
        origins = [seed.tree, *(graph[parent].tree for parent in candidate.parents)]
        changes = [self._trees.differences(origin, candidate.tree) for origin in origins]
        paths = set[str].intersection(*({new.path for _, new in pairs if new and new.is_file} for pairs in changes))
        before = [[_lines(self._trees.blob(old.blob)) for old, _ in pairs if old and old.is_file] for pairs in changes]
        texts = [_joined(lines) for side in before for lines in side]
        inherited = {line for side in before for lines in side for line in lines}
        of_seed = {line for lines in before[0] for line in lines}
        definitions, runs = set[Lines](), set[Lines]()
        for new in (new for _, new in changes[0] if new and new.path in paths):
            content = self._trees.blob(new.blob)
            fresh = [run for run in _runs(_lines(content)) if not inherited.issuperset(run)]
            changed = {
                each for each in _definitions(new.path, content) if not any(_joined(each) in text for text in texts)
            }
            own = {run for run in fresh if of_seed.isdisjoint(run)}
            definitions |= changed
            runs |= own if own or changed else set(fresh)
        return Code(frozenset(definitions), frozenset(runs))


def _lines(content: bytes) -> Lines:
    return tuple(filter(None, (line.strip() for line in content.split(b"\n"))))


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"\n%b\n" % b"\n".join(lines)


def _runs(lines: Lines) -> Iterator[Lines]:
    """Yield the lines that follow each other if trivial ones and imports are left out, `RUN_LINES` at a time."""
    telling = [line for line in lines if len(line) >= SHORTEST_LINE and not _IMPORT.match(line)]
    return (tuple(telling[at : at + RUN_LINES]) for at in range(len(telling) - RUN_LINES + 1))


def _definitions(path: str, content: bytes) -> Iterator[Lines]:
    """Yield the lines of the functions, classes and constants of a Python module; a short constant is trivial."""
    source = parse(content) if is_python(path) else None
    for each in source.definitions if source else ():
        lines = _lines(each.text)
        if not each.local and len(_joined(lines)) >= SHORTEST_LINE + 2:
            yield lines
