"""The clones whose engines and people take part in a run, and what each brought."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import to_builtins

from evogit.core import host_of
from evogit.history import History
from evogit.repository import Repository

Record = dict[str, Any]


def host_records(repository: Repository, history: History) -> list[Record]:
    """Each host, this one first: its agents, its candidates, the best of these, when it wrote its last entry.

    `last` is by its own clock, in seconds since the epoch; None where its journal is not here.
    """
    here, tips = repository.host, repository.keeping(history.run).tips("journal")
    told = {host_of(engine) for engine in history.engines} | {entry.host for entry in history.decisions}
    hosts = sorted(told - {here, ""})
    return [_record(repository, history, host, tips.get(host)) for host in ([here] if here in tips else []) + hosts]


def _record(repository: Repository, history: History, host: str, tip: str | None) -> Record:
    own = [each.commit for each in history.phylogeny if each.host == host]
    judged = [commit for commit in own if history.judged(commit)]
    best: str | None = None
    for commit in judged:
        if history.fitness(commit) is not None and (best is None or history.fitter(commit, best)):
            best = commit
    records = Counter(history.phylogeny[each].host for each in history.records)
    engines = {engine: started for engine, started in history.engines.items() if host_of(engine) == host}
    return {
        "host": host,
        "here": host == repository.host,
        "agents": sorted({agent for started in engines.values() for agent in started.agents}),
        "engines": len(engines),
        "candidates": len(own),
        "evaluated": len(judged),
        "records": records[host],
        "best": {"commit": best, "value": history.fitness(best)} if best else None,
        "decisions": sum(entry.host == host for entry in history.decisions),
        "last": repository.commit_time(tip) if tip else None,
    }


def contact_record(repository: Repository, run: str) -> Record | None:
    """How the run stands with its Git server, as `evogit sync` and `run --remote` noted it here; None without one."""
    found = repository.contact(run)
    return to_builtins(found) if found else None
