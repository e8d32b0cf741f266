"""An environment for each peer, from the package index, beside that of EvoGit."""

from __future__ import annotations

import compileall
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

OURS = Path(__file__).parents[2] / "evogit"


@dataclass(frozen=True)
class Environment:
    """What can be run, or why it cannot; `seconds` is what installing took."""

    python: Path
    problem: str = ""
    seconds: float = 0.0
    packages: int = 0
    megabytes: float = 0.0


def environment(packages: Sequence[str], folder: Path) -> Environment:
    """The environment with some packages, of which the first one names it; EvoGit's own if there are none."""
    if not packages:
        compileall.compile_dir(OURS, quiet=1)  # as pip does with the peers, whatever the environment says
        return Environment(Path(sys.executable))
    place = folder / re.split("[=<>]", packages[0])[0]
    python, noted = place / "bin" / "python", place / "installed.json"
    if noted.exists():
        return Environment(python, **json.loads(noted.read_text()))
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    done = subprocess.run([python, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True)
    if done.returncode:
        return Environment(python, problem=f"cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    found = Environment(python, "", time.monotonic() - began, *size(python))
    noted.write_text(json.dumps({"seconds": found.seconds, "packages": found.packages, "megabytes": found.megabytes}))
    return found


def size(python: Path) -> tuple[int, float]:
    """How many packages there are beside pip, and how many megabytes they take."""
    site = next((python.parent.parent / "lib").glob("python3*/site-packages"))
    names = [each for each in site.glob("*.dist-info") if not re.match("pip-|setuptools-", each.name)]
    return len(names), sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 1e6


def version(found: Environment, package: str) -> str:
    """Of an installed package."""
    code = f"import importlib.metadata as m; print(m.version({re.split('[=<>]', package)[0]!r}))"
    return subprocess.run([found.python, "-c", code], capture_output=True, text=True).stdout.strip()
