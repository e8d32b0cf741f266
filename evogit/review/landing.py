"""Brings a candidate onto a branch of a person's: what would be merged, what it is worth there, and the commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, product
from operator import itemgetter

from msgspec import Struct, field

from evogit.config import Task
from evogit.config.values import matches
from evogit.core import (
    HOLDOUT,
    Candidate,
    Evaluation,
    EvaluatorError,
    Files,
    Metric,
    NotFoundError,
    RefusedError,
    UsageError,
)
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.seed_files import packed_seed
from evogit.events import Decision, Entry
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.paired_scores import PairedScores, beside
from evogit.history.scores import Scores
from evogit.history.standing import Comparison
from evogit.repository import Repository, UnfitChangeError, clean
from evogit.repository.branches import HEADS
from evogit.review.verifying import judge_in_turns


class Landing(Struct, frozen=True, kw_only=True):
    """A candidate's change on top of a branch, before any commit of it exists.

    `target` is the branch (a whole ref) and `tip` the commit it names; `tree` is what merging gives; `known` are the
    candidates that the target has already, at least the seed; `branch` is the
    ref that is to point to the result, `replaces` what it points to now.
    """

    candidate: Candidate
    target: str
    tip: str
    tip_tree: str
    tree: str
    paths: tuple[str, ...]
    known: frozenset[str]
    branch: str
    replaces: str | None


class SplitTrial(Struct, frozen=True, kw_only=True):
    """What was measured on one split: the target as it is, and with the candidate's change.

    `margins` are halves of the 95 % intervals by metric: of the value before, after, and of their difference; empty
    where scores are exact. `times` is how often each was evaluated at most.
    """

    split: str
    before: Evaluation
    after: Evaluation
    margins: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    times: int = 1

    def compared(self, metric: Metric) -> Comparison | None:
        """Return how the result compares with the target by a metric; None unless both have a value."""
        before, after = (each.metrics.get(metric.name) if each.ok else None for each in (self.before, self.after))
        if before is None or after is None:
            return None
        margin = self.margins.get(metric.name, (0.0, 0.0, 0.0))[2]
        return Comparison.of(metric, after, before, margin)


async def prepare(
    repository: Repository, history: History, candidate: Candidate, onto: str | None, *, squash: bool
) -> Landing:
    """Merge the candidate's change with what moved on the branch `onto` (None: HEAD's); only objects are written.

    A `squash` is one commit, which may go to a branch that lacks the seed, too.

    Raises:
        RefusedError: it cannot be landed there; the message says why, and names the files in conflict.
        UsageError: no target was named and HEAD names none, or it is one of EvoGit's own.
        NotFoundError: there is no such branch.
    """
    if candidate.commit in history.pruned:
        raise RefusedError(f"{candidate.commit[:7]} is pruned; undo that first, see `evogit log --decisions`")
    target, tip = _target(repository, onto)
    branch = f"{HEADS}evogit/{history.run}/land/{candidate.commit[:7]}"
    if repository.branches.checked_out(branch):
        raise RefusedError(f"{short_name(branch)} is checked out and would be replaced; switch to another branch first")
    _check_replaced(repository, history, branch)
    known = _known(repository, history, candidate, tip)
    if not known and not squash:
        raise RefusedError(
            f"expected a target that descends from the seed {(history.seed or '')[:7]} of the run; "
            "land with --squash, or choose another one with --onto BRANCH"
        )
    known = known or frozenset({history.phylogeny.lineage(candidate.commit)[0].commit})
    tree = await _merged(repository, history, candidate, tip, known)
    tip_tree = repository.tree_of(tip)
    paths = repository.changed_paths(tip_tree, tree)
    if not paths:
        raise RefusedError(
            f"{short_name(target)} already contains everything that {candidate.commit[:7]} changes; nothing to land"
        )
    _check_paths(repository, history, paths, tip_tree, tree)
    return Landing(
        candidate=candidate,
        target=target,
        tip=tip,
        tip_tree=tip_tree,
        tree=tree,
        paths=tuple(paths),
        known=known,
        branch=branch,
        replaces=repository.target(branch),
    )


async def measure(
    repository: Repository, task: Task, landing: Landing, provider: str, split: str = "train"
) -> list[SplitTrial]:
    """Evaluate the target and the result on a run's split, and on the holdout if there is one.

    Hidden files, and the seed to compare with, are the target's. Raises EvoGitError: when the evaluator or the sandbox
    cannot be used at all.
    """
    splits, pair = (split, *(each for each in task.splits if each == HOLDOUT)), (landing.tip_tree, landing.tree)
    trials = await compare_trees(repository, task, landing.tip_tree, [pair], splits, provider)
    return [trial for (trial,) in trials.values()]


async def compare_trees(
    repository: Repository, task: Task, seed: str, pairs: list[tuple[str, str]], splits: Sequence[str], provider: str
) -> dict[str, list[SplitTrial]]:
    """Evaluate pairs of trees, before and after a change, on inputs of their own; nothing is recorded.

    Neighbours with the same tree after are evaluated in turns all together, unless the task needs each pair by itself.
    The first of the splits is the run's; hidden files are those of the tree `seed`.

    Raises:
        EvaluatorError: a tree was not measured.
        EvoGitError: the evaluator or the sandbox cannot be used.
    """
    base, trials = await packed_seed(repository, seed, task), dict[str, list[SplitTrial]]()
    together = [list(group) for _, group in groupby(pairs, key=itemgetter(1))]
    groups = [[pair] for pair in pairs] if task.paired else together
    async with Evaluator(task, provider=provider, jobs=1) as evaluator:
        for split, group in product(dict.fromkeys(splits), groups):
            if split != splits[0]:
                repository.holdouts.show(task.name)
            trees = (*(before for before, _ in group), group[0][1])
            sides = [(tree, Files(*repository.trees.changes(seed, tree, task.is_visible), base)) for tree in trees]
            found = await judge_in_turns(evaluator, sides, split, 1 + task.repeats)
            if unmeasured := [each[-1] for each in found if not each[-1].counts]:
                raise EvaluatorError(f"no comparison on {split}: {unmeasured[0].reason}; try again later")
            trials.setdefault(split, []).extend(trial_of(task, before, found[-1]) for before in found[:-1])
    return trials


def trial_of(task: Task, before: Sequence[Evaluation], after: Sequence[Evaluation]) -> SplitTrial:
    """Compare evaluations of the target and of the result, which were made in turns."""
    scores = (PairedScores if task.paired else Scores).of(task.metrics, before[0].split, task.repeats)
    if isinstance(scores, PairedScores):
        scores.chosen = False  # there are but these two
    for evaluation in before:
        scores.record("before", evaluation)
    for evaluation, reference in zip(after, [*before, *[None] * len(after)], strict=False):
        scores.record("after", beside(evaluation, "before", reference) if task.paired else evaluation)
    margins = {}
    for metric in task.metrics if task.repeats else ():
        both = [scores.margin(name, None, metric.name) for name in ("before", "after")]
        if both[0] is not None and both[1] is not None:
            margins[metric.name] = (both[0], both[1], scores.difference("after", "before", metric=metric.name)[1])
    old, new = scores.evaluation("before"), scores.evaluation("after")
    assert old  # both were evaluated
    assert new
    return SplitTrial(split=old.split, before=old, after=new, margins=margins, times=1 + task.repeats)


def objections(metric: Metric, trials: Sequence[SplitTrial]) -> list[str]:
    """Why the result should not be merged, one sentence each; empty when it fails nowhere and is better.

    It must be better on the first split, and no worse on the others; where pairs are compared it must be valid.
    """
    found = list[str]()
    for trial in trials:
        if not trial.after.ok:
            found.append(f"it fails on {trial.split} ({trial.after.status}: {trial.after.reason})")
        elif compared := trial.compared(metric):
            values = f"{compared.value:.10g} against {compared.over:.10g}"
            values += f", and differences up to {compared.margin:.3g} are noise" if compared.margin else ""
            if trial is trials[0] and compared.verdict != "better":
                found.append(f"{metric.name} on {trial.split} is not better than the target's: {values}")
            elif compared.verdict == "worse":
                found.append(f"{metric.name} on {trial.split} is worse than the target's: {values}")
    return found


def land(run: StoredRun, landing: Landing, commits: Sequence[tuple[str, str]], reason: str, *, squash: bool) -> Entry:
    """Write the commits (tree and message; merges, or with `squash` on the target), journal them, make the branch.

    Raises RefusedError: the target moved, the branch is checked out, or Git does not know the person.
    """
    repository = run.repository
    if repository.target(landing.target) != landing.tip:
        raise RefusedError(f"{short_name(landing.target)} moved while this was evaluated; land it again")
    commit = landing.tip
    for tree, message in commits:
        parents = (commit,) if squash else (commit, landing.candidate.commit)
        commit = repository.branches.write_commit(tree, parents, message)
    entry = run.journal.append(
        Decision(
            kind="land",
            by=repository.user,
            reason=clean(reason),
            candidates=(landing.candidate.commit,),
            branch=landing.branch,
            commit=commit,
        )
    )
    assert entry is not None  # it was appended unconditionally
    if not repository.move_branch(landing.branch, commit):
        raise RefusedError(
            f"{short_name(landing.branch)} is checked out and stays; switch to another branch, land it again"
        )
    return entry


def follow_undo(repository: Repository, history: History, undoes: str) -> str:
    """Let the branch of a landing follow when it is undone, or its undo is; says what happened, empty if nothing."""
    own = f"refs/heads/evogit/{history.run}/land/"
    decisions = {entry.id: entry.event for entry in history.decisions}
    undone = decisions.get(undoes)
    if isinstance(undone, Decision) and undone.kind == "land":
        if not undone.branch.startswith(own):
            return f"the branch {short_name(undone.branch)} is of the run that this one was forked from, and stays"
        if repository.target(undone.branch) != undone.commit:
            return f"{short_name(undone.branch)} was moved or removed meanwhile and is left as it is"
        name = short_name(undone.branch)
        if not repository.branches.remove(undone.branch):
            return f"{name} is checked out and stays; delete it with `git branch -D` when you have left it"
        return f"removed the branch {name}; what you merged of it stays merged"
    landing = decisions.get(undone.undoes) if isinstance(undone, Decision) and undone.kind == "undo" else None
    if not isinstance(landing, Decision) or landing.kind != "land" or not landing.branch.startswith(own):
        return ""
    if repository.target(landing.branch) is None:
        if not repository.trees.exists(landing.commit):
            return f"the commit of {short_name(landing.branch)} was garbage-collected meanwhile; land it again"
        repository.move_branch(landing.branch, landing.commit)
        return f"the branch {short_name(landing.branch)} is back"
    return ""


# --- the target and the merge -------------------------------------------------------------------------------------


def _target(repository: Repository, onto: str | None) -> tuple[str, str]:
    branches = repository.branches
    ref = HEADS + onto.removeprefix(HEADS) if onto else branches.current()
    if ref is None:
        raise UsageError("HEAD is not on a branch; name the one to land on with --onto BRANCH")
    if ref.startswith(f"{HEADS}evogit/"):
        raise UsageError(
            f"expected a branch of your own to land on, got {short_name(ref)}; name one with --onto BRANCH"
        )
    tip = repository.target(ref)
    if tip is None:
        raise NotFoundError(f"expected a branch of this repository to land on, got {ref!r}")
    return ref, tip


def _check_replaced(repository: Repository, history: History, branch: str) -> None:
    """Refuse to replace a branch that has commits beyond a landing, or that never was one."""
    current = repository.target(branch)
    decisions = [entry.event for entry in history.decisions if isinstance(entry.event, Decision)]
    if current not in (None, *(event.commit for event in decisions if event.kind == "land")):
        name = short_name(branch)
        raise RefusedError(
            f"expected {name} to be as it was landed, but it has new commits; keep them with "
            f"`git branch -m {name} NAME`, then land it again"
        )


async def _merged(
    repository: Repository, history: History, candidate: Candidate, tip: str, known: Collection[str]
) -> str:
    base = max((history.phylogeny[each] for each in known), key=lambda each: each.number)
    draft = repository.merger.draft(*map(repository.tree_of, (base.commit, tip, candidate.commit)))
    if conflicts := draft.unsettled:
        raise RefusedError(
            f"{candidate.commit[:7]} conflicts with what changed on the target meanwhile, in {', '.join(conflicts)}; "
            "land another one, or merge it by hand: "
            f"git switch -c land-{candidate.commit[:7]} && git merge {candidate.commit[:10]}"
        )
    return draft.tree


def _known(repository: Repository, history: History, candidate: Candidate, tip: str) -> frozenset[str]:
    """The ancestors of the candidate that the target has, merged or as one commit; none: not even the seed."""
    contains, phylogeny = repository.branches.contains, history.phylogeny
    decisions = [entry.event for entry in history.decisions if isinstance(entry.event, Decision)]
    landed = [event for event in decisions if event.kind == "land" and contains(tip, event.commit)]
    present = {commit for event in landed for commit in event.candidates}
    if fork := repository.branches.fork(tip, candidate.commit):
        present.add(fork)
    ours = present & phylogeny.ancestors(candidate.commit)
    return frozenset(ours | phylogeny.ancestors(*ours))


def _check_paths(repository: Repository, history: History, paths: Sequence[str], before: str, after: str) -> None:
    started = history.started
    assert started is not None  # there is a candidate
    wrong = [path for path in paths if not matches(path, started.editable) or matches(path, started.withheld)]
    if wrong:
        raise RefusedError(
            f"expected changes to {', '.join(started.editable)} only, but landing would change {', '.join(wrong[:5])}"
            f"{' and more' * (len(wrong) > 5)}; see `evogit diff seed`"
        )
    try:
        repository.trees.refuse_twins(before, after)
    except UnfitChangeError as error:
        raise RefusedError(f"landing would bring two paths that are one on some systems: {error}") from error


def short_name(ref: str) -> str:
    """A branch as people call it."""
    return ref.removeprefix(HEADS)
