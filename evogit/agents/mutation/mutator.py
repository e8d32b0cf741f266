"""The offline agent: typed edits of Python and of what a grammar reads, number and line edits of other texts, no model.

It is the embedded default and the baseline. The thinking is the pure function `mutate`, which takes a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec.structs import replace

from evogit.agents import Agent, Brief, FileContents, NoUsableChangeError, Proposal
from evogit.agents.mutation import operators as typed
from evogit.agents.mutation.edits import MOST_WAYS, Edit, apply, edit_text
from evogit.agents.mutation.mix import USUAL, Mix
from evogit.agents.mutation.tuning import TUNING, numbers, tune
from evogit.source import MAX_SOURCE_BYTES, Source, compiles, languages, parse
from evogit.source.marks import may_change
from evogit.source.pieces import MOST_SOURCE_BYTES
from evogit.text import TITLE_LENGTH, one_line

EDITS: dict[str, float] = {
    "perturb_number": 0.55,
    "insert_term": 0.12,
    "swap_operator": 0.06,
    "swap_name": 0.05,
    "drop_operand": 0.05,
    "swap_call": 0.02,
    "swap_literal": 0.03,
    "change_condition": 0.03,
    "duplicate_statement": 0.04,
    "move_statement": 0.03,
    "delete_statement": 0.02,
}
"""The ways to edit a Python module and their usual chances, as measured in docs/design/mutator.md."""

EXCHANGE = 0.15
"""Usual chance to take definitions of the donor, where there is one that differs in more than one of them."""

ELSEWHERE = 0.3
"""Chance that a further edit is of any file instead of the same one."""

_OPERATORS: dict[str, typed.Operator] = {
    each.__name__: each
    for each in (
        *(typed.insert_term, typed.swap_operator, typed.swap_name, typed.drop_operand, typed.swap_call),
        *(typed.swap_literal, typed.change_condition),
        *(typed.duplicate_statement, typed.move_statement, typed.delete_statement),
    )
}
_FIRST = {"exchange": EXCHANGE, **{way: (1 - EXCHANGE) * chance for way, chance in EDITS.items()}}
_WITH_TUNING = {**TUNING, **{way: (1 - sum(TUNING.values())) * chance for way, chance in _FIRST.items()}}

_ATTEMPTS = 30
_TRIES = 200
_FILES = 32
_LARGEST = 256 * 1024


class Mutator(Agent):
    """Mutates without a model, and as often for one move as it takes to find something new."""

    kind = "mutator"
    pauses = False
    prolific = True

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Propose a few typed edits, mostly of one file, or definitions of the donor.

        Raises:
            NoUsableChangeError: when nothing can be edited.
        """
        return next(self.proposals(brief, rng))

    def proposals(self, brief: Brief, rng: random.Random) -> Iterator[Proposal]:
        """Such proposals without end, each drawn when it is asked for.

        Raises:
            NoUsableChangeError: when nothing can be edited.
        """
        names = _drawn(brief.files, rng)
        files = _of_some_size({name: brief.files[name] for name in names})
        donor_files = _of_some_size({name: brief.donor_files[name] for name in files if name in brief.donor_files})
        mix = Mix(experience=brief.experience, boldness=brief.boldness, steps=brief.steps)
        while True:
            yield mutate(files, donor_files, rng.getrandbits(64), mix)


def _drawn(files: FileContents, rng: random.Random) -> list[str]:
    """At most so many names that reading the files stays cheap in a large repository."""
    programs = sorted(name for name in files if _is_program(name))
    others = sorted(files.keys() - set(programs))
    programs = rng.sample(programs, min(len(programs), _FILES))
    return programs + rng.sample(others, min(len(others), _FILES - len(programs)))


def _of_some_size(files: FileContents) -> FileContents:
    """Those that may be taken apart together, the first ones."""
    room, found = MOST_SOURCE_BYTES, dict[str, bytes]()
    for name, content in files.items():
        room -= len(content) if _is_typed(name, content) else 0
        if room >= 0 or not _is_typed(name, content):
            found[name] = content
    return found


# --- the thinking -----------------------------------------------------------------------------------------------


def mutate(files: FileContents, donor_files: FileContents, seed: int, mix: Mix = USUAL) -> Proposal:
    """Edit some of the files, or take over definitions of the donor's; equal arguments give equal proposals.

    Raises:
        NoUsableChangeError: when there is nothing that can be edited.
    """
    rng = random.Random(seed)
    if mix.steps is not None and (found := numbers(files)):
        way = mix.draw(_WITH_TUNING, rng)
        if way in TUNING and (proposal := tune(files, found, mix.steps, way, rng)):
            return proposal
    if rng.random() < mix.weights(_FIRST)[0] and (proposal := _exchange(files, donor_files, rng)):
        return proposal
    weights = {name: weight for name in sorted(files) if (weight := _weight(name, files[name]))}
    for _ in range(_ATTEMPTS):
        edits = _edits(files, weights, mix, rng)
        changes = {name: new for name in edits if (new := apply(files[name], edits[name])) != files[name]}
        if changes and all(_is_sound(name, files[name], new) for name, new in changes.items()):
            made = [edit for found in edits.values() for edit in found]
            return Proposal(changes=changes, title=_title(files, edits), strategy=_strategy(made))
    names = one_line(", ".join(sorted(files)) or "no file")
    raise NoUsableChangeError(f"expected a text, or a program that parses and has something to edit, got {names}")


def _is_python(name: str) -> bool:
    return name.endswith((".py", ".pyw", ".pyi"))


def _is_program(name: str) -> bool:
    """Whether a file is in a language that is read here."""
    return _is_python(name) or languages.is_read(name)


def _is_typed(name: str, content: bytes) -> bool:
    """Whether a file is taken apart; a module that is too large for it is edited like any other text."""
    return _is_program(name) and len(content) <= MAX_SOURCE_BYTES


def _source(name: str, content: bytes) -> Source | None:
    """The places for edits in a file that is taken apart; None where there are none, or it cannot be parsed."""
    return parse(content) if _is_python(name) else languages.read(languages.grammar(name), content)


def _is_sound(name: str, old: bytes, new: bytes) -> bool:
    """Whether a change parses, in languages other than Python as far as what it changes did."""
    if not _is_typed(name, new):
        return True
    if _is_python(name):
        return compiles(new)
    language = languages.grammar(name)
    return languages.faults(language, new) <= languages.faults(language, old)


def _weight(name: str, content: bytes) -> float:
    """In proportion to size; what is no program is worth a tenth, and what is binary or huge nothing."""
    if len(content) > _LARGEST or b"\0" in content:
        return 0.0
    try:
        content.decode()
    except UnicodeDecodeError:
        return 0.0
    return len(content) * (1.0 if _is_program(name) else 0.1)


def _edits(files: FileContents, weights: dict[str, float], mix: Mix, rng: random.Random) -> dict[str, list[Edit]]:
    """One edit and, ever less likely, more of them, that do not overlap; mostly of one file.

    Files in which there is nothing to edit are taken out of `weights`.
    """
    edits: dict[str, list[Edit]] = {}
    name = ""
    while weights and (not edits or rng.random() < mix.one_more):
        if name not in weights or rng.random() < ELSEWHERE:
            name = rng.choices(list(weights), list(weights.values()))[0]
        edit = _edit(name, files[name], mix, rng)
        if edit is None:
            del weights[name]
        elif not any(edit.overlaps(other) for other in edits.get(name, ())):
            edits.setdefault(name, []).append(edit)
    return edits


def _edit(name: str, content: bytes, mix: Mix, rng: random.Random) -> Edit | None:
    source = _source(name, content) if _is_typed(name, content) else None
    if source:
        chances = mix.weights(EDITS)
        ways = (rng.choices(list(EDITS), chances)[0] for _ in range(_TRIES))
        tries = (_try(way, source, mix, rng) for way in ways)
    elif _is_python(name) and len(content) <= MAX_SOURCE_BYTES:
        return None
    else:
        tries = (edit_text(content, rng, mix) for _ in range(_TRIES))
    return next((edit for edit in tries if edit and may_change(content, edit.start, edit.end)), None)


def _try(way: str, source: Source, mix: Mix, rng: random.Random) -> Edit | None:
    if way == "perturb_number":
        return typed.perturb_number(source, rng, mix)
    edit = _OPERATORS[way](source, rng)
    return replace(edit, way=way) if edit else None


def _strategy(edits: list[Edit]) -> str:
    """The ways in which a proposal was made, each once: history learns from it what pays."""
    ways: dict[str, str] = {}
    for edit in edits:
        ways.setdefault(edit.way.partition("@")[0], edit.way)
    return "+".join(list(ways.values())[:MOST_WAYS])


def _title(files: FileContents, edits: dict[str, list[Edit]]) -> str:
    """What the first edit does, and where: its line, and the file where there are several."""
    name, (first, *_) = next(iter(edits.items()))
    amount = sum(map(len, edits.values()))
    line = files[name].count(b"\n", 0, first.start) + 1
    place = f", {one_line(name, TITLE_LENGTH // 3)}:{line}" if len(files) > 1 else f", line {line}"
    tail = place + (f" (+{amount - 1} more)" if amount > 1 else "")
    return one_line(first.title, TITLE_LENGTH - len(tail)) + tail


def _exchange(files: FileContents, donor_files: FileContents, rng: random.Random) -> Proposal | None:
    """Some but not all definitions in which the donor differs, as all of them would be the donor again."""
    pairs = []
    for name in sorted(filter(_is_program, files.keys() & donor_files.keys())):
        if files[name] != donor_files[name]:
            mine, other = _source(name, files[name]), _source(name, donor_files[name])
            found = typed.exchangeable(mine, other) if mine and other else []
            pairs += [(name, typed.exchange(*pair)) for pair in found]
    if len(pairs) < 2:
        return None
    taken = rng.sample(pairs, rng.randint(1, len(pairs) - 1))
    changes = {
        name: apply(files[name], [edit for other, edit in taken if other == name])
        for name in sorted({name for name, _ in taken})
    }
    if not all(_is_sound(name, files[name], content) for name, content in changes.items()):
        return None
    title = one_line("exchange " + ", ".join(edit.title for _, edit in taken))
    return Proposal(changes=changes, title=title, strategy="exchange", used_donor=True)
