"""The offline agent: typed edits of Python modules, without a model.

It is the default and the baseline. The work is done by the pure function `mutate`, which takes a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from evogit.agents import Agent, Brief, FileContents, NoUsableChangeError, Proposal
from evogit.agents.mutation import operators as typed
from evogit.agents.mutation.mix import USUAL, Mix, drawn
from evogit.agents.mutation.operators import Edit, apply
from evogit.agents.mutation.tuning import TUNING, numbers, tune
from evogit.core import UsageError
from evogit.repository.paths import named as named_paths
from evogit.source import MAX_SOURCE_BYTES
from evogit.source.collector import parse
from evogit.source.definitions import compiles
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

ELSEWHERE = 0.3  # chance that a further edit is of any file instead of the same one

_FIRST = {**TUNING, "": 1 - sum(TUNING.values())}
"""What is tried first where numbers may be tuned, and its chances; "": an edit or an exchange."""

MAX_WAYS = 3  # ways that a strategy names

_ATTEMPTS = 30
_TRIES = 200
_FILES = 32


class Mutator(Agent):
    """Mutates without a model, and as often for one move as it takes to find something new."""

    kind = "mutator"
    pauses = False
    prolific = True

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Propose a few typed edits, mostly of one file, or definitions of the donor."""
        return next(self.proposals(brief, rng))

    def proposals(self, brief: Brief, rng: random.Random) -> Iterator[Proposal]:
        """Such proposals without end, each drawn when it is asked for."""
        files = _drawn(brief.files, rng)
        donor_files = {name: brief.donor_files[name] for name in files if name in brief.donor_files}
        mix = Mix(boldness=brief.boldness, steps=brief.steps)
        while True:
            yield mutate(files, donor_files, rng.getrandbits(64), mix)


def is_edited(path: str) -> bool:
    """Return whether the mutator edits files of this name: Python modules."""
    return path.endswith((".py", ".pyw", ".pyi"))


def check_edited(paths: Sequence[str]) -> None:
    """Raise UsageError if the mutator edits none of the editable paths."""
    if not any(map(is_edited, paths)):
        raise UsageError(
            "expected an editable Python module, because agents without a model edit no other language; got "
            f"{named_paths(paths)}: use --model MODEL"
        )


def _drawn(files: FileContents, rng: random.Random) -> FileContents:
    """Return at most `_FILES` modules of `MOST_SOURCE_BYTES` together: all are parsed, in a large repository too."""
    names = sorted(filter(is_edited, files))
    room, drawn = MOST_SOURCE_BYTES, dict[str, bytes]()
    for name in rng.sample(names, min(len(names), _FILES)):
        content = files[name]
        if len(content) <= MAX_SOURCE_BYTES:
            room -= len(content)
            if room >= 0:
                drawn[name] = content
    return drawn


def mutate(files: FileContents, donor_files: FileContents, seed: int, mix: Mix = USUAL) -> Proposal:
    """Edit modules, or take the donor's definitions over. Raises NoUsableChangeError: nothing can be edited."""
    rng = random.Random(seed)
    if mix.steps is not None and (found := numbers(files)):
        way = drawn(_FIRST, rng)
        if way in TUNING and (proposal := tune(files, found, mix.steps, way, rng)):
            return proposal
    if rng.random() < EXCHANGE and (proposal := _exchange(files, donor_files, rng)):
        return proposal
    weights = {name: len(files[name]) for name in sorted(files) if files[name]}
    for _ in range(_ATTEMPTS):
        edits = _edits(files, weights, mix, rng)
        changes = {name: new for name in edits if (new := apply(files[name], edits[name])) != files[name]}
        if changes and all(map(compiles, changes.values())):
            made = [edit for edits_of_file in edits.values() for edit in edits_of_file]
            ways: dict[str, str] = {}  # each once
            for edit in made:
                ways.setdefault(edit.way.partition("@")[0], edit.way)
            strategy = "+".join(list(ways.values())[:MAX_WAYS])
            return Proposal(changes=changes, title=_title(files, edits), strategy=strategy)
    names = one_line(", ".join(sorted(files)) or "none")
    raise NoUsableChangeError(
        f"expected a Python module of at most {MAX_SOURCE_BYTES // 1024} KiB that parses and has something to edit, "
        f"got {names}; other files need a model"
    )


def _edits(files: FileContents, weights: dict[str, int], mix: Mix, rng: random.Random) -> dict[str, list[Edit]]:
    """Make one edit and, ever less likely, more; files without anything to edit are taken out of `weights`."""
    edits: dict[str, list[Edit]] = {}
    name = ""
    while weights and (not edits or rng.random() < mix.one_more):
        if name not in weights or rng.random() < ELSEWHERE:
            name = rng.choices(list(weights), list(weights.values()))[0]
        if (edit := _edit(files[name], mix, rng)) is None:
            del weights[name]
        elif not any(edit.overlaps(other) for other in edits.get(name, ())):
            edits.setdefault(name, []).append(edit)
    return edits


def _edit(content: bytes, mix: Mix, rng: random.Random) -> Edit | None:
    if (source := parse(content)) is None:
        return None
    for _ in range(_TRIES):
        way = drawn(EDITS, rng)
        if way == "perturb_number":
            edit = typed.perturb_number(source, rng, mix)
        else:
            operator: typed.Operator = getattr(typed, way)  # the ways are names of its functions
            edit = operator(source, rng)
            edit = replace(edit, way=way) if edit else None
        if edit and may_change(content, edit.start, edit.end):
            return edit
    return None


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
    for name in sorted(files.keys() & donor_files.keys()):
        mine, other = parse(files[name]), parse(donor_files[name])
        if mine and other and mine.content != other.content:
            pairs += [(name, typed.exchange(*pair)) for pair in typed.exchangeable(mine, other)]
    if len(pairs) < 2:
        return None
    taken = rng.sample(pairs, rng.randint(1, len(pairs) - 1))
    changes = {
        name: apply(files[name], [edit for other, edit in taken if other == name])
        for name in sorted({name for name, _ in taken})
    }
    if not all(map(compiles, changes.values())):
        return None
    title = one_line("exchange " + ", ".join(edit.title for _, edit in taken))
    return Proposal(changes=changes, title=title, strategy="exchange", used_donor=True)
