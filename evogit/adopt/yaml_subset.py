"""Reads what configuration files of other systems say in YAML: the part of it that people write by hand.

Mappings, lists, plain and quoted scalars, blocks (`|`, `>`), flow lists and mappings (so JSON, too), anchors. What is
beyond that is passed over, as a key that nobody here asks for must not keep a task from starting; so no package is
needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KEY = re.compile(r"(?P<key>\"[^\"]*\"|'[^']*'|[^\s#\[\]{}\"'][^:#]*?)\s*:(?:\s+(?P<value>.*))?$")
QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'", re.DOTALL)
FLOWING = re.compile(r"(?:[^,\[\]{}:]|:(?![\s,\]}]|$))*")
"""A plain scalar in brackets."""
NUMBER = re.compile(r"[-+]?(\d[\d_]*)?\.?\d+([eE][-+]?\d+)?|[-+]?\d+\.")
WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None}


def read_yaml(text: str) -> dict[str, Any]:
    """The mapping that a file holds; empty where it holds none."""
    text = text.removeprefix("\ufeff")
    reader = _Reader(text.replace("\t", "    ").splitlines())
    value = _Flow(text.strip()).read() if text.lstrip().startswith("{") else reader.block(0)
    return value if isinstance(value, dict) else {}


def at(values: Any, *keys: str) -> Any:
    """What stands at this path of nested mappings; None where nothing does."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


@dataclass
class _Reader:
    """Goes through the lines once, from the top."""

    lines: Sequence[str]
    place: int = 0
    anchors: dict[str, Any] = field(default_factory=dict)

    def block(self, least: int) -> Any:
        """The mapping or list whose lines begin `least` columns in or further; None where there is none."""
        depth = self._depth()
        if depth is None or depth < least:
            return None
        if re.match(r"-(\s|$)", self.lines[self.place].lstrip()):
            return self._list(depth)
        return self._mapping(depth)

    def _depth(self) -> int | None:
        """How far the next line that says anything is indented; None at the end."""
        while self.place < len(self.lines):
            line = self.lines[self.place].strip()
            if line and not line.startswith("#") and line not in ("---", "..."):
                return len(self.lines[self.place]) - len(self.lines[self.place].lstrip())
            self.place += 1
        return None

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (here := self._depth()) is not None and here >= depth:
            match = KEY.match(self.lines[self.place].strip()) if here == depth else None
            self.place += 1
            if match:
                key, value = match["key"].strip("\"' "), self._value(match["value"] or "", depth)
                if key == "<<" and isinstance(value, dict):
                    found = {**value, **found}
                else:
                    found[key] = value
        return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while (here := self._depth()) == depth and re.match(r"-(\s|$)", self.lines[self.place].lstrip()):
            item = self.lines[self.place].strip()[1:].strip()
            if KEY.match(item) and not item.startswith(("[", "{", '"', "'")):
                text = self.lines[self.place]
                self.lines = [*self.lines[: self.place], text.replace("-", " ", 1), *self.lines[self.place + 1 :]]
                found.append(self.block(here + 1))
            else:
                self.place += 1
                found.append(self._value(item, here))
        return found

    def _value(self, text: str, depth: int) -> Any:
        """What stands behind a key or a dash at this depth, perhaps over more lines."""
        if anchor := re.match(r"&(\S+)\s*(.*)$", text):
            self.anchors[anchor[1]] = value = self._value(anchor[2], depth)
            return value
        if alias := re.match(r"\*(\S+)\s*(#.*)?$", text):
            return self.anchors.get(alias[1])
        if header := re.match(r"([|>])([-+]?)\d?([-+]?)\s*(#.*)?$", text):
            return self._text(depth, folded=header[1] == ">", kept="-" not in (header[2], header[3]))
        bare = _uncommented(text)
        if not bare:
            nested = self._depth()
            at_key = nested == depth and re.match(r"-(\s|$)", self.lines[self.place].lstrip())
            if nested is None or nested < depth or nested == depth and not at_key:
                return None
            line = self.lines[self.place].strip()
            if at_key or re.match(r"-(\s|$)", line) or KEY.match(line):
                return self.block(depth if at_key else depth + 1)
            self.place += 1
            return self._value(line, depth)
        while _open(bare) and self.place < len(self.lines):
            line = self.lines[self.place].strip()
            bare = _joined(bare, line if bare[0] in "\"'" else _uncommented(line))
            self.place += 1
        if bare[0] in "[{":
            return _Flow(bare).read()
        while bare[0] not in "\"'" and (here := self._depth()) is not None and here > depth:
            bare = f"{bare} {_uncommented(self.lines[self.place].strip())}"
            self.place += 1
        return _scalar(bare)

    def _text(self, depth: int, *, folded: bool, kept: bool) -> str:
        taken: list[str] = []
        while self.place < len(self.lines):
            line = self.lines[self.place]
            if line.strip() and len(line) - len(line.lstrip()) <= depth:
                break
            taken.append(line)
            self.place += 1
        margin = min((len(line) - len(line.lstrip()) for line in taken if line.strip()), default=0)
        text = "\n".join(line[margin:].rstrip() for line in taken).rstrip("\n")
        if folded:
            text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
        return text + "\n" * kept


class _Flow:
    """Reads a list or a mapping in brackets."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def read(self) -> Any:
        """What it holds; the text itself where it is not well formed, or does not end."""
        try:
            return self._item()
        except (IndexError, RecursionError):
            return self._text

    def _next(self) -> str:
        """The next character that is no space."""
        while self._text[self._place].isspace():
            self._place += 1
        return self._text[self._place]

    def _item(self) -> Any:
        opened = self._next()
        if opened in "[{":
            self._place += 1
            return self._list() if opened == "[" else self._mapping()
        pattern = QUOTED if opened in "\"'" else FLOWING
        found = pattern.match(self._text, self._place)
        if not found or not found[0]:
            raise IndexError(self._place)
        self._place = found.end()
        return _scalar(found[0].strip())

    def _list(self) -> list[Any]:
        found = []
        while self._next() != "]":
            found.append(self._item())
            self._place += self._next() == ","
        self._place += 1
        return found

    def _mapping(self) -> dict[str, Any]:
        found = {}
        while self._next() != "}":
            key, value = str(self._item()), None
            if self._next() == ":":
                self._place += 1
                value = self._item() if self._next() not in ",}" else None
            found[key] = value
            self._place += self._next() == ","
        self._place += 1
        return found


def _open(text: str) -> bool:
    """Whether a quoted text, or what is in brackets, goes on in the next line."""
    if text[0] in "[{":
        bare = QUOTED.sub("", text)
        return sum(map(bare.count, "[{")) > sum(map(bare.count, "]}"))
    body = re.sub(r"\\.", "", text, flags=re.DOTALL) if text[0] == '"' else text.replace("''", "")
    return text[0] in "\"'" and body.count(text[0]) % 2 == 1


def _joined(text: str, more: str) -> str:
    """A quoted text with its next line: one space between, none where the line ends with a backslash."""
    if text[0] == '"' and text.endswith("\\"):
        return text[:-1] + more
    return text + (f" {more}" if more and not text.endswith("\n") else more or "\n")


def _uncommented(text: str) -> str:
    if text[:1] in ("'", '"'):
        return text.strip()
    return re.sub(r"(^|\s)#.*", "", text).strip()


def _scalar(text: str) -> Any:
    if text[:1] == '"':
        end = re.match(r'"(?:[^"\\]|\\.)*"', text, re.DOTALL)
        return _unescaped(end[0]) if end else text
    if text[:1] == "'":
        return text[1 : text.rindex("'")].replace("''", "'") if text.rindex("'") else text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if NUMBER.fullmatch(text):
        return float(text) if re.search(r"[.eE]", text) else int(text)
    return text


def _unescaped(text: str) -> str:
    """A text in double quotes; a backslash before a space means a space, which JSON does not know."""
    try:
        value = json.loads(text.replace("\\ ", " ").replace("\\'", "'"), strict=False)
    except ValueError:
        return text[1:-1]
    return str(value)
