"""Reads an OpenEvolve example: `initial_program.*`, `evaluator.py` with `evaluate(program_path)`, `config.yaml`.

SkyDiscover's Python tasks are the same, with `evaluator.py` perhaps in a folder `evaluator/`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, name_of
from evogit.adopt.outside import openevolve_outside
from evogit.adopt.sources import file_at, files_below, marked, packages, repeats, requirements
from evogit.adopt.yaml_subset import at, read_yaml

EXPECTED = "initial_program.* with evaluator.py (OpenEvolve, SkyDiscover)"
TIMEOUT = 300.0
SLACK = 30.0
"""Seconds for what is no stage, and for one that cannot be broken off at once."""
THRESHOLDS = (0.5, 0.75, 0.9)
"""Theirs, where the file says nothing."""


def read_openevolve(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where it is no such example."""
    programs = initial_programs(folder)
    evaluator = next((path for path in ("evaluator.py", "evaluator/evaluator.py") if (folder / path).is_file()), None)
    if not programs or evaluator is None:
        return None
    config = read_config(folder)
    program = programs[0].name
    theirs = files_below(folder)
    seed = {program: file_at(programs[0])}
    about = {
        "evaluator": evaluator,
        "cascade": at(config, "evaluator", "cascade_evaluation") is not False,
        "thresholds": at(config, "evaluator", "cascade_thresholds") or THRESHOLDS,
        "features": at(config, "database", "feature_dimensions") or [],
    }
    seconds = timeout_of(config)
    stages = sum(f"def evaluate_stage{n}".encode() in theirs[evaluator][0] for n in (1, 2, 3))
    outside, why = openevolve_outside(program, json.dumps(about), theirs[evaluator])
    command = shlex.join(
        ["python3", f"{SHIMS}/evaluate_openevolve.py", program, json.dumps({**about, "timeout": seconds})]
    )
    return ForeignTask(
        system="SkyDiscover" if "/" in evaluator else "OpenEvolve",
        name=name_of(folder),
        goal=goal_of(config, folder, seed),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=command,
        timeout=seconds * max(1, stages if about["cascade"] else 1) + SLACK,
        packages=packages(theirs),
        repeats=repeats(seed, {evaluator: theirs[evaluator]}),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, evaluator),
    )


def initial_programs(folder: Path) -> list[Path]:
    """Files that a run of theirs begins with."""
    found = (path for name in ("program", "prompt") for path in sorted(folder.glob(f"initial_{name}.*")))
    return [path for path in found if path.is_file() and path.suffix != ".json"]


def read_config(folder: Path) -> dict[str, Any]:
    """What `config.yaml` says, or the first of several."""
    files = [folder / "config.yaml", *sorted(folder.glob("config*.yaml")), *sorted(folder.glob("config*.yml"))]
    file = next((each for each in files if each.is_file()), None)
    return read_yaml(file.read_text(encoding="utf-8", errors="replace")) if file else {}


def timeout_of(config: Mapping[str, Any]) -> float:
    """Seconds of one evaluation, or of one stage of it."""
    said = at(config, "evaluator", "timeout")
    return float(said) if isinstance(said, int | float) and said > 0 else TIMEOUT


def goal_of(config: Mapping[str, Any], folder: Path, seed: Mapping[str, File]) -> str:
    """What agents are told: the system message, what is ranked, and where changes belong."""
    said = at(config, "prompt", "system_message")
    message = said if isinstance(said, str) and " " in said.strip() else f"Improve the program of {folder.name}."
    files = ", ".join(f"`{path}`" for path in seed)
    return "\n\n".join(
        filter(None, [message.strip(), f"The program is {files}. A higher `combined_score` is better.", marked(seed)])
    )
