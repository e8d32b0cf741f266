"""What simple commands of an image do to its files: `echo`, `printf` and `cat` into one, `cp`, `mv` and `rm`."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.adopt.build_context import named
from evogit.adopt.dockerfile_text import expanded
from evogit.adopt.foreign_task import PLAIN, File

Changes = dict[str, File | None]
"""Absolute path -> the file that is there then, or None where there is none."""
QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
PART = re.compile(rf"{QUOTED}|(?P<end>&&|;)|.", re.DOTALL)
LITERAL = re.compile(r"('[^']*')|(\\[$`])")
"""Where a shell leaves a dollar alone."""
HIDDEN = {"$": "\0", "`": "\1"}
ELSEWHERE = ("/dev/", "/etc/apt/")
"""Where what is written is of no use here."""
OPERATORS = "();<>|&"
ESCAPE = re.compile(r"\\([\\abfnrtv\"]|0?[0-7]{1,3})")
ESCAPED = dict(zip('\\abfnrtv"', '\\\a\b\f\n\r\t\v"', strict=True))


class Simple(Struct, frozen=True):
    """A command, the file that its output goes to, whether it is added to that, and its here-document's name."""

    words: Sequence[str]
    into: str = ""
    adds: bool = False
    document: str = ""


def parts(line: str) -> Iterator[str]:
    """The commands of a line that are run one after the other."""
    found = ""
    for match in PART.finditer(line):
        if match["end"]:
            yield found.strip()
        found = "" if match["end"] else found + match[0]
    yield found.strip()


def simple(text: str, told: Mapping[str, str]) -> Simple | None:
    """A command with the values of its variables, None where more is needed to know what it does."""
    hidden = LITERAL.sub(lambda match: "".join(HIDDEN.get(each, each) for each in match[0].lstrip("\\")), text)
    plain = expanded(hidden, told, unknown=True)
    if re.search(r"[$`]|(?<!\S)\d[<>]", plain):
        return None
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        tokens = iter([token.replace("\0", "$").replace("\1", "`") for token in lexer])
    except ValueError:
        return None
    words, into, adds, document = list[str](), "", False, ""
    for token in tokens:
        if token in (">", ">>"):
            into, adds = next(tokens, ""), token == ">>"
        elif token in ("<<", "<<-"):
            document = next(tokens, "").lstrip("-")
        elif token and not token.strip(OPERATORS):
            return None
        else:
            words.append(token)
    return Simple(words, into, adds, document)


def changes(
    command: Simple,
    documents: Mapping[str, str],
    files: Mapping[str, File],
    folders: Collection[str],
    at: Callable[[str], str],
) -> Changes | None:
    """What a command does to the files of an image, None where that is not known."""
    program, *given = command.words or [":"]
    options = "".join(word for word in given if word.startswith("-"))
    paths = [word for word in given if not word.startswith("-")]
    if command.into.startswith(ELSEWHERE):
        return {}
    if command.into:
        said = _said(program, given, documents.get(command.document))
        before, mode = files.get(at(command.into), (b"", PLAIN))
        return None if said is None else {at(command.into): ((before if command.adds else b"") + said.encode(), mode)}
    if program == "rm":
        return {path: None for each in paths for path in named(at(each), files, below=True)}
    if program in ("cp", "mv") and len(paths) > 1:
        below = program == "mv" or re.search("[rRa]", options) is not None
        return _copied(paths, files, folders, at, below=below, moved=program == "mv")
    return None


def _said(program: str, given: Sequence[str], document: str | None) -> str | None:
    """What a command prints, None where that is not known."""
    if program in (":", "true"):
        return ""
    if program == "cat":
        return document if not given else None
    if program == "echo":
        newline = given[:1] != ["-n"]
        return _unescaped(" ".join(given if newline else given[1:])) + ("\n" if newline else "")
    if program == "printf" and given and not re.search(r"%[^%sd]", given[0]):
        form, values = _unescaped(given[0]), list(given[1:])
        said = [_filled(form, values)]
        while values and re.search(r"%[sd]", form):
            said.append(_filled(form, values))
        return "".join(said)
    return None


def _filled(form: str, values: list[str]) -> str:
    """What `printf` makes of a form with the first of these values, which are taken away."""
    return re.sub("%(.)", lambda match: "%" if match[1] == "%" else values.pop(0) if values else "", form)


def _unescaped(text: str) -> str:
    """As the `echo` of a plain shell has it."""
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1]) or chr(int(match[1], 8)), text)


def _copied(
    paths: Sequence[str],
    files: Mapping[str, File],
    folders: Collection[str],
    at: Callable[[str], str],
    *,
    below: bool,
    moved: bool,
) -> Changes | None:
    """What is where after a copy, None where it is not known what there is to be copied."""
    *sources, last = paths
    into = len(sources) > 1 or last.endswith("/") or at(last) in folders
    found: Changes = {}
    for source in sources:
        chosen = named(at(source), files, below=below)
        if not chosen:
            return None
        depth = at(source).count("/")
        for path in chosen:
            levels = path.split("/")
            name = levels[depth] if into and not source.endswith("/.") else ""
            found[at(posixpath.join(last, name, *levels[depth + 1 :]))] = files[path]
        found |= dict.fromkeys(chosen if moved else ())
    return found
