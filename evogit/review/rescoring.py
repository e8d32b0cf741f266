"""Evaluates again, under a changed task or evaluator, those that matter: the seed, the living, the record holders."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from evogit.core import Evaluation, Evidence, RefusedError
from evogit.engine.comparability import changed_judge, ways_on
from evogit.engine.confirmation import Confirmation, evaluate_on_holdout
from evogit.engine.evaluations import Evaluations
from evogit.engine.projections import Projections
from evogit.engine.run_key import inputs_of
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.seed_files import write_seed
from evogit.events import TaskChanged
from evogit.history import History
from evogit.history.context import RunContext


class RescorePlan(Struct, frozen=True):
    """What rescoring does: `changed` parts of the task by name (none where an old journal does not tell), candidates.

    `begun`: the change is journalled, and these are left of a rescoring that was cut off. `seconds` is what their last
    evaluations took, one after the other.
    """

    changed: tuple[str, ...]
    candidates: tuple[str, ...]
    begun: bool
    seconds: float


def plan(context: RunContext) -> RescorePlan | None:
    """Return the work to do; None if there is none. Raises RefusedError: an engine works, or the seed differs."""
    history = context.history
    if history.seed is None:
        raise RefusedError(f"the run {history.run} has no seed yet; begin it with `evogit run`")
    if context.repository.engines(history.run).alive():
        raise RefusedError(f"an engine works on the run {history.run}; stop it first, with `evogit stop` or Ctrl-C")
    changed = _changed(context)
    if changed is None:
        left = _waiting(history)
        return RescorePlan((), left, True, _seconds(history, left)) if left else None
    after = history.after(_event(context, by=""))
    again = _waiting(after)
    return RescorePlan(changed, again, False, _seconds(after, again))


async def rescore(context: RunContext, *, provider: str, jobs: int) -> None:
    """Journal the change and evaluate again; cut off at any moment, it goes on when it or `run` is called again.

    Raises:
        EvoGitError: the evaluator or the sandbox cannot be used.
        RefusedError: the seed fails under the changed task, or an engine is at work; then nothing was journalled.
    """
    repository, history = context.repository, context.history
    with repository.engines(history.run).enter(join=False) as engine:
        repository.clear_locks(history.run)
        context = context.of(engine)
        context.journal.refresh()
        repository.trust.check(repository.keys.origin(history.run, history.first_start))
        drawing = inputs_of(repository, history)
        async with Evaluator(context.task, provider=provider, jobs=jobs, drawing=drawing) as evaluator:
            limit = history.counts.evaluated  # new ones of people are for a run, within its limits
            evaluations = Evaluations(context, evaluator, limit)
            if _changed(context) is not None:
                seed = await evaluations.evaluate(history.seed or "")
                assert seed  # nobody can prune it
                if not seed[0].ok:
                    raise RefusedError(
                        f"the seed fails under the changed task ({seed[0].status}: {seed[0].reason}); "
                        "nothing was changed; fix the task and test it with `evogit check`"
                    )
                context.journal.append(_event(context, by=repository.user))
                _refuse_strays(context, evaluations)
                evaluations.record(history.seed or "", seed)
            await evaluations.take_over()
            hurry = asyncio.Event()
            await Confirmation(context, evaluations, hurry=hurry).settle()
            await evaluate_on_holdout(context, evaluations, hurry)
        projections = Projections(repository, history)
        projections.follow()
        projections.notes()


def _refuse_strays(context: RunContext, evaluations: Evaluations) -> None:
    history, task = context.history, context.task
    seed = history.phylogeny[history.seed or ""].tree
    for commit in list(history.pending):
        paths = context.repository.changed_paths(seed, history.phylogeny[commit].tree)
        if strays := [path for path in paths if not task.is_editable(path)]:
            reason = f"it changed {strays[0]}, which is no longer editable"
            evaluation = Evaluation(
                status="invalid", reason=reason, split=history.split, evaluator=task.evaluator_digest
            )
            evaluations.record(commit, (evaluation, Evidence()))


def _changed(context: RunContext) -> tuple[str, ...] | None:
    """The parts that changed since the run's candidates were evaluated, None when they still would be as before."""
    history, task = context.history, context.task
    changed = changed_judge(history, task)
    if changed is None:
        return None
    if task.seed:
        repository = context.repository
        own, began = write_seed(repository, task), history.phylogeny[history.seed or ""].tree
        imported = any(each.imported for each in history.engines.values())  # with what there was, if no more
        if own != began and not (imported and all(map(task.is_editable, repository.changed_paths(own, began)))):
            raise RefusedError(f"seed/ changed, and no candidate descends from the new one; {ways_on(task, ['seed'])}")
    return changed


def _event(context: RunContext, *, by: str) -> TaskChanged:
    task = context.task
    return TaskChanged(
        by=by,
        task_digest=task.digest,
        metrics=task.metrics,
        split=context.history.split,
        evaluator=task.evaluator_digest,
        judged=task.judged,
        editable=task.editable,
        withheld=task.unseen,
        parts=task.parts,
    )


def _waiting(history: History) -> tuple[str, ...]:
    return tuple(commit for commit in history.pending if history.former(commit))


def _seconds(history: History, commits: Sequence[str]) -> float:
    return sum(found.cost.wall for commit in commits if (found := history.former(commit)))
