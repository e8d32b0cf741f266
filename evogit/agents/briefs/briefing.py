"""Writes briefs: the templates filled with what is known, within a number of tokens, stable text first.

A template's section (a heading `## ` and what follows) whose every placeholder is empty is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from string import Template
from textwrap import indent

from msgspec import Struct

from evogit.agents import Background, Brief, NoUsableChangeError
from evogit.agents.briefs import digest
from evogit.agents.briefs.excerpt import FILL_SHARE, INSTRUCTIONS, excerpt, room_for_all
from evogit.contained import text_at
from evogit.core import ConfigError
from evogit.history.lessons import MAX_LESSON_TOKENS
from evogit.llm import Message, estimate_tokens
from evogit.text import cut, fence, marker_length, plain

TEMPLATES = Path(__file__).parent / "templates"
"""The folder of the templates that come along; a task may have its own of the same names."""

REPLY_SHARE = 0.25  # share of what a question may have that is left for a reply and what is wrong with it

BUDGET = 8_000
"""Tokens that a brief takes at most, whatever a question may have: what is more is read once and paid each time."""

WHOLE_CODE = 6_000
"""Tokens of code that are shown whole beyond that: else a model asks to READ it, which pays for the brief twice."""

PAST_SHARE = 1 / 3  # share of a brief that the past takes at most: relatives, failures, what others try
PAST_ROOM = 0.2  # share of a brief that is kept free of code for it
BEST_SHARE = 0.2  # share of a brief for the code of the best candidate, where the parent is another, or of a donor
REFUSALS_SHARE = 0.05  # share of a brief for what the reviewer refused
ROOM_STEPS = 10  # what a brief has for code is a multiple of this part of its tokens
FILE_CONTEXT = 100_000  # tokens that a brief in a file is fitted to

EVALUATIONS = "You have {} evaluations; each is worth as much as a candidate of its own, so look and test first."
NO_EVALUATIONS = "This session has none, as what is left of the run's limits is for its end: test by other means."

NETWORK = "There is a network, but evaluations have none and none of what you install. There is nobody to ask."
NO_NETWORK = "There is no network. Nothing can be installed, and there is nobody to ask."

CHEATING = "## What counts as cheating"
"""The heading of the first rules that hold for anybody who answers."""

HOW = "## How to answer"
"""The heading of the rules from which on they are others for a model that has tools."""

TACTIC = 300  # tokens of a tactic

ONE_CHANGE, SESSION = "Propose one change that should improve {metric}.", "Improve {metric}, step by step."
"""The last words of a brief, for an answer and for a session."""

READ_SHARE = 0.125  # share of what a question may have that an editor may read beside its brief

MORE = """To see more before you answer, reply with nothing but lines of these kinds, as many as you need.
LIST names the files of a folder. Then you may READ once: about {tokens} tokens in all, shared among the places that you
ask for, so name definitions or lines of long files.

{less} LIST folder/
{less} READ path/of/file
{less} READ path/of/file:40-120
{less} READ path/of/file:name_of_a_definition"""
"""How an editor asks for code that is not shown."""

FILES = """
Files that you may change can also be added by WRITE (one that begins with #! becomes executable), deleted and renamed:

{less} DELETE path/of/file

{less} RENAME old/path => new/path
"""
"""What an editor can also do, unless what may be changed are just the files that are there."""

SHARES = {"instructions": 0.06, "profile": 0.12, "feedback": 0.1, "log": 0.06, "output": 0.04}
"""Placeholder -> the most that it takes of the tokens. Goal and guidance are never cut; code gets the rest."""

PAST_SHARES = {
    "ideas": 0.75,
    "notes": 0.4,
    "inspirations": 0.35,
    "lineage": 0.4,
    "failures": 0.1,
    "others": 0.2,
    "siblings": 0.9,
}
"""Placeholder -> the most that it takes of what is left for the past, one after the other."""

MIN_IDEAS_TOKENS, MAX_IDEAS_TOKENS = 400, 800
"""The room of what the run has tried, which is told even in a brief of little code."""

NO_PAST = dict.fromkeys((*PAST_SHARES, "used"), "")  # what must not decide how much is told of the past
HEADING = 25  # tokens of the heading of a section, and of what it says


class Written(Struct, frozen=True):
    """A brief: rules, then sections, of which `varying` is measured anew; `shown` are the candidates in it."""

    rules: str
    sections: tuple[str, ...]
    shown: tuple[str, ...] = ()
    varying: str = ""

    @property
    def text(self) -> str:
        """The sections as one text."""
        return "".join(self.sections)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The beginning of a conversation."""
        return Message("system", self.rules), Message("user", self.text, varying=self.varying)

    @property
    def tokens(self) -> dict[str, int]:
        """Heading -> tokens."""
        parts = {section.partition("\n")[0].lstrip("# "): estimate_tokens(section) for section in self.sections}
        return {"Rules": estimate_tokens(self.rules), **parts}


def write(
    brief: Brief,
    background: Background,
    context: int,
    tools: Mapping[str, str] | None = None,
    *,
    how: str = "tools.md",
    code: bool = True,
) -> Written:
    """Write the brief for a model that may be asked `context` tokens at a time.

    With `tools`, values of the template `how`, that replaces how to answer; without `code` no code is shown.
    Raises ConfigError: a template of the task is wrong.
    """
    tokens = min(int(context * (1 - REPLY_SHARE)), BUDGET)
    background = digest.cleaned(background)
    values = _values(brief, background, tokens, ONE_CHANGE if tools is None else SESSION)
    rules, sections = _template("rules.md", background), _template("brief.md", background)
    if tools is not None:
        rules = rules.partition(HOW)[0] + _template(how, background)
    used = sum(map(estimate_tokens, (rules, sections, *values.values())))
    step = tokens // ROOM_STEPS  # what is told of relatives must not change which files are shown
    room = max((tokens - int(PAST_ROOM * tokens) - used) // step, 1) * step
    more = max(room_for_all(brief, background) - room, 0) if tools is None else 0
    more = more if room + more <= WHOLE_CODE and tokens + more <= context * (1 - REPLY_SHARE) else 0
    shown = excerpt(brief, background, room + more, fill=FILL_SHARE if tools is None else 0)
    values |= {"code": shown.text() if code else "", "unshown": shown.unshown if code else ""}
    markers = _markers(brief, background, shown.files.values())
    if code and tools is None and not (shown.whole and not shown.unshown):
        values["unshown"] = (
            f"{values['unshown']}\n\n{MORE.format(tokens=f'{int(READ_SHARE * context):,}', **markers)}".strip()
        )
    present = estimate_tokens(rules) + sum(map(estimate_tokens, _sections(sections, {**values, **NO_PAST})))
    past = int(min(PAST_SHARE * tokens, present * PAST_SHARE / (1 - PAST_SHARE)))
    values |= _past(background, past)
    relatives = (*background.siblings, *background.inspirations)
    changes = digest.shown(relatives, values["siblings"] + values["inspirations"])
    unshown = [relative for relative in background.inspirations if relative.candidate.commit not in changes]
    if not brief.conflicts and any(relative.diff for relative in unshown):
        left = min(int(BEST_SHARE * tokens), tokens + more - present - past)
        values["donor_code"] = digest.code_of(background.donor, background.donor_files, left, "of the other one")
    values["used"] = digest.used(background)
    others = ((background.best, values["best_code"]), (background.donor, values["donor_code"]))
    whole = [other.candidate.commit for other, code in others if other and code]
    return Written(
        _fill("rules.md", rules, {**markers, **(tools or {})}),
        tuple(_sections(sections, values)),
        tuple(dict.fromkeys((*whole, *changes))),
        values["used"],
    )


def write_file(
    brief: Brief, background: Background, context: int = FILE_CONTEXT, *, evaluations: int = 3, network: bool = False
) -> Written:
    """Write the brief for a coding program, which can read the code where it is and have it evaluated so often."""
    values = {"evaluations": EVALUATIONS.format(evaluations) if evaluations else NO_EVALUATIONS}
    values["network"] = NETWORK if network else NO_NETWORK
    return write(brief, background, context, values, how="program.md", code=False)


def write_plain(brief: Brief, background: Background, context: int) -> Written:
    """Write what a loop without memory tells: the goal, the parent and its score, and why the last one failed.

    Raises ConfigError: a template of the task is wrong; NoUsableChangeError: the parent's files do not fit.
    """
    shown = excerpt(brief, background, int(context * (1 - REPLY_SHARE)))
    if not shown.whole:
        raise NoUsableChangeError(f"expected files that fit into the {context:,} tokens of a question, got larger ones")
    primary, evaluation = background.metrics[0], background.evaluation
    value = evaluation.metrics.get(primary.name) if evaluation and evaluation.ok else None
    _, mark, rules = _template("rules.md", background).partition(CHEATING)  # what is before speaks of other agents
    score = "none yet" if value is None else digest.score(value, 0.0, background.places)
    values = _values(brief, background, context, ONE_CHANGE) | {
        "code": "\n\n".join(shown.files[path] for path in sorted(brief.files)),
        "score": f"{primary.name} ({primary.direction} it): {score}",
        "failure": fence(cut(plain(background.last_failure), digest.CASE_FEEDBACK)),
    }
    told = _fill("rules.md", mark + rules, _markers(brief, background, shown.files.values()))
    return Written(told, tuple(_sections(_template("plain.md", background), values)))


def repair(reason: str, hint: str, background: Background) -> str:
    """Return the message about an unusable reply. Raises ConfigError: the task's template is wrong."""
    return _fill("repair.md", _template("repair.md", background), {"reason": reason, "hint": hint})


def look_back(background: Background) -> str:
    """Return what a model is asked when nothing has helped for a while. Raises ConfigError: the template is wrong."""
    return _fill("tactic.md", _template("tactic.md", background), {})


def _values(brief: Brief, background: Background, tokens: int, now: str) -> dict[str, str]:
    """What the placeholders of the sections stand for, code and past left out."""
    room = {name: int(share * tokens) for name, share in SHARES.items()}
    instructions = background.read(INSTRUCTIONS) if INSTRUCTIONS in background.sizes else b""
    return {
        "task": background.task,
        "goal": brief.goal,
        "conflicts": digest.conflicts(brief.conflicts),
        "guidance": "\n".join(f"- {indent(plain(said), '  ').strip()}" for said in background.guidance),
        "lessons": digest.listed(background.lessons, MAX_LESSON_TOKENS),
        "role": plain(brief.role),
        "refusals": digest.listed(background.refusals, int(REFUSALS_SHARE * tokens)),
        "tactic": fence(cut(plain(background.tactic), TACTIC)),
        "instructions": fence(cut(plain(instructions.decode(errors="replace")), room["instructions"])),
        "profile": fence(cut(plain(background.profile), room["profile"])),
        "editable": ", ".join(f"`{glob}`" for glob in background.editable),
        "judge": digest.judge(background),
        "scores": digest.scores(background),
        "cases": digest.cases(background),
        "feedback": digest.feedback(background, room["feedback"]),
        "log": digest.output(background.log, room["log"]),
        "output": digest.output(background.output, room["output"]),
        "primary": background.metrics[0].name,
        "now": now.format(metric=background.metrics[0].name),
        "best": digest.best(background),
        "best_code": ""
        if brief.conflicts
        else digest.code_of(background.best, background.best_files, int(BEST_SHARE * tokens), "of the best"),
        "donor_code": "",
        "direction": direction(brief, background),
    }


def _markers(brief: Brief, background: Background, texts: Iterable[str]) -> dict[str, str]:
    """What the placeholders of the rules stand for, with markers that none of the texts has."""
    length = marker_length(texts)
    markers = {"less": "<" * length, "equal": "=" * length, "greater": ">" * length, "length": str(length)}
    all_there = set(background.editable) == set(brief.files)
    return {**markers, "files": "" if all_there else FILES.format_map(markers)}


def _past(background: Background, tokens: int) -> dict[str, str]:
    """What the placeholders of the past stand for; what one of them leaves the next ones may have."""
    tellers: dict[str, Callable[[int], str]] = {
        "ideas": lambda room: digest.ideas(background, min(max(room, MIN_IDEAS_TOKENS), MAX_IDEAS_TOKENS)),
        "notes": lambda room: "\n\n".join(
            fence(cut(plain(note), room // len(background.notes))) for note in background.notes
        ),
        "inspirations": lambda room: digest.inspirations(background, room),
        "lineage": lambda room: digest.lineage(background, room),
        "failures": lambda room: digest.listed(background.failures, room),
        "others": lambda room: digest.listed(background.others, room),
        "siblings": lambda room: digest.siblings(background, room),
    }
    values = dict[str, str]()
    for name, tell in tellers.items():
        values[name] = tell(int(PAST_SHARES[name] * tokens))
        tokens = max(tokens - estimate_tokens(values[name]) - HEADING * bool(values[name]), 0)
    return values


def _template(name: str, background: Background) -> str:
    folder = background.templates
    if (folder / name).is_file():
        return text_at(folder.parent, f"{folder.name}/{name}")
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _sections(template: str, values: Mapping[str, str]) -> list[str]:
    parts = re.split(r"^(?=## )", template, flags=re.MULTILINE)
    filled = []
    for part in filter(None, parts):
        names = Template(part).get_identifiers()
        if not names or any(values.get(name, "unknown").strip() for name in names):
            filled.append(_fill("brief.md", part, values))
    return filled


def _fill(name: str, template: str, values: Mapping[str, str]) -> str:
    try:
        return Template(template).substitute(values)
    except KeyError as error:
        known = ", ".join(f"${key}" for key in sorted(values))
        raise ConfigError(f"{name}: unknown placeholder ${error.args[0]}; known: {known}") from error
    except ValueError as error:
        raise ConfigError(f"{name}: {error}; write $$ for a dollar sign") from error


DIRECTIONS = (
    "a family of approaches that is not listed as tried",
    "the search: where it begins, and how it leaves what is only the best nearby",
    "the model: what is assumed, left out or represented too coarsely",
    "what the worst cases or the latest failures have in common",
    "limits and constants: what is not used up, or chosen with too much care",
)
"""Of an agent's move, the next one after the other's: moves that are thought about together differ in theirs."""

SPEED_DIRECTIONS = (
    DIRECTIONS[0],
    "the data: what is computed, copied or looked up again although it need not be",
    "the innermost work: where most of the time arises",
    *DIRECTIONS[3:],
)
"""The same where the metric is a time, a rate or a ratio of such."""


def direction(brief: Brief, background: Background) -> str:
    """Return where an agent with company looks first: the next direction that no other one claims; "" for conflicts."""
    if background.agents <= 1 or brief.conflicts or not brief.move:
        return ""
    if background.profile:
        number = (brief.move - 1) % background.agents + 1
        return f"place {number} of the profile by its share, files apart, unless another one's plan names it already"
    taken = "\n".join(brief.claims.others()) if brief.claims else ""
    directions = SPEED_DIRECTIONS if background.metrics[0].noise == "log" else DIRECTIONS
    first = brief.move % len(directions)
    places = directions[first:] + directions[:first]
    return next((place for place in places if place not in taken), places[0])
