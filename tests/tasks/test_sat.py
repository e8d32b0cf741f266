"""The judge of the solver believes no answer: models are tried, proofs are checked, and formulas differ in each run."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from evogit.adopt import find_task

from .conftest import Judged

TASK = "sat"

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT_S = 4.0
START = """
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
int main(int, char** arguments) {
    std::string formula((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
    std::ofstream proof(arguments[1]);
"""


def only_main(code: str) -> dict[str, bytes]:
    others = {path: b"" for path in find_task(TASK).seed_files() if path.endswith(".cpp")}
    return others | {"main.cpp": f"{START}{code}\n}}\n".encode()}


@pytest.fixture(scope="module")
def judging() -> Iterator[dict[str, ModuleType]]:
    """The modules of the evaluator beside `evaluate`."""
    evaluator = find_task(TASK).evaluator
    assert evaluator
    sys.path.insert(0, str(evaluator.parent))
    try:
        yield {name: importlib.import_module(name) for name in ("formulas", "proofs")}
    finally:
        sys.path.remove(str(evaluator.parent))
        for name in ("formulas", "proofs"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def checker(judging: dict[str, ModuleType]) -> Iterator[Any]:
    with judging["proofs"].compiled_checker() as checker:
        yield checker


CHEATS = {
    'std::cout << "s UNSATISFIABLE\\n"; return 20;': "a wrong proof",
    'proof << "0\\n"; std::cout << "s UNSATISFIABLE\\n"; return 20;': "a wrong proof",
    'proof << "1 0\\n-1 0\\n0\\n"; std::cout << "s UNSATISFIABLE\\n"; return 20;': "a wrong proof",
    'proof << "VERIFIED\\n"; std::cout << "s UNSATISFIABLE\\n"; return 20;': "a wrong proof: line 1",
    'std::cout << "s SATISFIABLE\\n"; return 10;': "a wrong model",
    'std::cout << "s SATISFIABLE\\nv 1 -1 0\\n"; return 10;': "both",
    'std::cout << "s SATISFIABLE\\nv 1 2 3 0\\n"; return 10;': "a wrong model",
    'std::cout << "s SATISFIABLE\\ns UNSATISFIABLE\\n"; return 10;': "expected one line",
    'std::cout << "seconds 0\\n"; return 0;': "expected one line",
    "return 7;": "exit code 7",
    "abort();": "signal 6",
    "oops": "does not compile",
}


@pytest.mark.slow
async def test_an_answer_without_a_model_or_proof_is_invalid(judged: Judged) -> None:
    for code, reason in CHEATS.items():
        evaluation = await judged(files=only_main(code), split="lite")
        assert evaluation.status == "invalid", code
        assert reason in evaluation.reason


@pytest.mark.slow
async def test_a_kept_answer_is_invalid_for_another_formula(judged: Judged) -> None:
    """The first formula has a solution, which this candidate finds by trying values, keeps and gives again."""
    code = """
    std::ifstream kept("kept");
    std::string model((std::istreambuf_iterator<char>(kept)), std::istreambuf_iterator<char>());
    if (!model.empty()) { std::cout << model; return 10; }
    std::ofstream("kept") << "s SATISFIABLE\\nv 1 0\\n";
    std::cout << "s UNKNOWN\\n";"""
    evaluation = await judged(files=only_main(code), split="lite")
    assert evaluation.status == "invalid"
    assert "a wrong model" in evaluation.reason


@pytest.mark.slow
async def test_a_solver_that_gives_up_is_valid_and_counts_twice_the_limit(judged: Judged) -> None:
    evaluation = await judged(files=only_main('std::cout << "s UNKNOWN\\n";'), split="lite")
    assert evaluation.ok
    assert evaluation.metrics == {"seconds": 2 * LIMIT_S}


@pytest.mark.slow
async def test_the_seed_solves_small_formulas(judged: Judged) -> None:
    evaluation = await judged(split="lite")
    assert evaluation.ok
    assert evaluation.metrics["seconds"] < LIMIT_S


def implications(judging: dict[str, ModuleType]) -> Any:
    """A formula without a solution that unit propagation alone does not refute."""
    formula = judging["formulas"].Formula(3)
    for clause in [(1, 2), (1, -2), (-1, 2, 3), (-1, -2), (-1, -3), (-3, 2, 1)]:
        formula.add(*clause)
    return formula


@pytest.mark.slow
async def test_right_proofs_are_verified(judging: dict[str, ModuleType], checker: Any) -> None:
    formula = implications(judging)
    for proof in (
        b"1 0\n0\n",
        b"1 0\n",  # propagation does the rest
        b"4 -1 -2 0\n-4 1 0\n-4 2 0\n1 0\n0\n",  # 4 is defined as 1 and 2
        b"d -3 2 1 0\n1 0\n0\n",
        b"1 0\nd 1 2 0\nd 1 -2 0\n0\n",  # what forces a value stays
    ):
        assert "proof of" in checker.check(formula, proof)


@pytest.mark.slow
@pytest.mark.parametrize(
    "proof",
    [
        b"",
        b"0\n",
        b"-3 0\n",  # it follows, but is no contradiction
        b"d 1 2 0\n1 0\n0\n",  # it needs what was deleted
        b"d 1 2 0\nd 1 -2 0\n0\n",
        b"1\n0\n",
        b"1 0 2 0\n",
        b"1 9999999999 0\n",
        b"1 x 0\n",
        b"\xff\x00\n",
        b"d\n",
        b"9" * 5000 + b" 0\n",
    ],
)
async def test_wrong_proofs_are_refused(judging: dict[str, ModuleType], checker: Any, proof: bytes) -> None:
    formula = implications(judging)
    with pytest.raises(judging["proofs"].WrongProofError):
        checker.check(formula, proof)


@pytest.mark.slow
async def test_no_proof_of_a_formula_with_a_solution_is_verified(judging: dict[str, ModuleType], checker: Any) -> None:
    rng = random.Random(1)
    for _ in range(30):
        values = [rng.choice((1, -1)) for _ in range(8)]
        formula = judging["formulas"].Formula(8)
        while len(formula.clauses) < 30:
            clause = [rng.choice((1, -1)) * variable for variable in rng.sample(range(1, 9), 3)]
            if any(literal * values[abs(literal) - 1] > 0 for literal in clause):
                formula.add(*clause)
        lines = [[rng.choice((1, -1)) * rng.randint(1, 10) for _ in range(rng.randint(1, 3))] for _ in range(40)]
        proof = "".join(f"{rng.choice(('', '', 'd '))}{' '.join(map(str, line))} 0\n" for line in lines) + "0\n"
        with pytest.raises(judging["proofs"].WrongProofError):
            checker.check(formula, proof.encode())


async def test_models_are_tried_on_each_clause(judging: dict[str, ModuleType]) -> None:
    formula, wrong = judging["formulas"].Formula(3), judging["proofs"].wrong_model
    for clause in [(1, 2), (-1, 3), (-2, -3)]:
        formula.add(*clause)
    assert wrong(formula, "c v 9\ns SATISFIABLE\nv 1 -2\nv 3 0\n") == ""
    for text in ("v 1 2 3 0", "v 1 -1 2 3 0", "v 0", "", "v x 0", "1 -2 3 0"):
        assert wrong(formula, text)


async def test_formulas_have_other_names_in_another_run(judging: dict[str, ModuleType]) -> None:
    formulas = judging["formulas"]
    formula = formulas.colouring(10, 20, 3, random.Random(1))
    one, other = (formulas.renamed(formula, random.Random(secret)) for secret in "ab")
    assert one.text() != other.text()
    assert sorted(map(len, one.clauses)) == sorted(map(len, other.clauses)) == sorted(map(len, formula.clauses))
