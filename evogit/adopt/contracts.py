"""Tells the contracts of `evaluate` apart: several systems call a function so, and give it different arguments."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

_PATH_CALLS = """
open Path PurePath spec_from_file_location SourceFileLoader run_path run Popen check_output check_call call system
import_module load_module load_program join dirname basename abspath realpath exists isfile copy copyfile copy2
"""
PATH_CALLS = frozenset(_PATH_CALLS.split())
"""Functions that are given a path, or a command with one."""
_VALUES = """
output outputs out result results answer answers response responses reply completion prediction predictions solution
solutions value values data array points inputs eval_inputs stdout text code source content state
"""
VALUES = frozenset(_VALUES.split())
"""Names of parameters that hold what a program returns, or its text."""


def misfit(text: str) -> str:
    """Return why a source has no `evaluate(program_path)` as OpenEvolve calls it: a clause; empty if it may have one.

    A source that is no Python may have one.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    bound = dict(_bound(tree.body))
    if not bound.keys() & {"evaluate", "evaluate_stage1", "*"}:
        return "defines no evaluate(program_path)"
    function = bound.get("evaluate")
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if not names:
        return "" if function.args.vararg else "has an evaluate() that takes no program"
    if hands_to(function, names[0], PATH_CALLS):
        return ""
    if names[0] in VALUES or _is_mapping(function, names[0]):
        return f"has evaluate({names[0]}), which is not given the path of a program"
    return ""


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Each name that a module gives a value at its top level, also under a condition, and the statement."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, node) for alias in node.names)
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from _bound(handler.body)


def hands_to(function: ast.AST, name: str, calls: Collection[str]) -> bool:
    """Return whether a function hands a parameter to one of these functions."""
    return any(
        _called(node) in calls and any(_uses(given, name) for given in (*node.args, *node.keywords))
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    )


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_mapping(function: ast.AST, name: str) -> bool:
    """Return whether a function looks a text up in a parameter."""
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        for node in ast.walk(function)
    )


def _uses(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
