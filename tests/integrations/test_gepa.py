"""The engine keeps the contract of GEPA's `oa` package; no release has that, so its server is stood in for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evogit
from evogit.core import EvoGitError, NotFoundError, UsageError
from evogit.integrations import gepa

SEED = "X = 1.0\nY = 2.0\n"


class BudgetExhausted(Exception):  # noqa: N818  GEPA's name
    pass


@dataclass
class Budget:
    max_evals: int | None
    used: int = 0

    @property
    def remaining(self) -> int | None:
        return None if self.max_evals is None else max(0, self.max_evals - self.used)


@dataclass
class Server:
    """Counts and scores, as GEPA's does: no evaluation above the budget, failed ones count."""

    score: Callable[..., float]
    budget: Budget
    output_dir: Path | None = None
    examples: dict[str, list[Any]] = field(default_factory=dict)

    def evaluate(self, candidate: str, example: Any = None) -> tuple[float, dict[str, Any]]:
        if self.budget.remaining == 0:
            raise BudgetExhausted
        self.budget.used += 1
        score = self.score(candidate) if example is None else self.score(candidate, example)
        return score, {"said": "higher is better", "_budget": {"used": self.budget.used}}

    def evaluate_examples(self, candidate: str, *, split: str) -> tuple[float, dict[str, Any]]:
        found = [self.evaluate(candidate, example)[0] for example in self.examples[split]]
        return sum(found) / len(found), {"scores": found}


@dataclass
class Task:
    seed_candidate: str | dict[str, str] | None = SEED
    objective: str = "Make X and Y large."
    background: str = ""
    train_set: list[Any] | None = None
    val_set: list[Any] | None = None


@dataclass
class Config:
    engine_config: dict[str, Any] = field(default_factory=dict)
    stop_at_score: float | None = None
    max_token_cost: float | None = None
    run_dir: str | None = None


@dataclass
class Result:
    best_candidate: str
    best_score: float
    total_evals: int = 0
    eval_log: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """GEPA's package, as far as the engine needs it; what registered."""
    known: dict[str, Any] = {}
    registry, engine = ModuleType("gepa.oa.registry"), ModuleType("gepa.oa.engine")
    registry.register_engine = known.__setitem__  # type: ignore[attr-defined]
    engine.Result = Result  # type: ignore[attr-defined]
    for module in (ModuleType("gepa"), ModuleType("gepa.oa"), registry, engine):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return known


def total(candidate: str) -> float:
    names: dict[str, Any] = {}
    exec(candidate, names)
    return float(names["X"] + names["Y"])


def test_it_registers_and_improves_within_the_budget_of_the_server(engines: dict[str, Any], tmp_path: Path) -> None:
    gepa.register()
    server = Server(total, Budget(25), tmp_path)
    result = engines["evogit"](Config()).run(Task(), server)
    assert result.best_score == total(result.best_candidate) > 3.0
    assert result.total_evals == server.budget.used == 25
    run = evogit.read(result.metadata["repository"])
    assert (run.goal, run.evaluations, run.path) == ("Make X and Y large.", 25, tmp_path / "evogit")
    assert b"higher is better" in run.best.evidence["feedback.json"]
    assert b"_budget" not in run.best.evidence["feedback.json"]
    assert result.metadata["adapter_cost"] == 0


def test_a_second_run_beside_the_first_has_a_budget_of_its_own(tmp_path: Path) -> None:
    for number in (1, 2):
        result = gepa.EvoGitEngine(Config(run_dir=str(tmp_path))).run(Task(), Server(total, Budget(4)))
        assert (result.total_evals, result.metadata["run"]) == (4, f"gepa-{number}")


def test_examples_count_each(tmp_path: Path) -> None:
    examples = {"train": [1, 2, 3], "val": [4]}
    server = Server(lambda candidate, example: total(candidate) * example, Budget(20), tmp_path, examples)
    result = gepa.EvoGitEngine(Config()).run(Task(train_set=examples["train"], val_set=examples["val"]), server)
    assert server.budget.used == 18
    assert result.best_score == pytest.approx(2 * total(result.best_candidate))


def test_it_stops_at_a_score_and_where_others_used_up_the_budget(tmp_path: Path) -> None:
    server = Server(total, Budget(500), tmp_path)
    assert gepa.EvoGitEngine(Config(stop_at_score=3.0)).run(Task(), server).total_evals < 10

    def greedy(candidate: str) -> float:
        shared.budget.used += 9
        return total(candidate)

    shared = Server(greedy, Budget(40), tmp_path)
    assert gepa.EvoGitEngine(Config()).run(Task(), shared).best_score >= 3.0
    assert shared.budget.used <= 49


def test_candidates_that_fail_end_nothing_and_a_seed_that_fails_says_so(tmp_path: Path) -> None:
    def picky(candidate: str) -> float:
        if candidate != SEED:
            raise ValueError("no")
        return 1.0

    server = Server(picky, Budget(6), tmp_path)
    result = gepa.EvoGitEngine(Config()).run(Task(), server)
    assert (result.best_candidate, result.best_score, server.budget.used) == (SEED, 1.0, 6)
    with pytest.raises(EvoGitError, match="itself fails"):
        gepa.EvoGitEngine(Config()).run(Task(seed_candidate="X = 1\n"), Server(total, Budget(6), tmp_path))


def test_seeds_are_texts(tmp_path: Path) -> None:
    server = Server(lambda candidate: float(len(candidate)), Budget(3), tmp_path)
    parts = {"system": "Be brief: 3 words.", "user": "Say hello 2 times."}
    result = gepa.EvoGitEngine(Config({"file": "prompt.md"})).run(Task(seed_candidate=parts), server)
    assert evogit.read(result.metadata["repository"]).seed.files == {
        "prompt.md": b"Be brief: 3 words.\n\nSay hello 2 times."
    }
    with pytest.raises(UsageError, match="expected a seed_candidate"):
        gepa.EvoGitEngine(Config()).run(Task(seed_candidate=None), server)


def test_odd_options_and_a_gepa_without_engines_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="got modle"):
        gepa.EvoGitEngine(Config({"modle": "x"}))
    monkeypatch.setitem(sys.modules, "gepa.oa.registry", None)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="pip install -U gepa"):
        gepa.register()
