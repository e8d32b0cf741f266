"""Evaluates the seed of an adopted task with its own command, without a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evogit.config import Task
from evogit.evaluation.command import case_of
from evogit.evaluation.program import Ran


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder with these files."""
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def evaluated(task: Task, scratch: Path, packages: str = "", **changed: str) -> subprocess.CompletedProcess[str]:
    """What the task's command does on its seed with some files `changed`, in the folder `scratch`.

    `packages` is the folder in which a sandbox would have those of the task.
    """
    assert task.command
    files = {path: data for path, (data, _) in task.seed_files().items()}
    files |= {f"{task.command.folder}/{path}": data for path, (data, _) in task.evaluator_files().items()}
    files |= {path: text.encode() for path, text in changed.items()}
    for path, data in files.items():
        place = scratch / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(scratch)}
    environment |= {"PYTHONPATH": packages} if packages else {}
    command = ["sh", "-c", task.command.text]
    return subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)


def score(done: subprocess.CompletedProcess[str]) -> Any:
    """The number in the last line."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["combined_score"]


def metrics(task: Task, done: subprocess.CompletedProcess[str]) -> Mapping[str, float]:
    """What is read from what the task's command printed."""
    assert task.command
    ran = Ran(
        code=done.returncode,
        signal=0,
        stdout=done.stdout,
        stderr=done.stderr,
        cpu=0.0,
        wall=0.0,
        memory=0,
        breach=None,
        detail="",
        files={},
    )
    return case_of(task.command, ran).metrics
