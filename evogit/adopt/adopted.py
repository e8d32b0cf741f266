"""A task of another system as a person would have written it for EvoGit, and the folder that says so."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evogit.content import content
from evogit.core import ConfigError, Direction
from evogit.sandbox.cache import cache_folder

File = tuple[bytes, int]
"""Content and Git mode."""

OURS = "run"
"""The folder of the evaluator's in which our stand-ins lie."""
THEIRS = "task"
"""The folder of the evaluator's in which the files of the other system lie, as they were."""
SHIMS = f".evogit/{OURS}"
VIEW = ".foreign"
"""The folder among the candidate's files in which their evaluator finds its own, and may write."""
PLAIN, EXECUTABLE = 0o100644, 0o100755
NOISY = 3
"""How often what seems best is evaluated again where scores may be noisy, as far as the sources tell."""


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """What is evolved and how it is evaluated, in EvoGit's words.

    Attributes:
        system: whose format it is, such as "OpenEvolve".
        name: of the task.
        goal: what agents are told.
        editable: globs of what may change.
        seed: path -> file of the first candidate.
        theirs: path -> file that evaluates or is read by what does; candidates run beside them.
        command: the shell command that evaluates.
        read: how the score is read from it.
        metric: what the score is called.
        direction: which way is better.
        timeout: seconds of one evaluation.
        packages: Python requirements.
        repeats: above 0 where scores may be noisy.
        links: absolute path that their programs expect -> folder of the candidate's that it leads to.
        notes: what a person should know.
    """

    system: str
    name: str
    goal: str
    editable: tuple[str, ...]
    seed: Mapping[str, File]
    theirs: Mapping[str, File]
    command: str
    read: str = "json"
    metric: str = "combined_score"
    direction: Direction = "maximize"
    timeout: float = 300.0
    packages: tuple[str, ...] = ()
    repeats: int = 0
    links: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def files(self) -> Iterator[tuple[str, File]]:
        """The files of a task folder: path -> content and mode."""
        yield "task.toml", (self._toml().encode(), PLAIN)
        yield "goal.md", (self.goal.strip().encode() + b"\n", PLAIN)
        for path, file in self.seed.items():
            yield f"seed/{path}", file
        for path, file in self.theirs.items():
            yield f".evogit/{THEIRS}/{path}", file
        for path, file in _stand_ins():
            yield f"{SHIMS}/{path}", file

    def _toml(self) -> str:
        rows = [
            f"# Made by `evogit adopt` from a task of {self.system}. Its evaluator runs beside the candidate, in the",
            "# candidate's sandbox: what it says can be forged, so scores are marked `judged: inside`.",
            f"name = {json.dumps(self.name)}",
            f"editable = {json.dumps(self.editable)}",
            "",
            f"[metrics.{self.metric}]",
            f'direction = "{self.direction}"',
            "",
            "[evaluator]",
            'kind = "command"',
            f"command = {json.dumps(self.command)}",
            f"repeats = {self.repeats}",
            f"read.{self.metric} = {json.dumps(self.read)}",
            "",
            "[sandbox]",
            f"timeout = {self.timeout:g}",
            'memory = "4g"',
            'disk = "512m"',
            "pids = 256",
            f"packages = {json.dumps(self.packages)}",
        ]
        if self.links:
            inside = ", ".join(f"{json.dumps(path)} = {json.dumps(leads)}" for path, leads in self.links.items())
            rows.append(f"links = {{ {inside} }}")
        return "\n".join(rows) + "\n"

    def write(self, folder: Path) -> None:
        """Write the task folder.

        Raises:
            ConfigError: a file's path leads out of it.
        """
        for path, (data, mode) in self.files():
            place = folder / path
            if ".." in place.parts:
                raise ConfigError(f"expected files below the task's folder, got {path}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o755 if mode == EXECUTABLE else 0o644)

    def kept(self) -> Path:
        """A folder of the user's cache that holds the task, written once for each content."""
        digest = hashlib.sha256()
        for path, (data, mode) in self.files():
            digest.update(json.dumps([path, mode, len(data)]).encode() + data)
        folder = cache_folder() / "adopted" / digest.hexdigest()[:32] / self.name
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                self.write(Path(scratch) / self.name)
                try:
                    os.rename(Path(scratch) / self.name, folder)  # noqa: PTH104 - whole or not at all
                except OSError:
                    shutil.rmtree(Path(scratch) / self.name)  # another process was faster
        return folder


def _stand_ins() -> Iterator[tuple[str, File]]:
    root = content("sandbox") / "foreign"
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), (path.read_bytes(), PLAIN)


def name_of(folder: Path) -> str:
    """A name for the task in this folder or file."""
    word = re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().stem.lower()).strip("-_")
    return word or "task"
