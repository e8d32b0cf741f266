"""What holds for every task of the gallery: it judges its own seed, and says the truth about it."""

from __future__ import annotations

import ast
import sys

import pytest

from evogit.adopt import find_task
from evogit.config import gallery
from evogit.core import BaseFiles, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC
from evogit.sandbox.archive import pack

SHIPPED = {
    "bin_packing",
    "cap_set",
    "circle_packing",
    "meta_bin_packing",
    "online_bin_packing",
    "pipeline",
    "sat",
    "speedup",
    "symbolic_regression",
    "taskboard",
    "tiny_ml",
    "tsp",
    "tsp_cpp",
}


def test_the_gallery_has_the_shipped_tasks() -> None:
    assert set(gallery()) >= SHIPPED


@pytest.mark.parametrize("name", [name for name in gallery() if find_task(name).measures in ("", "none")])
@pytest.mark.slow
async def test_the_seed_has_the_declared_baseline(name: str) -> None:
    task = find_task(name)
    files = Files(pack({}), (), BaseFiles("seed", pack({path: data for path, (data, _) in task.seed_files().items()})))
    async with Evaluator(task, provider="bubblewrap", jobs=1, drawing=PUBLIC) as evaluator:
        train, _ = await evaluator.evaluate("0" * 40, files, split="train")
        again, _ = await evaluator.evaluate("0" * 40, files, split="train")
        lite, _ = await evaluator.evaluate("0" * 40, files, split="lite")
    assert (train.reason, train.metrics, train.cases) == ("", again.metrics, again.cases)
    assert train.metrics == pytest.approx({metric.name: metric.baseline for metric in task.metrics}, abs=5e-7)
    assert lite.metrics.keys() == train.metrics.keys()


@pytest.mark.parametrize("name", gallery())
def test_a_seed_needs_nothing_but_the_standard_library_and_has_no_docstrings_to_waste_edits_on(name: str) -> None:
    files = {path: file for path, file in find_task(name).seed_files().items() if path.endswith(".py")}
    known = sys.stdlib_module_names | {path.partition("/")[0].removesuffix(".py") for path in files}
    for path, (data, _) in files.items():
        nodes = list(ast.walk(ast.parse(data)))
        imported = {
            each.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for each in node.names
        }
        imported |= {str(node.module).partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        assert imported <= known, path
        assert not [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)], path
