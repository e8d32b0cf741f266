"""Makes a run of what another system has found: to look at as any other, and to go on from once evaluated here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from msgspec import Struct

from evogit.adopt.past import Past, PastRun
from evogit.breeding.inspirations import Inspirations
from evogit.config import Task
from evogit.core import Evaluation, Evidence, RefusedError, UsageError
from evogit.engine.projections import Projections
from evogit.evaluation.seed_files import write_seed
from evogit.events import Adopted, Evaluated, Proposed, RunStarted, Stopped
from evogit.history import History
from evogit.history.context import RunContext
from evogit.repository import Repository, clean_title
from evogit.repository.evidence import files_of, why

FOUNDERS = 8  # individuals that a run goes on from, the best different ones
MOST_NUMBERS = 64  # metrics of a program that are kept beside its score


class Imported(Struct, frozen=True):
    """What came of it: how many programs became candidates, were there before, or changed what may not change."""

    candidates: int
    same: int
    refused: int


def bring_in(repository: Repository, task: Task, run: str, past: PastRun) -> Imported:
    """Begin a run with the programs of a past one as candidates, with the scores that the other system gave them.

    They are marked as scored inside, by another evaluator: a run goes on once they are evaluated here.

    Raises:
        RefusedError: the run is there already.
        UsageError: the task's seed is a commit, of which nothing descends that another system made.
    """
    if task.seed is None:
        raise UsageError(f"expected a task with a seed folder, got {task.folder}, whose seed is a commit")
    if run in repository.runs():
        raise RefusedError(
            f"the run {run!r} is there already; choose another --name, or remove it: `evogit clean {run} --all`"
        )
    with repository.engines(run).enter(join=False) as engine:
        history = History(run)
        journal = repository.journal(run, history.apply)
        writer = _Writer(RunContext(repository, history, journal, task, engine), past.system, past.programs)
        done = writer.write()
        Projections(repository, history).follow()
        return done


class _Writer:
    """Journals one run."""

    def __init__(self, context: RunContext, system: str, programs: Sequence[Past]) -> None:
        self._context = context
        self._system = system
        self._programs = programs
        self._inspirations = Inspirations(context.repository, context.history)
        self._candidates: dict[str, str] = {}
        self._same = 0
        self._refused = 0

    def write(self) -> Imported:
        """Journal the start, the seed, every program, and the individuals to go on from."""
        self._begin()
        seed = self._seed()
        for program in self._programs:
            self._add(program, seed)
        history = self._context.history
        sign = -self._context.task.primary.sign
        known = dict.fromkeys(filter(None, self._candidates.values()))
        values = {each: value for each in known if (value := history.fitness(each)) is not None}
        best = sorted(values, key=lambda commit: sign * values[commit])[:FOUNDERS]
        for number, commit in enumerate(best or [seed], start=1):
            self._context.journal.append(Adopted(agent=f"a{number}", candidate=commit))
        self._context.journal.append(Stopped(engine=self._context.engine, reason="evaluations"))
        made = len(history.phylogeny) - 1
        return Imported(made, self._same, self._refused)

    def _begin(self) -> None:
        task = self._context.task
        self._context.journal.append(
            RunStarted(
                engine=self._context.engine,
                task=task.name,
                task_digest=task.digest,
                metrics=task.metrics,
                split="train",
                evaluator=hashlib.sha256(f"of {self._system}".encode()).hexdigest(),
                provider=self._system,
                image="",
                judged="inside",
                agents=tuple(f"a{number}" for number in range(1, FOUNDERS + 1)),
                population=self._context.repository.population(self._context.history.run),
                editable=task.editable,
                withheld=task.unseen,
                goal=task.goal,
                parts={**task.parts, "evaluator": self._system},
            )
        )

    def _seed(self) -> str:
        tree = write_seed(self._context.repository, self._context.task)
        first = next((each for each in self._programs if not each.parent), None)
        if first and first.value is not None and self._fits(first):  # the task's seed may have changed since
            tree = self._context.repository.trees.write(tree, dict(first.files))
        commit = self._commit(tree, (), "seed", f"seed of {self._context.task.name}", int(time.time()))
        self._propose(commit, tree, (), f"seed of {self._context.task.name}", None)
        self._context.repository.plant(commit)
        return commit

    def _fits(self, program: Past) -> bool:
        """Whether a program is what the task lets change."""
        return bool(program.files) and all(map(self._context.task.is_editable, program.files))

    def _add(self, program: Past, seed: str) -> None:
        history = self._context.history
        if not self._fits(program):
            self._refused += 1
            return
        base = self._context.repository.tree_of(seed)
        tree = self._context.repository.trees.write(base, dict(program.files))
        first = history.trees.get(tree)
        self._candidates[program.id] = first or ""
        if first is None:
            title = clean_title(program.title)
            parents = (self._candidates.get(program.parent) or seed,)
            commit = self._commit(tree, parents, "a1", title, program.time or int(time.time()))
            self._propose(commit, tree, parents, title, program)
            self._candidates[program.id] = first = commit
        elif known := history.scores.each(first):
            self._same += 1
            if program.value in {each.metrics.get(self._context.task.primary.name) for each in known}:
                return  # a copy, as each island of another system has its own
        self._evaluate(first, program)

    def _commit(self, tree: str, parents: tuple[str, ...], author: str, title: str, when: int) -> str:
        trailers = {"Agent": author, "Operator": "mutation" if parents else "seed", "Imported-From": self._system}
        return self._context.repository.commit(tree, parents, author=author, time=when, title=title, trailers=trailers)

    def _propose(self, commit: str, tree: str, parents: tuple[str, ...], title: str, program: Past | None) -> None:
        told = "\n".join(f"{name}: {text}" for name, text in program.told.items()) if program else ""
        shown = self._shown(program, parents) if program else ()
        files = why(told)
        evidence = self._context.journal.keep(files, commit)
        self._context.journal.append(
            Proposed(
                engine=self._context.engine,
                move=len(self._context.history.phylogeny),
                candidate=commit,
                tree=tree,
                parents=parents,
                agent="a1" if parents else "seed",
                operator="mutation" if parents else "seed",
                title=title,
                shown=shown,
                inspirations=self._inspirations.of(tree, parents, shown),
                evidence=evidence if files else "",
            )
        )

    def _shown(self, program: Past, parents: tuple[str, ...]) -> tuple[str, ...]:
        """The candidates that whoever made a program was shown, but for those that it descends from."""
        family = self._context.history.phylogeny.ancestors(*parents)
        found = dict.fromkeys(self._candidates.get(each, "") for each in program.shown)
        return tuple(each for each in found if each and each not in family)

    def _evaluate(self, commit: str, program: Past) -> None:
        task, failed = self._context.task, program.value is None
        metrics = {} if program.value is None else {task.primary.name: program.value}
        numbers = {**dict(list(program.numbers.items())[:MOST_NUMBERS]), **metrics}
        evaluation = Evaluation(
            status="invalid" if failed else "ok",
            metrics=metrics,
            cases={self._system: numbers} if numbers.keys() - metrics.keys() else {},
            reason=f"it has no score in {self._system}{program.failure and ': '}{program.failure}" if failed else "",
            repeat=len(self._context.history.scores.each(commit)),
            evaluator=self._context.history.started.evaluator if self._context.history.started else "",
            judged="inside",
        )
        evidence = ""
        if program.feedback:
            feedback = files_of(Evidence(feedback={self._system: program.feedback}))
            evidence = self._context.journal.keep(feedback, commit)
        self._context.journal.append(Evaluated(candidate=commit, evaluation=evaluation, evidence=evidence))
