"""Branches and notes that show a run to plain Git. They follow the journals and are never read back."""

from __future__ import annotations

import logging

from evogit.core import Evaluation
from evogit.events import RunStarted
from evogit.history import History
from evogit.repository import AGENT_NAME, RESERVED, Repository

logger = logging.getLogger(__name__)


def agent_ref(history: History, agent: str) -> str:
    """The ref of an agent's current individual: below the run's own prefix, whatever a journal says.

    A journal only chooses between plain branches and refs that plain Git does not show.
    """
    started = history.started
    assert isinstance(started, RunStarted)
    if started.population.startswith("refs/heads/"):
        return f"refs/heads/evogit/{history.run}/{agent}"
    return f"refs/evogit/{history.run}/agents/{agent}"


def has_ref(agent: str) -> bool:
    """Return whether an agent's individual has a ref; any other name could be a branch that users commit to."""
    return agent not in RESERVED and AGENT_NAME.fullmatch(agent) is not None


class Projections:
    """Keeps the refs of one run in step with its history."""

    def __init__(self, repository: Repository, history: History) -> None:
        self._repository = repository
        self._history = history
        self._shown: dict[str, str] = {}
        self._followed: dict[str, str] = {}
        self._left: set[str] = set()
        self._basis: object = None

    def follow(self) -> None:
        """Move the refs of the agents and of the best to where the history is now; cheap where nothing changed.

        One that is checked out, or that a person moved to a commit of their own, stays, and is tried again the next
        time.
        """
        history = self._history
        changed = history.seed is not None and history.former(history.seed) is not None
        # a repeat may move any ref, as it may fail; once the task has changed, any entry may
        basis = len(history.decisions), history.counts.repeated, history.seq if changed else None
        if basis != self._basis:
            self._followed, self._basis = {}, basis
        for agent, commit in history.heads.items():
            if self._followed.get(agent) == commit:
                continue
            if not has_ref(agent) or self._show(agent_ref(history, agent), history.head(agent)):
                self._followed[agent] = commit
        if best := history.best or history.seed:
            self._show(f"refs/heads/evogit/{history.run}/best", best)

    def _show(self, ref: str, commit: str) -> bool:
        """Move one ref if that is not done; says if it is where it belongs."""
        if self._shown.get(ref) != commit and self._is_ours(ref) and self._repository.move_branch(ref, commit):
            self._shown[ref] = commit
        return self._shown.get(ref) == commit

    def _is_ours(self, ref: str) -> bool:
        """Whether no work is lost when the ref moves; warns once where it would be."""
        current = self._repository.target(ref)
        if current is None or current in self._history.phylogeny or self._repository.branches.ours(current):
            return True
        if ref not in self._left:
            self._left.add(ref)
            name = ref.removeprefix("refs/heads/")
            logger.warning(
                "%s is at %s, which is not a candidate, and stays there; to have it follow, `git branch -m %s NAME`",
                *(name, current[:7], name),
            )
        return False

    def notes(self) -> None:
        """Show every evaluation as a note."""
        texts = {}
        for candidate in self._history.phylogeny:
            commit = candidate.commit
            if evaluation := self._history.evaluation(commit):
                texts[commit] = note(evaluation)
            elif former := self._history.former(commit):
                texts[commit] = f"before the task changed: {note(former)}"
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
