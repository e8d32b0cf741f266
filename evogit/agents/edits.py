"""The mutator's typed edits: each is a function of a parsed module and a generator, and touches one span of text."""

from __future__ import annotations

import math
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evogit.source import Block, Definition, Kind, Site, Source

_TITLE_LENGTH = 72
_ALTERNATIVES = (
    ("+", "-", "*", "/"),
    ("//", "/", "%"),
    ("**", "*"),
    ("+=", "-=", "*="),
    ("/=", "*="),
    ("<", "<=", ">", ">="),
    ("==", "!="),
    ("is", "is not"),
    ("in", "not in"),
    ("and", "or"),
    ("<<", ">>"),
    ("&", "|", "^"),
)
_TWINS = (("min", "max"), ("any", "all"), ("floor", "ceil"), ("sin", "cos"))
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.])")


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes `start` to `end` become `new`; `title` says so in one line."""

    start: int
    end: int
    new: bytes
    title: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both touch the same text, so that only one of them can be made."""
        return self.start <= other.end and other.start <= self.end


Operator = Callable[[Source, random.Random], Edit | None]
"""One way to edit a module; None where it does not apply this time."""


def apply(content: bytes, edits: Sequence[Edit]) -> bytes:
    """Make edits that do not overlap; everything else keeps its bytes."""
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        before, after, new = content[: edit.start], content[edit.end :], edit.new
        if _glued(before, new):
            new = b" " + new
        if _glued(new, after):
            new += b" "
        content = before + new + after
    return content


def compiles(content: bytes) -> bool:
    """Whether Python accepts a module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(content, "<candidate>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def one_line(text: str, limit: int = _TITLE_LENGTH) -> str:
    """Text as one line of printable characters, shortened to `limit` characters."""
    line = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


# --- numbers ----------------------------------------------------------------------------------------------------


def perturb_number(source: Source, rng: random.Random) -> Edit | None:
    """Change a number; one that has a name is three times as likely."""
    sites = source.sites.get("number", ())
    if not sites:
        return None
    site = rng.choices(sites, [3 if each.label else 1 for each in sites])[0]
    new = nudged(site.text, rng)
    return _replace(site, new, f"perturb {site.label} {site.text} -> {new}")


def nudged(text: str, rng: random.Random) -> str | None:
    """A number near the one that is written in `text`, an integer for an integer; None where there is none."""
    if len(text) > 30:
        return None
    sign, digits = (-1, text[1:].strip()) if text.startswith("-") else (1, text)
    if re.fullmatch(r"[\d_]*\.?[\d_]*(?:[eE][+-]?[\d_]+)?", digits) and not digits.replace("_", "").isdigit():
        float_value = sign * float(digits)
        new: float = _nudged_float(float_value, rng)
        return None if new == float_value or not math.isfinite(new) else repr(new)
    try:
        value = sign * int(digits, 0)
    except ValueError:  # leading zeros, in languages that allow them
        value = sign * int(digits)
    step = _nudged_int(value, rng)
    return None if step == value else str(step)


def _nudged_float(value: float, rng: random.Random) -> float:
    """Steps of every size from 0.1 % on, log-uniformly, because no one knows the scale of a stranger's constant."""
    way = rng.random()
    if way < 0.6 and value:
        scale = 10 ** rng.uniform(-3, 0)
        return _rounded(value * math.exp(rng.gauss(0, scale)), scale * abs(value))
    if way < 0.93:
        scale = 10 ** rng.uniform(-3, 0)
        return _rounded(value + rng.gauss(0, scale), scale)
    if way < 0.97 and value:
        return float(f"{value:.{rng.randint(1, 3)}g}")
    return -value


def _rounded(value: float, scale: float) -> float:
    """Rounded to a hundredth of the step's scale, so that evolved constants stay readable."""
    return round(value, 2 - math.floor(math.log10(scale)))


def _nudged_int(value: int, rng: random.Random) -> int:
    way = rng.random()
    if way < 0.5:
        return value + rng.choice((-1, 1))
    if way < 0.75:
        return value + rng.choice((-1, 1)) * rng.randint(2, 5)
    if way < 0.9 and abs(value) > 10:
        return round(value * math.exp(rng.gauss(0, 0.3)))
    return rng.choice((value * 2, value // 2, value * 2, value // 2, -value))


# --- operators, literals, names, calls --------------------------------------------------------------------------


def swap_operator(source: Source, rng: random.Random) -> Edit | None:
    """Put another operator of the same kind in an operator's place."""
    site = _any_site(source, "operator", rng)
    if site is None:
        return None
    text = " ".join(site.text.split())
    others = sorted({each for group in _ALTERNATIVES if text in group for each in group} - {text})
    if not others:
        return None
    new = rng.choice(others)
    return _replace(site, new, f"swap {text} for {new}")


def swap_literal(source: Source, rng: random.Random) -> Edit | None:
    """Put a literal that is present in the module in the place of another of the same type."""
    sites = (*source.sites.get("literal", ()), *source.sites.get("number", ()))
    if not sites:
        return None
    site = rng.choice(sites)
    if site.text in ("True", "False"):
        new: str | None = "False" if site.text == "True" else "True"
    else:
        texts = {each.text for each in sites if each.kind == site.kind} - {site.text, "True", "False"}
        new = _any_of(texts, rng)
    return _replace(site, new, f"swap {site.label} {site.text} for {new}")


def swap_name(source: Source, rng: random.Random) -> Edit | None:
    """Read another variable of the function, or of the module, that is bound before."""
    site = _any_site(source, "name", rng)
    if site is None:
        return None
    new = _any_of(_visible_names(source, site) - {site.text}, rng)
    return _replace(site, new, f"use {new} for {site.text}")


def _visible_names(source: Source, site: Site) -> set[str]:
    names = {name for name, offset in source.bindings.get(site.where, ()) if offset <= site.start}
    if site.where:
        names |= {name for name, _ in source.bindings.get("", ())}
    return names


def swap_call(source: Source, rng: random.Random) -> Edit | None:
    """Call the function's twin (min, max), or another function that is called with as many arguments."""
    site = _any_site(source, "call", rng)
    if site is None:
        return None
    module, dot, name = site.text.rpartition(".")
    twins = {module + dot + b if name == a else module + dot + a for a, b in _TWINS if name in (a, b)}
    others = {each.text for each in source.sites["call"] if each.label and each.label == site.label} - {site.text}
    new = _any_of(twins, rng) if twins and (not others or rng.random() < 0.5) else _any_of(others, rng)
    return _replace(site, new, f"call {new} for {site.text}")


# --- terms and conditions ---------------------------------------------------------------------------------------


def insert_term(source: Source, rng: random.Random) -> Edit | None:
    """Let an arithmetic expression grow by a small term or a factor near one."""
    site = _any_site(source, "term", rng)
    if site is None:
        return None
    if rng.random() < 0.3:
        factor = f"{math.exp(rng.gauss(0, 10 ** rng.uniform(-2, 0))):.3g}"
        new, title = f"{site.parts[0]} * {factor}", f"multiply {site.text} by {factor}"
    else:
        term, sign = _term(_visible_names(source, site), rng), rng.choice("+-")
        new, title = f"{site.text} {sign} {term}", f"let {sign}{term} join {site.text}"
    return _replace(site, f"({new})" if site.label else new, title)


def _term(names: set[str], rng: random.Random) -> str:
    size = f"{10 ** rng.uniform(-3, 0):.2g}"
    name = _any_of(names, rng) if rng.random() < 0.6 else None
    return size if name is None else f"{size} * {name}"


def drop_operand(source: Source, rng: random.Random) -> Edit | None:
    """Keep one side of an operation: what `insert_term` adds can go again."""
    site = _any_site(source, "binary", rng)
    if site is None:
        return None
    new = rng.choice(site.parts)
    return _replace(site, new, f"shorten {site.text} to {new}")


def change_condition(source: Source, rng: random.Random) -> Edit | None:
    """Negate a condition, or join it with another one of the same function."""
    site = _any_site(source, "condition", rng)
    if site is None:
        return None
    others = {each.text for each in source.sites["condition"] if each.where == site.where} - {site.text}
    other = _any_of(others, rng)
    if other is None or rng.random() < 0.5:
        return _replace(site, site.parts[0] if site.parts else f"not ({site.text})", f"negate {site.text}")
    joined = f"({site.text}) {rng.choice(('and', 'or'))} ({other})"
    return _replace(site, joined, f"widen {site.text} to {joined}")


# --- statements -------------------------------------------------------------------------------------------------


def delete_statement(source: Source, rng: random.Random) -> Edit | None:
    """Take a statement away; the only one of its block becomes `pass`."""
    block = _any_block(source, rng)
    if block is None:
        return None
    statement = rng.choice(block.statements)
    if statement.role in ("docstring", "pass"):
        return None
    lines = source.content[statement.start : statement.end]
    keep = lines[: len(lines) - len(lines.lstrip())] + b"pass" + _line_end(lines)
    new = keep if len(block.statements) == 1 else b""
    return Edit(statement.start, statement.end, new, _title(f"delete {statement.text}", block.where))


def duplicate_statement(source: Source, rng: random.Random) -> Edit | None:
    """Do a statement twice."""
    block = _any_block(source, rng)
    if block is None:
        return None
    statement = rng.choice(block.statements)
    if statement.role:
        return None
    lines = _complete(source.content[statement.start : statement.end])
    return Edit(statement.start, statement.end, lines + lines, _title(f"duplicate {statement.text}", block.where))


def move_statement(source: Source, rng: random.Random) -> Edit | None:
    """Put a statement elsewhere in its block."""
    block = _any_block(source, rng)
    if block is None or len(block.statements) < 2:
        return None
    first, last = sorted(rng.sample(range(len(block.statements)), 2))
    a, b = block.statements[first], block.statements[last]
    if {a.role, b.role} & {"docstring", "jump"}:
        return None
    early, late = source.content[a.start : a.end], _complete(source.content[b.start : b.end])
    between = source.content[a.end : b.start]
    if rng.random() < 0.5:
        return Edit(a.start, b.end, between + late + early, _title(f"move down {a.text}", block.where))
    return Edit(a.start, b.end, late + early + between, _title(f"move up {b.text}", block.where))


def _any_block(source: Source, rng: random.Random) -> Block | None:
    if not source.blocks:
        return None
    return rng.choices(source.blocks, [len(each.statements) for each in source.blocks])[0]


def _complete(lines: bytes) -> bytes:
    """Lines with a line end, which the last one of a file may lack."""
    return lines if _line_end(lines) else lines + b"\n"


def _line_end(lines: bytes) -> bytes:
    found = re.search(rb"(\r\n|\r|\n)\Z", lines)
    return found.group() if found else b""


# --- definitions ------------------------------------------------------------------------------------------------


def exchangeable(source: Source, donor: Source) -> list[tuple[Definition, Definition]]:
    """The functions and constants that both have once and write differently."""
    theirs = _unique(donor)
    pairs = [(mine, theirs[name]) for name, mine in _unique(source).items() if name in theirs]
    return [(mine, other) for mine, other in pairs if mine.kind == other.kind and mine.text != other.text]


def _unique(source: Source) -> dict[str, Definition]:
    counts = Counter(each.name for each in source.definitions)
    return {
        each.name: each
        for each in source.definitions
        if counts[each.name] == 1 and not each.local and each.kind != "class"
    }


def exchange(mine: Definition, other: Definition) -> Edit:
    """Take another candidate's version of a function or constant."""
    return Edit(mine.start, mine.end, other.text, mine.name + ("()" if mine.kind == "function" else ""))


# --- other languages --------------------------------------------------------------------------------------------


def edit_text(content: bytes, rng: random.Random) -> Edit | None:
    """Edit a text whose language is unknown: mostly a number, else delete, duplicate or swap lines."""
    text = content.decode()
    numbers = list(_NUMBER.finditer(text))
    if numbers and rng.random() < 0.8:
        found = rng.choice(numbers)
        new = nudged(found.group(), rng)
        start = len(text[: found.start()].encode())
        title = _title(f"perturb {found.group()} -> {new}")
        return None if new is None else Edit(start, start + len(found.group()), new.encode(), title)
    return _edit_lines(content, rng)


def _edit_lines(content: bytes, rng: random.Random) -> Edit | None:
    lines = content.splitlines(keepends=True)
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if not filled:
        return None
    index = rng.choice(filled)
    line = lines[index]
    start = sum(map(len, lines[:index]))
    way = rng.choice(("delete", "duplicate", "swap"))
    title = _title(f"{way} line {index + 1}: {line.decode()}")
    if way == "delete":
        return Edit(start, start + len(line), b"", title)
    if way == "duplicate":
        return Edit(start, start + len(line), _complete(line) + line, title)
    following = b"".join(lines[index + 1 : index + 2])
    return Edit(start, start + len(line) + len(following), _complete(following) + line, title) if following else None


# --- helpers ----------------------------------------------------------------------------------------------------


def _any_site(source: Source, kind: Kind, rng: random.Random) -> Site | None:
    sites = source.sites.get(kind)
    return rng.choice(sites) if sites else None


def _any_of(texts: set[str], rng: random.Random) -> str | None:
    return rng.choice(sorted(texts)) if texts else None


def _replace(site: Site, new: str | None, title: str) -> Edit | None:
    return None if new is None else Edit(site.start, site.end, new.encode(), _title(title, site.where))


def _title(text: str, where: str = "") -> str:
    suffix = " " + one_line(f"in {where}()", _TITLE_LENGTH // 2) if where else ""
    return one_line(text, _TITLE_LENGTH - len(suffix)) + suffix


def _glued(before: bytes, after: bytes) -> bool:
    """Whether two texts would grow together into one word."""
    return _is_word(before[-1:]) and _is_word(after[:1])


def _is_word(char: bytes) -> bool:
    return char.isalnum() or char == b"_" or char >= b"\x80"
