"""The offline agent: typed edits of Python sources, number and line edits of other texts, no model.

It is the embedded default and the baseline. The thinking is the pure function `mutate`, which worker processes do.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from evogit.agents import Brief, Files, NoUsableChangeError, Proposal
from evogit.agents import operators as typed
from evogit.agents.edits import TITLE_LENGTH, Edit, apply, edit_text, one_line
from evogit.source import compiles, parse
from evogit.workers import end_with_parent, signals_held_back

P = ParamSpec("P")
T = TypeVar("T")

OPERATORS: tuple[tuple[typed.Operator, float], ...] = (
    (typed.perturb_number, 0.55),
    (typed.insert_term, 0.12),
    (typed.swap_operator, 0.06),
    (typed.swap_name, 0.05),
    (typed.drop_operand, 0.05),
    (typed.swap_call, 0.02),
    (typed.swap_literal, 0.03),
    (typed.change_condition, 0.03),
    (typed.duplicate_statement, 0.04),
    (typed.move_statement, 0.03),
    (typed.delete_statement, 0.02),
)
"""The ways to edit a Python module and their chances, as measured in docs/design/mutator.md."""

EXCHANGE = 0.15
"""Chance to take definitions of the donor, where there is one that differs in more than one of them."""

ONE_MORE = 0.35
"""Chance of a further edit after each edit."""

_ATTEMPTS = 30
_TRIES = 200
_FILES = 32
_LARGEST = 256 * 1024


class Mutator:
    """Mutates without a model; `pool` runs `mutate`, so that parsing never holds up the loop."""

    kind = "mutator"

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Propose a few typed edits of one file, or definitions of the donor.

        Raises:
            NoUsableChangeError: when nothing can be edited, or the worker died twice.
        """
        names = _drawn(brief.files, rng)
        files = {name: brief.files[name] for name in names}
        donor_files = {name: brief.donor_files[name] for name in names if name in brief.donor_files}
        seed = rng.getrandbits(64)
        try:
            return await self._think(files, donor_files, seed)
        except BrokenExecutor:  # a worker was killed, perhaps by another file than ours
            pass
        try:
            return await self._think(files, donor_files, seed)
        except BrokenExecutor as error:
            raise NoUsableChangeError(
                f"the mutator's worker process died twice ({error}); a script of yours that starts runs must do so "
                'under `if __name__ == "__main__":`'
            ) from error

    async def _think(self, files: Files, donor_files: Files, seed: int) -> Proposal:
        return await asyncio.get_running_loop().run_in_executor(self._pool, mutate, files, donor_files, seed)


def _drawn(files: Files, rng: random.Random) -> list[str]:
    """At most so many names that reading and sending the files stays cheap in a large repository."""
    python = sorted(name for name in files if _is_python(name))
    others = sorted(files.keys() - set(python))
    python = rng.sample(python, min(len(python), _FILES))
    return python + rng.sample(others, min(len(others), _FILES - len(python)))


# --- the thinking -----------------------------------------------------------------------------------------------


def mutate(files: Files, donor_files: Files, seed: int) -> Proposal:
    """Edit one of the files, or take over definitions of the donor's; equal arguments give equal proposals.

    Raises:
        NoUsableChangeError: when there is nothing that can be edited.
    """
    rng = random.Random(seed)
    if rng.random() < EXCHANGE and (proposal := _exchange(files, donor_files, rng)):
        return proposal
    weights = {name: weight for name, content in files.items() if (weight := _weight(name, content))}
    for _ in range(_ATTEMPTS):
        if not weights:
            break
        names = sorted(weights)
        name = rng.choices(names, [weights[each] for each in names])[0]
        edits = _edits(name, files[name], rng)
        new = apply(files[name], edits)
        if not edits:  # it does not parse, or there is nothing in it to edit
            del weights[name]
        elif new != files[name] and (not _is_python(name) or compiles(new)):
            return Proposal(changes={name: new}, title=_title(edits))
    raise NoUsableChangeError(
        f"expected an editable text or a Python module that parses, found none to edit in {len(files)} files"
    )


def _is_python(name: str) -> bool:
    return name.endswith((".py", ".pyw", ".pyi"))


def _weight(name: str, content: bytes) -> float:
    """In proportion to size; what is not Python is worth a tenth, and what is binary or huge nothing."""
    if len(content) > _LARGEST or b"\0" in content:
        return 0.0
    try:
        content.decode()
    except UnicodeDecodeError:
        return 0.0
    return len(content) * (1.0 if _is_python(name) else 0.1)


def _edits(name: str, content: bytes, rng: random.Random) -> list[Edit]:
    """One edit and, ever less likely, more of them, that do not overlap."""
    edits: list[Edit] = []
    while not edits or rng.random() < ONE_MORE:
        edit = _edit(name, content, rng)
        if edit is None:
            break
        if not any(edit.overlaps(other) for other in edits):
            edits.append(edit)
    return edits


def _edit(name: str, content: bytes, rng: random.Random) -> Edit | None:
    if not _is_python(name):
        tries = (edit_text(content, rng) for _ in range(_TRIES))
    elif source := parse(content):
        operators, chances = zip(*OPERATORS, strict=True)
        tries = (rng.choices(operators, chances)[0](source, rng) for _ in range(_TRIES))
    else:
        return None
    return next((edit for edit in tries if edit), None)


def _title(edits: list[Edit]) -> str:
    more = f" (+{len(edits) - 1} more)" if len(edits) > 1 else ""
    return one_line(edits[0].title, TITLE_LENGTH - len(more)) + more


def _exchange(files: Files, donor_files: Files, rng: random.Random) -> Proposal | None:
    """Some but not all definitions in which the donor differs, as all of them would be the donor again."""
    pairs = []
    for name in sorted(filter(_is_python, files.keys() & donor_files.keys())):
        if files[name] != donor_files[name] and max(len(files[name]), len(donor_files[name])) <= _LARGEST:
            mine, other = parse(files[name]), parse(donor_files[name])
            found = typed.exchangeable(mine, other) if mine and other else []
            pairs += [(name, typed.exchange(*pair)) for pair in found]
    if len(pairs) < 2:
        return None
    taken = rng.sample(pairs, rng.randint(1, len(pairs) - 1))
    changes = {
        name: apply(files[name], [edit for other, edit in taken if other == name])
        for name in sorted({name for name, _ in taken})
    }
    if not all(compiles(content) for content in changes.values()):
        return None
    title = one_line("exchange " + ", ".join(edit.title for _, edit in taken))
    return Proposal(changes=changes, title=title, strategy="exchange", used_donor=True)


# --- the workers ------------------------------------------------------------------------------------------------


class MutatorPool(Executor):
    """Worker processes that outlive neither Ctrl-C nor the engine, and are replaced when one of them is killed."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        with signals_held_back():
            self._processes = self._start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in a worker; its arguments and result are pickled."""
        with signals_held_back():
            try:
                return self._processes.submit(fn, *args, **kwargs)
            except BrokenProcessPool:  # by an earlier call
                self._processes.shutdown(wait=False)
                self._processes = self._start()
                return self._processes.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers."""
        self._processes.shutdown(wait, cancel_futures=cancel_futures)

    def _start(self) -> ProcessPoolExecutor:
        # not "fork": the engine has threads, whose locks a forked child would find held for ever
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._workers, mp_context=context, initializer=end_with_parent)


def mutator_pool(workers: int) -> MutatorPool:
    """Processes for `Mutator`; close it with `shutdown()` or as a context manager."""
    return MutatorPool(workers)
