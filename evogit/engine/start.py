"""How a run begins, and how it goes on: the same task, the seed, the agents' names."""

from __future__ import annotations

import hashlib
import logging
import random
import re
import time
from collections.abc import Sequence

from msgspec import Struct, to_builtins

from evogit.adopt.notes import admitted, is_scored
from evogit.agents.mutation.mutator import check_edited
from evogit.breeding.fingerprints import UNCHANGED
from evogit.config.run_settings import Settings
from evogit.core import EvoGitError, RefusedError, UsageError
from evogit.engine.comparability import changes, check_comparable
from evogit.engine.evaluations import EvaluationBackend, Evaluations
from evogit.evaluation.seed_files import check_tree, write_seed
from evogit.events import Adopted, Proposed, RunStarted
from evogit.history import History
from evogit.history.context import RunContext
from evogit.repository.run_keys import commitment
from evogit.text import one_line

EPOCH = 946_684_800
"""2000-01-01 in seconds: when a seed that is not a commit is committed where all must get the same one."""


logger = logging.getLogger(__name__)


def generator(seed: int, move: int, agent: str) -> random.Random:
    """The random generator of one move, from the run's seed, the move's number and its agent's name alone.

    The name keeps engines that join apart, which number their moves alike.
    """
    digest = hashlib.sha256(f"evogit move {seed} {move} {agent}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8]))


def only_a_failed_seed(history: History) -> bool:
    """Whether a run holds nothing but a seed that failed, so that it loses nothing when it begins anew."""
    evaluation = history.evaluation(history.seed) if history.seed else None
    return len(history.phylogeny) == 1 and evaluation is not None and not evaluation.ok


class Start(Struct, frozen=True):
    """Begins a run or goes on with it, as one engine."""

    context: RunContext
    settings: Settings
    mutates: bool = False
    """True if an agent is the offline mutator, which edits Python alone."""

    @property
    def _history(self) -> History:
        return self.context.history

    def check(self, evaluator_digest: str) -> None:
        """Refuse to mix scores of different tasks, evaluators or splits in one run, and a run that Git has no room for.

        Raises:
            RefusedError: naming what changed, or what is in the way, and the way on.
            UsageError: for a deterministic run of a task with exclusive = true, whose scores are times, or for a split
                that there is not.
        """
        self.context.task.check_split(self.settings.split)
        if self.settings.deterministic and self.context.task.environment.exclusive:
            raise UsageError("deterministic cannot go with exclusive = true, as measured times never repeat")
        if self.settings.deterministic and any("minutes" in stage.budget for stage in self.context.task.plan):
            raise UsageError("deterministic cannot go with minutes in [[stages]], which depend on the clock")
        if self.settings.review_every == 0 and not self.context.task.plan:
            raise UsageError("expected a task with [[stages]] for --review-every stage; --review-every N needs none")
        self.context.repository.check_room(self._history.run)
        check_comparable(self._history, self.context.task, self.settings.split, evaluator_digest)
        began = self._history.started
        if began is None:
            self._check_people()
        if began is not None and began.task_digest != self.context.task.digest:
            latest = list(self._history.engines.values())[-1]
            if changes(latest.parts, self.context.task.parts):
                changed = changes(began.parts, self.context.task.parts)
                named = ", ".join(changed)
                logger.warning("the %s changed; the run goes on, as candidates are evaluated as before", named)

    def _check_people(self) -> None:
        """Refuse people's branches of a run that has not begun, which an archive may bring along.

        Raises:
            RefusedError: naming one.
        """
        for ref in self.context.repository.branches.below(f"refs/heads/evogit/{self._history.run}/human/"):
            branch = one_line(ref.removeprefix("refs/heads/"), 100)
            raise RefusedError(
                f"expected no branch of people before a run begins, got {branch}, whose commits would count as yours; "
                "rename it with `git branch -m`, or name another run with --name"
            )

    def begin(self, backend: EvaluationBackend, agents: int) -> list[str]:
        """Journal that this engine starts, and propose the seed if there is none; returns the agents' names.

        Raises:
            NotFoundError: there is no seed, and then nothing is journalled.
        """
        seed = self._history.seed or self._make_seed()
        while True:
            names = self._names(agents)
            started = self._started(backend, names)
            # another engine that joins at the same moment may take these names first
            if self.context.journal.append(started, unless=lambda: names != self._names(agents)):  # noqa: B023
                break
        if self._history.seed is None:
            self._propose_seed(seed)
        return names

    def _started(self, backend: EvaluationBackend, names: list[str]) -> RunStarted:
        began, task, repository = self._history.started, self.context.task, self.context.repository
        # entries are sealed by the run's key also where the backend draws no inputs
        inputs = began.inputs if began else commitment(repository.keys.find(self._history.run))
        # addresses and workers' commands are a person's own: only how many there are is journalled
        settings = {**to_builtins(self.settings), "agents": self.settings.agents, "workers": len(self.settings.workers)}
        settings |= {"reviewer": task.review} if task.review else {}
        private = {"remote", "sync_every", "lessons_from", *([] if self.settings.workers else ["workers", "trust"])}
        return RunStarted(
            engine=self.context.engine,
            task=task.name,
            task_digest=task.digest,
            metrics=task.metrics,
            split=self.settings.split,
            evaluator=backend.digest,
            provider=backend.provider,
            image=backend.image,
            judged=backend.judged,
            agents=tuple(names),
            population=began.population if began else repository.population(self._history.run),
            editable=task.editable,
            withheld=task.unseen,
            goal=task.goal,
            parts=task.parts,
            repeats=task.repeats,
            paired=task.paired,
            inputs=backend.inputs or inputs,
            settings={name: value for name, value in settings.items() if name not in private},
        )

    def _names(self, agents: int) -> list[str]:
        """`a1` and so on, after the host's name where others take part; an engine that joins takes free names."""
        engines = self._history.engines.values() if self.settings.join else ()
        taken = [name for started in engines for name in started.agents]
        before = f"{self.context.repository.host}-a" if self.settings.remote else "a"
        known = (re.fullmatch(f"{re.escape(before)}([0-9]+)", name) for name in taken)
        first = 1 + max((int(found[1]) for found in known if found), default=0)
        return [f"{before}{number}" for number in range(first, first + agents)]

    def _propose_seed(self, commit: str) -> None:
        self.context.journal.keep({}, commit)
        self.context.journal.append(
            Proposed(
                engine=self.context.engine,
                move=0,
                candidate=commit,
                tree=self.context.repository.tree_of(commit),
                parents=(),
                agent="seed",
                operator="seed",
                title=f"seed of {self.context.task.name}",
                fingerprint=UNCHANGED,
            ),
            unless=lambda: self._history.seed is not None,
        )
        self.context.repository.plant(commit)

    def _make_seed(self) -> str:
        if self.context.task.seed is None:
            head = self.context.repository.head()
            self._check(self.context.repository.tree_of(head))
            return head
        tree = write_seed(self.context.repository, self.context.task)
        self._check(tree)
        return self.context.repository.commit(
            tree,
            (),
            author="seed",
            time=EPOCH if self.settings.deterministic or self.settings.remote else int(time.time()),
            title=f"seed of {self.context.task.name}",
            trailers={"Agent": "seed", "Operator": "seed"},
        )

    def _check(self, tree: str) -> None:
        task, trees = self.context.task, self.context.repository.trees
        for note in check_tree(task, self.context.repository, tree):
            logger.warning("%s", note)
        if not self.mutates:
            return
        paths = [entry.path for entry in trees.whole(tree) if entry.is_file and task.is_editable(entry.path)]
        check_edited(paths)

    def settle(self, names: Sequence[str], evaluations: Evaluations) -> None:
        """Give every agent without an individual the seed, once that is evaluated.

        Raises:
            EvoGitError: when the seed itself fails.
        """
        seed = self._history.seed or ""
        evaluation = self._history.evaluation(seed)
        if evaluation is not None and evaluation.counts and not evaluation.ok:
            task, anew = self.context.task, ", which begins anew" if only_a_failed_seed(self._history) else ""
            raise EvoGitError(
                f"the seed of {task.name} itself fails ({evaluation.status}: {evaluation.reason}); {task.mending}, and "
                f"do the same again{anew}"
            )
        new = [name for name in names if name not in self._history.heads]
        if new and is_scored(self.context.task):
            feedback = evaluations.evidence(seed).feedback
            if told := admitted("\n".join(feedback.values())):
                logger.warning("%s; see `evogit check`", told)
        for name in new:
            self.context.journal.append(Adopted(agent=name, candidate=seed))
