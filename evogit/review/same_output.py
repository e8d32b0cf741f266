"""Compare what two trees print for generated inputs, which a change for speed must leave alone.

Inputs are files of the seed, and mutations of them that follow from a fixed seed, so that the same task has the same
inputs everywhere. An input on which outputs differ is shrunk by delta debugging (Zeller and Hildebrandt, 2002).
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evogit.config import Task
from evogit.config.values import EvaluationCommand, matches
from evogit.core import EvaluatorError, Files, RefusedError
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.seed_files import seed_of
from evogit.repository import Repository
from evogit.repository.changes import LINE
from evogit.review.uncommitted import candidate_files
from evogit.sandbox import Completed
from evogit.sandbox.archive import laid_over

INPUTS = 300
"""Inputs for a candidate."""

FEW_INPUTS = 20
"""Inputs by which `check` sees whether the seed's output repeats."""

BATCH = 25
"""Inputs of one session in the sandbox."""

MAX_INPUT_BYTES = 32 * 1024
"""Bytes of a mutated input, about; larger files are cut at lines."""

MAX_WINDOW_LINES = 40
"""Lines of a file from which half of the inputs are made: short ones leave more room for what is odd."""

MAX_EDITS = 6
"""Edits of the lines of an input, or of its characters if not many of these become odd."""

MAX_SHRINK_S = 120.0
"""Seconds for which smaller inputs are tried for a difference."""

MAX_INPUT_S = 5
"""Seconds of wall clock for one input; a program that takes longer is killed, on either side."""

MAX_SHOWN_BYTES = 4_000
"""Bytes of an output that are kept to be shown."""

CHARACTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+|.", re.DOTALL)

LETTERS = tuple(map(str.encode, ("\xe9", "\xdf", "e\u0301", "\u0130", "\u0663", "\u5b57", "\U0001f600")))
CONTROLS = (b"\x00", b"\t", b"\r", b"\r\n", b"\x0b", b"\x0c", b"\x1b", b"\x7f", b"\\", b"  \n", b"\n\n", b"\xc2\x85")
INVISIBLE = tuple(map(str.encode, ("\xa0", "\u2028", "\u200b", "\u202e", "\ufeff")))
INVALID = (b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xff")  # lone surrogates, and no UTF-8 at all
ODD = (LETTERS, LETTERS, CONTROLS, INVISIBLE, INVALID)
"""Characters that inputs seldom have and programs often get wrong."""

BEGIN = (
    'inputs=$PWD/.evogit-inputs; cd -- "$1" || exit 126; '
    f"limit=; command -v timeout >/dev/null && limit='timeout -s KILL {MAX_INPUT_S}'; "
)
SCRIPT = (
    f'{BEGIN}for input in "$inputs"/*; do $limit sh -c "$2" <"$input" >"$inputs.out" 2>/dev/null; '
    'echo "$? $(cksum <"$inputs.out")"; done'
)
"""For the shell: directory and command; prints exit code, checksum and size of each input's output."""

ONE = f'{BEGIN}exec $limit sh -c "$2" <"$inputs/0000"'
"""For the shell: the same for one input, which prints the output itself."""


class Difference(Struct, frozen=True):
    """The smallest input found on which outputs differ, shrunk from one of `size` bytes; with both outputs."""

    text: str
    size: int
    source: str
    before: str
    after: str


class OutputComparison(Struct, frozen=True):
    """The outputs of two trees for `inputs` inputs made of so many `files`; a `problem` makes them incomparable."""

    inputs: int
    files: int
    differing: int
    problem: str = ""
    difference: Difference | None = None

    @property
    def objection(self) -> str:
        """Why the second tree should not be taken; empty if nothing differs."""
        return self.problem or (f"{self.differing} differ" if self.differing else "")

    @property
    def summary(self) -> str:
        """The outcome in a line."""
        made = f"output (same_output) for {self.inputs} inputs made of {self.files} files: "
        return made + (self.objection or "no difference")


async def compare_outputs(
    repository: Repository, task: Task, before: str, after: str, provider: str, count: int = INPUTS
) -> OutputComparison | None:
    """Compare what two trees print for `count` inputs made of the first one's files; None if the task names no command.

    Raises:
        RefusedError: no file matches `same_inputs`.
        EvoGitError: the sandbox or the command cannot be used.
    """
    command = task.command
    if command is None or not command.same_output:
        return None
    wanted = lambda path: matches(path, command.same_inputs) and task.is_judged(path)  # noqa: E731
    files = repository.trees.files(before, wanted)
    if not files:
        raise RefusedError(f"evaluator.same_inputs: no file of the seed matches {', '.join(command.same_inputs)}")
    sides = [await candidate_files(repository, task, before, tree) for tree in (before, after)]
    async with Evaluator(task, provider=provider, jobs=2) as evaluator:
        return await _Comparison(evaluator, command, sides).of(files, count)


async def check_repeats(task: Task, provider: str) -> OutputComparison | None:
    """Compare the seed's outputs with themselves. Raises as `compare_outputs` does."""
    with tempfile.TemporaryDirectory(prefix="evogit-check-") as folder:
        repository, tree = seed_of(task, Path(folder) / "seed")
        return await compare_outputs(repository, task, tree, tree, provider, FEW_INPUTS)


# --- inputs -------------------------------------------------------------------------------------------------------


def inputs_of(files: Mapping[str, bytes], count: int) -> Iterator[tuple[str, bytes]]:
    """Yield `count` inputs, each with its file: the files as they are (half of them at most), then mutations."""
    paths = sorted(files)
    originals = paths[: max(count // 2, 1)]
    yield from ((path, files[path]) for path in originals)
    for number in range(count - len(originals)):
        rng = random.Random(f"same output/{number}")
        path, other = rng.choice(paths), rng.choice(paths)
        lines = LINE.findall(files[path])
        if len(files[path]) > MAX_INPUT_BYTES or rng.random() < 0.5:
            first = rng.randrange(len(lines) or 1)
            lines = lines[first : first + rng.randint(1, MAX_WINDOW_LINES)]
        yield path, _mutated(b"".join(lines)[:MAX_INPUT_BYTES], files[other], rng)


def _mutated(text: bytes, other: bytes, rng: random.Random) -> bytes:
    """Edit lines, then characters: a few in any way, or many with something odd in their place or before them."""
    for unit in (LINE, CHARACTER):
        parts, pieces = unit.findall(text), unit.findall(other)
        if unit is CHARACTER and rng.random() < 0.5:
            many = 1 + len(parts) // rng.choice((50, 400))
            for at in sorted((rng.randint(0, len(parts)) for _ in range(many)), reverse=True):
                parts[at : at + rng.randint(0, 1)] = [rng.choice(rng.choice(ODD))]
        else:
            for _ in range(rng.randint(0, MAX_EDITS)):
                _edit(parts, pieces, rng)
        text = b"".join(parts)
    return text


def _edit(parts: list[bytes], others: Sequence[bytes], rng: random.Random) -> None:
    """Delete, move or duplicate a run of lines or characters, splice one in, or insert something odd."""
    at, size, first = rng.randint(0, len(parts)), rng.choice((1, 1, 1, 2, 4, 12)), rng.randint(0, len(others))
    run, odd = parts[at : at + size], rng.choice(rng.choice(ODD))
    new: tuple[Sequence[bytes], ...] = ([], run, run * rng.choice((1, 3, 20)), others[first : first + size], [odd])
    way = rng.randrange(len(new))
    if way < 2:
        del parts[at : at + size]
        at = rng.randint(0, len(parts))
    parts[at:at] = new[way]


# --- outputs ------------------------------------------------------------------------------------------------------


class _EnoughError(Exception):
    """Smaller inputs were tried for long enough."""


@dataclass(slots=True)
class _Comparison:
    """The command on the files of two trees, the first of which is right."""

    evaluator: Evaluator
    command: EvaluationCommand
    sides: Sequence[Files]
    shrink_until: float = math.inf

    async def of(self, files: Mapping[str, bytes], count: int) -> OutputComparison:
        made, originals = list(inputs_of(files, count)), min(len(files), max(count // 2, 1))
        differing, unsteady, failed = list[tuple[str, bytes]](), 0, 0
        for begin in range(0, count, BATCH):
            batch = made[begin : begin + BATCH]
            lines = await self._lines([text for _, text in batch])
            failed += sum(not ours.startswith("0 ") for ours, _ in lines[: max(originals - begin, 0)])
            apart = [(each, ours) for each, (ours, theirs) in zip(batch, lines, strict=True) if ours != theirs]
            again = await self._lines([text for (_, text), _ in apart])
            for (each, before), (ours, theirs) in zip(apart, again, strict=True):
                unsteady += ours != before
                differing += [each] if before == ours != theirs else []
        problem = f"the command prints something else each time for {unsteady} of them" if unsteady else ""
        if failed == originals:
            error = (await self._shown(0, made[0][1])).splitlines()[-2:]
            problem = f"the command fails on all {failed} files as they are: {' '.join(error)}"
        difference = await self._smallest(differing) if differing and not problem else None
        return OutputComparison(count, len(files), len(differing), problem, difference)

    async def _smallest(self, differing: Sequence[tuple[str, bytes]]) -> Difference:
        source, text = min(differing, key=lambda each: len(each[1]))
        size, self.shrink_until = len(text), time.monotonic() + MAX_SHRINK_S
        with suppress(_EnoughError):
            for unit in (LINE, CHARACTER):
                async for kept in ddmin(unit.findall(text), self._first_differing):
                    text = b"".join(kept)
        shown = text.decode(errors="backslashreplace")
        return Difference(shown, size, source, await self._shown(0, text), await self._shown(1, text))

    async def _first_differing(self, tried: Sequence[Sequence[bytes]]) -> int | None:
        for begin in range(0, len(tried), BATCH):
            if time.monotonic() > self.shrink_until:
                raise _EnoughError
            lines = await self._lines([b"".join(parts) for parts in tried[begin : begin + BATCH]])
            if found := [number for number, (ours, theirs) in enumerate(lines, begin) if ours != theirs]:
                return found[0]
        return None

    async def _lines(self, inputs: Sequence[bytes]) -> list[tuple[str, str]]:
        """Return what identifies the outputs of each input on both sides."""
        ours, theirs = await asyncio.gather(self._outputs(0, inputs), self._outputs(1, inputs))
        return list(zip(ours, theirs, strict=True))

    async def _outputs(self, side: int, inputs: Sequence[bytes]) -> list[str]:
        """Exit code and checksum of each input, or the limit that it breaks."""
        if not inputs:
            return []
        done = await self._run(side, SCRIPT, inputs)
        lines = done.stdout.decode(errors="replace").splitlines()
        if done.code == 0 and len(lines) == len(inputs):
            return lines
        if len(inputs) == 1:
            return [done.breach or f"signal {done.signal}"]
        half = len(inputs) // 2
        return [*await self._outputs(side, inputs[:half]), *await self._outputs(side, inputs[half:])]

    async def _shown(self, side: int, text: bytes) -> str:
        """The output of one input, and how it ended unless well."""
        done = await self._run(side, ONE, [text])
        end = done.breach or (f"signal {done.signal}" if done.signal else f"exit code {done.code}")
        shown = done.stdout if done.code == 0 else done.stdout + done.stderr + f"({end})".encode()
        return shown[-MAX_SHOWN_BYTES:].decode(errors="backslashreplace")

    async def _run(self, side: int, script: str, inputs: Sequence[bytes]) -> Completed:
        own = {f".evogit-inputs/{number:04}": (text, False) for number, text in enumerate(inputs)}
        files = replace(self.sides[side], changed=laid_over(self.sides[side].changed, ".evogit-inputs", own))
        argv = ["sh", "-c", script, "sh", self.command.directory or ".", self.command.same_output]
        done = await self.evaluator.run(files, argv, wall=self.evaluator.task.limits.wall, laid=True)
        if done.code == 126 or (done.code is None and not done.breach and not done.signal):
            why = done.detail or done.stderr.decode(errors="replace").strip()
            raise EvaluatorError(f"evaluator.same_output cannot be run: {why}")
        return done


# --- delta debugging ----------------------------------------------------------------------------------------------

T = TypeVar("T")

FirstPassing = Callable[[Sequence[Sequence[T]]], Awaitable[int | None]]
"""The index of the first of these selections that passes; None when none does."""


async def ddmin(whole: Sequence[T], first_passing: FirstPassing[T]) -> AsyncIterator[tuple[T, ...]]:
    """Ever smaller selections that pass, the last of which passes without none of its single elements.

    The algorithm ddmin of Zeller and Hildebrandt ("Simplifying and isolating failure-inducing input", 2002), given that
    the whole passes. Nothing at all is asked about first. Single elements are not tried alone in the end, as leaving
    out the others one by one finds them too. At worst n * n + 3 n selections are tried of n elements.
    """
    if not whole or await first_passing([()]) is not None:
        yield ()
        return
    kept, parts = tuple(whole), 2
    while len(kept) > 1:
        cuts = [len(kept) * i // parts for i in range(parts + 1)]  # about equal pieces, none of them empty
        chunks = [kept[a:b] for a, b in pairwise(cuts)]
        alone = chunks if parts < len(kept) or parts == 2 else []
        without = [tuple(x for other in chunks if other is not chunk for x in other) for chunk in chunks]
        tried = [*alone, *(without if parts > 2 else [])]
        found = await first_passing(tried)
        if found is None:
            if parts >= len(kept):
                return
            parts = min(2 * parts, len(kept))
            continue
        kept, parts = tried[found], 2 if found < len(alone) else max(parts - 1, 2)
        yield kept
