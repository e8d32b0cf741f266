"""What of a candidate's change earns its score: the smallest part that is as good, and the gain of each hunk in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct

from evogit.breeding.breeder import Bred
from evogit.breeding.candidate_writer import CandidateWriter
from evogit.core import MINIMIZE, Candidate, RefusedError
from evogit.engine.comparability import changed_judge, ways_on
from evogit.engine.evaluations import Evaluations
from evogit.engine.move_order import together
from evogit.engine.projections import Projections
from evogit.engine.run_key import inputs_of
from evogit.evaluation.evaluator import Evaluator
from evogit.history import History
from evogit.history.context import RunContext
from evogit.history.standing import Comparison, compare
from evogit.repository import Change, Hunk, Repository, UnfitChangeError


class Trial(Struct, frozen=True):
    """One selection of `hunks` was judged: `value` is the primary metric, None where it is not valid.

    `commit` is None where no tree can hold these hunks alone; `known`: it was evaluated before and cost nothing.
    """

    hunks: int
    commit: str | None
    value: float | None
    known: bool


class Part(Struct, frozen=True):
    """A hunk of the smallest change, and the value `without` it: None where that is not valid, or is not known.

    `gain` compares the smallest change with that, None where there is no value. `measured` is False where the limit
    came first.
    """

    hunk: Hunk
    without: float | None
    measured: bool
    gain: Comparison | None = None


class Minimized(Struct, frozen=True, kw_only=True):
    """What came of it. `judged` trials were new; `complete` says that nothing more can be left out, hunk by hunk."""

    candidate: str
    smallest: str
    hunks: int
    parts: tuple[Part, ...]
    judged: int
    complete: bool


def check(context: RunContext, candidate: Candidate) -> Change:
    """The change from the seed to the candidate. Raises RefusedError: it cannot be minimised."""
    history, task = context.history, context.task
    short, seed = candidate.commit[:7], history.phylogeny[history.seed or ""]
    if task.pairwise:
        raise RefusedError(
            "expected a task whose evaluator gives numbers: strengths by comparison are too coarse for this"
        )
    if candidate.tree == seed.tree:
        raise RefusedError(f"expected a candidate that changes something, but {short} has the files of the seed")
    if candidate.commit in history.pruned:
        raise RefusedError(f"{short} is pruned, so nothing may be bred from it; take that back with `evogit undo`")
    if history.fitness(candidate.commit) is None:
        raise RefusedError(f"expected a candidate with a score, but {short} has none; see `evogit show {short}`")
    if (changed := changed_judge(history, task)) is not None:
        named = f" ({', '.join(changed)})" if changed else ""
        raise RefusedError(f"the task changed since {short} was evaluated{named}; {ways_on(task, changed)}")
    try:
        return context.repository.change(seed.tree, candidate.tree)
    except UnfitChangeError as error:
        raise RefusedError(f"the change of {short} cannot be taken apart: {error}") from error


async def minimize(
    context: RunContext,
    candidate: Candidate,
    told: Callable[[Trial], None],
    *,
    provider: str,
    jobs: int,
    evaluations: int,
) -> Minimized:
    """Find it with at most so many new evaluations; every trial is a candidate of the run, and known ever after.

    It works beside an engine that is at work. Cut off at any moment it goes on from there when it is called again, as
    nothing is evaluated twice.

    Raises:
        RefusedError: as `check` does.
        EvoGitError: the evaluator or the sandbox cannot be used.
    """
    repository, history = context.repository, context.history
    change = check(context, candidate)
    jobs = 1 if context.task.environment.exclusive else jobs
    with repository.engines(history.run).enter(join=True) as engine:
        context = context.of(engine)
        context.journal.refresh()
        repository.trust.check(repository.keys.origin(history.run, history.first_start))
        drawing = inputs_of(repository, history)
        async with Evaluator(context.task, provider=provider, jobs=jobs, drawing=drawing) as evaluator:
            writer = CandidateWriter(context=context, deterministic=False, full=lambda: False)
            search = _Search(history, candidate, writer, Evaluations(context, evaluator), told, evaluations, jobs)
            found = await search.run(repository, change)
        projections = Projections(repository, history)
        projections.follow()
        projections.notes()
        return found


class _NoneLeftError(Exception):
    """The limit on evaluations is used up."""


@dataclass(slots=True)
class _Search:
    history: History
    candidate: Candidate
    writer: CandidateWriter
    evaluations: Evaluations
    told: Callable[[Trial], None]
    left: int
    jobs: int
    judged: int = 0

    async def run(self, repository: Repository, change: Change) -> Minimized:
        smallest, complete = change.hunks, False
        try:
            await self._repeat(self.candidate.commit)
            async for kept in ddmin(change.hunks, lambda tried: self._first_passing(change, tried)):
                smallest = kept
            complete = True
        except _NoneLeftError:
            pass
        tree = change.tree(smallest)
        rest, found = repository.change(change.base, tree), self.history.trees[tree]
        return Minimized(
            candidate=self.candidate.commit,
            smallest=found,
            hunks=len(change.hunks),
            parts=tuple([await self._part(found, rest, hunk) for hunk in rest.hunks]),
            judged=self.judged,
            complete=complete,
        )

    async def _first_passing(self, change: Change, tried: Sequence[Sequence[Hunk]]) -> int | None:
        """As many at a time as there are jobs; of those that pass the first one counts, whichever ends first."""
        begin = 0
        while begin < len(tried):
            trials = await self._try(change, tried[begin : begin + min(self.jobs, max(self.left, 1))])
            for number, trial in enumerate(trials, begin):
                if trial.commit and trial.commit not in self.history.pruned and self._is_as_good(trial.commit):
                    return number
            begin += len(trials)
        return None

    def _is_as_good(self, commit: str) -> bool:
        return self.history.no_worse(commit, self.candidate.commit)

    async def _part(self, smallest: str, change: Change, hunk: Hunk) -> Part:
        try:
            [trial] = await self._try(change, [[other for other in change.hunks if other != hunk]])
        except _NoneLeftError:
            return Part(hunk, None, measured=False)
        gain = compare(self.history.scores, smallest, trial.commit) if trial.commit else None
        return Part(hunk, trial.value, measured=True, gain=gain)

    async def _try(self, change: Change, tried: Sequence[Sequence[Hunk]]) -> list[Trial]:
        """Evaluate those that are not known yet, all or none."""
        trees, unknown = list[str | None](), dict[str, int]()
        for hunks in tried:
            tree = None
            with suppress(UnfitChangeError):
                tree = change.tree(hunks)
            trees.append(tree)
            if tree and (not self._is_judged(tree) or self._is_doubtful(self.history.trees[tree])):
                unknown[tree] = len(hunks)
        fresh = [tree for tree in unknown if not self._is_judged(tree)]
        if len(fresh) > self.left or (unknown and not self.left):
            raise _NoneLeftError
        self.left -= len(fresh)
        self.judged += len(fresh)
        await together(self._evaluate(tree, amount, len(change.hunks)) for tree, amount in unknown.items())
        trials = []
        for tree, hunks in zip(trees, tried, strict=True):
            commit = self.history.trees.get(tree) if tree else None
            value = self.history.fitness(commit) if commit else None
            trials.append(Trial(len(hunks), commit, value, tree not in unknown))
            self.told(trials[-1])
        return trials

    def _is_judged(self, tree: str) -> bool:
        commit = self.history.trees.get(tree)
        return commit is not None and self.history.judged(commit)

    def _is_doubtful(self, commit: str) -> bool:
        """Whether it is to be evaluated again: as good by too few evaluations, where scores are noisy."""
        history = self.history
        too_few = history.scores.repeated(commit) < history.repeats and commit not in history.pruned
        return too_few and self._is_as_good(commit)

    async def _evaluate(self, tree: str, hunks: int, of: int) -> None:
        title = f"{MINIMIZE} {self.candidate.commit[:7]}: {hunks} of {of} hunks"
        bred = Bred(tree=tree, parents=(self.candidate.commit,), operator="mutation", strategy=MINIMIZE, title=title)
        if tree not in self.history.trees:
            self.writer.propose(self.history.moves, MINIMIZE, bred)
        if (commit := self.history.trees.get(tree)) is not None:
            if not self.history.judged(commit):
                await self.evaluations.finish(commit)
            await self._repeat(commit)

    async def _repeat(self, commit: str) -> None:
        while self.left and self._is_doubtful(commit):
            self.left -= 1
            self.judged += 1
            await self.evaluations.finish(commit, repeat=1 + self.history.scores.latest(commit))


# --- delta debugging ----------------------------------------------------------------------------------------------

T = TypeVar("T")

FirstPassing = Callable[[Sequence[Sequence[T]]], Awaitable[int | None]]
"""The index of the first of these selections that passes; None when none does."""


async def ddmin(whole: Sequence[T], first_passing: FirstPassing[T]) -> AsyncIterator[tuple[T, ...]]:
    """Ever smaller selections that pass, the last of which passes without none of its single elements.

    The algorithm ddmin of Zeller and Hildebrandt ("Simplifying and isolating failure-inducing input", 2002), given that
    the whole passes. Nothing at all is asked about first. Single elements are not tried alone in the end, as leaving
    out the others one by one finds them too. At worst n * n + 3 n selections are tried of n elements.
    """
    if not whole or await first_passing([()]) is not None:
        yield ()
        return
    kept, parts = tuple(whole), 2
    while len(kept) > 1:
        cuts = [len(kept) * i // parts for i in range(parts + 1)]  # about equal pieces, none of them empty
        chunks = [kept[a:b] for a, b in pairwise(cuts)]
        alone = chunks if parts < len(kept) or parts == 2 else []
        without = [tuple(x for other in chunks if other is not chunk for x in other) for chunk in chunks]
        tried = [*alone, *(without if parts > 2 else [])]
        found = await first_passing(tried)
        if found is None:
            if parts >= len(kept):
                return
            parts = min(2 * parts, len(kept))
            continue
        kept, parts = tried[found], 2 if found < len(alone) else max(parts - 1, 2)
        yield kept
