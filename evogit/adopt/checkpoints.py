"""Reads checkpoints of OpenEvolve and of SkyDiscover, whose programs are files of JSON beside a `metadata.json`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evogit.adopt.openevolve import FEATURES
from evogit.adopt.past import (
    MAX_PROGRAM_BYTES,
    MAX_RUN_BYTES,
    Past,
    PastRun,
    finite,
    in_order,
    list_of,
    moment,
    numbers_of,
    object_of,
    only_one,
)
from evogit.contained import find_text, folders_below
from evogit.core import NotFoundError

SKYDISCOVER = "SkyDiscover"
CODE = {"code": "OpenEvolve", "solution": SKYDISCOVER}
"""The key of a program's text -> the system that calls it so."""
FAILED = frozenset({"error", "stage1_passed"})
"""Numbers that say nothing of a program but that it failed."""
REASONS = ("error", "error_message", "stderr", "failure_stage")
"""Artifacts that say why a program failed, the plainest first."""


def find_checkpoints(path: Path) -> Sequence[Path]:
    """The folders of checkpoints at a path, the latest first: it alone if it is one, else all of the run below it.

    Raises:
        UsageError: several runs are below it.
    """
    if (path / "programs").is_dir():
        return [path]
    below = (path / place / name for place, folders, _ in folders_below(path) for name in folders)
    root = path.resolve()
    named = (each for each in below if each.name.startswith("checkpoint_") and (each / "programs").is_dir())
    found = [each for each in named if each.resolve().is_relative_to(root)]
    only_one(path, {each.parent for each in found})
    return sorted(found, key=_iteration, reverse=True)


def _iteration(checkpoint: Path) -> int:
    return int("0" + re.sub("[^0-9]", "", checkpoint.name)[-18:])


def read_checkpoints(folders: Sequence[Path], program: str) -> PastRun:
    """All programs that any of the checkpoints has, as later ones have dropped some, or are not whole.

    Raises:
        NotFoundError: there is no program in them, or none that can be read.
    """
    found, unread = _programs(folders)
    if not found:
        raise NotFoundError(_what_came(folders[0] / "programs", unread))
    features = _features(folders)
    made = sorted(found.values(), key=lambda each: (finite(each.get("timestamp")) or 0, _number(each)))
    programs = [_past(each, program, features) for each in made]
    return PastRun(CODE[_code(made[0])], in_order(programs), len(unread))


def _number(found: Mapping[str, Any]) -> float:
    """The iteration, which copies for other islands do not have."""
    return finite(found.get("iteration_found")) or 0


def _programs(folders: Sequence[Path]) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Name of a file -> the latest that is said of a program; and files that are whole in no checkpoint."""
    found: dict[str, dict[str, Any]] = {}
    unread = set()
    room = MAX_RUN_BYTES
    for folder in folders:
        for file in sorted((folder / "programs").glob("*.json")):
            if file.name in found:
                continue
            text = find_text(folder, f"programs/{file.name}", min(room, MAX_PROGRAM_BYTES))
            room -= len(text)
            about = object_of(text)
            if isinstance(about.get(_code(about)), str) and "id" in about:
                found[file.name] = about
            else:
                unread.add(file.name)
    return found, unread - found.keys()


def _code(about: Mapping[str, Any]) -> str:
    return next((name for name in CODE if name in about), "code")


def _what_came(folder: Path, unread: Collection[str]) -> str:
    """Why nothing could be read."""
    if not unread:
        return f"{folder} has no program yet; give an earlier checkpoint, or import it once there is a later one"
    first = min(unread)
    about = object_of(find_text(folder.parent, f"programs/{first}", MAX_PROGRAM_BYTES))
    names = ", ".join(about) or "no JSON object that is whole"
    return (
        f"{folder} has {len(unread)} files, and none has a program: expected id, and code (OpenEvolve) or solution "
        f"(SkyDiscover), got in {first}: {names}"
    )


def _features(folders: Sequence[Path]) -> Collection[str]:
    """Metrics by which programs are told apart, not ranked; SkyDiscover has none."""
    for folder in folders:
        stats = object_of(find_text(folder, "metadata.json", MAX_PROGRAM_BYTES)).get("feature_stats")
        if isinstance(stats, dict) and stats:
            return frozenset(stats)
    return FEATURES


def _past(found: Mapping[str, Any], program: str, features: Collection[str]) -> Past:
    code = _code(found)
    metrics, about = object_of(found.get("metrics")), object_of(found.get("metadata"))
    artifacts = object_of(found.get("artifacts_json") or found.get("artifacts"))
    number = found.get("iteration_found")
    made = f"program {found['id']}" if number is None else f"iteration {number}"
    said = found.get("changes_description") or about.get("changes") or made
    value = _fitness(metrics, () if CODE[code] == SKYDISCOVER else features)
    texts = {name: str(text) for name, text in metrics.items() if finite(text) is None}
    places = {"iteration": number, "generation": found.get("generation"), **_moved(about)}
    return Past(
        id=str(found["id"]),
        files={program: found[code].encode(errors="replace")},
        value=value,
        parent=str(found.get("parent_id") or ""),
        shown=tuple(map(str, list_of(found.get("other_context_ids")))),
        title=_title(str(said)),
        failure="" if value is not None else _failure(metrics, artifacts),
        numbers=numbers_of(metrics),
        told={**{name: str(place) for name, place in places.items() if place is not None}, **texts},
        feedback="\n".join(f"[{name}] {text}" for name, text in artifacts.items()),
        time=moment(found.get("timestamp")),
    )


def _moved(about: Mapping[str, Any]) -> dict[str, Any]:
    """The island of a program, and whence it was copied there."""
    return {name: about[name] for name in ("island", "migrated_from", "migrated_to") if name in about}


def _title(said: str) -> str:
    """What a change is said to be: of one that is told as lines to replace, the first new one."""
    new = re.match(r"Change \d+: Replace:\n(?:.*\n)*?with:\s{1,80}(.+)", said)
    if new:
        return new[1].strip()
    return said if "Change 2:" in said else said.removeprefix("Change 1: ")


def _fitness(metrics: Mapping[str, Any], features: Collection[str]) -> float | None:
    """What ranks a program there; None for what only says that it failed."""
    if "combined_score" in metrics:
        said = metrics["combined_score"]
        with suppress(ValueError):
            return finite(float(said) if isinstance(said, str) else said)
        return None
    numbers = numbers_of(metrics)
    if numbers.keys() <= FAILED:
        return None
    ranking = [number for name, number in numbers.items() if name not in features] or list(numbers.values())
    return sum(ranking) / len(ranking)


def _failure(metrics: Mapping[str, Any], artifacts: Mapping[str, Any]) -> str:
    """Why a program has no score, as far as it is said: in the last line of what was caught, mostly."""
    said = {**artifacts, **{name: text for name, text in metrics.items() if isinstance(text, str)}}
    if metrics.get("timeout") is True:
        return f"timeout in {said.get('failure_stage', 'the evaluation')}"
    texts = (str(said.get(name) or "").strip() for name in REASONS)
    stage = next((name.removesuffix("_passed") for name in metrics if name.endswith("_passed")), "")
    number = f"combined_score is {metrics['combined_score']}" if "combined_score" in metrics else ""
    found = [*(text.splitlines()[-1] for text in texts if text), number, stage and f"it failed in {stage}"]
    return next(filter(None, found), "")
