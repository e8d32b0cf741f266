"""The part of a candidate's change that earns its score: steps, or hunks, that prove nothing are left out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

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
from evogit.history.paired_scores import PairedScores
from evogit.history.standing import compare, places
from evogit.repository import Change, Hunk, Repository, UnfitChangeError
from evogit.review.blaming import contained_steps
from evogit.review.crossing import without
from evogit.review.landed_steps import DROPPED, DiffSize, LandedStep

EXCERPT = 60
"""Characters of a hunk's line in its title."""

AT_MOST = 3
"""Times the task's repeats that a trial is measured, as long as it may be worse than the whole."""


class Trial(Struct, frozen=True):
    """One selection of hunks or steps, called `title`, was judged: `value` is the primary metric, None if not valid.

    `commit` is None where no tree can hold these hunks alone; `known`: it was evaluated before and cost nothing.
    """

    title: str
    commit: str | None
    value: float | None
    known: bool


class Minimized(Struct, frozen=True, kw_only=True):
    """The outcome: the steps of the whole, some of them dropped, or the hunks that are left of so many (`of`).

    `judged` evaluations were new; `complete` says that nothing more can be left out, one by one.
    """

    candidate: str
    smallest: str
    kind: Literal["step", "hunk"]
    of: int
    parts: tuple[LandedStep, ...]
    judged: int
    complete: bool

    @property
    def left(self) -> int:
        """Return how many parts the smallest one has."""
        return sum(part.remark != DROPPED for part in self.parts)


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
    hunks: bool = False,
) -> Minimized:
    """Find it with at most so many new evaluations; every trial is a candidate of the run, and known ever after.

    Steps are left out one by one, the youngest first, and judged beside the whole; hunks if there is but one step, or
    if `hunks` asks for them. It works beside an engine that is at work. Cut off at any moment it goes on from there
    when it is called again, as nothing is evaluated twice.

    Raises:
        RefusedError: as `check` does; or the whole is not better than the seed beyond noise.
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
            by_hunks = hunks or not search.steps(repository, candidate)[1:]
            await search.prove()
            found = await (search.by_hunks(repository, change) if by_hunks else search.by_steps(repository))
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

    async def prove(self) -> None:
        """Measure the whole until it is better than the seed beyond noise. Raises RefusedError: it is not."""
        history, whole, seed = self.history, self.candidate.commit, self.history.seed or ""
        if not history.scores.paired:
            await self.repeat(whole, whole)
        await self.repeat(seed, whole)
        compared = compare(history.scores, whole, seed)
        if history.repeats and compared and compared.verdict != "better":
            gain = compared.between(places(history))
            raise RefusedError(
                f"{whole[:7]} is not better than the seed beyond noise ({gain}), so no part of it can prove anything; "
                "try a calmer machine, a longer benchmark, or more repeats"
            )

    async def by_steps(self, repository: Repository) -> Minimized:
        """Leave out each step that is not better beyond noise; the gains of the others are over what is left."""
        history, whole = self.history, self.candidate
        found, smallest, complete = dict[str, LandedStep](), whole, False
        try:
            while new := [step for step in self.steps(repository, smallest) if step.candidate.commit not in found]:
                for step in reversed(new):
                    rest, found[step.candidate.commit] = await self._without(repository, whole, smallest, step)
                    smallest = rest or smallest
            for commit, step in found.items() if smallest != whole else ():
                if not step.remark:
                    found[commit] = replace((await self._without(repository, smallest, smallest, step))[1], remark="")
            complete = True
        except _NoneLeftError:
            pass
        found |= {step.candidate.commit: step for step in self.steps(repository, smallest)} | found
        return Minimized(
            candidate=whole.commit,
            smallest=smallest.commit,
            kind="step",
            of=len(found),
            parts=tuple(found[commit] for commit in sorted(found, key=lambda each: history.phylogeny[each].number)),
            judged=self.judged,
            complete=complete,
        )

    def steps(self, repository: Repository, candidate: Candidate) -> list[LandedStep]:
        """Return the steps of a candidate that can be left out, not compared with anything."""
        history, found = self.history, list[LandedStep]()
        for step in contained_steps(repository, history, candidate, {history.seed or ""}):
            if step.candidate.strategy != MINIMIZE and step.candidate.parents:
                before = history.phylogeny[step.candidate.parents[0]].tree
                size = DiffSize.of(repository, before, step.candidate.tree)
                found.append(LandedStep(**{**asdict(step), "compared": None}, size=size))
        return found

    async def _without(
        self, repository: Repository, reference: Candidate, onto: Candidate, step: LandedStep
    ) -> tuple[Candidate | None, LandedStep]:
        """Leave a step out of `onto`, compare the rest with the reference, and return it if it is as good."""
        history, title = self.history, f"without {step.title}"
        try:
            if step.candidate.parents[1:]:
                raise RefusedError("it is a merge")
            tree = without(repository, history, onto, step.candidate)
        except RefusedError as error:
            return None, replace(step, remark=str(error))
        known = self._is_judged(tree)
        if not self.left and not known:
            raise _NoneLeftError
        await self._evaluate(tree, title, reference.commit, (onto.commit, *step.candidate.parents))
        rest = history.trees.get(tree, "")
        self.told(Trial(title, rest, history.fitness(rest), known))
        if self._is_doubtful(rest, reference.commit):
            raise _NoneLeftError
        if (compared := compare(history.scores, reference.commit, rest)) is None:
            return None, replace(step, remark="without it the rest is not valid")
        if rest in history.pruned or not history.no_worse(rest, reference.commit):
            return None, replace(step, compared=compared)
        return history.phylogeny[rest], replace(step, compared=compared, remark=DROPPED)

    async def by_hunks(self, repository: Repository, change: Change) -> Minimized:
        """Leave out as many hunks as can be, by delta debugging."""
        smallest, complete = change.hunks, False
        try:
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
            kind="hunk",
            of=len(change.hunks),
            parts=tuple([await self._part(self.history.phylogeny[found], rest, hunk) for hunk in rest.hunks]),
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

    async def _part(self, smallest: Candidate, change: Change, hunk: Hunk) -> LandedStep:
        size = DiffSize(1, len(hunk.added), len(hunk.removed))
        part = LandedStep(candidate=smallest, title=excerpt(hunk), reason="", compared=None, size=size)
        try:
            [trial] = await self._try(change, [[other for other in change.hunks if other != hunk]])
        except _NoneLeftError:
            return part
        gain = compare(self.history.scores, smallest.commit, trial.commit) if trial.commit else None
        return replace(part, compared=gain, remark="" if gain else "without it the rest is not valid")

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
        all_hunks, whole = len(change.hunks), self.candidate.commit
        titled = {tree: f"{amount} of {all_hunks} hunks" for tree, amount in unknown.items()}
        await together(self._evaluate(tree, title, whole, [whole]) for tree, title in titled.items())
        trials = []
        for tree, hunks in zip(trees, tried, strict=True):
            commit = self.history.trees.get(tree) if tree else None
            value = self.history.fitness(commit) if commit else None
            trials.append(Trial(f"{len(hunks)} of {len(change.hunks)} hunks", commit, value, tree not in unknown))
            self.told(trials[-1])
        return trials

    def _is_judged(self, tree: str) -> bool:
        commit = self.history.trees.get(tree)
        return commit is not None and self.history.judged(commit)

    def _is_doubtful(self, commit: str, reference: str = "") -> bool:
        """Whether to evaluate it again: as good by too few evaluations, or perhaps worse, where scores are noisy."""
        history, reference = self.history, reference or self.candidate.commit
        if commit in history.pruned or history.fitness(commit) is None:
            return False
        times = history.scores.repeated(commit)
        if isinstance(history.scores, PairedScores) and commit != reference:
            times = sum(history.scores.pairs.times(*each) for each in ((commit, reference), (reference, commit)))
        compared = compare(history.scores, reference, commit)
        most = history.repeats * (AT_MOST if compared and compared.gain > 0 else 1)
        return times < (most if history.no_worse(commit, reference) else int(history.scores.paired))

    async def _evaluate(self, tree: str, title: str, reference: str, made_of: Sequence[str]) -> None:
        """Make a tree a candidate, and evaluate it beside a reference until it is known whether it is as good.

        It has the lines of those that it is `made_of`, the first of which is its parent.
        """
        bred = Bred(
            tree=tree,
            parents=tuple(made_of[:1]),
            operator="mutation",
            strategy=MINIMIZE,
            title=f"{MINIMIZE} {self.candidate.commit[:7]}: {title}",
            inspirations=tuple(made_of[1:]),
        )
        if tree not in self.history.trees:
            self.writer.propose(self.history.moves, MINIMIZE, bred)
        if (commit := self.history.trees.get(tree)) is not None:
            if not self.history.judged(commit):
                await self._finish(commit, 0, reference)
            await self.repeat(commit, reference)

    async def repeat(self, commit: str, reference: str) -> None:
        """Evaluate again until it is known whether a candidate is as good as the reference, or nothing is left."""
        while self.left and self._is_doubtful(commit, reference):
            await self._finish(commit, 1 + self.history.scores.latest(commit), reference)

    async def _finish(self, commit: str, repeat: int, reference: str) -> None:
        self.left -= 1
        self.judged += 1
        beside = reference if self.history.scores.paired else None
        await self.evaluations.finish(commit, repeat=repeat, reference=beside)


def excerpt(hunk: Hunk) -> str:
    """Return the place of a hunk and what it does, in a few words."""
    if hunk.whole or hunk.mode:
        return f"{hunk.path}: {'the file' if hunk.whole else 'its mode'}"
    sign, lines = ("+", hunk.added) if hunk.added else ("-", hunk.removed)
    first = next((line for line in lines if line.strip()), lines[0]).decode(errors="replace")
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"{hunk.path}:{hunk.start + 1}  {sign} {' '.join(first.split())[:EXCERPT]}{more}"


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
