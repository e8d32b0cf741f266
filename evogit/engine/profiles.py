"""Where the time goes in a parent, for the briefs of agents that read: what the task's `profile` command prints."""

from __future__ import annotations

import asyncio
import logging

from evogit.config import Task
from evogit.core import Candidate
from evogit.engine.evaluations import Evaluations

logger = logging.getLogger(__name__)

LONGEST = 300.0
"""Seconds of wall clock that it may take at most, whatever the task's limit."""

LAST_LINES, LONGEST_TEXT = 60, 4_000
"""How much of its output agents are shown: lines, characters."""


class Profiles:
    """Runs the command once for each parent, on what agents may see of it; one that fails says nothing."""

    def __init__(self, task: Task, evaluations: Evaluations, known: dict[str, str]) -> None:
        """`known`: tree -> text, for whoever writes briefs."""
        self._command = task.command.profile if task.command else ""
        self._directory = task.command.directory if task.command else ""
        self._wall = min(task.limits.wall, LONGEST)
        self._evaluations = evaluations
        self._known = known
        self._one = asyncio.Lock()

    async def take(self, parent: Candidate) -> None:
        """Have it known what the command says of a candidate."""
        await self.of(parent.tree)

    async def of(self, tree: str) -> str:
        """Return what the command says of a tree; empty where there is no command, or it failed."""
        if not self._command or not self._evaluations.runs:
            return ""
        async with self._one:
            if tree not in self._known:
                self._known[tree] = await self._run(tree)
            return self._known[tree]

    async def _run(self, tree: str) -> str:
        script = 'cd -- "$1" && exec sh -c "$2"'
        argv = ["sh", "-c", script, "sh", self._directory or ".", self._command]
        done = await self._evaluations.run(tree, argv, wall=self._wall)
        if done.code != 0:
            logger.warning("profile failed on %s: %s", tree[:7], done.detail or f"exit code {done.code}")
            return ""
        text = (done.stdout or done.stderr).decode(errors="replace")
        return "\n".join(text.splitlines()[-LAST_LINES:])[-LONGEST_TEXT:]
