"""A run as objects: its candidates, their lineage, numbers and evidence, and what people decided."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from evogit.core import (
    Candidate,
    Evaluation,
    Judged,
    Metric,
    NotFoundError,
    RefusedError,
    RepositoryError,
    StopReason,
    UsageError,
)
from evogit.events import Decision
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.standing import Standing, Verdict, places, standing
from evogit.library.notebook import html, summary, told
from evogit.repository import Repository, reason_in
from evogit.repository.repository import Repository as _Repository
from evogit.review import open_run, resolve, status_record
from evogit.review.export import Exported, export
from evogit.review.json_records import candidate_record
from evogit.review.timeline import TimelinePoint, course, entries_of, table
from evogit.run import Run
from evogit.text import measured

logger = logging.getLogger(__name__)

LIBRARIES: Mapping[str, Mapping[str, Any]] = {"pandas": {}, "polars": {"infer_schema_length": None, "strict": False}}
"""Library -> what its `DataFrame` is told beside the columns, which hold numbers, texts and None."""


def read(folder: str | Path | Repository | Run = ".", name: str | None = None) -> Result:
    """A run of a repository, whatever made it; `name` may be left out where there is one run, or a `Run` is given.

    Raises:
        NotFoundError: there is no such repository or run.
        UsageError: there are several runs.
    """
    if isinstance(folder, Run):
        folder, name = folder.repository.path, folder.name
    return Result(open_run(_opened(folder), name))


def runs(folder: str | Path | Repository = ".") -> dict[str, Result]:
    """All runs of a repository by name, but for those that cannot be read, each of which is a warning.

    Raises:
        NotFoundError: there is no repository.
    """
    repository, found = _opened(folder), dict[str, Result]()
    for name in repository.runs():
        try:
            found[name] = Result(open_run(repository, name))
        except (RefusedError, RepositoryError) as error:
            logger.warning("left out the run %s: %s", name, error)
    return found


def _opened(folder: str | Path | Repository) -> Repository:
    if isinstance(folder, _Repository):
        return folder
    try:
        return Repository.discover(Path(folder))
    except NotFoundError as error:
        raise NotFoundError(f"expected a folder of a Git repository with a run, got {str(folder)!r}") from error


class Result:
    """A run: what `evolve` gives and `read` reads. In a notebook it shows itself.

    `result["best"]`, `result["seed"]`, `result["a1"]` (an agent's), `result["1f0c9a2"]` and `result[-1]` (the youngest)
    are candidates; iterating gives all of them, oldest first.
    """

    def __init__(self, stored: StoredRun) -> None:
        """Look at a run that has begun; `refresh` takes in what came since."""
        self.repository = stored.repository
        self.history: History = stored.history
        self._journal = stored.journal

    # --- the run ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The run's name, as `evogit` has it in `--name`."""
        return self.history.run

    @property
    def path(self) -> Path:
        """Where the repository is, as `evogit` has it in `-C`."""
        return self.repository.path

    @property
    def goal(self) -> str:
        """What agents were told to do."""
        return self.history.started.goal if self.history.started else ""

    @property
    def metric(self) -> Metric:
        """The metric that ranks."""
        return self.history.metric

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics that the task names."""
        return self.history.started.metrics if self.history.started else ()

    @property
    def judged(self) -> Judged:
        """Where scores come from: `inside`, where a candidate's own code could have forged them, or not."""
        return self.history.started.judged if self.history.started else "outside"

    @property
    def stopped(self) -> StopReason | None:
        """Why the run ended, such as `evaluations`; None: it goes on, or was killed."""
        return self.history.stopped.reason if self.history.stopped else None

    @property
    def evaluations(self) -> int:
        """How many candidates were evaluated, the seed and those that failed included."""
        return self.history.counts.evaluated

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return self.history.counts.failed

    @property
    def decisions(self) -> list[Decision]:
        """What people decided and did not take back, oldest first."""
        return [entry.event for entry in self.history.in_force() if isinstance(entry.event, Decision)]

    @property
    def remarks(self) -> list[str]:
        """What to know before the best is trusted, a sentence each."""
        return told(self.history)

    @property
    def moments(self) -> list[TimelinePoint]:
        """How the run stood after each evaluation: best, value, seconds, tokens, dollars."""
        known = [entry for entry in entries_of(self.repository, self.name) if entry.seq <= self.history.seq]
        return [moment for moment in course(self.name, known) if moment.candidate]

    @property
    def curve(self) -> list[tuple[int, float]]:
        """The best value so far after each evaluation: pairs of count and value."""
        return [(each.evaluations, each.value) for each in self.moments if each.value is not None]

    def record(self) -> dict[str, Any]:
        """How the run stands as an object for JSON, as `evogit status --json` has it."""
        return status_record(self.repository, self.history)

    def refresh(self) -> Result:
        """Take in what came since; this result itself."""
        self._journal.refresh()
        return self

    # --- candidates ---------------------------------------------------------------------------------------------

    @property
    def best(self) -> CandidateView:
        """The best candidate. Raises NotFoundError if none is valid."""
        return self["best"]

    @property
    def seed(self) -> CandidateView:
        """What the run began with."""
        return self["seed"]

    @property
    def candidates(self) -> list[CandidateView]:
        """All candidates, oldest first."""
        return [CandidateView(self, candidate) for candidate in self.history.phylogeny]

    @property
    def records(self) -> list[CandidateView]:
        """Those that were the best when they were evaluated, oldest first."""
        return [self[commit] for commit in self.history.records]

    def __getitem__(self, revision: str | int) -> CandidateView:
        if isinstance(revision, int):
            return self.candidates[revision]
        return CandidateView(self, resolve(self.history, revision))

    def __iter__(self) -> Iterator[CandidateView]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.history.phylogeny)

    def to_dataframe(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """One row for each candidate, those evaluated first at the top; `docs/guide.md` says what the columns are.

        Raises:
            NotFoundError: neither pandas nor polars is installed.
        """
        shown = {candidate.commit for candidate in self.history.phylogeny}
        head, *rows = table(self.repository, self.history, shown)
        columns = [str(name) for name in head]
        return dataframe({name: [row[at] for row in rows] for at, name in enumerate(columns)}, library)

    # --- shown --------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Result {self.name!r}: {self.evaluations} evaluations in {str(self.path)!r}>"

    def __str__(self) -> str:
        return summary(self.repository, self.history)

    def _repr_html_(self) -> str:
        return html(self.repository, self.history)


class CandidateView:
    """One candidate of a run: a commit, where it came from, and what is known of it."""

    def __init__(self, result: Result, candidate: Candidate) -> None:
        self._result = result
        self._history = result.history
        self._repository = result.repository
        self.candidate = candidate

    @property
    def id(self) -> str:
        """The commit, 40 hex digits."""
        return self.candidate.commit

    @property
    def title(self) -> str:
        """What its author calls the change."""
        return self.candidate.title

    @cached_property
    def reason(self) -> str:
        """What its author says for it; empty where nothing."""
        return reason_in(self._repository.message(self.id))

    @property
    def agent(self) -> str:
        """The agent that made it; `seed` and `human` are none."""
        return self.candidate.agent

    @property
    def operator(self) -> str:
        """How it was made: `seed`, `mutation`, `merge`, `graft` or `human`."""
        return self.candidate.operator

    # --- what it is worth ---------------------------------------------------------------------------------------

    @property
    def standing(self) -> Standing:
        """Return how it stands: score, interval, gain, verdict, and what it is compared with."""
        return standing(self._history, self.id)

    @property
    def score(self) -> float | None:
        """The value that it ranks by; None unless it was evaluated and is valid."""
        return self._history.fitness(self.id)

    @property
    def gain(self) -> float | None:
        """How much better it is than the fittest that it comes from; negative when worse, None if unknown."""
        return self.standing.gain

    @property
    def verdict(self) -> Verdict | None:
        """`better`, `worse`, `within noise` or `tied`, compared with the same one; None if unknown."""
        return self.standing.verdict

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the score; None where there is none."""
        return self.standing.interval

    @property
    def evaluation(self) -> Evaluation | None:
        """What is known of it: status, metrics, cases, cost and reason; None until it is evaluated."""
        return self._history.evaluation(self.id)

    @property
    def evaluations(self) -> list[Evaluation]:
        """Each evaluation by itself where it was repeated."""
        return self._history.scores.each(self.id)

    @property
    def status(self) -> str | None:
        """`ok`, or how it failed; None until it is evaluated."""
        return self.evaluation.status if self.evaluation else None

    @property
    def metrics(self) -> dict[str, float]:
        """All its numbers; empty unless it is valid."""
        return dict(self.evaluation.metrics) if self.evaluation else {}

    @property
    def failure(self) -> str:
        """Why it failed, in a sentence; empty for valid ones. `evidence["stderr"]` may say more."""
        return self.evaluation.reason if self.evaluation else ""

    @property
    def evidence(self) -> dict[str, bytes]:
        """What is kept of how it was made and evaluated: file name -> content, such as `prompt.md` or `stderr`."""
        made = self._repository.trees.kept(self._history.sessions.get(self.id))
        return made | self._repository.trees.kept(self._history.evidence.get(self.id))

    @property
    def decisions(self) -> list[Decision]:
        """What people decided about it and did not take back."""
        return [decision for decision in self._result.decisions if self.id in decision.candidates]

    # --- where it came from -------------------------------------------------------------------------------------

    @property
    def parents(self) -> list[CandidateView]:
        """What it was bred from; two for a merge or a graft."""
        return self._views(self.candidate.parents)

    @property
    def inspirations(self) -> list[CandidateView]:
        """No parents, but code of theirs that an agent was shown is in it."""
        return self._views(self._history.inspirations.get(self.id, ()))

    @property
    def children(self) -> list[CandidateView]:
        """What was bred from it, oldest first."""
        return self._views(self._history.phylogeny.children(self.id))

    @property
    def lineage(self) -> list[CandidateView]:
        """The path of first parents from the seed to it, both included."""
        return [CandidateView(self._result, each) for each in self._history.phylogeny.lineage(self.id)]

    def _views(self, commits: Sequence[str]) -> list[CandidateView]:
        return [CandidateView(self._result, self._history.phylogeny[commit]) for commit in commits]

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def files(self) -> Mapping[str, bytes]:
        """Its files: path -> content."""
        return self._repository.trees.files(self.candidate.tree, lambda path: True)

    @property
    def text(self) -> str:
        """The text of its only file.

        Raises:
            UsageError: it has several; `files` has them.
        """
        files = self.files
        if len(files) != 1:
            raise UsageError(f"expected a candidate of one file, got {', '.join(files) or 'none'}; see .files")
        return next(iter(files.values())).decode(errors="replace")

    def diff(self, since: CandidateView | str | None = None) -> str:
        """The change as a patch: from its first parent, or from another candidate such as `"seed"`."""
        if since is None:
            before = self.parents[0] if self.candidate.parents else self
        else:
            before = self._result[since] if isinstance(since, str) else since
        return self._repository.diff(before.candidate.tree, self.candidate.tree)

    def export(self, folder: str | Path) -> Exported:
        """Write its files into a folder that is empty or absent.

        Raises:
            RefusedError: the folder holds something already, or cannot be made.
        """
        return export(self._repository, self.candidate, Path(folder))

    def record(self) -> dict[str, Any]:
        """All that is known of it as an object for JSON, as `evogit show --json` has it."""
        return candidate_record(self._history, self.candidate)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CandidateView) and (self.id, self._result.name) == (other.id, other._result.name)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        known = self.standing
        score = "" if known.score is None else measured(known.score, known.margin, places(self._history))
        worth = f"{self._result.metric.name} {score}" if score else known.status
        return f"<CandidateView {self.id[:7]}: {worth}, {self.title!r}>"


def dataframe(columns: Mapping[str, Sequence[object]], library: str | None = None) -> Any:
    """A data frame of `library`, or of the first one that is installed.

    Raises:
        NotFoundError: it is not installed, or none is.
        UsageError: it is none that is known.
    """
    if library is not None and library not in LIBRARIES:
        raise UsageError(f"expected {' or '.join(LIBRARIES)}, got {library!r}")
    wanted = [library] if library else list(LIBRARIES)
    for name in wanted:
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        return module.DataFrame(dict(columns), **LIBRARIES[name])
    raise NotFoundError(
        f"a data frame needs {' or '.join(wanted)}, which is not installed here: pip install {wanted[0]}; "
        "without it, `evogit export run.csv` writes the same columns to a file"
    )
