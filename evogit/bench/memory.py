"""Evaluations that runs of a bench share, also with later benches: evaluation is most of what a bench costs."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, to_builtins
from msgspec.json import decode
from msgspec.structs import replace

from evogit.bench.outcome import sealed, unsealed
from evogit.core import Evaluation, Evidence, Files, Judged
from evogit.engine.evaluations import EvaluationBackend
from evogit.repository.state_folder import open_folder


class Memory:
    """Evaluations by key, in a file of one sealed line each that several processes may append to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, str] = {}
        with suppress(FileNotFoundError), os.fdopen(self._open(os.O_RDONLY), "rb") as lines:
            for line in lines:
                told = line.decode(errors="replace")
                self._known[told.partition(" ")[2].partition(" ")[0]] = told

    def get(self, key: str) -> Evaluation | None:
        """The remembered outcome; None where there is none, or the line was cut off by a kill, or not by this user."""
        try:
            known, _, record = unsealed(self._known.get(key, "")).partition(" ")
            return decode(record, type=Evaluation) if known == key else None
        except DecodeError:
            return None

    def put(self, key: str, evaluation: Evaluation) -> None:
        """Remember it; the line begins a new one even if another process was killed within its last one."""
        record = self._known[key] = sealed(f"{key} {json.dumps(to_builtins(evaluation))}")
        with os.fdopen(self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb", buffering=0) as file:
            file.write(f"\n{record}\n".encode())

    def _open(self, flags: int) -> int:
        """Open the file, which is no link to another one."""
        with open_folder(self._file.parent) as folder:
            return folder.open(self._file.name, flags)


class Remembering(EvaluationBackend):
    """A backend that never evaluates the same twice, whichever run asks; what it remembers counts like any other."""

    def __init__(self, executor: EvaluationBackend, memory: Memory) -> None:
        self._executor = executor
        self._memory = memory
        self.digest = executor.digest
        self.provider = executor.provider
        self.image = executor.image

    @property
    def judged(self) -> Judged:
        """Where scores come from."""
        return self._executor.judged

    @property
    def jobs(self) -> int | None:
        """How many candidates are evaluated at a time."""
        return self._executor.jobs

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Identifies everything that an evaluation's result depends on."""
        return self._executor.key(tree, split, repeat, base=base)

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Evaluate the tree, or tell what came of it the first time."""
        key = self.key(tree, split, repeat, base=files.base.id if files.base else "")
        if known := self._memory.get(key):
            return replace(known, cached=True), Evidence()
        evaluation, evidence = await self._executor.evaluate(tree, files, split=split, repeat=repeat)
        if evaluation.counts:
            self._memory.put(key, evaluation)
        return evaluation, evidence
