"""What a Harbor task.toml says, for a step of a task with what it says of that one alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evogit.adopt.dockerfile_text import expanded
from evogit.adopt.foreign_task import PLAIN, File
from evogit.adopt.yaml_text import at
from evogit.contained import find_text, lines_of, toml_of

MAX_MEGABYTES = 1 << 24
MAIN = "main"
"""The service of a composition in which agents work."""


def steps(folder: Path) -> list[str]:
    """Names of the steps of a task that has several, each in a folder below steps/."""
    told = at(_read(folder), "steps")
    tables = told if isinstance(told, list) and (folder / "steps").is_dir() else []
    return [str(at(step, "name")) for step in tables if at(step, "name")]


def whole_of(folder: Path) -> Path:
    """The folder of the task that a step is of; of any other task, its own."""
    above = folder.resolve().parent.parent
    return above if folder.resolve().parent.name == "steps" and folder.resolve().name in steps(above) else folder


def config_of(folder: Path) -> dict[str, Any]:
    """What a task.toml says, for a step with what it says of that one alone."""
    whole = whole_of(folder)
    config = _read(whole)
    told = at(config, "steps") if whole != folder else None
    for step in told if isinstance(told, list) else ():
        if at(step, "name") == folder.resolve().name and isinstance(at(step, "verifier"), dict):
            config["verifier"] = {**(at(config, "verifier") or {}), **step["verifier"]}
    return config


def has_settings(folder: Path) -> bool:
    """Return whether a task.toml has any lines, read or not."""
    return any(not line.lstrip().startswith("#") for line in lines_of(find_text(folder, "task.toml")))


def _read(folder: Path) -> dict[str, Any]:
    with suppress(tomllib.TOMLDecodeError):
        return toml_of(find_text(folder, "task.toml"))
    return {}


def variables(config: Mapping[str, Any]) -> dict[str, str]:
    """What the verifier finds in its environment, but what the machine is to know (`${NAME}` without a default)."""
    found: dict[str, str] = {}
    for keys in (("environment", "env"), ("verifier", "environment", "env"), ("verifier", "env")):
        told = at(config, *keys)
        for name, value in told.items() if isinstance(told, dict) else ():
            said = expanded(str(value), {}) if "${" in str(value) else str(value)
            found |= {name: said} if said or "${" not in str(value) else {}
    return found


def collecting(config: Mapping[str, Any]) -> dict[str, File]:
    """Path among theirs -> a script that runs what is to be run where an agent worked, before the verifier."""
    told = at(config, "verifier", "collect")
    hooks = [each for each in told if at(each, "service") in (None, MAIN)] if isinstance(told, list) else []
    lines = [str(at(each, "command")) for each in hooks if at(each, "command")]
    return {"collect.sh": ("".join(f"({line}\n)\n" for line in lines).encode(), PLAIN)} if lines else {}


def megabytes(config: Mapping[str, Any], what: str, least: int) -> int:
    """How much of `memory` or `storage` a task asks for, or its verifier; no less than the `least`."""
    tables = [at(config, "environment"), at(config, "verifier", "environment")]
    told = [at(table, f"{what}_mb") for table in tables] + [_in_megabytes(at(table, what)) for table in tables]
    return min(max([least, *(each for each in told if isinstance(each, int))]), MAX_MEGABYTES)


def _in_megabytes(size: object) -> int:
    """A size such as "2G" or "512M"; 0 for what is none."""
    match = re.fullmatch(r"(\d{1,9})([GM])i?B?", str(size)[:40], re.IGNORECASE)
    return int(match[1]) * (1024 if match[2] in "gG" else 1) if match else 0


def is_separate(config: Mapping[str, Any]) -> bool:
    """Whether the verifier is a container of its own."""
    verifier = at(config, "verifier")
    return at(verifier, "environment_mode") == "separate" or bool(at(verifier, "environment"))
