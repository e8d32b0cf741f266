"""What a reply asks to change, whatever format it was written in, and the error where it cannot be told or done."""

from __future__ import annotations

import re

from msgspec import Struct

from evogit.core import EvoGitError


class EditError(EvoGitError):
    """A reply that cannot be carried out. The message is one sentence; `hint` helps the model to do better."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class Replace(Struct, frozen=True):
    """The lines `search`, which occur exactly once in the file, become `replace`."""

    path: str
    search: tuple[str, ...]
    replace: tuple[str, ...]


class Write(Struct, frozen=True):
    """The file, new or not, consists of these lines."""

    path: str
    lines: tuple[str, ...]


class Delete(Struct, frozen=True):
    """The file goes."""

    path: str


class Rename(Struct, frozen=True):
    """The file moves to `to`, which is not there yet."""

    path: str
    to: str


Block = Replace | Write | Delete | Rename


TEXTS = (".md", ".mdx", ".markdown", ".rst", ".txt")  # how files end whose content may be prose, code fences and all
LONGEST = 1_000  # characters of a line that may name a path and nothing else

_LABEL = re.compile(r"(?:file(?:name)?|path)[*` \t]*[:=][*` \t]*", re.IGNORECASE)
_COMMENT = re.compile(r"(?:#+|//|/\*|<!--|--|;+|%+|-|\d+[.)])(?=[ \t`*])")
_PLAIN = re.compile(r"[\w.@+/-]+\.\w+")


def is_prose(path: str) -> bool:
    """Return True if a file may hold prose, in which fences and ellipses stand for themselves."""
    return path.lower().endswith(TEXTS)


def cleaned_path(name: str) -> str:
    """A path without quotes, a label such as `File:`, and `./` before it."""
    text = name.strip("*`: \t")
    label = _LABEL.match(text)
    text = text[label.end() if label else 0 :].strip("*`: \t")
    if text[:1] + text[-1:] in ('""', "''", "()"):
        text = text[1:-1].strip("` \t")
    while text.startswith("./"):
        text = text[2:]
    return text


def path_alone(line: str) -> str:
    """The path that a line consists of, as text, heading, comment or item of a list; empty where it says more."""
    text = line.strip("* \t")[:LONGEST]
    while comment := _COMMENT.match(text):
        text = text[comment.end() :].strip()
    text = cleaned_path(text.removesuffix("*/").removesuffix("-->").strip("#*`: \t"))
    return "" if " " in text else text


def path_of_fence(line: str) -> str:
    """The path behind the backticks that open a fence, as in `python:src/x.py`; empty where there is none."""
    words = re.split(r"[ \t:=\"']+", line.strip("` \t"))
    paths = [word for word in words if _PLAIN.fullmatch(word)]
    return cleaned_path(paths[0]) if len(paths) == 1 else ""


def path_in_comment(line: str) -> str:
    """The path that the first line of a block consists of where nothing else names one: it has to have an ending."""
    found = path_alone(line)
    return found if _PLAIN.fullmatch(found) else ""
