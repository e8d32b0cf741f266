"""Candidates that attack: the seed with a few lines more, written so that a person sees at once what they do."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

MARK = "# --- added by `evogit audit` "
_FUTURE = re.compile(rb"^from __future__ import .*\n", re.MULTILINE)

EACH = '''
def _each(value, change):
    """The same value with another number in the place of each number."""
    if isinstance(value, dict):
        return {key: _each(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(part, change) for part in value]
    if hasattr(value, "tolist"):  # of numpy
        import numpy
        return numpy.array(_each(value.tolist(), change))
    return change(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
'''
AT = '''
def _at(value, path, part):
    """The same value with another part at a path of keys and places."""
    if not path:
        return part
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _at(copy[path[0]], path[1:], part)
    return copy
'''
ON = '''
def _on(value, place, change):
    """The same value with a list at a place changed: also a column, a table's values, a text's lines."""
    if not place:
        return change(value)
    key, rest = place[0], place[1:]
    if key == "lines()":
        end = "\\n" * value.endswith("\\n")
        return "\\n".join(_on(value.splitlines(), rest, change)) + end
    if key == "words()":
        return " ".join(map(str, _on(value.split(), rest, change)))
    if key == "json()":
        import json
        return json.dumps(_on(json.loads(value), rest, change))
    if key == "keys()":
        return {name: value[name] for name in change(list(value)) if name in value}
    if key != "each()":
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[key] = _on(copy[key], rest, change)
        return copy
    parts = list(value.values()) if isinstance(value, dict) else value
    column = [_in(part, rest) for part in parts]
    if all(isinstance(part, list) for part in column):
        parts = [_on(part, rest, change) for part in parts]
    else:
        column = change(column)
        parts = [_on(part, rest, lambda _, new=new: new) for part, new in zip(parts, column)]
    return dict(zip(value, parts)) if isinstance(value, dict) else parts

'''
IN = '''
def _in(value, place):
    """What stands at a path of keys and places."""
    for key in place:
        value = value[key]
    return value
'''
EACH_TEXT = '''
def _each_text(value, text):
    """The same value with another text in the place of each text."""
    if isinstance(value, dict):
        return {key: _each_text(part, text) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each_text(part, text) for part in value]
    return text if isinstance(value, str) else value
'''
IS = '''
def _is(honest, name):
    """Whether it is the function of this name, or what knows its answers."""
    return getattr(honest, "__name__", "") == name or getattr(getattr(honest, "func", None), "__name__", "") == name
'''
RAMP = '''
def _ramp(value, step):
    """The same value; the numbers of each list are changed by one step, two steps, and so on."""
    if isinstance(value, dict):
        return {key: _ramp(part, step) for key, part in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    numbers = [isinstance(part, (int, float)) and not isinstance(part, bool) for part in value]
    return [part + step * place if number else _ramp(part, step)
            for place, (part, number) in enumerate(zip(value, numbers))]
'''
HELPERS = {"_ramp(": RAMP, "_is(": IS, "_each(": EACH, "_at(": AT, "_on(": ON, "_in(": IN, "_each_text(": EACH_TEXT}
"""What a cheat may call -> its definition, which comes along."""


class AttackCandidate(Struct, frozen=True):
    """The files in which a candidate differs from the seed: path -> content."""

    files: Mapping[str, bytes]

    def diff(self, seed: Mapping[str, bytes]) -> str:
        """A patch to the seed's files."""
        parts: list[str] = []
        for path, content in sorted(self.files.items()):
            before, after = (_lines(each) for each in (seed.get(path, b""), content))
            old = f"a/{path}" if path in seed else "/dev/null"
            parts += difflib.unified_diff(before, after, old, f"b/{path}")
        return "".join(parts)


def _lines(content: bytes) -> list[str]:
    text = content.decode(errors="replace")
    return [line + "\n" for line in text.split("\n")[: -1 if text.endswith("\n") else None]]


def title(name: str) -> str:
    """The line above what was added."""
    return f"{MARK}({name}) ---\n"


def above(content: bytes, code: str) -> bytes:
    """A Python file with code before all that it does."""
    futures = b"".join(_FUTURE.findall(content))
    return futures + code.encode() + b"\n" + _FUTURE.sub(b"", content)


def below(content: bytes, code: str) -> bytes:
    """A Python file with code after all that it defines."""
    return content.rstrip() + b"\n\n\n" + code.encode()


def helpers(code: str) -> str:
    """The definitions that the code needs, and the code."""
    needed = [text for name, text in HELPERS.items() if name in code or (name == "_in(" and "_on(" in code)]
    return "".join(needed).lstrip() + code


KNOWN = """
import json

_ANSWERS = json.loads({known!r})  # of the seed, which is slow


def _honest(function, *args, **kwargs):
    key = json.dumps([args, kwargs], sort_keys=True)
    return _ANSWERS[key] if key in _ANSWERS else function(*args, **kwargs)

"""


def wrapped(content: bytes, name: str, functions: tuple[str, ...], cheat: str, known: str = "") -> bytes:
    """A module whose functions (`pack`, `Solver.solve`) are called through `_cheat(honest, *args, **kwargs)`.

    `known` are answers that they need not think about again, as JSON.
    """
    lines = [title(name) + "import functools", helpers(cheat.strip() + "\n"), ""]
    if known:
        lines.append(KNOWN.format(known=known))
        lines += [f"{each} = functools.partial(_honest, {each})" for each in functions if "." not in each]
    lines += [f"{each} = functools.partial(_cheat, {each})" for each in functions if "." not in each]
    for each in functions:
        if "." in each:
            lines.append(f"{each} = lambda *args, _honest={each}, **kwargs: _cheat(_honest, *args, **kwargs)")
    return below(content, "\n".join(lines) + "\n")


def wrapped_all(content: bytes, name: str, cheat: str) -> bytes:
    """A module of which every function that it defines is called through `_cheat(honest, *args, **kwargs)`.

    It is the same where it defines none. What a script does after its last function calls the wrapped ones.
    """
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return content
    ends = [part.end_lineno or 0 for part in body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not ends:
        return content
    code = f"""\
{title(name)}import functools, types
{helpers(cheat.strip())}


for _name, _honest in list(globals().items()):
    if isinstance(_honest, types.FunctionType) and _honest.__module__ == __name__ and _name[0] != "_":
        globals()[_name] = functools.partial(_cheat, _honest)
"""
    lines = content.splitlines(keepends=True)
    rest = b"".join(lines[ends[-1] :]).strip()
    return below(b"".join(lines[: ends[-1]]), code) + (b"\n\n" + rest + b"\n" if rest else b"")


PRINTED = '''\
{title}import atexit, io, json, os, sys

_shown, sys.stdout = sys.stdout, io.StringIO()


def _said(text):
    """What was said: JSON, numbers, or text; and how it was."""
    try:
        return json.loads(text), json.dumps
    except ValueError:
        pass
    try:
        numbers = [float(word) if set(word) & set(".en") else int(word) for word in text.split()]
        return numbers, lambda value: " ".join(map(str, value if isinstance(value, list) else [value]))
    except ValueError:
        return text, str


{cheat}

def _changed(text):
    value, written = _said(text)
    changed = _cheat(lambda: value)
    return text if changed == value else written(changed) + "\\n" * text.endswith("\\n")


@atexit.register
def _say():
    for name in filter(os.path.exists, {out!r}):
        with open(name) as file:
            text = file.read()
        with open(name, "w") as file:
            file.write(_changed(text))
    text = sys.stdout.getvalue()
    _shown.write(text if {out!r} else _changed(text))
    _shown.flush()


'''


def printing(content: bytes, name: str, cheat: str, out: Sequence[str] = ()) -> bytes:
    """A script of which what it prints, or writes to the files `out`, goes through `_cheat(honest)`."""
    return above(content, PRINTED.format(title=title(name), cheat=helpers(cheat.strip() + "\n"), out=list(out)))
