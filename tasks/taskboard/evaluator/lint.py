"""What a reader would complain about, by the syntax alone: the code is not imported."""

import ast
from collections.abc import Iterator

LARGEST = 100_000
"""Bytes of a file."""
WIDEST = 120
LONGEST = 50
"""Lines of a function."""


def complaints(path: str, data: bytes) -> list[str]:
    """Each a line that says where."""
    if len(data) > LARGEST:
        return [f"{path}: larger than {LARGEST} bytes"]
    text = data.decode(errors="replace")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [f"{path}: it is not Python"]
    return [f"{path}:{line}: {what}" for line, what in sorted([*of_lines(text), *unused(tree), *of_nodes(tree)])]


def of_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDEST:
            yield number, f"longer than {WIDEST} characters"


def unused(tree: ast.Module) -> Iterator[tuple[int, str]]:
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                if name not in read:
                    yield node.lineno, f"{name} is imported and not used"


def of_nodes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(type=None):
                yield node.lineno, "a bare except hides every mistake"
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if (node.end_lineno or 0) - node.lineno >= LONGEST:
                    yield node.lineno, f"{node.name} has more than {LONGEST} lines"
                if any(isinstance(each, ast.List | ast.Dict | ast.Set) for each in node.args.defaults):
                    yield node.lineno, f"a default of {node.name} is shared by all its calls"
            case ast.Call(func=ast.Attribute(attr="execute"), args=[ast.JoinedStr() | ast.BinOp(), *_]):
                yield node.lineno, "SQL is put together from text; pass values as parameters"
