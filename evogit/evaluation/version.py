"""Which EvoGit evaluates, for workers: what scores may depend on is the code itself, whatever its version is called."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from evogit.content import PACKAGE, content


@cache
def own_version() -> str:
    """The version of the installed package, and a short digest of the code that evaluates and isolates."""
    files = [PACKAGE / "core.py"]
    for folder in (PACKAGE / "evaluation", PACKAGE / "sandbox", content("sandbox")):
        files += sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    try:
        number = version("evogit")
    except PackageNotFoundError:  # it runs from a checkout
        number = "checkout"
    return f"{number}+{digest.hexdigest()[:10]}"
