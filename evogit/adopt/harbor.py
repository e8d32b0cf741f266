"""Reads a Harbor task: `instruction.md`, `task.toml`, `environment/Dockerfile`, `tests/test.sh` that leaves a reward.

A candidate is what lies in the image's working folder after an agent has been there.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evogit.adopt.dockerfile import (
    BUILD,
    FOLDER,
    Places,
    Recipe,
    arranged,
    is_below,
    normal_path,
    read_dockerfile,
    told_base,
    told_lost,
)
from evogit.adopt.foreign_task import DISK, MEMORY, PLAIN, SHIMS, VIEW, File, ForeignTask, Format, name_of
from evogit.adopt.notes import VERIFIER, told_unheeded
from evogit.adopt.packages import commands, installed, lists, merged, packages, requirements_of, told_unknown
from evogit.adopt.sources import all_below, at, seconds, too_large
from evogit.contained import find_text, lines_of, text_at, toml_of

WORKDIR = "/app"  # where agents work, if the image does not say
TIMEOUT = 600.0
LOGS = f"{VIEW}-logs"
NAMED = re.compile(r"[`\"'\s](/?(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4})[`\"'\s.,:)]")
ENVIRONMENTS = (".local/bin/env", ".cargo/env")  # what installers of programs leave in a home, to be sourced
BESIDE = "/tests/requirements.txt"  # what a verifier needs, whether it installs that or not
TAKEN = ("tests", "logs")  # what is at the top of an image for the verifier
MAX_MEGABYTES = 1 << 24
FORBIDDEN = frozenset(
    ["bwrap", "chroot", "docker", "gdb", "iptables", "ltrace", "mount", "nsenter", "strace", "systemctl", "unshare"]
)
"""Programs that need rights which no sandbox gives: to look into others, to make namespaces, to speak to daemons."""


def read_harbor(folder: Path) -> ForeignTask | None:
    """Read the task in a folder; return None if it is not one, or has several steps."""
    tests = all_below(folder, "tests")
    if steps(folder) or not (folder / "instruction.md").is_file() or "test.sh" not in tests:
        return None
    instruction = text_at(folder, "instruction.md").strip()
    config = _config(folder)
    beside = all_below(folder, "environment")
    recipe = _in(read_dockerfile(beside, WORKDIR), at(config, "environment", "workdir"))
    verifier = _verifier(config, tests, recipe.workdir)
    named = _named(instruction, recipe.workdir)
    places = arranged(recipe, ".", TAKEN, {**verifier.files, **dict.fromkeys(verifier.places, FOLDER)}, named)
    asked = _solution(named, recipe, places)
    in_tests = {path[1:]: file for path, file in recipe.files.items() if _is_test(path)}
    theirs = {
        **places.elsewhere,
        **in_tests,
        **{f"tests/{path}": file for path, file in tests.items()},
    }
    used = (packages(files, listed=False) for files in (theirs, recipe.files))
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
        memory=_megabytes(config, "memory", MEMORY),
        disk=_megabytes(config, "storage", DISK),
        packages=merged(*_installed(tests, recipe), *used, recipe.packages),
        links={**places.links, "/tests": f"{VIEW}/tests", "/logs": LOGS},
        why_inside="the verifier runs where the candidate's files are, and may run them",
        notes=(
            *(*recipe.notes, *_notes(folder, config, tests, beside)),
            *_told_places(recipe, places, named),
            *too_large(folder, beside, "environment", whole=True),
            *too_large(folder, tests, "tests", whole=True),
        ),
    )


def steps(folder: Path) -> list[str]:
    """Return the names of the steps of a task that has several, which is not supported."""
    tables = at(_config(folder), "steps")
    return [str(at(each, "name")) for each in tables if at(each, "name")] if isinstance(tables, list) else []


def _config(folder: Path) -> dict[str, Any]:
    with suppress(tomllib.TOMLDecodeError):
        return toml_of(find_text(folder, "task.toml"))
    return {}


def _verifier(config: Mapping[str, Any], tests: Mapping[str, File], workdir: str) -> Recipe:
    """Return a recipe with the working folder of the verifier, the folders that its script makes, and what it sources.

    An image of its own is not read.
    """
    script = _script(tests)
    files = {f"/root/{path}": (b"", PLAIN) for path in ENVIRONMENTS if f"/root/{path}" in script}
    made = (path for program, *paths in commands(script) if program == "mkdir" for path in paths)
    tops = tuple(f"/{top[1]}" for top in (re.match(r"/([\w-]+)", path) for path in made) if top)
    return _in(Recipe(workdir, folders=tops, files=files), at(config, "verifier", "environment", "workdir"))


def _in(recipe: Recipe, workdir: object) -> Recipe:
    """Return the recipe with the working folder that a task.toml names, if it names one."""
    return replace(recipe, workdir=normal_path(workdir)) if isinstance(workdir, str) and workdir[:1] == "/" else recipe


def _is_test(path: str) -> bool:
    return path.startswith("/tests/")


def _script(tests: Mapping[str, File]) -> str:
    return tests["test.sh"][0].decode(errors="replace")


def _installed(tests: Mapping[str, File], recipe: Recipe) -> tuple[tuple[str, ...], ...]:
    """Return the packages that a verifier installs or has a list of, and what it runs."""
    script = _script(tests)
    paths = [posixpath.normpath(posixpath.join(recipe.workdir, path)) for path in (*lists(script), BESIDE)]
    files = (tests.get(path.removeprefix("/tests/")) or recipe.files.get(path) for path in paths)
    listed = (asked for data, _ in filter(None, files) for _, asked in requirements_of(data))
    return (*(asked for _, asked in installed(script)), *listed), ("pytest",) if "pytest" in script else ()


def _command(config: Mapping[str, Any], recipe: Recipe, verifier: Recipe, places: Places, named: Sequence[str]) -> str:
    """Return the shell command that verifies, in the verifier's working folder if a sandbox has it."""
    inner = posixpath.relpath(recipe.workdir, places.folder)
    given = json.dumps({**recipe.environment, **_variables(config)})
    own = (f"/{top}" for top in places.own if any(is_below(path, f"/{top}") for path in named))
    made = [f"{path}/" for path in (*recipe.folders, *verifier.folders, *own)]
    made += [path for path in named if path.startswith("./")]
    return shlex.join(["python3", f"{SHIMS}/evaluate_harbor.py", verifier.workdir, inner, given, *dict.fromkeys(made)])


def _work(recipe: Recipe, places: Places) -> str:
    """Return the sentence that tells agents where they work."""
    inside = f"; programs start in `{recipe.workdir}`" if places.folder != recipe.workdir else ""
    own = places.own if places.folder != "/" else ()
    beside = "".join(f"; `/{top}` is `{top}` there" for top in own)
    return f"You work on the files of `{places.folder}`{inside}{beside}."


def _solution(named: Sequence[str], recipe: Recipe, places: Places) -> dict[str, File]:
    """Return the file that the instructions ask for, if an image brings none: the first that can be a candidate's."""
    if any(is_below(path, recipe.workdir) for path in recipe.files):
        return {}
    below = [path for path in named if is_below(path, places.folder) or path.split("/")[1] in places.own]
    path = next(iter(below), posixpath.join(recipe.workdir, "solution.py"))
    place = posixpath.relpath(path, places.folder) if is_below(path, places.folder) else path[1:]
    return {} if place in places.files else {place: (b"", PLAIN)}


def _named(instruction: str, workdir: str) -> list[str]:
    """Return the absolute paths of the files that the instructions name."""
    names = (name for name in NAMED.findall(f" {instruction} ") if name.casefold() not in ("e.g", "i.e"))
    return [posixpath.normpath(posixpath.join(workdir, name)) for name in names]


# --- task.toml ----------------------------------------------------------------------------------------------------


def _variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of the verifier, except those that the machine is to know (`${NAME}` without a default)."""
    variables: dict[str, str] = {}
    for keys in (("environment", "env"), ("verifier", "environment", "env"), ("verifier", "env")):
        table = at(config, *keys)
        for name, value in table.items() if isinstance(table, dict) else ():
            text = re.sub(r"\$\{\w{1,80}(?::?-([^{}]{0,500}))?\}", lambda match: match[1] or "", str(value))
            variables |= {name: text} if text or "${" not in str(value) else {}
    return variables


def _megabytes(config: Mapping[str, Any], what: str, least: int) -> int:
    """Return how much of `memory` or `storage` a task asks for, or its verifier; no less than the `least`."""
    sizes = [least]
    for table in (at(config, "environment"), at(config, "verifier", "environment")):
        match = re.fullmatch(r"(\d{1,9})([GM])i?B?", str(at(table, what))[:40], re.IGNORECASE)
        sizes += [int(match[1]) * (1024 if match[2] in "gG" else 1)] if match else []
        sizes += [size] if isinstance(size := at(table, f"{what}_mb"), int) else []
    return min(max(sizes), MAX_MEGABYTES)


# --- notes --------------------------------------------------------------------------------------------------------


def _notes(
    folder: Path, config: Mapping[str, Any], tests: Mapping[str, File], beside: Mapping[str, File]
) -> Iterator[str]:
    """Yield notes on settings, services, machines and images, and on programs that a sandbox forbids."""
    yield from told_unheeded(config, "Harbor", VERIFIER)
    if not config and any(not line.lstrip().startswith("#") for line in lines_of(find_text(folder, "task.toml"))):
        yield "task.toml cannot be read: none of its settings count"
    verifier = at(config, "verifier")
    if at(verifier, "environment_mode") == "separate" or at(verifier, "environment"):
        yield f"its verifier has an image of its own there, which is not read: it runs beside the candidate; {BUILD}"
    if at(verifier, "collect"):
        yield "its task.toml has commands to be run before the verifier (collect), which is not done here"
    if "Dockerfile" not in beside:
        yield from told_base(str(at(config, "environment", "docker_image") or ""))
    machines = (at(config, "environment"), at(config, "verifier", "environment"))
    if any(at(table, "gpus") or at(table, "tpu") for table in machines):
        yield "it asks for a graphics processor, which no sandbox has"
    if any(f"docker-compose.{end}" in beside for end in ("yaml", "yml")):
        yield "its docker-compose.yaml is not read: no program will find its services"
    yield from told_unknown(_script(tests))
    texts = {path: data.decode(errors="replace") for path, (data, _) in tests.items() if path.endswith((".sh", ".py"))}
    run = {posixpath.basename(word) for path in texts if path.endswith(".sh") for word, *_ in commands(texts[path])}
    quoted = {name for text in texts.values() for name in FORBIDDEN if re.search(rf"[\"'/]{name}[\"' ]", text)}
    if forbidden := sorted(quoted | run & FORBIDDEN):
        yield f"its verifier runs {', '.join(forbidden)}, which a sandbox forbids: what it finds may be wrong"


def _told_places(recipe: Recipe, places: Places, named: Sequence[str]) -> Iterator[str]:
    """Yield notes on paths that a sandbox cannot have."""
    if recipe.workdir != "/" and places.folder not in places.links:
        yield f"its programs expect {recipe.workdir}, where a sandbox has the system: they run elsewhere"
    tops = {"tests", "logs", *(path.split("/")[1] for path in (*places.links, recipe.workdir)), *places.own}
    if beyond := sorted({path for path in named if path.split("/")[1] not in tops} - recipe.files.keys()):
        yield f"its instructions name {', '.join(beyond)}, where a sandbox has the system: no candidate can bring that"
    yield from told_lost([path for path in places.lost if not _is_test(path)])


FORMATS = (Format("instruction.md with tests/test.sh (Harbor)", read_harbor, 4),)
