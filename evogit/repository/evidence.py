"""Files of evidence trees: what each is called, and how it is written and read. Trees of old runs are read for ever."""

from __future__ import annotations

import json
import traceback
from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from evogit.core import Evaluation, Evidence
from evogit.credentials import Redactor

STDOUT = "stdout"
STDERR = "stderr"
LOG = "log"  # what the evaluator said of the whole
FEEDBACK = "feedback.json"  # what it said of each case
UNSHOWN = "unshown-"  # before the names of what is kept for people alone
WHY = "why"  # a person's reason to bring a candidate
TRACEBACK = "traceback"  # where code of an agent failed
SESSION = "session.json"  # facts of a coding program's session
PROMPT = "prompt"
REPLY = "reply"
TRANSCRIPT = "transcript"


def numbered(name: str, number: int = 1, suffix: str = ".md") -> str:
    """The file for `PROMPT`, `REPLY` or `TRANSCRIPT`, the second and later ones with their number: `reply-2.md`."""
    return f"{name}-{number}{suffix}" if number > 1 else f"{name}{suffix}"


def is_prompt(file: str) -> bool:
    """Whether a file is what an agent was told, which is alike in all moves."""
    return file.startswith(PROMPT)


def is_transcript(file: str) -> bool:
    """Whether a file is what was said and done in a session."""
    return file.startswith(TRANSCRIPT)


def ends_tell_most(file: str) -> bool:
    """Whether the last lines of a file tell more than the first ones."""
    return file.startswith((TRANSCRIPT, TRACEBACK))


def kept_text(content: str) -> bytes:
    """A text as it is kept, whatever it holds."""
    return content.encode(errors="replace")


def session_facts(content: bytes) -> list[tuple[str, str]]:
    """What a coding program's session was, as names and foreign texts; none where that cannot be read."""
    try:
        about: Any = json.loads(content)
    except (ValueError, RecursionError):
        return []
    if not isinstance(about, dict):
        return []

    def listed(key: str) -> list[str]:
        found = about.get(key)
        return [str(each) for each in found] if isinstance(found, list) else []

    model = f" on {about['model']}" if about.get("model") else ""
    refused = [f"{about['refused']} refused"] if about.get("refused") else []
    return [
        ("program", f"{about.get('program', '?')}{model}, {about.get('seconds', '?')} s"),
        ("end", str(about.get("end", "?"))),
        ("evaluations", ", ".join([*listed("evaluations"), *refused]) or "none"),
        *(("left out", line) for line in listed("left_out")),
    ]


def why(reason: str) -> dict[str, bytes]:
    """A person's reason; nothing where none was given."""
    return {WHY: kept_text(reason)} if reason else {}


def failure(error: BaseException) -> dict[str, bytes]:
    """The traceback of what failed."""
    return {TRACEBACK: kept_text("".join(traceback.format_exception(error)))}


def files_of(evidence: Evidence) -> dict[str, bytes]:
    """What was seen during an evaluation; what is empty is left out."""
    feedback = json.dumps(dict(evidence.feedback), indent=1, sort_keys=True).encode() if evidence.feedback else b""
    mark = UNSHOWN if evidence.unshown else ""
    told = {STDOUT: evidence.stdout, STDERR: evidence.stderr, LOG: kept_text(evidence.log)}
    files = {**{mark + name: content for name, content in told.items()}, FEEDBACK: feedback}
    return {name: content for name, content in files.items() if content}


def redacted(evidence: Evidence, redactor: Redactor) -> Evidence:
    """The same without credentials."""
    return replace(
        evidence,
        stdout=redactor.data(evidence.stdout),
        stderr=redactor.data(evidence.stderr),
        feedback={redactor.text(case): redactor.text(text) for case, text in evidence.feedback.items()},
        log=redactor.text(evidence.log),
    )


def redacted_evaluation(evaluation: Evaluation, redactor: Redactor, known: Collection[str]) -> Evaluation:
    """The same without credentials in the reason and in names, but for those that are `known` from the task."""

    def named(numbers: Mapping[str, Any]) -> dict[str, Any]:
        return {name if name in known else redactor.text(name): value for name, value in numbers.items()}

    return replace(
        evaluation,
        reason=redactor.text(evaluation.reason),
        metrics=named(evaluation.metrics),
        cases=named({case: named(numbers) for case, numbers in evaluation.cases.items()}),
        stages=named({stage: named(numbers) for stage, numbers in evaluation.stages.items()}),
    )


def evidence_of(files: Mapping[str, bytes]) -> Evidence:
    """The same read back; files that are missing or damaged are empty."""
    unshown = any(name.startswith(UNSHOWN) for name in files)
    mark = UNSHOWN if unshown else ""
    return Evidence(
        stdout=files.get(mark + STDOUT, b""),
        stderr=files.get(mark + STDERR, b""),
        feedback=read_feedback(files.get(FEEDBACK, b"")),
        log=files.get(mark + LOG, b"").decode(errors="replace"),
        unshown=unshown,
    )


def read_feedback(content: bytes) -> dict[str, str]:
    """Case -> what its evaluator said, of the file `feedback.json`; nothing where that is damaged."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return {case: said for case, said in found.items() if isinstance(said, str)} if isinstance(found, dict) else {}
