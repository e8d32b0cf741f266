"""Reads a Harbor task: `instruction.md`, `task.toml`, `environment/Dockerfile`, `tests/test.sh` that leaves a reward.

A candidate is what lies in the image's working folder after an agent has been there. Of a task with several steps
(`steps/NAME/instruction.md`), each step is a task.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evogit.adopt.build_context import normal
from evogit.adopt.dockerfile import VIRTUAL, Recipe, read_dockerfile
from evogit.adopt.foreign_task import DISK, EXECUTABLE, MEMORY, PLAIN, SHIMS, VIEW, File, ForeignTask, name_of
from evogit.adopt.harbor_config import (
    collecting,
    config_of,
    has_settings,
    is_separate,
    megabytes,
    steps,
    variables,
    whole_of,
)
from evogit.adopt.harbor_notes import told_all_lost, told_missing, told_of_verifier, told_unlike
from evogit.adopt.image_places import Places, arranged, is_below
from evogit.adopt.installs import commands, installed, lists
from evogit.adopt.settings import VERIFIER, told_unheeded
from evogit.adopt.sources import all_below, merged, packages, requirements_of, too_large_of_all
from evogit.adopt.yaml_text import at, seconds
from evogit.contained import text_at

EXPECTED = "instruction.md with tests/test.sh (Harbor)"
WORKDIR = "/app"
"""Where agents work, if the image does not say."""
TIMEOUT = 600.0
LOGS = f"{VIEW}-logs"
NAMED = re.compile(r"[`\"'\s](/?(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4})[`\"'\s.,:)]")
BUILT = re.compile(r"(?i:\b(?:executable|binary)\b)[^`.\n]{0,60}`(/[\w/-]*\w)`")
"""A program without an ending that is to be made."""
MAKES = re.compile(r"""\bmakedirs\(\s*["'](/[^"']+)|\bPath\(\s*["'](/[^"']+)["']\s*\)\.mkdir\(""")
ENVIRONMENTS = (".local/bin/env", ".cargo/env")
"""What installers of programs leave in a home, to be sourced."""
BESIDE = "/tests/requirements.txt"
"""What a verifier needs, whether it installs that or not."""
TAKEN = ("tests", "logs")
"""What is at the top of an image for the verifier."""


def read_harbor(folder: Path) -> ForeignTask | None:
    """The task in a folder, or the step of one with several, None where it is neither."""
    whole = whole_of(folder)
    tests = all_below(whole, "tests") | all_below(folder, "tests")
    if steps(folder) or not (folder / "instruction.md").is_file() or "test.sh" not in tests:
        return None
    instruction = text_at(folder, "instruction.md").strip()
    config = config_of(folder)
    home = folder if (folder / "environment").is_dir() else whole
    beside = all_below(home, "environment")
    recipe = _in(read_dockerfile(beside, WORKDIR), at(config, "environment", "workdir"))
    verifier = _verifier(config, tests, recipe.workdir)
    named = _named(instruction, recipe.workdir)
    places = arranged(recipe, ".", TAKEN, {**verifier.files, **dict.fromkeys(verifier.places, VIRTUAL)}, named)
    asked = _solution(named, recipe, places)
    theirs = {
        **collecting(config),
        **places.elsewhere,
        **_tests(recipe),
        **_tests(verifier),
        **{f"tests/{path}": tests[path] for path in tests},
    }
    needed = merged(verifier.packages, *_asked(tests, recipe))
    left = too_large_of_all(home, "environment", beside) + too_large_of_all(folder, "tests", tests)
    return ForeignTask(
        system="Harbor",
        name=name_of(folder),
        goal=f"{instruction}\n\n{_work(recipe, places)} A higher `reward` is better.",
        editable=("**",),
        seed={**places.files, **asked},
        theirs=theirs,
        command=_command(config, recipe, verifier, places, (*named, *(f"./{path}" for path in asked))),
        read="json:combined_score",
        metric="reward",
        timeout=seconds(at(config, "verifier", "timeout_sec"), TIMEOUT),
        memory=megabytes(config, "memory", MEMORY),
        disk=megabytes(config, "storage", DISK),
        packages=merged(needed, *_used(theirs, recipe.files), recipe.packages),
        links={**places.links, "/tests": f"{VIEW}/tests", "/logs": LOGS},
        why_inside="the verifier runs where the candidate's files are, and may run them",
        notes=(
            *(*recipe.notes, *verifier.notes, *told_of_verifier(tests, needed, recipe.packages)),
            *told_unlike(config, recipe, places, named, is_step=whole != folder),
            *(*told_missing(config, beside), *told_all_lost(places, verifier), *left),
            *told_unheeded(config, "Harbor", VERIFIER),
            *(["task.toml cannot be read: none of its settings count"] if not config and has_settings(whole) else []),
        ),
    )


def _verifier(config: Mapping[str, Any], tests: Mapping[str, File], workdir: str) -> Recipe:
    """The image of a verifier that has one of its own; an empty one where it has none."""
    built = is_separate(config) and "Dockerfile" in tests
    recipe = read_dockerfile(tests, workdir, "its verifier's image") if built else Recipe(workdir)
    installed_there = {f"/root/{path}": (b"", PLAIN) for path in ENVIRONMENTS if f"/root/{path}" in _script(tests)}
    recipe = replace(recipe, folders=(*recipe.folders, *_made(tests)), files={**installed_there, **recipe.files})
    return _in(recipe, at(config, "verifier", "environment", "workdir"))


def _made(tests: Mapping[str, File]) -> Iterator[str]:
    """The folders at the top in which a verifier makes others: it cannot make these."""
    made = (path for program, *paths in commands(_script(tests)) if program == "mkdir" for path in paths)
    sources = (data.decode(errors="replace") for path, (data, _) in tests.items() if path.endswith(".py"))
    found = [*made, *(path for text in sources for path in map("".join, MAKES.findall(text)))]
    return (f"/{top[1]}" for top in (re.match(r"/([\w-]+)", path) for path in found) if top)


def _in(recipe: Recipe, workdir: object) -> Recipe:
    """The recipe with the working folder that a task.toml says, where it says one."""
    return replace(recipe, workdir=normal(workdir)) if isinstance(workdir, str) and workdir[:1] == "/" else recipe


def _tests(recipe: Recipe) -> dict[str, File]:
    """Path among theirs -> file, of what an image has in /tests."""
    return {path[1:]: file for path, file in recipe.files.items() if path.startswith("/tests/")}


def _script(tests: Mapping[str, File]) -> str:
    return tests["test.sh"][0].decode(errors="replace")


def _asked(tests: Mapping[str, File], recipe: Recipe) -> tuple[tuple[str, ...], ...]:
    """The packages that a verifier installs or has a list of, and what it runs."""
    script = _script(tests)
    paths = [posixpath.normpath(posixpath.join(recipe.workdir, path)) for path in (*lists(script), BESIDE)]
    files = (tests.get(path.removeprefix("/tests/")) or recipe.files.get(path) for path in paths)
    listed = (asked for data, _ in filter(None, files) for _, asked in requirements_of(data))
    named = (asked for _, asked in installed(script))
    return (*named, *listed), ("pytest",) if "pytest" in script else ()


def _used(*files: Mapping[str, File]) -> Iterator[tuple[str, ...]]:
    """The packages that files import. Lists of packages among them count only where something installs them."""
    return (packages(each, listed=False) for each in files)


def _command(config: Mapping[str, Any], recipe: Recipe, verifier: Recipe, places: Places, named: Sequence[str]) -> str:
    """The shell command that verifies, in the verifier's working folder if a sandbox has it."""
    inner = posixpath.relpath(recipe.workdir, places.folder)
    given = json.dumps({**recipe.environment, **verifier.environment, **variables(config)})
    own = (f"/{top}" for top in places.own if any(is_below(path, f"/{top}") for path in named))
    made = [*recipe.virtual, *verifier.virtual, *(f"{path}/" for path in (*recipe.folders, *verifier.folders, *own))]
    made += [path for path in named if path.startswith("./")]
    return shlex.join(["python3", f"{SHIMS}/evaluate_harbor.py", verifier.workdir, inner, given, *dict.fromkeys(made)])


def _work(recipe: Recipe, places: Places) -> str:
    """What agents are told of where they work."""
    inside = f"; programs start in `{recipe.workdir}`" if places.folder != recipe.workdir else ""
    own = places.own if places.folder != "/" else ()
    beside = "".join(f"; `/{top}` is `{top}` there" for top in own)
    return f"You work on the files of `{places.folder}`{inside}{beside}."


def _solution(named: Sequence[str], recipe: Recipe, places: Places) -> dict[str, File]:
    """The file that the instructions ask for, where an image brings none: the first one that can be a candidate's."""
    if any(is_below(path, recipe.workdir) for path in recipe.files):
        return {}
    below = [path for path in named if is_below(path, places.folder) or path.split("/")[1] in places.own]
    path = next(iter(below), posixpath.join(recipe.workdir, "solution.py"))
    place = posixpath.relpath(path, places.folder) if is_below(path, places.folder) else path[1:]
    mode = PLAIN if "." in posixpath.basename(path) else EXECUTABLE
    return {} if place in places.files else {place: (b"", mode)}


def _named(instruction: str, workdir: str) -> list[str]:
    """Absolute paths of the files that the instructions name."""
    found = [*NAMED.findall(f" {instruction} "), *BUILT.findall(instruction)]
    names = (name for name in found if name.casefold() not in ("e.g", "i.e"))
    return [posixpath.normpath(posixpath.join(workdir, name)) for name in names]
