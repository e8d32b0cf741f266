"""Evaluates one candidate as often as its scores are noisy; nothing is journalled."""

from __future__ import annotations

from evogit.core import Evaluation, EvaluatorError, Files
from evogit.evaluation.evaluator import Evaluator


async def judge_times(evaluator: Evaluator, tree: str, files: Files, split: str, times: int) -> list[Evaluation]:
    """The repeats 0, 1, ... of one candidate on `split`, up to the first that fails or is not measured.

    Raises:
        EvaluatorError: the evaluator itself failed, which says nothing of the candidate.
        EvoGitError: when the evaluator or the sandbox cannot be used at all.
    """
    found = list[Evaluation]()
    while len(found) < times and all(each.ok for each in found):
        evaluation, _ = await evaluator.evaluate(tree, files, split=split, repeat=len(found))
        if evaluation.status == "evaluator-error":
            raise EvaluatorError(f"the evaluator failed on {split}: {evaluation.reason}; fix it, then try again")
        found.append(evaluation)
    return found
