"""Which way is better, as a text for people says of a metric."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from evogit.config.printed_numbers import direction_of
from evogit.core import Direction

STATED: dict[Direction, str] = {
    "minimize": r"(?:lower|less|smaller|shorter|fewer|faster) (?:\S+ )?(?:is|the) better",
    "maximize": r"(?:higher|more|larger|greater|bigger) (?:\S+ )?(?:is|the) better",
}
"""What leaves no doubt."""
STRONG: dict[Direction, str] = {
    "minimize": r"lowest|smallest|fewest|shortest|fastest|minimal|minimi[sz]\w*|as (?:low|small|short|fast) as|"
    + STATED["minimize"],
    "maximize": r"highest|largest|greatest|biggest|maximal|maximi[sz]\w*|as (?:high|large|big) as|"
    + STATED["maximize"],
}
"""What is said of a goal."""
WEAK: dict[Direction, str] = {
    "minimize": r"lower\w*|smaller|fewer|shorter|faster|reduc\w+|decreas\w+|shrink\w*|cut(?:ting)?",
    "maximize": r"higher|larger|greater|bigger|increas\w+|rais(?:e|ing)|boost\w*",
}
"""What may also be said of something else in the same sentence."""
REVERTS = re.compile(
    r"\b(revert\w*|discard\w*|reset\w*|roll\w*[ -]?back|rollback|undo\w*|restor\w+|reject\w*|throw|drop\w*|abandon\w*|"
    r"checkout|never|not|don't|worse)\b"
)
NAMED = re.compile(r"^\W*direction\W{1,8}(\w+)", re.MULTILINE | re.IGNORECASE)
"""A line that says nothing but the way."""
GOAL = re.compile(r"\b(goal|objective|aim|target|metric|score|task|optimi[sz]\w*|(?:is|the) better)\b")
ASIDE = re.compile(
    r",?\s*\b(?:otherwise|or else|else|reverting|discarding|undoing|instead of|rather than)\b.*|"
    r"(?:,|;)?\s+\band\b(?=.*\b(?:minimi|maximi|reduc|increas|lower|higher))"
)
"""Where a sentence turns to what is not wanted, or to something else."""


def direction_said(text: str, metric: str) -> Direction | None:
    """Which way is better, as a text says of this metric; None where nothing tells.

    What it asks of the metric comes first, then what it asks without a name; then the metric's own name tells, and at
    last what else is said of it. Where it says both, the next one tells. What has something reverted is passed over.
    """
    about, goals = _about(text, metric)
    named = [match[1].lower() for match in NAMED.finditer(text)]
    wanted = _only(named, WEAK) or _only([*named, *about], STRONG) or _only(goals, STRONG)
    return wanted or direction_of(metric, "json") or _only([*about, *goals], WEAK)


def direction_stated(text: str, metric: str) -> Direction | None:
    """Which way is better, where a text says just that of this metric, or of the score."""
    about, goals = _about(text, metric)
    told = [clause for clause in goals if re.search(r"\b(?:score|metric)s?\b", clause)]
    return _only(about, STATED) or _only(told, STATED)


def _about(text: str, metric: str) -> tuple[list[str], list[str]]:
    """What a text wants of a metric, and what it wants without a name."""
    mention = re.compile(rf"(?<![\w-]){re.escape(metric.lower()).replace('_', '[_ -]')}(?![\w-])")
    clauses = list(_clauses(text.lower()))
    about = [clause for clause in clauses if mention.search(clause)]
    return about, [clause for clause in clauses if GOAL.search(clause) and not _names_a_metric(clause)]


def _clauses(text: str) -> Iterator[str]:
    """The parts of its sentences that say what is wanted."""
    paragraphs = re.sub(r"(?<=[^\n|`])\n[ \t]*(?=[a-z(`])", " ", text)
    for sentence in re.split(r"\n+|(?<=[.!?])[*_)]*\s+", paragraphs):
        clauses = ASIDE.sub("\0", sentence).split("\0")
        yield from (clause for clause in clauses if not REVERTS.search(clause))


def _only(clauses: Iterable[str], words: dict[Direction, str]) -> Direction | None:
    """The direction that these clauses speak of, where it is one alone."""
    said = {way for clause in clauses for way, pattern in words.items() if re.search(rf"\b(?:{pattern})\b", clause)}
    return said.pop() if len(said) == 1 else None


def _names_a_metric(clause: str) -> bool:
    """Whether a clause has a name as programs do, which is no file's."""
    return re.search(r"`[a-z]\w*`|(?<![\w./-])[a-z]+_\w+(?![\w./-])", clause) is not None
