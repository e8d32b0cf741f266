"""Which candidate brought a line: blame along parents and, where an agent copied, along inspirations."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from evogit.core import NotFoundError
from evogit.history import History
from evogit.repository import Repository


class BlamedLine(Struct, frozen=True):
    """A line of a file, and the candidate whose change it is; the seed where nobody changed it."""

    text: str
    commit: str


def changed_texts(repository: Repository, history: History, commit: str) -> list[str]:
    """Paths of the text files of a candidate that are not as the seed has them."""
    graph = history.phylogeny
    seed = graph.lineage(commit)[0]
    now = repository.trees.lazily(graph[commit].tree, lambda _: True)
    paths = repository.changed_paths(seed.tree, graph[commit].tree)
    return [path for path in paths if path in now and b"\0" not in now[path]]


def blame(repository: Repository, history: History, commit: str, path: str) -> list[BlamedLine]:
    """The lines of a file of a candidate.

    Raises:
        NotFoundError: the candidate has no such file.
    """
    content = _Files(repository, history, path)
    if (blob := content.blob(commit)) is None:
        raise NotFoundError(f"expected a file of {commit[:7]}, got {path!r}")
    lines = repository.trees.blob(blob).decode(errors="replace").removesuffix("\n").split("\n")
    brought = _brought(history, content, commit, len(lines))
    return [BlamedLine(text, brought[number]) for number, text in enumerate(lines)]


class _Files:
    """One file in the candidates of a run."""

    def __init__(self, repository: Repository, history: History, path: str) -> None:
        self._repository = repository
        self._history = history
        self._path = path

    def blob(self, commit: str) -> str | None:
        """Its content in a candidate."""
        files = self._repository.trees.lazily(self._history.phylogeny[commit].tree, self._path.__eq__)
        return files.entries[self._path].blob if self._path in files else None

    def kept(self, old: str, new: str, wanted: Iterable[int]) -> dict[int, int]:
        """Of the wanted lines in candidate `new` those that `old` has -> where."""
        before, after = self.blob(old), self.blob(new)
        if before is None or after is None:
            return {}
        if before == after:
            return {line: line for line in wanted}
        same = self._repository.same_lines(before, after)
        return {line: same[line] for line in wanted if line in same}


def _brought(history: History, files: _Files, commit: str, amount: int) -> dict[int, str]:
    """Line -> candidate. Lines go to the parents and inspirations that have them, the youngest candidate first."""
    graph = history.phylogeny
    open_lines: dict[str, dict[int, list[int]]] = {commit: {line: [line] for line in range(amount)}}
    brought: dict[int, str] = {}
    while open_lines:
        child = max(open_lines, key=lambda each: graph[each].number)
        lines = open_lines.pop(child)
        for origin in history.origins(child):
            for line, there in files.kept(origin, child, lines).items():
                open_lines.setdefault(origin, {}).setdefault(there, []).extend(lines.pop(line))
        brought |= {line: child for those in lines.values() for line in those}
    return brought
