"""Branches and notes that show a run to plain Git. They follow the journals and are never read back."""

from __future__ import annotations

from evogit.core import Evaluation, RunStarted
from evogit.history import History
from evogit.repository import Repository


def agent_ref(history: History, agent: str) -> str:
    """The ref of an agent's current individual."""
    started = history.started
    assert isinstance(started, RunStarted)
    return started.population + agent


class Projections:
    """Keeps the refs of one run in step with its history."""

    def __init__(self, repository: Repository, history: History) -> None:
        self._repository, self._history = repository, history
        self._best: str | None = None

    def agent(self, agent: str) -> None:
        """Move an agent's ref to its current individual."""
        self._repository.move_branch(agent_ref(self._history, agent), self._history.heads[agent])

    def best(self) -> None:
        """Move the branch `evogit/<run>/best`, if the best is another one now."""
        best = self._history.best or self._history.seed
        if best and best != self._best:
            self._repository.move_branch(f"refs/heads/evogit/{self._history.run}/best", best)
            self._best = best

    def all(self) -> None:
        """Rebuild every ref."""
        for agent in self._history.heads:
            self.agent(agent)
        self.best()

    def notes(self) -> None:
        """Show every evaluation as a note."""
        texts = {}
        for candidate in self._history.phylogeny:
            evaluation = self._history.evaluation(candidate.commit)
            if evaluation is not None:
                texts[candidate.commit] = note(evaluation)
        self._repository.write_notes(self._history.run, texts)


def note(evaluation: Evaluation) -> str:
    """An evaluation in a few lines."""
    lines = [f"{evaluation.status} on {evaluation.split}"]
    lines += [f"{name} {value:.10g}" for name, value in evaluation.metrics.items()]
    if evaluation.reason:
        lines.append(evaluation.reason)
    if evaluation.judged == "inside":
        lines.append("judged: inside")
    return "\n".join(lines) + "\n"
