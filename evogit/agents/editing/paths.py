"""How models write a path: behind a marker, on a line above a block, in a comment, or in a diff."""

from __future__ import annotations

import re

TEXTS = (".md", ".mdx", ".markdown", ".rst", ".txt")  # how files end whose content may be prose, code fences and all
LONGEST = 1_000  # characters of a line that may name a path and nothing else

_LABEL = re.compile(r"(?:file(?:name)?|path)[*` \t]*[:=][*` \t]*", re.IGNORECASE)
_COMMENT = re.compile(r"(?:#+|//|/\*|<!--|--|;+|%+|-|\d+[.)])(?=[ \t`*])")
_PLAIN = re.compile(r"[\w.@+/-]+\.\w+")


def is_prose(path: str) -> bool:
    """Whether a file may hold prose, in which fences and ellipses stand for themselves."""
    return path.lower().endswith(TEXTS)


def cleaned(name: str) -> str:
    """A path without quotes, a label such as `File:`, and `./` before it."""
    text = name.strip("*`: \t")
    label = _LABEL.match(text)
    text = text[label.end() if label else 0 :].strip("*`: \t")
    if text[:1] + text[-1:] in ('""', "''", "()"):
        text = text[1:-1].strip("` \t")
    while text.startswith("./"):
        text = text[2:]
    return text


def alone(line: str) -> str:
    """The path that a line consists of, as text, heading, comment or item of a list; empty where it says more."""
    text = line.strip("* \t")[:LONGEST]
    while comment := _COMMENT.match(text):
        text = text[comment.end() :].strip()
    text = cleaned(text.removesuffix("*/").removesuffix("-->").strip("#*`: \t"))
    return "" if " " in text else text


def of_fence(line: str) -> str:
    """The path behind the backticks that open a fence, as in `python:src/x.py`; empty where there is none."""
    words = re.split(r"[ \t:=\"']+", line.strip("` \t"))
    paths = [word for word in words if _PLAIN.fullmatch(word)]
    return cleaned(paths[0]) if len(paths) == 1 else ""


def commented(line: str) -> str:
    """The path that the first line of a block consists of where nothing else names one: it has to have an ending."""
    found = alone(line)
    return found if _PLAIN.fullmatch(found) else ""
