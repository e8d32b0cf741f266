"""Reads a SkyDiscover task with a container: `initial_program.*`, and `evaluator/`, once `eval/`, with `evaluate.sh`.

The container's programs expect their files at an absolute path, which is linked to where they are in the sandbox.
"""

from __future__ import annotations

import json
import posixpath
import shlex
from pathlib import Path

from evogit.adopt.dockerfile import read_dockerfile
from evogit.adopt.foreign_task import SHIMS, VIEW, ForeignTask, name_of, reached
from evogit.adopt.image_places import Places, arranged, told_lost
from evogit.adopt.needs import told_needs
from evogit.adopt.openevolve import (
    INNER,
    SKYDISCOVER_TIMEOUT,
    SLACK,
    begun_with,
    goal_of,
    initial_programs,
    read_config,
    timeout_of,
)
from evogit.adopt.outside import openevolve_outside
from evogit.adopt.settings import told_unheeded
from evogit.adopt.sources import files_below, merged, packages, requirements
from evogit.contained import file_at

EXPECTED = "initial_program.* with evaluator/evaluate.sh (SkyDiscover)"
WORKDIR = "/benchmark"
"""Where a container's programs lie, if it does not say."""


def read_skydiscover(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where it is no such task."""
    programs = initial_programs(folder)
    inner = next((name for name in INNER if (folder / name / "evaluate.sh").is_file()), "")
    if not programs or not inner:
        return None
    config = read_config(folder)
    first = begun_with(programs, config)
    program = first.name
    seed = {program: file_at(folder, program)}
    theirs = files_below(folder)
    recipe = read_dockerfile(files_below(folder, inner), WORKDIR)
    places = arranged(recipe, f"{VIEW}/{inner}")
    theirs |= {**places.elsewhere, **{f"{inner}/{path}": file for path, file in places.files.items()}}
    seconds = timeout_of(config, SKYDISCOVER_TIMEOUT)
    given = map(json.dumps, (_home(places, inner), recipe.environment, seconds))
    file = f"{inner}/evaluator.py"
    script = theirs.get(f"{_home(places, inner)}/evaluate.sh", (b"", 0))[0].decode(errors="replace")
    begun = {path for path in theirs if path.startswith(f"{inner}/") and posixpath.basename(path) in script}
    used = {path: theirs[path] for path in reached(theirs, begun | {f"{inner}/evaluate.sh"})}
    about = json.dumps({"evaluator": file, "cascade": False, "thresholds": [], "features": []})
    evaluator = theirs.get(file, (b"", 0))
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
        timeout=seconds + SLACK,
        packages=merged(packages(theirs), recipe.packages),
        links=places.links,
        notes=(
            *(*recipe.notes, *told_lost(places.lost), *told_unheeded(config, "SkyDiscover")),
            *told_needs({**used, **seed}, theirs),
        ),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, file),
    )


def _home(places: Places, inner: str) -> str:
    """The folder of theirs that has evaluate.sh, as the image has it."""
    found = sorted(path for path in places.files if posixpath.basename(path) == "evaluate.sh")
    return posixpath.normpath(f"{inner}/{posixpath.dirname(found[0])}") if found else inner
