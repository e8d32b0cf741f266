"""What the agents of a run do now, as far as its journal tells."""

from __future__ import annotations

from evogit.history import History
from evogit.repository import Repository

SHORT = 7
"""Digits of an id."""


def doing(repository: Repository, history: History) -> dict[str, str] | None:
    """What each agent of the engines at work does, in words; None where no engine is at work."""
    alive = repository.engines(history.run).alive()
    if not alive:
        return None
    started = [history.engines[engine] for engine in alive if engine in history.engines]
    now = {agent: "at work" for each in started for agent in each.agents}
    now |= {asked.agent: f"asking {asked.model}" for asked in history.reserved.values() if asked.agent in now}
    waiting = [each for each in history.pending.values() if each.agent in now]
    return now | {each.agent: f"evaluating {each.commit[:SHORT]}" for each in waiting}
