"""Evaluates candidates as often as their scores are noisy; nothing is journalled."""

from __future__ import annotations

from collections.abc import Sequence

from evogit.core import Evaluation, EvaluatorError, Files
from evogit.evaluation.evaluator import Evaluator


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
