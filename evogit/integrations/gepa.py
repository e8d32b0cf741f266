"""EvoGit as an engine of GEPA's `optimize_anything`: its server evaluates and counts, EvoGit searches.

    from evogit.integrations import gepa
    gepa.register()
    optimize_anything(seed, evaluator=..., config=OptimizeAnythingConfig(engine="evogit", max_evals=200))

This needs a GEPA with engines (`gepa.oa`); releases up to 0.1.4 have none.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from evogit import Repository, Run, prepare, read
from evogit.core import Evaluated, NotFoundError, UsageError
from evogit.text import cut

NAME = "evogit"

OPTIONS = ("agents", "model", "file", "jobs", "timeout", "selector", "seed", "deterministic", "patience", "repeats")
"""Keys of `engine_config`: arguments of `evogit.evolve`, and `file`, the name under which agents see the candidate."""

LONGEST_FEEDBACK = 2000
"""Tokens of what an evaluator says that agents are told."""


class Budget(Protocol):
    """GEPA's count of evaluations."""

    @property
    def used(self) -> int:
        """How many there were."""
        ...

    @property
    def remaining(self) -> int | None:
        """How many are left; None where they are not limited."""
        ...


class Server(Protocol):
    """GEPA's server, as far as it is needed."""

    budget: Budget

    def evaluate(self, candidate: str) -> tuple[float, Mapping[str, Any]]:
        """Evaluate a candidate of a task without examples."""
        ...

    def evaluate_examples(self, candidate: str, *, split: str) -> tuple[float, Mapping[str, Any]]:
        """Evaluate a candidate on all examples of a split; each counts."""
        ...


def register() -> None:
    """Let GEPA know the engine `evogit`.

    Raises:
        NotFoundError: GEPA is not installed, or it has no engines.
    """
    _part("registry").register_engine(NAME, EvoGitEngine)


def _part(name: str) -> Any:
    try:
        return import_module(f"gepa.oa.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("gepa"):
            raise
        raise NotFoundError(
            "expected a GEPA with engines (gepa.oa), which releases up to 0.1.4 lack; install a later one: "
            "pip install -U gepa"
        ) from error


class EvoGitEngine:
    """An `Engine` of GEPA's: a run of EvoGit, in a Git repository below `run_dir`, the output folder, or a new one."""

    name = NAME

    def __init__(self, config: Any) -> None:
        """Take what is needed from an `OptimizeAnythingConfig`.

        Raises:
            UsageError: `engine_config` has keys that are no options.
        """
        self._options = dict(config.engine_config)
        if unknown := sorted(self._options.keys() - set(OPTIONS)):
            raise UsageError(f"expected {', '.join(OPTIONS)} in engine_config, got {', '.join(unknown)}")
        self._file = str(self._options.pop("file", ""))
        self._target = config.stop_at_score
        self._dollars = config.max_token_cost
        self._folder = config.run_dir

    def run(self, task: Any, server: Any) -> Any:
        """Evolve the task's candidate with the server's evaluations; the best one, as a `Result` of GEPA's.

        Raises:
            EvoGitError: there is no seed, or it fails, or the world does.
        """
        seed, examples = _text(task.seed_candidate), _Examples.of(task)
        evolving = self._prepared(task, seed, examples, server)
        for event in evolving:
            left = server.budget.remaining
            if isinstance(event, Evaluated) and left is not None and left < examples.number:
                break  # others use the same budget, or all of it is used
        result = read(evolving)
        return _part("engine").Result(
            best_candidate=result.best.text,
            best_score=result.best.score,
            total_evals=server.budget.used,
            metadata={
                "adapter_cost": result.history.spent.dollars,
                "repository": str(result.path),
                "run": result.name,
                "best": result.best.id,
                "judged": result.judged,
                "stopped": result.stopped,
            },
        )

    def process_result(self, result: Any, output_dir: Path | None) -> None:
        """All that there is to keep is in the repository."""

    def _prepared(self, task: Any, seed: str, examples: _Examples, server: Server) -> Run:
        left = server.budget.remaining

        def evaluate(folder: Path) -> dict[str, object]:
            score, info = examples.evaluate(server, (folder / file).read_text())
            told = json.dumps({key: value for key, value in info.items() if key != "_budget"}, indent=1, default=str)
            return {"score": score, "feedback": cut(told, LONGEST_FEEDBACK)}

        file = self._file or ("candidate.py" if _is_python(seed) else "candidate.txt")
        repository = self._repository(server)
        return prepare(
            {file: seed},
            evaluate,
            goal="\n\n".join(filter(None, [task.objective, task.background])),
            evaluations=None if left is None else left // examples.number,
            target=self._target,
            dollars=self._dollars,
            repository=repository,
            name=next(name for number in itertools.count(1) if (name := f"gepa-{number}") not in repository.runs()),
            **self._options,
        )

    def _repository(self, server: Any) -> Repository:
        folder = self._folder or getattr(server, "output_dir", None) or tempfile.mkdtemp(prefix="evogit-gepa-")
        place = Path(folder) / NAME
        return Repository.open(place) if (place / ".git").exists() else Repository.create(place)


class _Examples:
    """The examples that each candidate is evaluated on: those to train on, else those to choose by; or none."""

    def __init__(self, split: str, number: int) -> None:
        self.split = split
        self.number = number

    @classmethod
    def of(cls, task: Any) -> _Examples:
        for split in ("train", "val"):
            if examples := getattr(task, f"{split}_set"):
                return cls(split, len(examples))
        return cls("", 1)

    def evaluate(self, server: Server, candidate: str) -> tuple[float, Mapping[str, Any]]:
        if self.split:
            return server.evaluate_examples(candidate, split=self.split)
        return server.evaluate(candidate)


def _text(seed: str | Mapping[str, str] | None) -> str:
    """A seed as one text, as engines other than GEPA's own take it.

    Raises:
        UsageError: there is none.
    """
    text = "\n\n".join(seed.values()) if isinstance(seed, Mapping) else seed or ""
    if not text:
        raise UsageError("expected a seed_candidate: EvoGit changes what is there, and does not begin with nothing")
    return text


def _is_python(text: str) -> bool:
    try:
        compile(text, "candidate", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return any(word in text for word in ("def ", "import ", "=", "return"))
