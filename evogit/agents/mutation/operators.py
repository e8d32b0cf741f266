"""The mutator's typed edits: functions of a parsed module and a generator that each replace one span."""

from __future__ import annotations

import builtins
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from evogit.agents.mutation.mix import Mix
from evogit.source import Block, Definition, Kind, Site, Source
from evogit.source.numbers import rounded
from evogit.source.value_kinds import fits, is_number
from evogit.text import TITLE_LENGTH, one_line

_ALTERNATIVES = (
    ("+", "-", "*", "/"),
    ("+=", "-=", "*="),
    ("/=", "*="),
    ("<", "<=", ">", ">="),
    ("==", "!="),
    ("and", "or"),
    ("<<", ">>"),
    ("&", "|", "^"),
    ("//", "/", "%"),
    ("**", "*"),
    ("is", "is not"),
    ("in", "not in"),
)
_OPPOSITES = {"True": "False", "False": "True"}
_TWINS = (("min", "max"), ("any", "all"), ("floor", "ceil"), ("sin", "cos"))


class Edit(Struct, frozen=True):
    """Bytes `start` to `end` become `new`; `title` says so in one line, `way` names the kind of edit."""

    start: int
    end: int
    new: bytes
    title: str
    way: str = ""

    def overlaps(self, other: Edit) -> bool:
        """Return whether both touch the same text, so that only one of them can be made."""
        return self.start <= other.end and other.start <= self.end


Operator = Callable[[Source, random.Random], Edit | None]
"""One way to edit a module; None where it does not apply this time."""


def perturb_number(source: Source, rng: random.Random, mix: Mix) -> Edit | None:
    """Change a number; one that has a name is three times as likely."""
    sites = source.sites.get("number", ())
    if not sites:
        return None
    site = rng.choices(sites, [3 if each.label else 1 for each in sites])[0]
    if (found := _nudged(site.text, rng, mix)) is None:
        return None
    new, way = found
    title = titled(f"perturb {site.label} {site.text} -> {new}", site.where)
    return Edit(site.start, site.end, new.encode(), title, way)


def _nudged(text: str, rng: random.Random, mix: Mix) -> tuple[str, str] | None:
    """Return a number near that in `text` and the name of the way; None if there is none or it stays the same."""
    if len(text) > 30:
        return None
    bare = re.sub(r"[\s\\]", "", text)
    try:
        value: float = int(bare, 0)
    except ValueError:  # also leading zeros, in languages that allow them
        value = float(bare)
    way, step = mix.step(rng)
    if isinstance(value, int):
        new: float = _nudged_whole(value, rng, mix)
        way = "perturb_number"
    else:
        new = _nudged_float(value, step, rng)
    return (repr(new), way) if new != value and math.isfinite(new) else None


def _nudged_float(value: float, step: float, rng: random.Random) -> float:
    """By a log-normal factor or a normal term; now and then rounded or negated."""
    way = rng.random()
    if way < 0.6 and value:
        return rounded(value * math.exp(rng.gauss(0, step)), step * abs(value))
    if way < 0.93:
        return rounded(value + rng.gauss(0, step), step)
    if way < 0.97 and value:
        return float(f"{value:.{rng.randint(1, 3)}g}")
    return -value


def _nudged_whole(value: int, rng: random.Random, mix: Mix) -> int:
    """By one, by a few, by a factor; boldly by more."""
    way = rng.random() ** (1 / mix.size)
    if way < 0.5:
        return value + rng.choice((-1, 1))
    if way < 0.8:
        return value + rng.choice((-1, 1)) * rng.randint(2, 9)
    if way < 0.9 and abs(value) > 10:
        return round(value * math.exp(rng.gauss(0, 0.3)))
    return rng.choice((value * 2, value // 2, value * 2, value // 2, -value))


def swap_operator(source: Source, rng: random.Random) -> Edit | None:
    """Put another operator of the same kind in an operator's place, but let a list grow as it does."""
    site = _any_site(source, "operator", rng)
    if site is None:
        return None
    if site.text.endswith("="):
        target = re.search(rb"(\w+)\s*\Z", source.content[max(0, site.start - 100) : site.start])
        if target and not is_number(source.content, site.where, target[1].decode(errors="replace")):
            return None
    text = " ".join(site.text.split())
    others = sorted({sign for group in _ALTERNATIVES if text in group for sign in group} - {text})
    if not others:
        return None
    new = rng.choice(others)
    return _replace(site, new, f"swap {text} for {new}")


def swap_literal(source: Source, rng: random.Random) -> Edit | None:
    """Put a literal of the module in the place of another of the same type; an integer is also a float."""
    sites = (*source.sites.get("literal", ()), *source.sites.get("number", ()))
    if not sites:
        return None
    site = rng.choice(sites)
    new: str | None = _OPPOSITES.get(site.text)
    if new is None:
        alike = [each.text for each in sites if each.kind == site.kind and each.text not in _OPPOSITES]
        if _is_integer(site):
            alike = [each.text for each in sites if _is_integer(each) == _is_integer(site)]
        new = _any_of(set(alike) - {site.text}, rng)
    return _replace(site, new, f"swap {site.label} {site.text} for {new}")


def _is_integer(site: Site) -> bool:
    return site.kind == "number" and re.fullmatch(r"-?\d+", site.text) is not None


def swap_name(source: Source, rng: random.Random) -> Edit | None:
    """Read another variable of the function, or of the module, that is bound before."""
    site = _any_site(source, "name", rng)
    if site is None:
        return None
    names = _visible_names(source, site) - {site.text}
    new = _any_of({name for name in names if fits(source.content, site.where, site.text, name)}, rng)
    return _replace(site, new, f"use {new} for {site.text}")


def _visible_names(source: Source, site: Site) -> set[str]:
    names = {name for name, offset in source.bindings.get(site.where, ()) if offset <= site.start}
    if site.where:
        names |= {name for name, _ in source.bindings.get("", ())}
    return names


def swap_call(source: Source, rng: random.Random) -> Edit | None:
    """Call the function's twin, such as max for min, or another one that is called with as many arguments."""
    site = _any_site(source, "call", rng)
    if site is None:
        return None
    module, dot, name = site.text.rpartition(".")
    called = {each.text for each in source.sites["call"]}
    twins = {module + dot + b if name == a else module + dot + a for a, b in _TWINS if name in (a, b)}
    twins = {twin for twin in twins if dot or twin in called or hasattr(builtins, twin)}
    others = {each.text for each in source.sites["call"] if each.label and each.label == site.label}
    others -= {site.text, site.where.rpartition(".")[2]}
    new = _any_of(twins, rng) if twins and (not others or rng.random() < 0.5) else _any_of(others, rng)
    return _replace(site, new, f"call {new} for {site.text}")


def insert_term(source: Source, rng: random.Random) -> Edit | None:
    """Let an arithmetic expression grow by a small term or a factor near one."""
    site = _any_site(source, "term", rng)
    if site is None:
        return None
    if rng.random() < 0.3:
        factor = f"{math.exp(rng.gauss(0, 10 ** rng.uniform(-2, 0))):.3g}"
        new, title = f"{site.parts[0]} * {factor}", f"multiply {site.text} by {factor}"
    else:
        numbers = {name for name in _visible_names(source, site) if is_number(source.content, site.where, name)}
        size = f"{10 ** rng.uniform(-3, 0):.2g}"
        name = _any_of(numbers, rng) if rng.random() < 0.6 else None
        term, sign = size if name is None else f"{size} * {name}", rng.choice("+-")
        new, title = f"{site.text} {sign} {term}", f"let {sign}{term} join {site.text}"
    return _replace(site, f"({new})" if site.label else new, title)


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


def delete_statement(source: Source, rng: random.Random) -> Edit | None:
    """Take a statement away, unless later ones need what it binds; the only one of a block becomes `pass`."""
    block = _any_block(source, rng)
    if block is None:
        return None
    statement = rng.choice(block.statements)
    if statement.role in ("docstring", "pass") or (statement.role == "jump" and len(block.statements) > 1):
        return None
    after = source.content[statement.end : block.statements[-1].end]
    if _first_bound(source, block, statement.start, statement.end) & _words(after):
        return None
    lines = source.content[statement.start : statement.end]
    keep = lines[: len(lines) - len(lines.lstrip())] + b"pass" + _line_end(lines)
    new = keep if len(block.statements) == 1 else b""
    return Edit(statement.start, statement.end, new, titled(f"delete {statement.text}", block.where))


def duplicate_statement(source: Source, rng: random.Random) -> Edit | None:
    """Do a statement twice."""
    block = _any_block(source, rng)
    if block is None:
        return None
    statement = rng.choice(block.statements)
    if statement.role:
        return None
    lines = _complete_line(source.content[statement.start : statement.end])
    return Edit(statement.start, statement.end, lines + lines, titled(f"duplicate {statement.text}", block.where))


def move_statement(source: Source, rng: random.Random) -> Edit | None:
    """Put a statement elsewhere in its block, but nothing before what binds its names."""
    block = _any_block(source, rng)
    if block is None or len(block.statements) < 2:
        return None
    first, last = sorted(rng.sample(range(len(block.statements)), 2))
    a, b = block.statements[first], block.statements[last]
    if {a.role, b.role} & {"docstring", "jump"}:
        return None
    early, late = source.content[a.start : a.end], _complete_line(source.content[b.start : b.end])
    between = source.content[a.end : b.start]
    down = rng.random() < 0.5
    passed, bound = (between + late, (a.start, a.end)) if down else (late, (a.start, b.start))
    if _first_bound(source, block, *bound) & _words(passed):
        return None
    if down:
        return Edit(a.start, b.end, between + late + early, titled(f"move down {a.text}", block.where))
    return Edit(a.start, b.end, late + early + between, titled(f"move up {b.text}", block.where))


def _first_bound(source: Source, block: Block, start: int, end: int) -> set[str]:
    """Names of the function that nothing binds before these bytes."""
    bindings = source.bindings.get(block.where, ())
    before = {name for name, offset in bindings if offset <= start}
    return {name for name, offset in bindings if start < offset <= end} - before


def _words(text: bytes) -> set[str]:
    return set(re.findall(r"[^\W\d]\w*", text.decode()))


def _any_block(source: Source, rng: random.Random) -> Block | None:
    if not source.blocks:
        return None
    return rng.choices(source.blocks, [len(each.statements) for each in source.blocks])[0]


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


def _any_site(source: Source, kind: Kind, rng: random.Random) -> Site | None:
    sites = source.sites.get(kind)
    return rng.choice(sites) if sites else None


def _any_of(texts: set[str], rng: random.Random) -> str | None:
    return rng.choice(sorted(texts)) if texts else None


def _replace(site: Site, new: str | None, title: str) -> Edit | None:
    return None if new is None else Edit(site.start, site.end, new.encode(), titled(title, site.where))


def apply(content: bytes, edits: Sequence[Edit]) -> bytes:
    """Make edits that do not overlap; everything else keeps its bytes."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        before, after, new = content[: edit.start], content[edit.end :], edit.new
        if _glued(before, new):
            new = b" " + new
        if _glued(new, after):
            new += b" "
        content = before + new + after
    return content


def _glued(before: bytes, after: bytes) -> bool:
    """Return whether two texts would grow together into one word."""
    return _is_word(before[-1:]) and _is_word(after[:1])


def _is_word(char: bytes) -> bool:
    return char.isalnum() or char == b"_" or char >= b"\x80"


def titled(text: str, where: str = "") -> str:
    """Return a title that ends with the function's name, shortened to fit."""
    suffix = " " + one_line(f"in {where}()", TITLE_LENGTH // 2) if where else ""
    return one_line(text, TITLE_LENGTH - len(suffix)) + suffix


def _complete_line(lines: bytes) -> bytes:
    """Return lines with a line end, which the last one of a file may lack."""
    return lines if _line_end(lines) else lines + b"\n"


def _line_end(lines: bytes) -> bytes:
    """Return the line end that lines end with, empty if there is none."""
    match = re.search(rb"(\r\n|\r|\n)\Z", lines)
    return match.group() if match else b""
