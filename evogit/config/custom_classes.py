"""Finds classes in a person's own files, given as `FILE.py:Name`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from evogit.contained import file_at
from evogit.core import ConfigError, UsageError
from evogit.trust import Claim

MAX_CODE_BYTES = 1 << 20  # bytes of a file of code that others named


def is_own(text: str) -> bool:
    """Whether `text` names something in a file rather than what comes along."""
    return ".py:" in text


def located(text: str) -> str:
    """Return `FILE.py:Name` with the path from the root, as typed where the user stands; other names as they are."""
    path, _, name = text.rpartition(":")
    return f"{Path(path).resolve()}:{name}" if is_own(text) else text


def check_located(text: str) -> None:
    """Raises UsageError: a journal's `FILE.py:Name` is not a whole path without links, so may be a stranger's."""
    path = text.rpartition(":")[0]
    if is_own(text) and ("\0" in path or path != str(Path(path).resolve())):
        raise UsageError(
            f"expected the whole path of {text!r}, without links, which the run's last start names; name it again"
        )


def code_claim(text: str, use: str) -> Claim:
    """Claim that a journal's `FILE.py:Name` runs as it is now. Raises UsageError: it is not whole, or unreadable."""
    check_located(text)
    file = Path(text.rpartition(":")[0])
    try:
        digest = hashlib.sha256(file_at(file.parent, file.name, MAX_CODE_BYTES)[0]).hexdigest()
    except ConfigError as error:
        raise UsageError(f"{error}\nthe run's last start has {use}; name another with --agent or --selector") from error
    effect = f"{file} runs on this machine with your rights, outside the sandbox, as {use}"
    return Claim("code", f"{file}\0{digest}", effect)


def load(text: str) -> Any:
    """Load the class `FILE.py:Name` once, never from bytecode. Raises ConfigError: it fails; UsageError: no file."""
    path, _, name = text.rpartition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"expected FILE.py:Name with a file that is there, got {text!r}")
    module = sys.modules.get(key := f"evogit_own_{file.stem}_{abs(hash(file))}")
    if module is None:
        spec = importlib.util.spec_from_file_location(key, file)
        assert spec  # the name ends in .py
        assert isinstance(spec.loader, SourceFileLoader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        try:
            exec(spec.loader.source_to_code(file.read_bytes(), str(file)), vars(module))  # never a stranger's .pyc
        except (Exception, SystemExit) as error:
            del sys.modules[key]
            raise ConfigError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise ConfigError(f"{file} defines no {name!r}")
    return getattr(module, name)
