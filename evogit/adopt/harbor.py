"""Reads a Harbor task: `instruction.md`, `task.toml`, `environment/Dockerfile`, `tests/test.sh` that leaves a reward.

A candidate is what lies in the image's working folder after an agent has been there.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evogit.adopt.dockerfile import Recipe, installed, laid, read_dockerfile
from evogit.adopt.foreign_task import PLAIN, SHIMS, VIEW, File, ForeignTask, may_link, name_of
from evogit.adopt.skydiscover import merged, needs
from evogit.adopt.sources import files_below, packages, repeats
from evogit.adopt.yaml_subset import at

EXPECTED = "instruction.md with tests/test.sh (Harbor)"
WORKDIR = "/app"
"""Where agents work, if the image does not say."""
TIMEOUT = 600.0
LOGS = f"{VIEW}-logs"
NAMED = re.compile(r"[`\"'\s](/?(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4})[`\"'\s.,:)]")
SYSTEM = re.compile(r"/(bin|dev|etc|lib\w*|proc|root|sbin|sys|tmp|usr|var)(/|$)")


def read_harbor(folder: Path) -> ForeignTask | None:
    """The task in a folder, None where it is no such task."""
    if not (folder / "instruction.md").is_file() or not (folder / "tests" / "test.sh").is_file():
        return None
    instruction = (folder / "instruction.md").read_text(encoding="utf-8", errors="replace").strip()
    config = _config(folder / "task.toml")
    context = files_below(folder / "environment")
    recipe = read_dockerfile(context.get("Dockerfile", (b"", 0))[0].decode(errors="replace"), WORKDIR)
    tests = files_below(folder / "tests")
    seed, elsewhere = _placed(recipe, context)
    seed = seed or {_solution(instruction, recipe.workdir): (b"", PLAIN)}
    theirs = {**{f"tests/{path}": file for path, file in tests.items()}, **elsewhere}
    script = tests["test.sh"][0].decode(errors="replace")
    asked = tuple(requirement for _, requirement in installed(script))
    runner = ("pytest",) if "pytest" in script else ()
    links = {recipe.workdir: "."} if may_link(recipe.workdir) else {}
    links |= {"/tests": f"{VIEW}/tests", "/logs": LOGS}
    links |= {f"/{path.split('/')[1]}": f"{VIEW}/image/{path.split('/')[1]}" for path in elsewhere}
    return ForeignTask(
        system="Harbor",
        name=name_of(folder),
        goal=f"{instruction}\n\nYou work on the files of `{recipe.workdir}`. A higher `reward` is better.",
        editable=("**",),
        seed=seed,
        theirs=theirs,
        command=shlex.join([*_environment(config), "python3", f"{SHIMS}/evaluate_harbor.py", recipe.workdir]),
        read="json:combined_score",
        metric="reward",
        timeout=float(at(config, "verifier", "timeout_sec") or TIMEOUT),
        packages=merged(asked, packages(theirs), packages(seed), recipe.packages, runner),
        repeats=repeats(tests),
        links=links,
        why_inside="the verifier runs where the candidate's files are, and may run them",
        notes=(*needs(recipe), *_unlike(config, recipe)),
    )


def _config(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def _environment(config: Mapping[str, Any]) -> list[str]:
    """How a shell gives the verifier its variables, but those of the machine (`${NAME}`)."""
    told = at(config, "verifier", "env")
    pairs = told.items() if isinstance(told, dict) else ()
    said = [f"{name}={value}" for name, value in pairs if "${" not in str(value)]
    return ["env", *said] if said else []


def _unlike(config: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    """What is not as Harbor does it."""
    verifier = at(config, "verifier")
    separate = at(verifier, "environment_mode") == "separate" or at(verifier, "environment")
    if separate:
        yield "its verifier is a container of its own there; here it runs beside the candidate"
    if not may_link(recipe.workdir):
        yield f"its programs expect {recipe.workdir}, where a sandbox has the system: they run elsewhere"


def _placed(recipe: Recipe, context: Mapping[str, File]) -> tuple[dict[str, File], dict[str, File]]:
    """The files of the working folder, and path -> file of those that the image has elsewhere."""
    seed, elsewhere = {}, {}
    for path, file in laid(recipe, context).items():
        if path.startswith(f"{recipe.workdir.rstrip('/')}/"):
            seed[posixpath.relpath(path, recipe.workdir)] = file
        elif not SYSTEM.match(path):
            elsewhere[f"image{path}"] = file
    return seed, elsewhere


def _solution(instruction: str, workdir: str) -> str:
    """The file that the instructions ask for, where an image brings none: the first one that they name."""
    for name in NAMED.findall(f" {instruction} "):
        path = posixpath.relpath(name, workdir) if name.startswith("/") else posixpath.normpath(name)
        if not path.startswith(".."):
            return path
    return "solution.py"
