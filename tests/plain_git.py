"""Git as a person types it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(folder: Path, *arguments: str, input: str | None = None) -> str:
    """Run a command of Ada's in a folder; what it prints.

    Raises:
        AssertionError: with what it says, when it fails.
    """
    command = ["git", *ADA, *arguments]
    done = subprocess.run(command, cwd=folder, input=input, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
