"""Finds classes in a person's own files, given as `FILE.py:Name`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from evogit.core import ConfigError, UsageError


def is_own(text: str) -> bool:
    """Whether `text` names something in a file rather than what comes along."""
    return ".py:" in text


def located(text: str) -> str:
    """Return `FILE.py:Name` with the path from the root, as typed where the user stands; other names as they are."""
    path, _, name = text.rpartition(":")
    return f"{Path(path).resolve()}:{name}" if is_own(text) else text


def check_located(text: str) -> None:
    """Refuse a relative `FILE.py:Name` that a journal has: a file of that name here may be a stranger's.

    Raises:
        UsageError: it is one.
    """
    if is_own(text) and not Path(text.rpartition(":")[0]).is_absolute():
        raise UsageError(f"expected the whole path of {text!r}, which the run's last start names; name it again")


def load(text: str) -> Any:
    """What `FILE.py:Name` names; the file is run as a module of its own, once.

    Raises:
        ConfigError: the file cannot be run, or has no such name.
        UsageError: there is no such file.
    """
    path, _, name = text.rpartition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"expected FILE.py:Name with a file that is there, got {text!r}")
    module = sys.modules.get(key := f"evogit_own_{file.stem}_{abs(hash(file))}")
    if module is None:
        spec = importlib.util.spec_from_file_location(key, file)
        assert spec  # the name ends in .py
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[key]
            raise ConfigError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise ConfigError(f"{file} defines no {name!r}")
    return getattr(module, name)
