"""Scores candidates of one task: `python scoring.py KIND FOLDER`, a JSON line with `text` in, one with the score out.

The process loads what the task needs once; each candidate is scored in a forked child of it, so that none changes what
the next one meets, and one that hangs is ended. Standard library only: it runs in any environment.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

LONGEST = 20.0
"""Seconds that a candidate may take; those of all tasks take less than one."""
SHIMS = Path(__file__).parents[2] / "sandbox" / "foreign"
"""What stands in for helper modules that evaluators import from their systems."""
Score = Callable[[str, Path], tuple[float, str]]
"""Of a candidate's text, in a folder for scratch: its score, and a text for the next question."""


def loaded(file: Path) -> ModuleType:
    """A Python file as a module, which finds what lies beside it."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def landscape(folder: Path) -> Score:
    """One of ours: `parts` of `score.py` maps the candidate's names to what each part is worth."""
    module = loaded(folder / "score.py")

    def score(text: str, scratch: Path) -> tuple[float, str]:
        names: dict[str, Any] = {}
        exec(compile(text, "program.py", "exec"), names)
        parts = module.parts(names)
        weakest = min(parts, key=parts.__getitem__)
        involved = ", ".join(module.INVOLVED[weakest])
        return sum(parts.values()) / len(parts), f"weakest part: {weakest} {parts[weakest]:.4f} ({involved})"

    return score


def openevolve(folder: Path) -> Score:
    """An example of OpenEvolve: `evaluate(path)` of `evaluator.py`, its `combined_score` or else the mean of all."""
    sys.path.append(str(SHIMS))
    module = loaded(folder / "evaluator.py")

    def score(text: str, scratch: Path) -> tuple[float, str]:
        (scratch / "program.py").write_text(text)
        found = module.evaluate(str(scratch / "program.py"))
        metrics = getattr(found, "metrics", found)
        numbers = [float(value) for value in metrics.values() if isinstance(value, int | float)]
        return float(metrics.get("combined_score", sum(numbers) / len(numbers))), str(metrics.get("error", ""))

    return score


def shinka(folder: Path) -> Score:
    """An example of ShinkaEvolve: `main(program, results)` of `evaluate.py`, which writes two files."""
    module = loaded(folder / "evaluate.py")

    def score(text: str, scratch: Path) -> tuple[float, str]:
        (scratch / "program.py").write_text(text)
        module.main(str(scratch / "program.py"), str(scratch / "results"))
        judged = json.loads((scratch / "results" / "correct.json").read_text())
        if not judged["correct"]:
            raise ValueError(judged["error"])
        metrics = json.loads((scratch / "results" / "metrics.json").read_text())
        return float(metrics["combined_score"]), metrics.get("text_feedback") or ""

    return score


def printed(folder: Path) -> Score:
    """An example of SkyDiscover for a container: `evaluator.py PROGRAM` prints JSON; `/benchmark` is its folder."""
    file = folder / "evaluator" / "evaluator.py"
    code: CodeType = compile(file.read_text().replace("/benchmark", str(file.parent)), str(file), "exec")
    names: dict[str, Any] = {"__name__": "evaluator"}
    exec(code, names)

    def score(text: str, scratch: Path) -> tuple[float, str]:
        (scratch / "program.py").write_text(text)
        sys.argv = ["evaluator.py", str(scratch / "program.py")]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            names["main"]()
        said = json.loads(out.getvalue().splitlines()[-1])
        return float(said["combined_score"]), said.get("artifacts", {}).get("feedback", "")

    return score


KINDS: dict[str, Callable[[Path], Score]] = {
    "landscape": landscape,
    "openevolve": openevolve,
    "shinka": shinka,
    "printed": printed,
}


def judged(score: Score, text: str) -> dict[str, Any]:
    """What a candidate is worth, or why it failed."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            value, feedback = score(text, Path(scratch))
        except Exception as error:  # noqa: BLE001 - a candidate may raise anything
            return {"ok": False, "score": 0.0, "feedback": f"{type(error).__name__}: {error}"[:500]}
    if not abs(value) < 1e300:
        return {"ok": False, "score": 0.0, "feedback": f"the score is {value}"}
    return {"ok": True, "score": value, "feedback": feedback}


def in_a_child(score: Score, text: str) -> dict[str, Any]:
    """The same, in a forked process that is ended after its time."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    if not (child := os.fork()):
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        with os.fdopen(writing, "w") as out:
            json.dump(judged(score, text), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read() if select.select([pipe], [], [], LONGEST)[0] else ""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    usage = os.wait4(child, 0)[2]
    found = json.loads(said) if said else {"ok": False, "score": 0.0, "feedback": "died, or took too long"}
    return {**found, "seconds": time.perf_counter() - began, "cpu": usage.ru_utime + usage.ru_stime}


def main() -> None:
    """Answer line by line, until the input ends."""
    kind, folder = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a module prints when it is loaded is no answer
    score = KINDS[kind](Path(folder).resolve())
    for line in sys.stdin:
        print(json.dumps(in_a_child(score, json.loads(line)["text"])), file=out, flush=True)


if __name__ == "__main__":
    main()
