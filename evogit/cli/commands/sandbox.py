"""`evogit sandbox build`, `check`, `clean`: what candidates run in, made before it is needed, tried, and removed."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.text import Text

from evogit.adopt import find_task
from evogit.cli.docker import docker_answers, docker_client
from evogit.cli.options.shared import TASK, sandbox_option, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape
from evogit.config import gallery
from evogit.core import EvoGitError, SandboxError
from evogit.sandbox import Environment

if TYPE_CHECKING:
    from evogit.sandbox.mechanisms import Check

Level = Literal["ok", "warn", "fail"]
STYLES: dict[Level, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
GVISOR: Literal["runsc"] = "runsc"
LONG_AGO = 30 * 86400.0
"""Seconds after which a prepared seed that was not used is removed; which tasks it belongs to cannot be told."""
WIDTHS = (4, 18)
"""Columns of the level and of what was tried; the sentence gets the rest."""
LEAST = 30


class Probe(Struct, frozen=True):
    """What was tried of which sandbox, how it went, and a sentence about it."""

    sandbox: str
    level: Level
    what: str
    said: str


@click.group()
def sandbox() -> None:
    """Build, test and remove what candidates run in."""


@sandbox.command(short_help="Build what candidates run in.")
@click.argument("task", type=TASK, required=False)
@sandbox_option
@with_terminal
def build(terminal: Terminal, task: str | None, sandbox: str) -> None:
    """Build what the [sandbox] of TASK asks for (default: nothing special), so that the first run need not wait.

    For Docker that is an image; for bubblewrap, a folder with the Python packages.
    """
    began = time.monotonic()
    made = _make(_environment(task), sandbox, lambda said: terminal.note(escape(said), "dim"))
    if terminal.json:
        terminal.data({"schema": 1, **made})
        return
    told = {**made, "took": f"{time.monotonic() - began:.1f} s"}
    terminal.show(table(((Text(key, "dim"), Text(value)) for key, value in told.items()), "ll"))


@sandbox.command(short_help="Test what sandboxes guarantee.")
@click.argument("task", type=TASK, required=False)
@sandbox_option
@with_terminal
def check(terminal: Terminal, task: str | None, sandbox: str) -> None:
    """Test what every sandbox here guarantees, with programs that break the rules; exit code 1 when something fails.

    With TASK, as its [sandbox] asks for. `auto` tries Docker and bubblewrap, of which one has to be there.
    """
    environment = _environment(task)
    found = list(_findings(sandbox, environment, lambda said: terminal.note(f"trying {said} ...", "dim")))
    if terminal.json:
        terminal.data({"schema": 1, "checks": [to_builtins(finding) for finding in found]})
    else:
        terminal.show(_shown(found, terminal.width))
    if any(finding.level == "fail" for finding in found):
        sys.exit(1)


@sandbox.command(short_help="Remove what is no longer needed.")
@click.option("--all", "everything", is_flag=True, help="Also what the tasks here use.")
@with_terminal
def clean(terminal: Terminal, everything: bool) -> None:
    """Remove containers of dead engines, images and packages that no task here uses, and what was made long ago.

    Tasks here are those of the gallery, and those in this folder and the folders in it. Nothing is lost: what a task
    needs is made again.
    """
    keep = [] if everything else list(_environments_here())
    unused = 0 if everything else LONG_AGO
    removed = [*_clean_docker(keep, terminal), *_clean_folders(keep), *_clean_layers(unused), *_clean_tasks(unused)]
    size = sum(freed for _, _, freed in removed)
    if terminal.json:
        records = [{"kind": kind, "name": name, "bytes": freed} for kind, name, freed in removed]
        terminal.data({"schema": 1, "removed": records, "bytes": size})
        return
    rows = ((Text(kind, "dim"), escape(name), megabytes(freed) if freed else "") for kind, name, freed in removed)
    total = f"{megabytes(size)} freed" if removed else "nothing to remove"
    terminal.show([*table(rows, "llr"), Text(total, "green")])


def megabytes(size: int) -> str:
    """A size as a person reads it."""
    return f"{size / 1e6:,.1f} MB"


def _environment(task: str | None) -> Environment:
    if task is None:
        return Environment()
    found = find_task(task)
    found.check_trust(evaluates=False)
    return found.environment


# --- build --------------------------------------------------------------------------------------------------------


def _make(environment: Environment, name: str, say: Callable[[str], None]) -> dict[str, str]:
    if name == "docker" or (name == "auto" and docker_answers()):
        return {"sandbox": "docker", **_image(environment, say)}
    from evogit.sandbox.packages import packages_folder
    from evogit.sandbox.providers import provider

    folder = packages_folder(environment, sys.version_info[:2], say=say)
    made = provider(name, environment)
    made.close()
    return {"sandbox": made.name, "packages": str(folder or "none"), "digest": made.image()}


def _image(environment: Environment, say: Callable[[str], None]) -> dict[str, str]:
    from evogit.sandbox.docker.images import build_image

    with docker_client() as client:
        image = build_image(client, environment, say)
        size = client.images.get(image.id).attrs["Size"]
    return {"image": image.name, "digest": image.digest, "size": megabytes(size)}


# --- check --------------------------------------------------------------------------------------------------------


def _findings(name: str, environment: Environment, say: Callable[[str], None]) -> Iterator[Probe]:
    """Of the named sandbox, or of Docker and bubblewrap, of which only one has to work; then of this machine."""
    found: dict[str, list[Check]] = {}
    for each in ("docker", "bubblewrap") if name == "auto" else (name,):
        say(each)
        found[each] = list(_tried(each, environment))
    works = [each for each in found if all(well for _, well, _ in found[each])]
    for each, checks in found.items():
        for what, well, said in checks:
            bad: Level = "warn" if works and what == "sandbox" else "fail"  # one that does not open harms nobody
            yield Probe(each, "ok" if well else bad, what, said)
    if "docker" in works:
        yield from _docker_findings(environment, say)
    yield _core(environment)


def _tried(name: str, environment: Environment) -> Iterator[Check]:
    from evogit.sandbox.mechanisms import mechanisms
    from evogit.sandbox.providers import provider, self_check

    checks = self_check(name, environment)
    yield from checks
    if not checks[0][1]:
        return
    sandbox = provider(name, environment)
    try:
        yield from mechanisms(sandbox)
    except SandboxError as error:
        yield "mechanisms", False, str(error)
    finally:
        sandbox.close()


def _docker_findings(environment: Environment, say: Callable[[str], None]) -> Iterator[Probe]:
    from evogit.sandbox.docker.images import find_image

    with docker_client() as client:
        image, runtimes = find_image(client, environment), client.api.info()["Runtimes"]
    if image:
        yield Probe("docker", "ok", "image", f"{image.name}, content {image.digest[:16]}")
    gpus = "nvidia" in runtimes
    told = "Docker gives programs those of NVIDIA" if gpus else "Docker has no runtime for them (nvidia)"
    yield Probe("docker", "fail" if environment.gpus and not gpus else "ok", "GPUs", told)
    if GVISOR in runtimes and not environment.runtime:
        say("gVisor")
        for what, well, said in _tried("docker", replace(environment, runtime=GVISOR)):
            yield Probe("gVisor", "ok" if well else "warn", what, said)


def _core(environment: Environment) -> Probe:
    from evogit.sandbox.cores import exclusive_core

    try:
        core = exclusive_core()
    except SandboxError as error:
        return Probe("this machine", "fail" if environment.exclusive else "warn", "exclusive core", str(error))
    return Probe("this machine", "ok", "exclusive core", f"core {core} is for tasks with exclusive = true")


def _shown(found: list[Probe], width: int | None) -> Iterator[Text]:
    """A heading for each sandbox, and below it the findings, their sentences folded to the width of the terminal."""
    for name in dict.fromkeys(finding.sandbox for finding in found):
        yield Text(name, "bold")
        for finding in (each for each in found if each.sandbox == name):
            head = Text.assemble(
                (finding.level.ljust(WIDTHS[0] + 1), STYLES[finding.level]), finding.what.ljust(WIDTHS[1])
            )
            room = max(width - head.cell_len - 2, LEAST) if width else sys.maxsize
            first, *more = textwrap.wrap(escape(finding.said), room) or [""]
            yield Text.assemble("  ", head, first)
            yield from (Text(" " * (head.cell_len + 2) + line) for line in more)


# --- clean --------------------------------------------------------------------------------------------------------


def _environments_here() -> Iterator[Environment]:
    """Of all tasks that can be read; what the others need is made again."""
    from evogit.sandbox.packages import requirements

    yield Environment()
    for name in (*gallery(), ".", *(str(folder) for folder in sorted(Path().iterdir()) if folder.is_dir())):
        try:
            environment = find_task(name).environment
            requirements(environment)
        except (EvoGitError, OSError):
            continue
        yield environment


def _clean_docker(keep: list[Environment], terminal: Terminal) -> list[tuple[str, str, int]]:
    """Kind, name and bytes of what was removed; the bytes of all images, which share some, stand at the last one."""
    from evogit.sandbox.docker.daemon import patiently
    from evogit.sandbox.docker.images import remove_images
    from evogit.sandbox.docker.worker import clean

    try:
        with docker_client() as client:
            containers = patiently(lambda: clean(client), patience=0.0)
            before = client.df()["LayersSize"]
            names = list(remove_images(client, keep))
            freed = max(before - client.df()["LayersSize"], 0)
    except SandboxError as error:
        terminal.note(f"containers and images stay: {escape(str(error))}", "yellow")
        return []
    images = [("image", name, freed if name == names[-1] else 0) for name in names]
    return [*(("container", name[:12], 0) for name in containers), *images]


def _clean_folders(keep: list[Environment]) -> Iterator[tuple[str, str, int]]:
    from evogit.sandbox.packages import remove_folders

    yield from (("packages", name[:16], size) for name, size in remove_folders(keep))


def _clean_layers(unused: float) -> Iterator[tuple[str, str, int]]:
    from evogit.evaluation.prepare import remove_layers

    yield from (("prepared", name[:16], size) for name, size in remove_layers(unused))


def _clean_tasks(unused: float) -> Iterator[tuple[str, str, int]]:
    from evogit.adopt.foreign_task import remove_kept

    yield from (("task", name, size) for name, size in remove_kept(unused))
