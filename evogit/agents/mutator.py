"""The offline agent: typed edits of Python sources, number and line edits of other texts, no model.

It is the embedded default and the baseline. The thinking is the pure function `mutate`, which worker processes do.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from evogit.agents import Brief, Files, NoUsableChangeError, Proposal
from evogit.agents import edits as typed
from evogit.agents.edits import Edit
from evogit.source import Source, parse

P = ParamSpec("P")
T = TypeVar("T")

OPERATORS: tuple[tuple[typed.Operator, float], ...] = (
    (typed.perturb_number, 0.50),
    (typed.insert_term, 0.10),
    (typed.swap_operator, 0.07),
    (typed.swap_name, 0.07),
    (typed.drop_operand, 0.05),
    (typed.swap_call, 0.04),
    (typed.swap_literal, 0.03),
    (typed.change_condition, 0.04),
    (typed.duplicate_statement, 0.04),
    (typed.move_statement, 0.03),
    (typed.delete_statement, 0.03),
)
"""The ways to edit a Python module and their chances, as measured in docs/design/mutator.md."""

EXCHANGE = 0.15
"""Chance to take definitions of the donor, where there is one that differs in more than one of them."""

ONE_MORE = 0.35
"""Chance of a further edit after each edit."""

_ATTEMPTS = 30
_FILES = 32
_LARGEST = 256 * 1024
_PYTHON = (".py", ".pyw", ".pyi")


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
            raise NoUsableChangeError(f"the mutator's worker process died twice: {error}") from error

    async def _think(self, files: Files, donor_files: Files, seed: int) -> Proposal:
        return await asyncio.get_running_loop().run_in_executor(self._pool, mutate, files, donor_files, seed)


def _drawn(files: Files, rng: random.Random) -> list[str]:
    """At most so many names that reading and sending the files stays cheap in a large repository."""
    python = sorted(name for name in files if name.endswith(_PYTHON))
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
    weights = {name: _weight(name, content) for name, content in files.items()}
    names = sorted(name for name, weight in weights.items() if weight)
    if not names:
        raise NoUsableChangeError("expected an editable text file or Python module that parses, found none")
    for _ in range(_ATTEMPTS):
        name = rng.choices(names, [weights[each] for each in names])[0]
        edits = _edits(name, files[name], rng)
        new = typed.apply(files[name], edits)
        if new != files[name] and _acceptable(name, new):
            return Proposal(changes={name: new}, title=_title(edits))
    raise NoUsableChangeError(f"{_ATTEMPTS} attempts to edit {', '.join(names[:3])} gave nothing that parses")


def _weight(name: str, content: bytes) -> float:
    """In proportion to size; what is not code is worth a tenth, and what cannot be read nothing."""
    if len(content) > _LARGEST:
        return 0.0
    if name.endswith(_PYTHON):
        return float(len(content)) if _module(name, content) else 0.0
    return 0.1 * len(content) if _is_text(content) else 0.0


def _module(name: str, content: bytes) -> Source | None:
    return parse(content) if name.endswith(_PYTHON) and len(content) <= _LARGEST else None


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _acceptable(name: str, content: bytes) -> bool:
    return typed.compiles(content) if name.endswith(_PYTHON) else True


def _edits(name: str, content: bytes, rng: random.Random) -> list[Edit]:
    """One edit and, ever less likely, more of them, that do not overlap."""
    edits: list[Edit] = []
    while not edits or rng.random() < ONE_MORE:
        edit = _edit(name, content, rng)
        if edit is None:
            return edits
        if not any(edit.overlaps(other) for other in edits):
            edits.append(edit)
    return edits


def _edit(name: str, content: bytes, rng: random.Random) -> Edit | None:
    source = _module(name, content)
    if source is None:
        return typed.edit_text(content, rng)
    operators, chances = zip(*OPERATORS, strict=True)
    tries = (operator(source, rng) for operator in rng.choices(operators, chances, k=_ATTEMPTS))
    return next((edit for edit in tries if edit), None)


def _title(edits: list[Edit]) -> str:
    more = f" (+{len(edits) - 1} more)" if len(edits) > 1 else ""
    return typed.one_line(edits[0].title, 72 - len(more)) + more


def _exchange(files: Files, donor_files: Files, rng: random.Random) -> Proposal | None:
    """Some but not all definitions in which the donor differs, as all of them would be the donor again."""
    pairs = []
    for name in sorted(files.keys() & donor_files.keys()):
        mine, other = _module(name, files[name]), _module(name, donor_files[name])
        if mine and other:
            pairs += [(name, typed.exchange(*pair)) for pair in typed.exchangeable(mine, other)]
    if len(pairs) < 2:
        return None
    taken = rng.sample(pairs, rng.randint(1, len(pairs) - 1))
    changes = {
        name: typed.apply(files[name], [edit for other, edit in taken if other == name])
        for name in sorted({name for name, _ in taken})
    }
    if not all(typed.compiles(content) for content in changes.values()):
        return None
    title = typed.one_line("exchange " + ", ".join(edit.title for _, edit in taken))
    return Proposal(changes=changes, title=title, strategy="exchange", used_donor=True)


# --- the workers ------------------------------------------------------------------------------------------------


class MutatorPool(Executor):
    """Worker processes that outlive neither Ctrl-C nor the engine, and are replaced when one of them is killed."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._processes = self._start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in a worker; its arguments and result are pickled."""
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
        return ProcessPoolExecutor(self._workers, mp_context=context, initializer=_begin_work)


def mutator_pool(workers: int) -> MutatorPool:
    """Processes for `Mutator`; close it with `shutdown()` or as a context manager."""
    return MutatorPool(workers)


def _begin_work() -> None:
    """In a new worker: leave Ctrl-C to the engine, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_engine, daemon=True).start()


def _end_with_engine() -> None:
    if engine := multiprocessing.parent_process():
        engine.join()
        os._exit(0)
