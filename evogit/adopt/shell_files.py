"""What `echo` and `printf` of an image write into its files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.adopt.dockerfile_text import expanded

PART = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?P<end>&&|;)|.""", re.DOTALL)
LITERAL = re.compile(r"('[^']*')|(\\[$`])")
"""Where a shell leaves a dollar alone."""
HIDDEN = {"$": "\0", "`": "\1"}
OPERATORS = "();<>|&"
ESCAPE = re.compile(r"\\([\\abfnrtv\"]|0?[0-7]{1,3})")
ESCAPED = dict(zip('\\abfnrtv"', '\\\a\b\f\n\r\t\v"', strict=True))


class Simple(Struct, frozen=True):
    """A command, the file that its output goes to, and whether it is added to that."""

    words: Sequence[str]
    into: str = ""
    adds: bool = False


def parts(line: str) -> Iterator[str]:
    """Yield the commands of a line that are run one after the other."""
    begin = 0
    for match in PART.finditer(line):
        if match["end"]:
            yield line[begin : match.start()].strip()
            begin = match.end()
    yield line[begin:].strip()


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
    words, into, adds = list[str](), "", False
    for token in tokens:
        if token in (">", ">>"):
            into, adds = next(tokens, ""), token == ">>"
        elif token and not token.strip(OPERATORS):
            return None
        else:
            words.append(token)
    return Simple(words, into, adds)


def printed(program: str, given: Sequence[str]) -> str | None:
    """What a command prints, None where that is not known."""
    if program in (":", "true"):
        return ""
    if program == "echo":
        newline = given[:1] != ["-n"]
        return _unescaped(" ".join(given if newline else given[1:])) + ("\n" if newline else "")
    if program == "printf" and given and not re.search(r"%[^%sd]", given[0]):
        form, values = _unescaped(given[0]), iter(given[1:])
        said = [_filled(form, values)]
        if re.search(r"%[sd]", form):
            left = list(values)
            holes = len(re.findall(r"%[sd]", form))
            said += [_filled(form, iter(left[at : at + holes])) for at in range(0, len(left), holes)]
        return "".join(said)
    return None


def _filled(form: str, values: Iterator[str]) -> str:
    """Return the text that `printf` makes of a form with the next of these values."""
    return re.sub("%(.)", lambda match: "%" if match[1] == "%" else next(values, ""), form)


def _unescaped(text: str) -> str:
    """As the `echo` of a plain shell has it."""
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1]) or chr(int(match[1], 8)), text)
