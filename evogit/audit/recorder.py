"""In an evaluator process: runs a task's evaluator as it is, and notes what it asks of programs and from which line.

The audit gives an evaluator process a file of two lines in the place of the evaluator's; this module is what it calls.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import FrameType
from typing import Any

from evogit.evaluation.arguments import Put
from evogit.evaluation.program import Called, CandidateFailedError, Program, Ran

Note = Callable[[dict[str, Any]], None]
Edits = Mapping[str, str]
"""Name of a file of the evaluator's folder -> the text that is run in its place."""


def recorded(evaluator: str, journal: str, edits: Edits) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """The `evaluate` and `prepare` of an evaluator's file; what evaluations ask goes to the journal, a JSON line each.

    `edits` are texts that are run in the place of files of its folder.
    """
    file = Path(evaluator)
    sys.path.insert(0, str(file.parent))
    sys.meta_path.insert(0, _Edited(file.parent, edits))
    module = _load(file, edits)
    original = module.evaluate
    names = [name for name in inspect.signature(original).parameters if name in ("seed", "rng")]
    note = _noting(Path(journal))

    def evaluate(program: Program, split: str, **given: Any) -> Iterator[Any]:
        if "seed" in given:
            given["seed"] = Watched(given["seed"], "seed", file.parent, note)
        yield from _cases(original(Watched(program, "program", file.parent, note), split, **given), file.parent, note)

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("program", "split", *names)]
    evaluate.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return evaluate, getattr(module, "prepare", None)


def _noting(journal: Path) -> Note:
    def note(record: dict[str, Any]) -> None:
        with journal.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, default=_plain) + "\n")

    return note


def _plain(value: Any) -> Any:
    """What JSON says of a value of a type that an evaluator asked for with `returns`, or of an input that it put."""
    if isinstance(value, Put):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    return value.model_dump() if hasattr(value, "model_dump") else repr(value)


def _cases(cases: Any, folder: Path, note: Note) -> Iterator[Any]:
    """The cases as they come; from which line, or why there is none, is noted."""
    try:
        for case in cases if isinstance(cases, Iterable) else [cases]:
            frame = getattr(cases, "gi_frame", None)
            metrics = {name: float(value) for name, value in case.metrics.items()}
            note({"case": case.name, "feedback": case.feedback, "metrics": metrics, "line": _line(frame, folder)})
            yield case
    except CandidateFailedError as failure:
        note({"failed": failure.status, "reason": failure.reason, "line": _raised_at(failure, folder)})
        raise
    except Exception as error:  # of the evaluator, whatever it is: it ends the process, as it does without us
        note({"error": f"{type(error).__name__}: {error}"[:500], "line": _raised_at(error, folder)})
        raise


def _raised_at(error: BaseException, folder: Path) -> str:
    found, trace = "", error.__traceback__
    while trace:
        if Path(trace.tb_frame.f_code.co_filename).is_relative_to(folder):
            found = f"{Path(trace.tb_frame.f_code.co_filename).relative_to(folder)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _line(frame: FrameType | None, folder: Path) -> str:
    """The innermost line of the evaluator's own files."""
    while frame:
        if Path(frame.f_code.co_filename).is_relative_to(folder):
            return f"{Path(frame.f_code.co_filename).relative_to(folder)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Watched:
    """A program whose calls are noted; it does what the program does."""

    def __init__(self, program: Program, side: str, folder: Path, note: Note) -> None:
        self._program = program
        self._side = side
        self._folder = folder
        self._note = note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    @contextmanager
    def anew(self) -> Iterator[Watched]:
        """The same in a session of its own."""
        with self._program.anew() as life:
            yield Watched(life, self._side, self._folder, self._note)

    def call(self, target: str, args: Any = (), kwargs: Any = None, **options: Any) -> Called:
        """As the program's."""
        with self._noted("call", target, args, kwargs, options) as keep:
            called: Called = keep(self._program.call(target, args, kwargs, **options))
            return called

    def measure(self, target: str, args: Any = (), kwargs: Any = None, **options: Any) -> Called:
        """As the program's."""
        with self._noted("measure", target, args, kwargs, options) as keep:
            called: Called = keep(self._program.measure(target, args, kwargs, **options))
            return called

    def stream(self, target: str, items: Iterable[Any], **options: Any) -> Iterator[Called]:
        """As the program's; of each item, what came back is noted."""
        seen: list[Any] = []

        def watched() -> Iterator[Any]:
            for item in items:
                seen.append(item)
                yield item

        known = isinstance(items, list | tuple)
        replies = self._program.stream(target, list(items) if known else watched(), **options)
        for number, reply in enumerate(replies):
            item = list(items)[number] if isinstance(items, list | tuple) else seen[number]
            with self._noted("stream", target, [item], None, options) as keep:
                yield keep(reply)

    def run(self, argv: Any, **options: Any) -> Ran:
        """As the program's."""
        given = {"stdin": options.get("stdin", b""), "files": options.get("files") or {}}
        asked: dict[str, Any] = {"argv": list(argv), "stdin": _text(given["stdin"])}
        asked["files"] = {name: _text(content) for name, content in given["files"].items()}
        asked["out"] = list(options.get("out", ()))
        with self._noted("run", " ".join(map(str, argv)), [asked], None, options) as keep:
            ran: Ran = keep(self._program.run(argv, **options))
            return ran

    @contextmanager
    def _noted(self, kind: str, target: str, args: Any, kwargs: Any, options: Mapping[str, Any]) -> Iterator[Any]:
        record: dict[str, Any] = {"call": kind, "target": target, "side": self._side, "typed": "returns" in options}
        record["args"], record["kwargs"] = list(args), dict(kwargs or {})
        record["line"] = _line(sys._getframe(2), self._folder)

        def keep(reply: Any) -> Any:
            record["wall"] = reply.wall
            if isinstance(reply, Ran):
                record["value"] = reply.stdout
                record["out"] = {name: _text(content) for name, content in reply.files.items()}
            else:
                record["value"] = reply.value
            return reply

        try:
            yield keep
        finally:
            self._note(record)


def _text(content: bytes | str) -> str:
    return content.decode(errors="replace") if isinstance(content, bytes) else content


# --- texts in the place of files --------------------------------------------------------------------------------


class _Edited(MetaPathFinder):
    """Finds the modules of the evaluator's folder that have a text of ours."""

    def __init__(self, folder: Path, edits: Edits) -> None:
        self._folder = folder
        self._edits = edits

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's spec, if it is one of those."""
        name = fullname.replace(".", "/") + ".py"
        if name not in self._edits:
            return None
        return spec_from_loader(fullname, _Loader(fullname, str(self._folder / name), self._edits[name]))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_data(self, path: str) -> bytes:
        """Our text; compiled files of the original are none of ours."""
        if re.search(r"\.pyc$", os.fspath(path)):
            raise OSError(path)
        return self._text.encode()


def _load(file: Path, edits: Edits) -> Any:
    name = "audited_evaluator"
    text = edits.get(file.name) or file.read_text(encoding="utf-8")
    spec = spec_from_loader(name, _Loader(name, str(file), text))
    assert spec  # a loader gives a spec
    assert spec.loader
    module = sys.modules[name] = module_from_spec(spec)
    module.__file__ = str(file)
    spec.loader.exec_module(module)
    return module
