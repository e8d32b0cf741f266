"""A run that begins with the entries of another one: refs of its own on the same chains."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pygit2

from evogit.core import Forked
from evogit.repository import journal_records, refs
from evogit.repository.commit_writer import CommitWriter
from evogit.repository.journal import entry_commit
from evogit.repository.run_keys import RunKeys, seal
from evogit.repository.trees import Trees


def fork(
    repo: pygit2.Repository,
    common: Path,
    host: str,
    run: str,
    tips: Mapping[str, str],
    event: Forked,
    seq: int,
    keys: RunKeys,
) -> bool:
    """Begin `run` after the entries `tips` (host -> id) of another one, with `event` as its first of its own.

    What keeps candidates and evidence reachable comes first, and this host's journal before those of others: a process
    killed in between leaves no run, or one that says where it comes from. False where there is such a run already.
    """
    journal = f"refs/evogit/{run}/journal/"
    if any(name.startswith(journal) for name in repo.references):
        return False
    for kind in ("thinned", "keep"):
        theirs = f"refs/evogit/{event.run}/{kind}/"
        for name in [name for name in repo.references if name.startswith(theirs)]:
            ours = f"refs/evogit/{run}/{kind}/{name.removeprefix(theirs)}"
            refs.move(repo, common, ours, str(repo.references[name].target))
    before, record, empty = tips.get(host), journal_records.encode(event, seq), Trees(repo).write(None, {})
    if key := keys.copy(event.run, run):
        record = journal_records.sealed(record, seal(key, host, before, record))
    commits = CommitWriter(repo, common)
    first = entry_commit(commits, host, record, empty, [before] if before else [], int(time.time()))
    if not refs.swap(repo, common, journal + host, first, None):
        return False
    for other, tip in tips.items():
        if other != host:
            refs.move(repo, common, journal + other, tip)
    return True
