"""Which way is better, as a text for people says of a metric."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evogit.config.printed_numbers import direction_of
from evogit.core import Direction

_LESS = r"lower|lowest|smaller|smallest|less|least|fewer|fewest|minimal|minimum|min|shorter|shortest|faster|fastest"
_MORE = r"higher|highest|larger|largest|greater|greatest|bigger|biggest|more|most|maximal|maximum|max"
_DOWN = (
    r"minimi[sz]\w*|reduc\w+|(?:(?<!\w )|(?<=\bto ))lower|lowering|decreas\w+|shrink\w*|cut|cutting|"
    r"bring down|drive down|push down"
)
_UP = r"maximi[sz]\w*|increas\w+|rais(?:e|ing)|boost\w*|bring up|drive up|push up"
_OF_IT = (
    r"(?:(?!\b(?:and|while|without|but|or|by|to|from|when|if|with|not|until|below|above)\b)[\w*`'-]+[ ]+){0,4}[*`'\"]*"
)
"""Words between what is wanted and the metric."""
LONGEST = 600
"""Characters of a sentence that are looked at."""
REVERT = re.compile(
    r"\b(revert\w*|discard\w*|reset\w*|roll(ed|s|ing)?[ -]?back|rollback|undo\w*|undone|restor\w+|reject\w*|throw|"
    r"drop\w*|abandon\w*|checkout|not keep|(don't|do not) (keep|accept))\b"
)
CONDITION = re.compile(r"\b(if|when|where|whenever|unless|that|which|anything|any|should)\b")
KEEP = re.compile(r"\b(keep|keeps|kept|advance\w*|accept\w*|improv\w+|better|commit|win|wins|best)\b")
GOAL = re.compile(r"\b(goal|objective|aim|target|metric|task|score|optimi[sz]\w*|want|direction)\b")
NEGATION = re.compile(r"\b(?:not|never|without|avoid|avoids|no|cannot)\b\W*(?:\w+\W+){0,2}$|n't\W+(?:\w+\W+){0,2}$")


def direction_said(text: str, metric: str) -> Direction | None:
    """Which way is better, as a text says of this metric: what it wants counts, not what it has reverted.

    What is said of the metric itself comes before what is said without a name, and before what is kept; where a text
    says both, or nothing, the metric's name tells. None where that does not, either.
    """
    clauses = list(_clauses(text.lower()))
    name = metric.lower()
    mentions = re.compile(rf"(?<![\w-]){re.escape(name).replace('_', '[_ -]')}(?![\w-])")
    about = [clause for clause in clauses if mentions.search(clause)]
    general = [clause for clause in clauses if not mentions.search(clause) and not _names_another(clause)]
    for said in (
        {way for clause in about for way in _wanted(clause, mentions.pattern)},
        {way for clause in general for way in _wanted(clause, r"[\w*`]" if _is_goal(clause) else None)},
        {way for clause in about for way in _kept(clause)},
    ):
        if len(said) == 1:
            return next(iter(said))
        if said:
            break
    return direction_of(metric, "json")


def _clauses(text: str) -> Iterator[str]:
    """Sentences and their conditions, over the ends of lines in one paragraph."""
    text = re.sub(r"\b(i\.e\.|e\.g\.)", lambda match: match[0].replace(".", ""), text)
    joined = re.sub(r"(?<=[^\n|`])\n[ \t]*(?=[a-z(*`])(?![*+] )(?!\*\*)", " ", text)
    for sentence in re.split(r"\n+|(?<=[.!?;])[*_)]*\s+|;", joined):
        yield from re.split(
            r",?\s+(?:otherwise|or else|else)\b|,\s*(?:and |but )?(?=(?:if|when)\b)", sentence[:LONGEST]
        )


def _wanted(clause: str, name: str | None) -> Iterator[Direction]:
    """What a clause wants: of what matches `name`, or of what it does not name."""
    reverts = REVERT.search(clause) is not None
    this = rf"|\s+[*`]*{name}[*`]*" if name else ""
    it = rf"(?:\s+(?:score|value|number|result|metric|it)s?{this})?"
    ways: tuple[tuple[Direction, str, str, str], ...] = (("minimize", _LESS, _DOWN, "↓"), ("maximize", _MORE, _UP, "↑"))
    for way, comparison, verb, arrow in ways:
        other: Direction = "maximize" if way == "minimize" else "minimize"
        if re.search(rf"\b(?:{comparison}){it}[ -]*(?:is|are|=|:|the|-)?[ -]*better\b|{arrow}", clause):
            yield way
        if re.search(rf"\bimprov\w+\W{{1,4}}(?:ie\W*|that is\W*)?(?:{comparison})\b", clause):
            yield way
        if re.search(
            rf"\bworse\w*\W{{1,4}}(?:ie\W*|that is\W*)?(?:{comparison})\b|\b(?:{comparison})\W{{0,2}} \(worse\b", clause
        ):
            yield other
        if re.search(rf"\bdirection\W+(?:is\W+)?(?:{comparison}|{verb})\b", clause):
            yield way
        if name:
            yield from _asked(clause, name, way, comparison, verb, reverts)


def _asked(clause: str, name: str, way: Direction, comparison: str, verb: str, reverts: bool) -> Iterator[Direction]:
    """The way, once for every phrase that asks for it: lowest x, minimise x, x as low as possible."""
    stem = "low|small|short|close to zero" if way == "minimize" else "high|large|big"
    superlative = "|".join(word for word in comparison.split("|") if not word.endswith("er"))
    moves = "go down|fall|drop|sink|shrink" if way == "minimize" else "go up|rise|grow|climb"
    for pattern in (
        rf"\b(?:make|get|bring|keep)\s+{_OF_IT}{name}[*`]*\s+(?:{comparison})\b",
        rf"\b(?:want|wants|must|should|needs?|has|have)\b.*{name}[*`]*\s+(?:to\s+)?(?:{moves})\b",
        rf"{name}[*`]*\s+(?:must|should|has to|needs to|is to|to)\s+(?:{moves})\b",
        rf"\b(?:{superlative})\s+(?:possible\s+)?{_OF_IT}{name}",
        rf"\b(?:{verb})\s+{_OF_IT}{name}",
        rf"{name}.*\bas (?:{stem}) as\b",
        rf"{name}[*`]*\W{{1,3}}(?:to be |is to be |should be |must be )?(?:{verb})(?:d)?\b",
    ):
        for match in re.finditer(pattern, clause):
            before = clause[: match.start()]
            if not NEGATION.search(before) and not (reverts and CONDITION.search(before)):
                yield way


def _kept(clause: str) -> Iterator[Direction]:
    """What a clause keeps, where it reverts nothing."""
    if REVERT.search(clause) is None and KEEP.search(clause):
        if re.search(rf"\b(?:{_LESS})\b", clause):
            yield "minimize"
        if re.search(rf"\b(?:{_MORE})\b", clause):
            yield "maximize"


def _is_goal(clause: str) -> bool:
    """Whether a clause says what is wanted without a metric's name: it speaks of a goal, or begins with the verb."""
    begin = re.match(rf"[\W\d]*(?:{_DOWN}|{_UP}|get|achieve|reach|find)\b", clause)
    return begin is not None or GOAL.search(clause) is not None


def _names_another(clause: str) -> bool:
    """Whether a clause speaks of another metric: a name as programs have them, which is no file's."""
    return re.search(r"`[a-z]\w*`|(?<![\w./-])[a-z]+_\w+(?![\w./-])", clause) is not None
