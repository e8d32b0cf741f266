"""The part of a candidate's change that earns its score: steps that prove nothing are left out, or each is once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import asdict, replace

from evogit.breeding.breeder import Bred
from evogit.breeding.candidate_writer import CandidateWriter
from evogit.core import HOLDOUT, MINIMIZE, Candidate, RefusedError
from evogit.engine.comparability import changed_judge, ways_on
from evogit.engine.evaluations import Evaluations
from evogit.engine.projections import Projections
from evogit.engine.run_key import inputs_of
from evogit.evaluation.evaluator import Evaluator
from evogit.history import History
from evogit.history.context import RunContext
from evogit.history.paired_scores import PairedScores
from evogit.history.standing import compare, places
from evogit.repository import Repository
from evogit.review.blaming import contained_steps, described
from evogit.review.crossing import put_on, without
from evogit.review.landed_steps import DROPPED, DiffSize, LandedStep
from evogit.review.landing import compare_trees
from evogit.review.verifying import needed_repeats

AT_MOST = 3
"""Times the task's repeats that a trial is measured, as long as it may be worse than the whole."""

INVALID = "without it the rest is not valid"
"""The remark of a step that everything else needs."""


class Trial(Struct, frozen=True):
    """The whole without a step was judged: `value` is the primary metric, None if it is not valid.

    `known`: it was evaluated before.
    """

    title: str
    value: float | None
    known: bool


class Minimized(Struct, frozen=True, kw_only=True):
    """The steps of the whole, some of them dropped, each with its gain over what is left without it.

    `judged` evaluations were new; `complete` says that nothing more can be left out, one by one.
    """

    candidate: str
    smallest: str
    steps: tuple[LandedStep, ...]
    judged: int
    complete: bool

    @property
    def left(self) -> int:
        """Return how many steps the smallest one has."""
        return sum(step.remark != DROPPED for step in self.steps)


def check(context: RunContext, candidate: Candidate) -> None:
    """Raise RefusedError: it cannot be minimised."""
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


async def minimize(
    context: RunContext,
    candidate: Candidate,
    told: Callable[[Trial], None],
    *,
    provider: str,
    evaluations: int,
) -> Minimized:
    """Leave out steps one by one, the youngest first, with at most so many new evaluations.

    Every trial is a candidate of the run, and known ever after. It works beside an engine that is at work. Cut off at
    any moment it goes on from there when it is called again.

    Raises:
        RefusedError: as `check` does; or the whole is not better than the seed beyond noise.
        EvoGitError: the evaluator or the sandbox cannot be used.
    """
    repository, history = context.repository, context.history
    check(context, candidate)
    with repository.engines(history.run).enter(join=True) as engine:
        context = context.of(engine)
        context.journal.refresh()
        repository.trust.check(repository.keys.origin(history.run, history.first_start))
        drawing = inputs_of(repository, history)
        async with Evaluator(context.task, provider=provider, jobs=1, drawing=drawing) as evaluator:
            writer = CandidateWriter(context=context, deterministic=False, full=lambda *, counted: False)
            search = _Search(repository, history, candidate, writer, Evaluations(context, evaluator), told, evaluations)
            await search.prove()
            found = await search.run()
        projections = Projections(repository, history)
        projections.follow()
        projections.notes()
        return found


class Ablation(Struct, frozen=True):
    """The steps of a candidate's lineage, with the trees without them, and the splits on which these are evaluated.

    It takes so many `evaluations` and about so many `seconds`. Steps of which nothing is left are not among them.
    """

    candidate: Candidate
    steps: list[LandedStep]
    splits: tuple[str, ...]
    evaluations: int
    seconds: float


def plan_ablation(context: RunContext, candidate: Candidate) -> Ablation:
    """Take out each first-parent step of a candidate since the seed; nothing is evaluated.

    A step that later ones conflict without is taken out together with them. Raises RefusedError: as `minimize` does.
    """
    check(context, candidate)
    history, task = context.history, context.task
    lineage = history.phylogeny.lineage(candidate.commit)
    steps = [_without(context, lineage, at) for at in range(1, len(lineage))]
    steps = [step for step in steps if step.tree != candidate.tree]
    rests = len({step.tree for step in steps})
    splits = (history.split, *(each for each in task.splits if each == HOLDOUT != history.split))
    evaluations = (2 * rests if task.paired else rests + 1) * len(splits) * (1 + needed_repeats(history, task))
    evaluation = history.evaluation(candidate.commit, repeat=0)
    return Ablation(candidate, steps, splits, evaluations, evaluations * (evaluation.cost.wall if evaluation else 0.0))


def _without(context: RunContext, lineage: Sequence[Candidate], at: int) -> LandedStep:
    tree, gone = lineage[at - 1].tree, 0
    for before, after in pairwise(lineage[at:]):
        rest = put_on(context.repository, before.tree, tree, after.tree)
        tree, gone = rest or tree, gone + (rest is None)
    remark = f"others build on it: without {gone} later step{'s' * (gone > 1)}, too" if gone else ""
    step = asdict(described(context.repository, context.history, lineage[at])) | {"compared": None}
    size = DiffSize.of(context.repository, lineage[at - 1].tree, lineage[at].tree)
    return LandedStep(**step, tree=tree, size=size, remark=remark)


async def ablate(context: RunContext, plan: Ablation, provider: str) -> dict[str, list[LandedStep]]:
    """Return the steps on each split, compared with what is left without them.

    Raises:
        EvoGitError: the evaluator or the sandbox cannot be used.
    """
    repository, history = context.repository, context.history
    task = replace(context.task, repeats=needed_repeats(history, context.task))
    seed, whole = history.phylogeny[history.seed or ""].tree, plan.candidate.tree
    rests = list(dict.fromkeys(step.tree for step in plan.steps))
    trials = await compare_trees(repository, task, seed, [(rest, whole) for rest in rests], plan.splits, provider)
    tables = dict[str, list[LandedStep]]()
    for split, found in trials.items():
        gains = dict(zip(rests, (trial.compared(history.metric) for trial in found), strict=True))
        steps = [replace(step, compared=gains[step.tree]) for step in plan.steps]
        tables[split] = [step if step.compared else replace(step, remark=step.remark or INVALID) for step in steps]
    return tables


class _NoneLeftError(Exception):
    """The limit on evaluations is used up."""


@dataclass(slots=True)
class _Search:
    repository: Repository
    history: History
    candidate: Candidate
    writer: CandidateWriter
    evaluations: Evaluations
    told: Callable[[Trial], None]
    left: int
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

    async def run(self) -> Minimized:
        """Leave out each step that is not better beyond noise; the gains of the others are over what is left."""
        history, whole = self.history, self.candidate
        found, smallest, complete = dict[str, LandedStep](), whole, False
        try:
            while new := [step for step in self._steps(smallest) if step.candidate.commit not in found]:
                for step in reversed(new):
                    rest, found[step.candidate.commit] = await self._without(whole, smallest, step)
                    smallest = rest or smallest
            for commit, step in found.items() if smallest != whole else ():
                if not step.remark:
                    found[commit] = replace((await self._without(smallest, smallest, step))[1], remark="")
            complete = True
        except _NoneLeftError:
            pass
        found |= {step.candidate.commit: step for step in self._steps(smallest)} | found
        return Minimized(
            candidate=whole.commit,
            smallest=smallest.commit,
            steps=tuple(found[commit] for commit in sorted(found, key=lambda each: history.phylogeny[each].number)),
            judged=self.judged,
            complete=complete,
        )

    def _steps(self, candidate: Candidate) -> list[LandedStep]:
        """Return the steps of a candidate that can be left out, not compared with anything."""
        history, found = self.history, list[LandedStep]()
        for step in contained_steps(self.repository, history, candidate, {history.seed or ""}):
            if step.candidate.strategy != MINIMIZE and step.candidate.parents:
                before = history.phylogeny[step.candidate.parents[0]].tree
                size = DiffSize.of(self.repository, before, step.candidate.tree)
                found.append(LandedStep(**{**asdict(step), "compared": None}, size=size))
        return found

    async def _without(
        self, reference: Candidate, onto: Candidate, step: LandedStep
    ) -> tuple[Candidate | None, LandedStep]:
        """Leave a step out of `onto`, compare the rest with the reference, and return it if it is as good."""
        history, title = self.history, f"without {step.title}"
        try:
            if step.candidate.parents[1:]:
                raise RefusedError("it is a merge")
            tree = without(self.repository, history, onto, step.candidate)
        except RefusedError as error:
            return None, replace(step, remark=str(error))
        known = history.judged(history.trees.get(tree, ""))
        if not self.left and not known:
            raise _NoneLeftError
        await self._evaluate(tree, title, reference.commit, (onto.commit, *step.candidate.parents))
        rest = history.trees.get(tree, "")
        self.told(Trial(title, history.fitness(rest), known))
        if self._is_doubtful(rest, reference.commit):
            raise _NoneLeftError
        if (compared := compare(history.scores, reference.commit, rest)) is None:
            return None, replace(step, remark=INVALID)
        if rest in history.pruned or not history.no_worse(rest, reference.commit):
            return None, replace(step, compared=compared)
        return history.phylogeny[rest], replace(step, compared=compared, remark=DROPPED)

    def _is_doubtful(self, commit: str, reference: str) -> bool:
        """Return True if it is to be evaluated again: if noise hides whether it is as good."""
        history = self.history
        if commit in history.pruned or history.fitness(commit) is None:
            return False
        times = history.scores.repeated(commit)
        if isinstance(history.scores, PairedScores) and commit != reference:
            times = sum(history.scores.pairs.times(*each) for each in ((commit, reference), (reference, commit)))
        compared = compare(history.scores, reference, commit)
        most = history.repeats * (AT_MOST if compared and compared.gain > 0 else 1)
        return times < (most if history.no_worse(commit, reference) else int(history.scores.paired))

    async def _evaluate(self, tree: str, title: str, reference: str, made_of: tuple[str, ...]) -> None:
        """Make a tree a candidate, and evaluate it beside a reference until it is known whether it is as good.

        It has the lines of those that it is `made_of`, the first of which is its parent.
        """
        bred = Bred(
            tree=tree,
            parents=made_of[:1],
            operator="mutation",
            strategy=MINIMIZE,
            title=f"{MINIMIZE} {self.candidate.commit[:7]}: {title}",
            inspirations=made_of[1:],
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
