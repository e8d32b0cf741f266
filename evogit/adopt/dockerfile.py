"""What a Dockerfile tells of the programs that run in its image: where they lie, and what they need."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.adopt.foreign_task import File
from evogit.adopt.sources import requirement

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
    for word, rest in _instructions(text):
        if word == "WORKDIR":
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
        for path, file in files.items():
            if path in ignored:
                continue
            if path == whole:
                into = place.endswith("/") or sum(other == place for _, other in recipe.copies) > 1
                found[posixpath.join(place, posixpath.basename(path)) if into else place] = file
            elif whole == "." or path.startswith(f"{whole}/"):
                found[posixpath.join(place, path if whole == "." else path[len(whole) + 1 :])] = file
    return found


def installed(script: str) -> Iterator[tuple[str, str]]:
    """Normal name -> requirement that a shell script installs with pip or uv, or runs tests with (`uvx --with`)."""
    for command in re.split(r"&&|\|\||[;|\n]", script.replace("\\\n", " ")):
        words = _words(command)
        if "install" in words and any(re.fullmatch(r"pip[\d.]*", word) for word in words[: words.index("install")]):
            yield from _requirements(words[words.index("install") + 1 :])
        elif words[:1] in (["uvx"], ["uv"]):
            pairs = zip(words, words[1:], strict=False)
            yield from (each for option, word in pairs if option in ("-w", "--with") for each in requirement(word))
            yield from _tool(words)


def _tool(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What `uvx TOOL` runs, where it is a package: not a program of the system's, or of the task's."""
    before = ""
    for word in words[1:] if words[0] == "uvx" else ():
        if not word.startswith("-") and before not in ("-p", "-w", "--with", "--python", "--from", "--index"):
            if not re.search(r"[/$]|^(python|bash|sh)\d*|\.py$", word):
                yield from requirement(word.replace("@", "=="))
            return
        before = word


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\s*\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


def _copied(rest: str, workdir: str) -> Iterator[tuple[str, str]]:
    words = [word for word in _words(rest.strip("[]").replace('", "', '" "')) if not word.startswith("--")]
    for source in words[:-1] if "--from=" not in rest else ():
        place = posixpath.join(workdir, words[-1])
        several = len(words) > 2 or words[-1].endswith("/")
        place = posixpath.normpath(place)
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
