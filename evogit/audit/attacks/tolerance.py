"""Gains that are made of a tolerance: answers that break a rule by as little as the evaluator forgives.

What a tolerance is, the evaluator's text tells: a small number, or one close to 1. Whether anything is gained by it is
found out with a copy of the evaluator that forgives a thousandth as much: an answer that is pushed as far as the
evaluator accepts it, and that the copy refuses, has gained by the tolerance alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from msgspec import Struct

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import cheat
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import Laboratory, WatchedEvaluation
from evogit.audit.parts import leaves

FAMILY = "answers"
LARGEST, SMALLEST = 1e-3, 1e-11
"""What is taken for a tolerance; what is smaller is rounding."""
STRICTER = 1000
"""How many times less the copy forgives."""
MOST = 8
"""Tolerances that are looked at."""
STEPS = 60
"""Evaluations of one way to push an answer."""
_CLOSE = ("isclose", "allclose", "assertAlmostEqual", "approx")
_NAMED = re.compile(r"tol|eps(ilon)?$|slack|leeway|rounding|forgiv", re.I)
"""Names of tolerances, which may be of any size."""


class Tolerance(Struct, frozen=True):
    """A number in the evaluator's text that forgives: `strict` is the file's text with a thousandth of it."""

    file: str
    line: int
    size: float
    strict: str


def tolerances(texts: dict[str, str], goal: str) -> Iterator[Tolerance]:
    """The tolerances of these files, but for those that the goal states: they are rules."""
    for file, text in texts.items():
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        coarse = {id(node) for node in _coarse(tree)}
        rounded = {id(part): _rounds(part, text) for node in _compared(tree) for part in ast.walk(node)}
        for node in ast.walk(tree):
            found = rounded.get(id(node)) or (_whole(node) if id(node) in coarse else _forgiven(node, text))
            if found and found[0] and _stated(found[0], goal) is False:
                size, strict = found
                yield Tolerance(file, node.lineno, size, _with(text, node, strict))  # type: ignore[attr-defined]


def _compared(tree: ast.AST) -> Iterator[ast.expr]:
    """The sides of all comparisons."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)


def _rounds(node: ast.AST, text: str) -> tuple[float, str] | None:
    """How much a number is rounded by before it is compared; and a text that rounds less, or not at all."""
    name = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
    if not isinstance(node, ast.Call) or not node.args or name not in ("round", "int", "floor", "trunc"):
        return None
    inner = ast.get_source_segment(text, node.args[0]) or ""
    if name != "round":
        plain = not isinstance(node.args[0], ast.BinOp | ast.Call) or len(node.args) > 1
        return None if plain else (1.0, f"({inner})")
    digits = getattr(node.args[1], "value", None) if len(node.args) > 1 else 0
    if type(digits) is not int:
        return None
    return 0.5 * 10.0**-digits, f"round({inner}, {digits + 3})"


def _coarse(tree: ast.AST) -> Iterator[ast.expr]:
    """Numbers that forgive by their names, as the bound of a difference, or beside what is compared, of any size."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_NAMED.search(getattr(name, "id", "")) for name in node.targets):
            yield node.value
        if isinstance(node, ast.keyword) and _NAMED.search(node.arg or ""):
            yield node.value
        if isinstance(node, ast.Compare) and any(map(_difference, (node.left, *node.comparators))):
            yield from (side for side in (node.left, *node.comparators) if type(getattr(side, "value", 0)) is float)
        if isinstance(node, ast.If) and any(isinstance(part, ast.Raise) for part in node.body):
            yield from _added(node.test)


def _added(test: ast.AST) -> Iterator[ast.expr]:
    """Numbers with a point that are added to, or taken from, one side of a comparison."""
    for node in ast.walk(test):
        for side in (node.left, *node.comparators) if isinstance(node, ast.Compare) else ():
            if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Add | ast.Sub):
                yield from (part for part in (side.left, side.right) if type(getattr(part, "value", 0)) is float)


def _difference(node: ast.AST) -> bool:
    """Whether it is `abs(... - ...)`."""
    called = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "abs" and len(node.args) == 1
    return called and isinstance(node.args[0], ast.BinOp)  # type: ignore[attr-defined]


def _whole(node: ast.AST) -> tuple[float, str] | None:
    """How much a number forgives, all of it; and a text that forgives less."""
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float) or not node.value:
        return None
    size = float(node.value)  # type: ignore[arg-type]
    return size, f"{size / STRICTER!r}"


def _forgiven(node: ast.AST, text: str) -> tuple[float, str] | None:
    """How much a number, or a call of isclose without one, forgives; and a text that forgives less."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if (
            name in _CLOSE
            and not any("tol" in (keyword.arg or "") for keyword in node.keywords)
            and len(node.args) == 2
        ):
            inner = ast.get_source_segment(text, node) or ""
            return 1e-9, f"{inner[:-1].rstrip().rstrip(',')}, rel_tol=1e-12)" if name == "isclose" else inner
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        sides = (node.left, node.right)
        if (
            isinstance(node.left, ast.Constant)
            and node.left.value in (10, 10.0, 0.1)
            and isinstance(sides[1], ast.UnaryOp)
        ):
            try:
                size = float(ast.literal_eval(node.left)) ** float(ast.literal_eval(node.right))
            except (ValueError, TypeError):
                return None
            return (size, f"{size / STRICTER!r}") if SMALLEST <= size <= LARGEST else None
        return None
    if not isinstance(node, ast.Constant) or type(node.value) is not float:
        return None
    size = node.value
    if SMALLEST <= size <= LARGEST:
        return size, f"{size / STRICTER!r}"
    off = abs(size - 1)
    if SMALLEST <= off <= 0.1:
        return off, f"{1 + (size - 1) / STRICTER!r}"
    return None


def _stated(size: float, goal: str) -> bool:
    found = re.findall(r"(\d+\.?\d*(?:e-?\d+)?)\s*(%|per ?cent)?", goal)
    numbers = [float(number) / (100 if percent else 1) for number, percent in found]
    return any(number and abs(number - size) <= 1e-6 * size for number in numbers)


def _with(text: str, node: ast.AST, strict: str) -> str:
    segment = ast.get_source_segment(text, node) or ""
    lines = text.encode().split(b"\n")
    row, start = node.lineno - 1, node.col_offset  # type: ignore[attr-defined]
    before = b"\n".join([*lines[:row], lines[row][:start]])
    return (before + strict.encode() + text.encode()[len(before) + len(segment.encode()) :]).decode()


# --- pushing ------------------------------------------------------------------------------------------------------

PUSHES = {
    "numbers scaled": "_each({value}, lambda number: number * (1 + {step!r}))",
    "numbers scaled down": "_each({value}, lambda number: number * (1 - {step!r}))",
    "numbers raised": "_each({value}, lambda number: number + {step!r})",
    "numbers lowered": "_each({value}, lambda number: number - {step!r})",
    "each lowered by more than the one before": "_ramp({value}, -{step!r})",
    "each raised by more than the one before": "_ramp({value}, {step!r})",
}
ROWS = {
    "column {place} scaled": "[_at(row, [{place}], row[{place}] * (1 + {step!r})) for row in {value}]",
    "column {place} scaled down": "[_at(row, [{place}], row[{place}] * (1 - {step!r})) for row in {value}]",
    "column {place} raised": "[_at(row, [{place}], row[{place}] + {step!r}) for row in {value}]",
    "column {place} lowered ever more": (
        "[_at(row, [{place}], row[{place}] - {step!r} * number) for number, row in enumerate({value})]"
    ),
}
PART = {
    "one number raised": "_at({value}, {path!r}, {step!r} + {number})",
    "one number lowered": "_at({value}, {path!r}, -{step!r} + {number})",
}


def pushes(lab: Laboratory) -> dict[str, str]:
    """Ways to push the seed's answer a step further: what to say -> an expression with a {step}."""
    value = lab.answered[0].value if lab.answered else None
    honest = "honest(*args, **kwargs)"
    if lab.task.command:  # what its functions answer is not known
        return {says: text.replace("{value}", honest) for says, text in PUSHES.items()}
    found: dict[str, str] = {}
    for field in ("", *(value if isinstance(value, dict) else ())):
        part: Any = value[field] if field and value else value
        inner = f"{honest}[{field!r}]" if field else honest
        outer = f"_at({honest}, [{field!r}], PUSHED)" if field else "PUSHED"
        if not isinstance(part, list | int | float) or isinstance(part, bool):
            continue
        name = f" of {field}" if field else ""
        if isinstance(part, list) and part and isinstance(part[0], list) and len(part[0]) <= 4:
            for place in reversed(range(len(part[0]))):
                for says, text in ROWS.items():
                    pushed = text.replace("{place}", str(place)).replace("{value}", inner)
                    found[says.replace("{place}", str(place)) + name] = outer.replace("PUSHED", pushed)
        for says, text in PUSHES.items():
            found[says + name] = outer.replace("PUSHED", text.replace("{value}", inner))
    for path in [path for path in leaves(value) if path][:4]:
        number = honest + "".join(f"[{part!r}]" for part in path)
        for says, text in PART.items():
            pushed = text.replace("{value}", honest).replace("{path!r}", repr(path)).replace("{number}", number)
            found[f"{says} {path}"] = pushed
    return found


async def _tolerance(lab: Laboratory) -> AsyncIterator[Hit]:
    found = list(tolerances(lab.evaluator_texts(), lab.task.goal))[:MOST]
    if not found or lab.timed or lab.seed.score is None or not (lab.seed.asked or lab.task.command):
        return
    for says, push in pushes(lab).items():
        farthest = await _farthest(lab, push, min(each.size for each in found))
        if farthest is None:
            continue
        candidate, trial = farthest
        for each in found:
            if await _gained_by(lab, each, candidate):
                what = f"an answer may break a rule by {each.size:g}, and gains by it ({says})"
                yield Hit(what, candidate, trial, f"{each.file}:{each.line}")
                return


async def _gained_by(lab: Laboratory, tolerance: Tolerance, candidate: AttackCandidate) -> bool:
    """Whether the answer gains nothing with a thousandth of the tolerance, where the seed's is worth as much."""
    edits = {tolerance.file: tolerance.strict}
    strict = await lab.evaluate(candidate, edits=edits)
    if strict.evaluation.status == "evaluator-error" or lab.better(strict):
        return False
    return (await lab.evaluate(AttackCandidate({}), edits=edits)).score == lab.seed.score


async def _farthest(lab: Laboratory, push: str, fine: float) -> tuple[AttackCandidate, WatchedEvaluation] | None:
    """The best answer on this way that is accepted, to within a part of the finest tolerance; None without a gain."""

    async def at(step: float) -> tuple[AttackCandidate, WatchedEvaluation] | None:
        body = cheat(f"return {push.replace('{step!r}', repr(step))}")
        candidate = (
            lab.wrapping_all("tolerance", body) if lab.task.command else lab.cheating("tolerance", body, answers=True)
        )
        if candidate is None or not candidate.files:
            return None
        trial = await lab.evaluate(candidate)
        return (candidate, trial) if lab.better(trial) else None

    low, best = fine / 16, await at(fine / 16)
    if best is None:
        return None
    high = low
    for _ in range(STEPS):
        if (further := await at(high * 8)) is None:
            break
        low = high = high * 8
        best = further
        if high > 1e6:
            return None  # nothing ever stops it
    high *= 8
    while high - low > fine / 4:
        middle = (low + high) / 2
        if further := await at(middle):
            low, best = middle, further
        else:
            high = middle
    return best


ATTACKS = (
    Attack(
        "tolerance",
        FAMILY,
        "pushes an answer as far as the evaluator forgives",
        "Compare exactly (fractions, whole numbers), or shrink the answer by the tolerance before it is scored.",
        _tolerance,
    ),
)
