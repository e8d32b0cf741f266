"""Which candidate brought a line: blame along parents and, where an agent copied, along inspirations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from msgspec import Struct

from evogit.core import HUMAN, Candidate, NotFoundError
from evogit.history import History
from evogit.history.standing import Comparison, origin_of, standing, was_valid
from evogit.repository import Repository, clean_title, inert, reason_in
from evogit.selection.conflict_settlers import naming
from evogit.source import MAX_SOURCE_BYTES
from evogit.source.definitions import unnamed_lines
from evogit.source.pieces import is_python


class BlamedLine(Struct, frozen=True):
    """A line of a file, and the candidate whose change it is; the seed where nobody changed it.

    `reached` is False in a definition that no file names any more, as in the rest of a merge.
    """

    text: str
    commit: str
    reached: bool = True


def changed_texts(repository: Repository, history: History, commit: str) -> list[str]:
    """Paths of the text files of a candidate that are not as the seed has them."""
    graph = history.phylogeny
    seed = graph.lineage(commit)[0]
    now = repository.trees.lazily(graph[commit].tree, lambda _: True)
    paths = repository.changed_paths(seed.tree, graph[commit].tree)
    return [path for path in paths if path in now and b"\0" not in now[path]]


def blame(repository: Repository, history: History, commit: str, path: str) -> list[BlamedLine]:
    """The lines of a file of a candidate, each of the first valid one that has it.

    Raises NotFoundError: the candidate has no such file.
    """
    content = _Files(repository, history, path)
    if (blob := content.blob(commit)) is None:
        raise NotFoundError(f"expected a file of {commit[:7]}, got {path!r}")
    texts = repository.trees.blob(blob).decode(errors="replace").removesuffix("\n").split("\n")
    open_lines: dict[str, dict[int, list[int]]] = {commit: {line: [line] for line in range(len(texts))}}
    brought = dict.fromkeys(range(len(texts)), commit)
    while open_lines:  # lines go to the parents and inspirations that have them, the youngest candidate first
        child = max(open_lines, key=lambda each: history.phylogeny[each].number)
        lines = open_lines.pop(child)
        if was_valid(history, child):
            brought |= {line: child for those in lines.values() for line in those}
        for origin in history.origins(child):
            for line, there in content.kept(origin, child, lines).items():
                open_lines.setdefault(origin, {}).setdefault(there, []).extend(lines.pop(line))
    unnamed = content.unnamed(commit)
    idle = {author: {*content.unnamed(author).values()} for author in {brought[line] for line in unnamed}}
    orphans = {line for line, name in unnamed.items() if name not in idle[brought[line]]}
    return [BlamedLine(text, brought[number], number not in orphans) for number, text in enumerate(texts)]


class _Files:
    def __init__(self, repository: Repository, history: History, path: str) -> None:
        self._repository = repository
        self._history = history
        self._path = path

    def blob(self, commit: str) -> str | None:
        files = self._repository.trees.lazily(self._history.phylogeny[commit].tree, self._path.__eq__)
        return files.entries[self._path].blob if self._path in files else None

    def unnamed(self, commit: str) -> dict[int, str]:
        """Line -> name of what the file defines, the seed's lacks and no file of the candidate names."""
        trees, graph, blob = self._repository.trees, self._history.phylogeny, self.blob(commit)
        seed = self.blob(next(iter(graph)).commit)
        if not is_python(self._path) or blob in (None, seed) or trees.size(blob or "") > MAX_SOURCE_BYTES:
            return {}
        is_named = naming(trees, graph[commit].tree, self._path)
        return unnamed_lines(trees.blob(blob or ""), trees.blob(seed) if seed else b"", is_named)

    def kept(self, old: str, new: str, wanted: Iterable[int]) -> dict[int, int]:
        """Of the wanted lines in candidate `new` those that `old` has -> where."""
        before, after = self.blob(old), self.blob(new)
        if before is None or after is None:
            return {}
        if before == after:
            return {line: line for line in wanted}
        same = self._repository.same_lines(before, after)
        return {line: same[line] for line in wanted if line in same}


_OF_IDS = re.compile(r"^(merge|graft|minimize) [0-9a-f]{7}\b")
"""The labels of candidates that no author wrote."""


class ContainedStep(Struct, frozen=True, kw_only=True):
    """A step as a reader outside of the run understands it.

    `compared` says what it gained over the fittest candidate that it was made of; None if unknown.
    """

    candidate: Candidate
    title: str
    reason: str
    compared: Comparison | None


def contained_steps(
    repository: Repository, history: History, candidate: Candidate, known: Collection[str]
) -> list[ContainedStep]:
    """The steps of which something is left in what leads to a candidate from the `known` ones, the oldest first.

    Steps are followed along all parents and inspirations. Merges are steps if they brought lines that no parent has.
    """
    graph = history.phylogeny
    base = max((graph[each] for each in known), key=lambda each: each.number)
    authors = _authors(repository, history, candidate, base)
    authors |= _removers(repository, history, candidate, base, {*known, *authors})
    found = sorted(authors - {*known}, key=lambda each: graph[each].number) or [candidate.commit]
    return [described(repository, history, graph[each]) for each in found]


def _authors(repository: Repository, history: History, candidate: Candidate, base: Candidate) -> set[str]:
    before, after = (repository.trees.lazily(each.tree, lambda _: True) for each in (base, candidate))
    found = set[str]()
    for path in repository.changed_paths(base.tree, candidate.tree):
        if path not in after:
            continue
        if b"\0" in after[path]:
            found |= _bringers(repository, history, candidate, path)
            continue
        old = {before.entries[path].blob} if path in before else set()
        same = {line for blob in old for line in repository.same_lines(blob, after.entries[path].blob)}
        lines = enumerate(blame(repository, history, candidate.commit, path))
        fresh = (line for number, line in lines if number not in same and line.reached)
        found |= {line.commit for line in fresh if re.search(r"\w", line.text)}
    return found


def _bringers(repository: Repository, history: History, candidate: Candidate, path: str) -> set[str]:
    blob = _Files(repository, history, path).blob
    wanted = blob(candidate.commit)
    family = {candidate.commit, *history.phylogeny.ancestors(candidate.commit)}
    having = {each for each in family if blob(each) == wanted and was_valid(history, each)}
    return {each for each in having if not having & {*history.origins(each)}}


def _removers(
    repository: Repository, history: History, candidate: Candidate, base: Candidate, others: Collection[str]
) -> set[str]:
    """Return the authors, without `others`, that only removed lines of the base."""
    graph, found = history.phylogeny, set[str]()
    gone = repository.lines(base.tree, candidate.tree, lambda _: True).removed
    for commit in {candidate.commit, *graph.ancestors(candidate.commit)} - {*others} if gone else ():
        trees = [graph[each].tree for each in history.origins(commit)]
        changes = [repository.lines(tree, graph[commit].tree, lambda _: True) for tree in trees]
        added, removed = (_common(each) for each in ([c.added for c in changes], [c.removed for c in changes]))
        if not added and removed & gone:
            found.add(_first_valid(history, commit, candidate))
    return found - {*others}


def _first_valid(history: History, commit: str, candidate: Candidate) -> str:
    """The oldest valid one of a candidate and what leads from it to another one."""
    graph = history.phylogeny
    between = graph.descendants(commit) & {candidate.commit, *graph.ancestors(candidate.commit)}
    valid = [each for each in between if was_valid(history, each)]
    return min(valid, key=graph.numbers.__getitem__, default=candidate.commit)


def _common(counters: list[Counter[tuple[str, bytes]]]) -> Counter[tuple[str, bytes]]:
    found = counters[0] if counters else Counter[tuple[str, bytes]]()
    for each in counters[1:]:
        found = found & each
    return Counter({line: times for line, times in found.items() if re.search(rb"\w", line[1])})


def described(repository: Repository, history: History, step: Candidate) -> ContainedStep:
    """Return a step as a reader outside of the run understands it."""
    title, reason = step_title(history, step), reason_in(repository.message(step.commit))
    own = step.agent == HUMAN  # who may close issues and call people
    return ContainedStep(
        candidate=step,
        title=title if own else inert(title),
        reason=reason if own else inert(reason),
        compared=standing(history, step.commit).comparison,
    )


def step_title(history: History, step: Candidate) -> str:
    """Return the name of a step without ids; of a merge, its sides."""
    found = _OF_IDS.match(step.title)
    if not found or not step.parents:
        return clean_title(step.title)
    names = list(dict.fromkeys(_written(history, each) for each in step.parents))
    return clean_title(" and ".join(names) if names[1:] else f"part of: {names[0]}")


def _written(history: History, commit: str) -> str:
    """The title of the nearest one along the fittest that somebody wrote."""
    step = history.phylogeny[commit]
    while _OF_IDS.match(step.title) and step.parents:
        step = history.phylogeny[origin_of(history, step.commit) or step.parents[0]]
    return clean_title(step.title) if step.parents else "the beginning"
