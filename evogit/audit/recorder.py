"""Runs a task's evaluator as it is, in an evaluator process, and records what it asks of programs from which line.

The laboratory gives an evaluator process a file of two lines in the place of the evaluator's. They call this module.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_stack, walk_tb
from types import FrameType
from typing import Any

from evogit.evaluation.arguments import Put
from evogit.evaluation.program import Program, Ran

Note = Callable[[dict[str, Any]], None]


def recorded(evaluator: str, journal: str) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return the `evaluate` and `prepare` of an evaluator's file; calls go to the journal, a JSON line each."""
    file = Path(evaluator)
    sys.path.insert(0, str(file.parent))
    spec = spec_from_file_location("audited_evaluator", file)
    assert spec  # the name ends in .py
    assert spec.loader
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    original = module.evaluate
    names = [name for name in inspect.signature(original).parameters if name in ("seed", "rng")]

    def note(record: dict[str, Any]) -> None:
        with Path(journal).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, default=_plain) + "\n")

    def evaluate(program: Program, split: str, **given: Any) -> Iterator[Any]:
        if "seed" in given:
            given["seed"] = Watched(given["seed"], "seed", file.parent, note)
        yield from _cases(original(Watched(program, "program", file.parent, note), split, **given), file.parent, note)

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("program", "split", *names)]
    evaluate.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return evaluate, getattr(module, "prepare", None)


def _plain(value: Any) -> Any:
    """Return what JSON can hold of an input that was put, or of a value of a type named in `returns`."""
    if isinstance(value, Put):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    return value.model_dump() if hasattr(value, "model_dump") else repr(value)


def _cases(cases: Any, folder: Path, note: Note) -> Iterator[Any]:
    """Pass the cases on; record the line that made each, or that raised."""
    try:
        for case in cases if isinstance(cases, Iterable) else [cases]:
            frame = getattr(cases, "gi_frame", None)
            note({"line": _line(walk_stack(frame) if frame else (), folder)})
            yield case
    except Exception as error:
        note({"line": _line(reversed(list(walk_tb(error.__traceback__))), folder)})
        raise


def _line(frames: Iterable[tuple[FrameType, int]], folder: Path) -> str:
    """Return the first line of the evaluator's own files, innermost first."""
    for frame, number in frames:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(folder):
            return f"{path.relative_to(folder)}:{number}"
    return ""


class Watched:
    """A program whose calls are recorded; otherwise it does what the program does."""

    def __init__(self, program: Program, side: str, folder: Path, note: Note) -> None:
        self._program = program
        self._side = side
        self._folder = folder
        self._note = note

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._program, name)
        return partial(self._asked, name, method) if name in ("call", "measure", "run") else method

    @contextmanager
    def anew(self) -> Iterator[Watched]:
        """Open the same program in a session of its own."""
        with self._program.anew() as life:
            yield Watched(life, self._side, self._folder, self._note)

    def stream(self, target: str, items: Iterable[Any], **options: Any) -> Iterator[Any]:
        """Call the program once for each item."""
        sent: list[Any] = []

        def watched() -> Iterator[Any]:
            for item in items:
                sent.append(item)
                yield item

        ahead = isinstance(items, list | tuple)  # such items are sent to the sandbox at once
        replies = self._program.stream(target, list(items) if ahead else watched(), **options)
        for number, reply in enumerate(replies):
            item = items[number] if isinstance(items, list | tuple) else sent[number]
            yield self._asked("stream", lambda *_, reply=reply: reply, target, [item])

    def _asked(self, kind: str, method: Callable[..., Any], target: Any, *args: Any, **options: Any) -> Any:
        """Call a method of the program, and record the arguments, the line, and the answer if there is one."""
        record: dict[str, Any] = {"call": kind, "side": self._side, "line": _line(walk_stack(None), self._folder)}
        if kind == "run":
            files = {name: _text(content) for name, content in (options.get("files") or {}).items()}
            command = {"argv": list(target), "stdin": _text(options.get("stdin", b"")), "files": files}
            command["out"] = list(options.get("out", ()))
            record |= {"target": " ".join(map(str, target)), "given": [[command], {}]}
        else:
            given = dict(zip(("args", "kwargs"), args, strict=False)) | options
            record |= {"target": target, "given": [list(given.get("args", ())), dict(given.get("kwargs") or {})]}
        try:
            reply = method(target, *args, **options)
            if isinstance(reply, Ran):
                record["value"] = reply.stdout
                record["out"] = {name: _text(content) for name, content in reply.files.items()}
            else:
                record["value"] = reply.value
            return reply
        finally:
            self._note(record)


def _text(content: bytes | str) -> str:
    return content.decode(errors="replace") if isinstance(content, bytes) else content
