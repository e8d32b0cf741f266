"""Reads the log of a pi-autoresearch session: `.auto/log.jsonl`, or `autoresearch.jsonl`, a line for each experiment.

Only experiments that were kept have a commit of their own: of all others Git has the program that they began with. A
line with `"type": "config"` begins a segment, whose numbers are not comparable with those before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from evogit.adopt.autoresearch import LAYOUTS
from evogit.adopt.commits import LoggedCommits
from evogit.adopt.past import MAX_PROGRAM_BYTES, Past, PastRun, finite, in_order, moment, numbers_of, object_of
from evogit.adopt.script import plain_name
from evogit.contained import has_file, text_at
from evogit.core import NotFoundError

AUTORESEARCH = "autoresearch"
KEPT = "keep"
MAX_COLUMN_CHARS = 2000
"""Characters of what a row tells beside its numbers."""


class _Segment(Struct, frozen=True):
    """The experiments since a line with the configuration, and the metric that it names."""

    metric: str
    rows: Sequence[dict[str, Any]]


def find_log(path: Path) -> tuple[Path, Path] | None:
    """The log at a path, the file itself or that of a session's folder, and the folder of the session."""
    for layout in LAYOUTS:
        inner = Path(layout.log).parent
        for folder in (path, *(path.parents[:2] if path.name in (Path(layout.log).name, inner.name) else ())):
            log = folder / layout.log
            if path in (folder, log, folder / inner) and has_file(folder, layout.log):
                return log, folder
    return None


def read_log(log: Path, folder: Path, is_program: Callable[[str], bool], metric: str) -> PastRun:
    """The kept experiments of the last segment whose commits Git still has, each once.

    Raises:
        NotFoundError: there is none, or the log is about another metric than the task's.
    """
    segments = _segments(text_at(folder, log.relative_to(folder).as_posix(), MAX_PROGRAM_BYTES))
    rows = segments[-1].rows if segments else ()
    if not rows:
        raise NotFoundError(f"{log} has no experiment yet; expected a line for each, with its commit")
    if segments[-1].metric and plain_name(segments[-1].metric) != metric:
        raise NotFoundError(f"{log} is about {segments[-1].metric}, the task about {metric}; name the task with --task")
    git = LoggedCommits(log, folder, is_program)
    kept: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.get("status") == KEPT and (commit := git.commit(str(row.get("commit") or ""))):
            kept.setdefault(commit, row)
    if not kept:
        raise NotFoundError(
            f"{log}: of {len(rows)} experiments none was kept and names a commit that Git still has; the programs of "
            "the others are gone"
        )
    programs = [
        Past(
            id=commit,
            files=git.files(commit),
            value=finite(row.get("metric")),
            parent=git.made_of(commit, kept.keys()),
            title=str(row.get("description") or commit[:7]),
            numbers=numbers_of(object_of(row.get("metrics"))),
            told=_told(row),
            time=moment((finite(row.get("timestamp")) or 0) // 1000) or git.repository.commit_time(commit),
        )
        for commit, row in kept.items()
    ]
    return PastRun(AUTORESEARCH, in_order(programs), sum(len(each.rows) for each in segments) - len(kept))


def _segments(text: str) -> list[_Segment]:
    """The segments of a log that have experiments, in order; lines that are no JSON are passed over."""
    found, metric, rows = list[_Segment](), "", list[dict[str, Any]]()
    for line in text.splitlines():
        with suppress(ValueError, RecursionError, MemoryError):
            said = json.loads(line)
            if isinstance(said, dict) and said.get("type") == "config":
                found += [_Segment(metric, rows)] if rows else []
                metric, rows = str(said.get("metricName") or metric), []
            elif isinstance(said, dict) and finite(said.get("run")) is not None:
                rows.append(said)
    return [*found, _Segment(metric, rows)] if rows else found


def _told(row: dict[str, Any]) -> dict[str, str]:
    """Return the title and the parent of a row's program."""
    notes = {name: text for name, text in object_of(row.get("asi")).items() if isinstance(text, str)}
    told = {name: row[name] for name in ("run", "status", "confidence") if row.get(name) is not None}
    return {name: str(value)[:MAX_COLUMN_CHARS] for name, value in {**told, **notes}.items()}
