"""Where the time goes in a candidate, for briefs: what the task's `profile` command prints.

It runs on all that evaluations see, the evaluator's files too; what its output quotes of withheld files is left out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from evogit.config import Task
from evogit.core import Candidate
from evogit.engine.evaluations import Evaluations
from evogit.repository import Repository
from evogit.sandbox import Completed
from evogit.sandbox.cache import recall, remember
from evogit.text import plain

logger = logging.getLogger(__name__)

MAX_WALL_S = 300.0
"""The wall clock that the command may take, whatever the task's limit."""
MAX_LINES, MAX_CHARS = 60, 4_000
"""The part of its output that agents are shown."""
MIN_QUOTE_CHARS = 12
"""Lines of withheld files that are shorter, such as a brace, are not looked for."""


class Profile(Struct, frozen=True):
    """The output of a profile command, for agents, or the reason of its failure and its last lines, for the user."""

    text: str = ""
    failure: str = ""
    output: str = ""


class Run(Protocol):
    """Runs a command on all that evaluations see."""

    async def __call__(self, command: list[str], *, wall: float) -> Completed:
        """Run it for so many seconds at most."""
        ...


async def profile(task: Task, repository: Repository, tree: str, run: Run) -> Profile:
    """Run the task's profile command on a tree, by `run`."""
    command = task.command
    if command is None or not command.profile:
        return Profile()
    argv = ["sh", "-c", 'cd -- "$1" && exec sh -c "$2"', "sh", command.directory or ".", command.profile]
    done = await run(argv, wall=min(task.limits.wall, MAX_WALL_S))
    hidden = dict(task.evaluator_secrets())
    hidden |= repository.trees.files(tree, lambda path: task.is_judged(path) and not task.is_visible(path))
    text = await asyncio.to_thread(_without_quotes, plain((done.stdout or b"").decode(errors="replace")), hidden)
    if done.code == 0 and text.strip():
        return Profile("\n".join(text.splitlines()[-MAX_LINES:])[:MAX_CHARS])
    why = done.detail or (f"exit code {done.code}" if done.code else "it printed nothing")
    output = (done.stderr + done.stdout).decode(errors="replace")
    return Profile(failure=why, output="\n".join(output.splitlines()[-MAX_LINES:]))


def _without_quotes(text: str, hidden: Mapping[str, bytes]) -> str:
    """The lines of a text that neither name one of the hidden files nor hold a line of it."""
    lines = {line.strip() for data in hidden.values() for line in data.decode(errors="replace").splitlines()}
    quotes = [re.escape(line) for line in lines if len(line) >= MIN_QUOTE_CHARS and line in text]
    names = [rf"(?<![\w.-]){re.escape(path)}(?![\w-])" for path in hidden if path in text]
    quoted = re.compile("|".join((*quotes, *names)) or r"(?!)")
    return "\n".join(line for line in text.split("\n") if not quoted.search(line))


def keep_profile(task: Task, tree: str, text: str) -> None:
    """Remember the profile of the seed for runs and briefs of this folder."""
    remember(_slot(task), _key(task, tree), {"text": text, "folders": {}})


def kept_profile(task: Task, tree: str) -> str:
    """Return the remembered profile of a tree, or ""."""
    return str((recall(_slot(task), _key(task, tree)) or {}).get("text", "")) if task.command else ""


def _slot(task: Task) -> str:
    return f"profile of {task.folder.resolve()}"


def _key(task: Task, tree: str) -> str:
    return json.dumps([tree, task.evaluator_digest, task.command.profile if task.command else ""])


class Profiles:
    """Runs the command once for each parent; one that fails is a warning, and no profile."""

    def __init__(self, task: Task, repository: Repository, evaluations: Evaluations, cache: dict[str, str]) -> None:
        """`cache`: tree -> text, for whoever writes briefs."""
        self._task = task
        self._repository = repository
        self._evaluations = evaluations
        self._cache = cache
        self._one = asyncio.Lock()

    async def take(self, parent: Candidate) -> None:
        """Put a candidate's profile into the cache."""
        await self.of(parent.tree)

    async def of(self, tree: str) -> str:
        """Return the profile of a tree; "" if there is no command, or it failed."""
        if not (self._task.command and self._task.command.profile and self._evaluations.runs):
            return ""
        async with self._one:
            if tree not in self._cache:
                self._cache[tree] = kept_profile(self._task, tree) or await self._taken(tree)
            return self._cache[tree]

    async def _taken(self, tree: str) -> str:
        async def run(command: list[str], *, wall: float) -> Completed:
            return await self._evaluations.run(tree, command, wall=wall, laid=True)

        result = await profile(self._task, self._repository, tree, run)
        if result.failure:
            last = next(reversed(result.output.split("\n")), "")
            logger.warning("profile failed on %s: %s: %s", tree[:7], result.failure, last[:300])
        return result.text
