"""What a Dockerfile tells of the programs that run in its image: where they lie, and what they need."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.adopt.foreign_task import File
from evogit.adopt.sources import KNOWN, requirement

OPTION_VALUES = {"-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-t"}
"""Options of pip that a value follows."""


class Recipe(Struct, frozen=True):
    """What an image is made of.

    Attributes:
        workdir: where its programs run.
        packages: Python requirements that it installs.
        system: Debian packages that it installs.
        copies: source below the Dockerfile's folder -> absolute path in the image, in order.
    """

    workdir: str
    packages: tuple[str, ...]
    system: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]


def read_dockerfile(text: str, workdir: str = "/") -> Recipe:
    """The recipe in a Dockerfile; what it does beyond files and packages is passed over."""
    packages: dict[str, str] = {}
    system: dict[str, None] = {}
    copies: list[tuple[str, str]] = []
    variables: dict[str, str] = {}
    for word, said in _instructions(text):
        rest = said if word == "RUN" else _filled(said, variables)
        if word in ("ENV", "ARG"):
            variables |= _assigned(rest)
        elif word == "WORKDIR":
            workdir = posixpath.join(workdir, rest.strip("\"'"))
        elif word in ("COPY", "ADD"):
            copies += _copied(rest, workdir)
        elif word == "RUN":
            packages.update(installed(rest))
            system.update(dict.fromkeys(_debian(rest)))
    return Recipe(workdir, tuple(packages.values()), tuple(system), tuple(copies))


def laid(recipe: Recipe, files: Mapping[str, File], ignored: Sequence[str] = ("Dockerfile",)) -> dict[str, File]:
    """Absolute path in the image -> file, of those beside the Dockerfile that it copies."""
    found: dict[str, File] = {}
    for source, place in recipe.copies:
        whole = posixpath.normpath(source)
        meant = re.compile(f"({_pattern(whole)})(/.*)?", re.DOTALL)
        for path, file in files.items():
            match = meant.fullmatch(path)
            if path in ignored or not match and whole != ".":
                continue
            if match and not match[2]:
                into = place.endswith("/") or sum(other == place for _, other in recipe.copies) > 1
                found[posixpath.join(place, posixpath.basename(path)) if into else place] = file
            else:
                found[posixpath.join(place, match[2][1:] if match else path)] = file
    return found


def _pattern(source: str) -> str:
    """A regular expression for the paths that a source of COPY means: `*` and `?` stand for no `/`."""
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(each, re.escape(each)) for each in source)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with the variables that are known, `${NAME:-DEFAULT}` too."""

    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[3], match[2] if match[2] is not None else match[0])

    return re.sub(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)", value, text)


def _assigned(rest: str) -> dict[str, str]:
    """What `ENV A=1 B=2`, `ENV A 1` or `ARG A=1` sets."""
    words = _words(rest)
    if len(words) > 1 and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)


def installed(script: str) -> Iterator[tuple[str, str]]:
    """Normal name -> requirement that a shell script installs with pip or uv, or runs tests with (`uvx --with`)."""
    for command in re.split(r"&&|\|\||[;|\n]", script.replace("\\\n", " ")):
        words = _words(command)
        if "install" in words and any(re.fullmatch(r"pip[\d.]*", word) for word in words[: words.index("install")]):
            yield from _requirements(words[words.index("install") + 1 :])
        elif words[:2] == ["uv", "add"]:
            yield from _requirements(words[2:])
        elif words[:1] in (["uvx"], ["uv"]):
            pairs = zip(words, words[1:], strict=False)
            yield from (
                each for option, word in pairs if option in ("-w", "--with") for each in requirement(_pinned(word))
            )
            yield from _tool(words)


def _tool(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The package that `uvx --from PACKAGE TOOL` or `uvx TOOL` runs.

    A tool of its own name only where that package is known: whoever registered another may not be whom they mean.
    """
    before = ""
    for word in words[1:] if words[0] == "uvx" else ():
        if before == "--from":
            yield from requirement(_pinned(word))
            return
        if not word.startswith("-") and before not in ("-p", "-w", "--with", "--python", "--index"):
            yield from (each for each in requirement(_pinned(word)) if each[0] in KNOWN)
            return
        before = word


def _pinned(word: str) -> str:
    """A requirement for what uv calls NAME@VERSION."""
    return re.sub(r"^([\w.-]+)@([\w.]+)$", lambda match: match[1] + f"=={match[2]}" * (match[2] != "latest"), word)


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\s*\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


def _copied(rest: str, workdir: str) -> Iterator[tuple[str, str]]:
    listed = re.fullmatch(r"((?:--\S+\s+)*)\[(.*)\]", rest)
    text = re.sub(r"(?<=\")\s*,\s*(?=\")", " ", listed[2]) if listed else rest
    words = [word for word in _words(text) if not word.startswith("--")]
    for source in words[:-1] if "--from=" not in rest else ():
        place = posixpath.normpath(posixpath.join(workdir, words[-1]))
        is_folder = re.search(r"(^|/)\.{0,2}$", words[-1]) or place == posixpath.normpath(workdir)
        several = len(words) > 2 or is_folder
        yield source, f"{place}/" if several and posixpath.normpath(source) != "." else place


def _requirements(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    before = ""
    for word in words:
        if not word.startswith("-") and before not in OPTION_VALUES:
            yield from requirement(word)
        before = word


def _debian(script: str) -> Iterator[str]:
    for command in re.split(r"&&|\|\||[;\n]", script):
        words = _words(command)
        if words[:1] in (["apt-get"], ["apt"]) and "install" in words:
            yield from (word for word in words[words.index("install") + 1 :] if not word.startswith("-"))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
