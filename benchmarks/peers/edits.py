"""Small typed edits of a Python program: one number, one operator, or one term more; and what is known of such edits.

Whatever the system asks in whatever format, edits are drawn here. An edit is of the region between EVOLVE-BLOCK lines.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])")
BLOCK = re.compile(r"EVOLVE-BLOCK-START.*\n((?:.*\n)*?).*EVOLVE-BLOCK-END")
OPERATORS: dict[type[ast.operator], list[type[ast.operator]]] = {
    ast.Add: [ast.Sub, ast.Mult],
    ast.Sub: [ast.Add, ast.Mult],
    ast.Mult: [ast.Add, ast.Div],
    ast.Div: [ast.Mult],
}
SWAP, GROW = 0.1, 0.1
"""Chances that an operator is swapped, and that a term or a factor is added, instead of a number changed."""
WIDE = 0.2
"""Chance that a number is moved by one or so, instead of by a share of itself."""
TRIES = 8
"""Edits that are drawn by who knows something, until one does not go against it."""
USES_FEEDBACK = 0.5
"""Chance that who is told of a weak part looks there."""


@dataclass(frozen=True)
class Edit:
    """A changed program; `number` is what was moved (the line without numbers, and which of them), and which way."""

    text: str
    title: str
    number: tuple[str, int] | None = None
    way: int = 0
    value: float = 0.0


@dataclass
class Knowledge:
    """What a question tells beside the parent: how moves of numbers turned out, what was tried, what is weak."""

    weak: Sequence[str] = ()
    votes: Counter[tuple[tuple[str, int], int]] = field(default_factory=Counter)
    tried: set[tuple[tuple[str, int], float]] = field(default_factory=set)

    def moved(self, number: tuple[str, int], before: float, after: float, gain: float) -> None:
        """Take in that a number was moved, and what that brought."""
        way = 1 if after > before else -1
        outcome = (gain > 0) - (gain < 0)
        self.votes[number, way] += outcome
        self.votes[number, -way] -= outcome
        self.tried.add((number, after))

    def advises(self, edit: Edit) -> bool:
        """Whether nothing that is known speaks against an edit."""
        if not edit.number:
            return True
        return self.votes[edit.number, edit.way] >= 0 and (edit.number, edit.value) not in self.tried

    def compare(self, parent: str, score: float, other: str, its_score: float) -> None:
        """Take in a program beside the parent, which tells something where it differs by one or two numbers alone."""
        differing = differences(parent, other)
        if 1 <= len(differing) <= 2:
            for number, before, after in differing:
                self.moved(number, before, after, its_score - score)


def numbers_of(text: str) -> dict[tuple[str, int], float]:
    """The numbers of a program by where they are; of equal lines the last."""
    found: dict[tuple[str, int], float] = {}
    for line in text.splitlines():
        masked = NUMBER.sub("#", line.strip())
        found.update({(masked, at): float(value) for at, value in enumerate(NUMBER.findall(line))})
    return found


def differences(one: str, other: str) -> list[tuple[tuple[str, int], float, float]]:
    """The numbers that differ between two programs that are alike otherwise; nothing where they are not."""
    ours, theirs = numbers_of(one), numbers_of(other)
    if ours.keys() != theirs.keys():
        return []
    return [(number, ours[number], theirs[number]) for number in ours if ours[number] != theirs[number]]


def drawn(text: str, rng: random.Random, knowledge: Knowledge | None = None) -> Edit:
    """An edit of a program; the first of some that what is known does not speak against, if anything is."""
    if not knowledge:
        return blind(text, rng)
    weak = knowledge.weak if rng.random() < USES_FEEDBACK else ()
    edits = [blind(text, rng, weak) for _ in range(TRIES)]
    return next(filter(knowledge.advises, edits), edits[0])


def blind(text: str, rng: random.Random, names: Sequence[str] = ()) -> Edit:
    """An edit by somebody who understands nothing; of a line or a function that has one of the names, if given."""
    first, last = region(text)
    nodes = [node for node in ast.walk(ast.parse(text)) if first <= getattr(node, "lineno", 0) <= last]
    nodes = within(nodes, names) or nodes
    numbers = numbers_among(nodes)
    formulas = [node for node in nodes if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS]
    terms = [node for node in nodes if isinstance(node, ast.Name) and in_a_formula(node, nodes)]
    draw = rng.random()
    if formulas and draw < SWAP:
        return swapped(text, rng.choice(formulas), rng)
    if terms and draw > 1 - GROW or not numbers:
        return grown(text, rng.choice(terms), rng) if terms else Edit(text, "nothing to change")
    return moved(text, rng.choice(numbers), rng)


def region(text: str) -> tuple[int, int]:
    """The first and the last line that may change."""
    found = BLOCK.search(text)
    if not found:
        return 1, text.count("\n") + 1
    return text.count("\n", 0, found.start(1)) + 1, text.count("\n", 0, found.end(1))


def within(nodes: Iterable[ast.AST], names: Sequence[str]) -> list[ast.AST]:
    """The nodes within assignments to some names, and functions of these names."""
    found: list[ast.AST] = []
    for node in nodes:
        named = [node.name] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.Assign):
            named = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if set(named) & set(names):
            found += ast.walk(node)
    return found


def numbers_among(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """The nodes that are numbers, each with its sign."""
    numbers = [node for node in nodes if isinstance(node, ast.Constant) and type(node.value) in (int, float)]
    negative = {
        id(node.operand): node for node in nodes if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    }
    return [negative.get(id(node), node) for node in numbers]


def in_a_formula(name: ast.Name, nodes: Sequence[ast.AST]) -> bool:
    """Whether a name is a term or factor, or all that is returned."""
    holders = (node for node in nodes if isinstance(node, ast.BinOp | ast.Return))
    return any(name is child for holder in holders for child in ast.iter_child_nodes(holder))


def moved(text: str, node: ast.expr, rng: random.Random) -> Edit:
    """The text with another number; whole ones stay whole."""
    before: int | float = ast.literal_eval(node)
    wide = before == 0 or rng.random() < WIDE
    after = before + rng.gauss(0, 1) if wide else before * (1 + rng.gauss(0, 0.2))
    after = round(after, 4) if isinstance(before, float) else round(after)
    if after == before:
        after = before + rng.choice([-1, 1]) * (1 if isinstance(before, int) else 0.01)
    changed = replaced(text, node, repr(after))
    old, new = (each.splitlines()[node.lineno - 1].strip() for each in (text, changed))
    title = f"{old} -> {new}"
    differing = differences(text, changed)
    if len(differing) != 1:
        return Edit(changed, title)
    number, was, value = differing[0]
    return Edit(changed, title, number, 1 if value > was else -1, value)


def swapped(text: str, node: ast.BinOp, rng: random.Random) -> Edit:
    """The text with another operator."""
    before = ast.unparse(node)
    other = ast.BinOp(node.left, rng.choice(OPERATORS[type(node.op)])(), node.right)
    return Edit(replaced(text, node, f"({ast.unparse(other)})"), f"{before} -> {ast.unparse(other)}")


def grown(text: str, node: ast.Name, rng: random.Random) -> Edit:
    """The text with a term or a factor beside a name."""
    number = round(rng.gauss(0, 1), 2)
    after = rng.choice([f"({node.id} + {number})", f"({node.id} * {number})", f"({node.id} * {node.id})"])
    return Edit(replaced(text, node, after), f"{node.id} -> {after}")


def replaced(text: str, node: ast.expr, by: str) -> str:
    """The text with other source in the place of a node."""
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + (node.end_col_offset or 0)
    whole = b"".join(lines)
    return (whole[:begin] + by.encode() + whole[end:]).decode()
