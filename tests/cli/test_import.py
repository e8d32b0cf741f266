"""What another system found, looked at and gone on with as a person does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adopt.evaluating import write

from .conftest import Cli

EVALUATOR = "def evaluate(path):\n    return {'combined_score': float(open(path).read()[4:])}\n"


@pytest.mark.slow
def test_an_imported_run_is_rescored_and_goes_on_though_its_program_was_edited_since(cli: Cli, tmp_path: Path) -> None:
    programs = [
        {"id": "a", "code": "X = 1\n", "parent_id": None, "iteration_found": 0, "metrics": {"combined_score": 10.0}},
        {"id": "b", "code": "X = 2\n", "parent_id": "a", "iteration_found": 1, "metrics": {"combined_score": 20.0}},
    ]
    texts = {f"out/checkpoint_1/programs/{each['id']}.json": json.dumps(each) for each in programs}
    write(tmp_path / "sum", {"initial_program.py": "X = 5\n", "evaluator.py": EVALUATOR, **texts})
    made = cli("import", "sum", "--name", "night", cwd=tmp_path)
    assert made.code == 0, made.err
    assert "evogit -C evogit-sum rescore sum --name night" in made.err
    rescored = cli("-C", "evogit-sum", "rescore", "sum", "--name", "night", "--yes", cwd=tmp_path)
    assert rescored.code == 0, rescored.err
    run = ("-C", "evogit-sum", "run", "sum", "--name", "night", "--evaluations", "5", "--seed", "1")
    assert cli(*run, cwd=tmp_path).code == 0
    shown = cli("-C", "evogit-sum", "status", "--name", "night", "--json", cwd=tmp_path).json
    assert shown["seed"]["metrics"] == {"combined_score": 1.0}
    assert shown["best"]["metrics"]["combined_score"] >= 2.0
