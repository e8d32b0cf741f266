"""Reruns the evaluations of candidates as they are on record, and says whether what was claimed holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from evogit.config import Task
from evogit.core import Candidate, Evaluation, EvaluatorError, Files, RefusedError
from evogit.engine.run_key import inputs_of
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.seed_files import packed_seed
from evogit.history import History
from evogit.history.paired_scores import beside
from evogit.history.scores import Scores
from evogit.repository import Repository
from evogit.sandbox.archive import pack

RECORDED, AGAIN = "recorded", "again"


class Verification(Struct, frozen=True, kw_only=True):
    """What is on record of a candidate on one split, and what came of evaluating it again.

    `scores` holds both, as the candidates `recorded` and `again`. `differs` says, a sentence each, what is not as it
    was then; `against` why the claim does not hold, empty when it does. Where nothing is on record (`recorded` is
    None), as of most candidates on the holdout, there is no claim, and what came out is for the user to compare.
    """

    candidate: Candidate
    split: str
    recorded: Evaluation | None
    again: Evaluation
    scores: Scores
    differs: tuple[str, ...]
    against: tuple[str, ...]
    under_load: bool = False
    """Whether nothing but the wall clock speaks against it, as a busy machine gave it little CPU."""

    @property
    def holds(self) -> bool:
        """Whether the same came out: equal values where scores are exact, else such as noise explains."""
        return not self.against

    def times(self, which: str) -> int:
        """How often it was evaluated, then or now."""
        return 1 + self.scores.repeated(which)


def check_verifiable(history: History, candidates: Sequence[Candidate]) -> None:
    """Refuse what has no value to compare with. Raises RefusedError: it was not measured."""
    if history.strengths is not None:
        raise RefusedError(
            "this run ranks by verdicts on pairs, which are not measurements; `evogit judge` adds verdicts"
        )
    for candidate in candidates:
        if not _recorded(history, candidate.commit, history.split):
            raise RefusedError(f"{candidate.commit[:7]} was not evaluated yet, so there is no claim to verify")


async def verify(
    repository: Repository, history: History, task: Task, candidates: Sequence[Candidate], provider: str
) -> AsyncIterator[Verification]:
    """Evaluate again what is on record on the run's split, and evaluate on the holdout, one after the other.

    A candidate of a noisy task is evaluated as often as a would-be best; with the same repeats, so that evaluators
    which draw from `rng` draw the same. Nothing is journalled.

    Raises:
        RefusedError: there is no record to compare with.
        EvoGitError: the evaluator or the sandbox cannot be used.
    """
    check_verifiable(history, candidates)
    seed = history.phylogeny[history.seed or ""].tree
    base = await packed_seed(repository, seed, task)
    async with Evaluator(task, provider=provider, jobs=1, drawing=inputs_of(repository, history)) as evaluator:
        for candidate in candidates:
            tree = repository.tree_of(candidate.commit)
            files = Files(*repository.trees.changes(seed, tree, task.is_visible), base)
            for split in dict.fromkeys((history.split, "holdout")):
                recorded = _recorded(history, candidate.commit, split)
                if not recorded and split not in task.splits:
                    continue
                if split != history.split:
                    repository.holdouts.show(task.name)
                times = 1 + needed_repeats(history, task)
                sides = [(seed, Files(pack({}), (), base)), (tree, files)]
                paired = history.scores.paired and split == history.split
                *seeds, again = await judge_in_turns(evaluator, sides[not paired :], split, times)
                yield _compared(history, task, candidate, recorded, again, *seeds)


def _recorded(history: History, commit: str, split: str) -> list[Evaluation]:
    found = history.scores.each(commit, split)
    if len(found) == 1 and (whole := history.evaluation(commit, split)):
        found = [whole]  # at the pace of the run's beginning, where that counts
    former = history.former(commit)
    return found or ([former] if former and former.split == split else [])


def needed_repeats(history: History, task: Task) -> int:
    """Return the repeats that a run needs, whose scores may be noisier or more exact than its task declares."""
    exact = history.declared_repeats and not history.repeats
    return 0 if exact else max(task.repeats, history.repeats)


def _compared(
    history: History,
    task: Task,
    candidate: Candidate,
    recorded: list[Evaluation],
    again: list[Evaluation],
    seeds: Sequence[Evaluation] = (),
) -> Verification:
    scores = history.scores.beside(candidate.commit, again[0].split, RECORDED)
    repeats = max(needed_repeats(history, task), len(recorded) - 1)
    scores.repeats = max(repeats, 2) if repeats else 0  # one repeat would call nothing better
    for evaluation in recorded:
        scores.record(RECORDED, evaluation)
    for evaluation, seed in zip_longest(again, seeds[: len(again)]):
        scores.record(AGAIN, beside(evaluation, history.seed or "", seed))
    then, now = scores.evaluation(RECORDED), scores.evaluation(AGAIN)
    assert now  # it was evaluated
    parts = (("evaluator", then.evaluator, now.evaluator), ("image", then.image, now.image)) if then else ()
    return Verification(
        candidate=candidate,
        split=now.split,
        recorded=then,
        again=now,
        scores=scores,
        differs=tuple(
            f"the {name} has changed: {_short(old)} then, {_short(new)} now"
            for name, old, new in parts
            if old and old != new
        ),
        against=tuple(_against(scores, then, now)) if then else (),
        under_load=then is not None and then.status != now.status and any(each.starved for each in [*recorded, *again]),
    )


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:10] or "none"


def _against(scores: Scores, then: Evaluation, now: Evaluation) -> list[str]:
    """Why the claim does not hold; a flaky candidate claims nothing but that it may fail."""
    if then.status == "flaky":
        return []
    if then.status != now.status:
        why = f": {now.reason}" if now.reason else ""
        return [f"it was {then.status} and is now {now.status}{why}"]
    said = []
    for name, value in then.metrics.items():
        if name not in now.metrics:
            said.append(f"{name} is no longer measured")
            continue
        above, noise = scores.difference(AGAIN, RECORDED, metric=name)
        if abs(above) > noise:
            within = f", more than the noise of {noise:.3g}" if noise else ""
            said.append(f"{name} was {value:.10g}, and is {now.metrics[name]:.10g} now{within}")
    return said


async def judge_in_turns(
    evaluator: Evaluator, sides: Sequence[tuple[str, Files]], split: str, times: int
) -> list[list[Evaluation]]:
    """Evaluate candidates (tree, files) in turns; the first one changes each time, so that a drift favours neither.

    Each gets the repeats 0, 1, ... on `split`, up to the first that fails or is not measured.

    Raises:
        EvaluatorError: the evaluator itself failed, which says nothing of the candidates.
        EvoGitError: when the evaluator or the sandbox cannot be used at all.
    """
    found = [list[Evaluation]() for _ in sides]
    for repeat in range(times):
        turns = list(zip(sides, found, strict=True))
        for (tree, files), known in turns if repeat % 2 == 0 else reversed(turns):
            if not all(each.ok for each in known):
                continue
            evaluation, _ = await evaluator.evaluate(tree, files, split=split, repeat=repeat)
            if evaluation.status == "evaluator-error":
                raise EvaluatorError(f"the evaluator failed on {split}: {evaluation.reason}; fix it, then try again")
            known.append(evaluation)
    return found
