"""Cuts what agents are told of an evaluation to numbers and the evaluator's words.

For evaluations after a holdout was shown: what a candidate saw there may be in the machine still, and what a program
prints, raises or returns would carry it to whoever reads briefs.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from evogit.core import Evaluation, Evidence

RAISED = re.compile(r"raised (\w+)")
OURS = ("the value returned in call", "returned what JSON cannot say", "the candidate's server")
"""How sentences of ours begin that quote the program behind a colon."""


def muted(evaluation: Evaluation, evidence: Evidence, metrics: Collection[str]) -> tuple[Evaluation, Evidence]:
    """The same for agents: metrics, cases, the evaluator's own reason and feedback; the rest stays for people.

    Of an exception only a built-in name is told. Where a command evaluates, all that it says is the program's, also how
    numbers are called: only those of the task's `metrics` are left.
    """

    def declared(numbers: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in numbers.items() if name in metrics}

    inside = evaluation.judged == "inside"
    log = "\n".join(filter(None, [evaluation.reason, evidence.log, *(evidence.feedback.values() if inside else ())]))
    told = replace(evidence, log=log, feedback={} if inside else evidence.feedback, unshown=True)
    if inside:
        cases = {case: declared(numbers) for case, numbers in evaluation.cases.items()}
        evaluation = replace(evaluation, metrics=declared(evaluation.metrics), cases=cases)
    return replace(evaluation, reason=_reason(evaluation)), told


def _reason(evaluation: Evaluation) -> str:
    said = evaluation.reason
    if evaluation.ok or not said:
        return said
    if evaluation.judged == "inside" and evaluation.status in ("invalid", "crashed"):
        return "the command failed"
    if raised := RAISED.match(said):
        kind = getattr(builtins, raised[1], None)
        known = isinstance(kind, type) and issubclass(kind, BaseException)
        return f"raised {raised[1]}" if known else "raised an exception of its own"
    return said.partition(": ")[0] if said.startswith(OURS) else said
