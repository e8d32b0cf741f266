"""How much of what was seen during an evaluation is kept: a repository holds it for ever, for every candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from evogit.core import Evidence

MOST = 64 * 1024
"""Bytes of one evaluation's output, log and feedback together; about as many are kept of texts with other letters."""
MOST_NUMBERS = 100_000
"""Cases of one evaluation that are taken from a worker, and numbers of them, together."""
MARK = 64
"""Bytes for saying that something was left out."""


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


def size(cases: Mapping[str, Mapping[str, Any]]) -> int:
    """Count cases and their numbers."""
    return len(cases) + sum(map(len, cases.values()))


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much each of these may have of the room: what the small ones do not need is the large ones'."""
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
