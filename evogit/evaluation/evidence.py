"""The limits on kept evidence of an evaluation, and its redaction for agents after a holdout was shown."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from evogit.core import Evaluation, Evidence

MOST = 64 * 1024
"""Bytes of one evaluation's output, log and feedback together; about as many are kept of texts with other letters."""
MARK = 64
"""Bytes for saying that something was left out."""

RAISED = re.compile(r"raised (\w+)")
OURS = ("the value returned in call", "returned what JSON cannot say", "the candidate's server")
"""Beginnings of our sentences that quote the program after a colon."""


def thinned(evidence: Evidence) -> Evidence:
    """The same with the beginning and the end of what is too long; what is short stays whole."""
    cases = sorted(evidence.feedback)
    log = evidence.log.encode(errors="replace")
    said = [evidence.feedback[case].encode(errors="replace") for case in cases]
    stdout, stderr, kept_log, all_said = shares(
        [len(evidence.stdout), len(evidence.stderr), len(log), sum(map(len, said))], MOST
    )
    each_said = shares([len(text) for text in said], all_said)
    kept = (ends(text, most).decode(errors="replace") for text, most in zip(said, each_said, strict=True))
    return replace(
        evidence,
        stdout=ends(evidence.stdout, stdout),
        stderr=ends(evidence.stderr, stderr),
        log=ends(log, kept_log).decode(errors="replace"),
        feedback=dict(zip(cases, kept, strict=True)),
    )


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Return the share of the room for each size: the large ones get what the small ones do not need."""
    found = [0] * len(sizes)
    for place, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        found[index] = min(sizes[index], room // (len(sizes) - place))
        room -= found[index]
    return found


def ends(content: bytes, most: int) -> bytes:
    """All of it, or its beginning and its end, with a note of what is missing between them."""
    if len(content) <= most:
        return content
    half = max(0, most - MARK) // 2
    note = b"\n[%d bytes left out]\n" % (len(content) - 2 * half)
    return content[:half] + note + content[len(content) - half :]


def muted(evaluation: Evaluation, evidence: Evidence, metrics: Collection[str]) -> tuple[Evaluation, Evidence]:
    """Return what agents may read after a holdout was shown: metrics, cases, the evaluator's own reason and feedback.

    What a program prints, raises or returns could carry what it saw there: only built-in names of exceptions are left,
    and where a command evaluates only the numbers of the task's `metrics`.
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
