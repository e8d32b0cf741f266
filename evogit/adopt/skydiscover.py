"""Reads a SkyDiscover task with a container: `initial_program.*`, and `evaluator/` with `evaluate.sh`.

The container's programs expect their files at an absolute path, which is linked to where they are in the sandbox.
"""

from __future__ import annotations

import json
import posixpath
import shlex
from pathlib import Path

from evogit.adopt.dockerfile import read_dockerfile
from evogit.adopt.foreign_task import SHIMS, VIEW, ForeignTask, name_of
from evogit.adopt.image_places import Places, arranged, told_lost
from evogit.adopt.openevolve import goal_of, initial_programs, read_config, timeout_of
from evogit.adopt.outside import openevolve_outside
from evogit.adopt.sources import file_at, files_below, merged, packages, repeats, requirements

EXPECTED = "initial_program.* with evaluator/evaluate.sh (SkyDiscover)"
WORKDIR = "/benchmark"
"""Where a container's programs lie, if it does not say."""


def read_skydiscover(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where it is no such task."""
    programs = initial_programs(folder)
    if not programs or not (folder / "evaluator" / "evaluate.sh").is_file():
        return None
    config = read_config(folder)
    program = programs[0].name
    seed = {program: file_at(programs[0])}
    theirs = files_below(folder)
    recipe = read_dockerfile(files_below(folder / "evaluator"), WORKDIR)
    places = arranged(recipe, f"{VIEW}/evaluator")
    theirs |= {**places.elsewhere, **{f"evaluator/{path}": file for path, file in places.files.items()}}
    given = json.dumps(_home(places)), json.dumps(recipe.environment)
    about = json.dumps({"evaluator": "evaluator/evaluator.py", "cascade": False, "thresholds": [], "features": []})
    evaluator = theirs.get("evaluator/evaluator.py", (b"", 0))
    outside, why = openevolve_outside(program, about, evaluator)
    if b"def evaluate(" not in evaluator[0]:
        outside, why = "", "its container has no evaluator.py with evaluate(program_path)"
    return ForeignTask(
        system="SkyDiscover",
        name=name_of(folder),
        goal=goal_of(config, folder, seed),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_container.py", program, *given]),
        timeout=timeout_of(config),
        packages=merged(packages(theirs), recipe.packages),
        repeats=repeats(seed, theirs),
        links=places.links,
        notes=(*recipe.notes, *told_lost(places.lost)),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, "evaluator/evaluator.py"),
    )


def _home(places: Places) -> str:
    """The folder of theirs that has evaluate.sh, as the image has it."""
    found = sorted(path for path in places.files if posixpath.basename(path) == "evaluate.sh")
    return posixpath.normpath(f"evaluator/{posixpath.dirname(found[0])}") if found else "evaluator"
