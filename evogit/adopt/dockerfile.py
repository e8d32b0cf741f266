"""What a Dockerfile tells of the programs that run in its image: where they lie, and what they need."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from evogit.adopt.foreign_task import PLAIN, File
from evogit.adopt.installs import commands, debian, installed, told_unknown, words

VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:(:?[-+])((?:[^{}]|\{[^}]*\})*))?\})")
HEREDOC = re.compile(r"(?:^|(?<=\s))\d?<<(-?)([\"']?)([\w.]+)\2(?=\s|$)")
_USUAL = "/ /etc /home /mnt /opt /root /srv /tmp /usr /usr/bin /usr/local /usr/local/bin /usr/src /var"
USUAL = frozenset(_USUAL.split())
"""Folders that images have."""


class Recipe(Struct, frozen=True):
    """What an image is made of.

    Attributes:
        workdir: where its programs run.
        packages: Python requirements that it installs.
        system: Debian packages that it installs.
        files: absolute path in the image -> file, of those that it copies.
        notes: what could not be read.
    """

    workdir: str
    packages: tuple[str, ...]
    system: tuple[str, ...]
    files: Mapping[str, File]
    notes: tuple[str, ...]


def read_dockerfile(context: Mapping[str, File], workdir: str = "/") -> Recipe:
    """The recipe in the Dockerfile among these files, which are those beside it.

    Files, folders, variables and packages are read; whatever else its commands do is passed over. Of several stages,
    the last one is the image; what it copies of others is what these copied. `workdir` is where none is told.
    """
    text = context.get("Dockerfile", (b"", 0))[0].decode(errors="replace")
    files = {path: file for path, file in context.items() if path != "Dockerfile"}
    build = _Build(files, [_Stage("", workdir)])
    build.stages[0].add_folder(workdir)
    for each in _instructions(text):
        build.take(each)
    last = build.stages[-1]
    packages, system, notes = tuple(build.packages.values()), tuple(build.system), tuple(build.notes)
    return Recipe(last.workdir, packages, system, last.files, notes)


class _Instruction(Struct, frozen=True):
    """One of a Dockerfile, with its here-documents: name -> text, and whether it says variables."""

    word: str
    options: Sequence[tuple[str, str]]
    rest: str
    documents: Mapping[str, tuple[str, bool]]


class _Stage(Struct):
    """An image on its way."""

    name: str
    workdir: str
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: set(USUAL))

    def told(self) -> dict[str, str]:
        """Variable -> value."""
        return self.arguments | self.environment

    def at(self, path: str) -> str:
        """The absolute path that one of this stage's means."""
        return _normal(posixpath.join(self.workdir, path))

    def add_folder(self, path: str) -> None:
        """Say that there is this folder, and those above it."""
        while path not in self.folders:
            self.folders.add(path)
            path = posixpath.dirname(path)


class _Build(Struct):
    """All stages so far; the first one is what stands before any FROM."""

    context: Mapping[str, File]
    stages: list[_Stage]
    packages: dict[str, str] = field(default_factory=dict)
    system: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def take(self, instruction: _Instruction) -> None:
        """Do what an instruction says."""
        stage, rest = self.stages[-1], instruction.rest
        if instruction.word == "FROM":
            self._begin(rest)
        elif instruction.word == "ARG":
            defaults = self.stages[0].arguments
            for name, value in _pairs(words(rest), stage.told()).items():
                known = value if value is not None else defaults.get(name)
                stage.arguments |= {} if known is None else {name: known}
        elif instruction.word == "ENV":
            name, _, value = rest.partition(" ")
            given = words(rest) if "=" in name else [f"{name}={value.strip()}"]
            stage.environment |= {name: value or "" for name, value in _pairs(given, stage.told()).items()}
        elif instruction.word == "WORKDIR":
            stage.workdir = stage.at(self._expanded(rest.strip("\"'")))
            stage.add_folder(stage.workdir)
        elif instruction.word in ("COPY", "ADD"):
            self._copy(instruction)
        elif instruction.word == "RUN":
            self._run(instruction)

    def _begin(self, rest: str) -> None:
        """A stage, which begins as another one where that is its base."""
        base, *named = _expanded(rest, self.stages[0].arguments).split() or [""]
        stage = _Stage(named[1] if len(named) > 1 else "", self.stages[0].workdir)
        if found := self._stage(base, by_number=False):
            stage.workdir, stage.environment = found.workdir, dict(found.environment)
            stage.files, stage.folders = dict(found.files), set(found.folders)
        stage.add_folder(stage.workdir)
        self.stages.append(stage)

    def _stage(self, name: str, *, by_number: bool = True) -> _Stage | None:
        """The stage with this name, or number."""
        if by_number and name.isdecimal():
            return self.stages[int(name) + 1] if int(name) + 2 < len(self.stages) else None
        return next((each for each in self.stages[1:] if name and each.name.lower() == name.lower()), None)

    def _run(self, instruction: _Instruction) -> None:
        """What a command installs, and the folders that it makes."""
        stage = self.stages[-1]
        given = _array(instruction.rest)
        told = [document for document, _ in instruction.documents.values()]
        text = "\n".join([shlex.join(given) if given else instruction.rest, *told])
        script = _expanded(text, stage.told(), unknown=True)
        self.packages.update(installed(script))
        self.system.update(dict.fromkeys(debian(script)))
        self.notes |= dict.fromkeys(told_unknown(script))
        for command in commands(script):
            for path in command[1:] if command[0] == "mkdir" else ():
                stage.add_folder(stage.at(path))

    def _copy(self, instruction: _Instruction) -> None:
        """Lay files where a COPY or ADD has them."""
        stage = self.stages[-1]
        *sources, last = [self._expanded(word) for word in _array(instruction.rest) or words(instruction.rest)] or [""]
        origin = "".join(value for name, value in instruction.options if name == "from")
        beside = self._origin(origin, instruction)
        for source in sources:
            chosen = list(_chosen(source, beside, instruction.options))
            if not chosen and not (origin and posixpath.basename(source) in ("uv", "uvx")):
                self._note(f"its image copies {source}{f' of {origin}' if origin else ''}: no such file is known here")
            several = len(sources) > 1 or len({meant for meant, _, _ in chosen}) > 1
            into = several or last.endswith(("/", "/.")) or stage.at(last) in stage.folders
            for meant, below, file in chosen:
                name = posixpath.basename(meant).removeprefix("<<") if into else ""
                place = stage.at(posixpath.join(last, below or name))
                stage.files[place] = file
                stage.add_folder(posixpath.dirname(place))
                if instruction.word == "ADD" and re.search(r"\.(tar(\.\w+)?|tgz|tbz2?|txz)$", meant):
                    self._note(f"its image unpacks {meant}, which is here as it is")

    def _origin(self, name: str, instruction: _Instruction) -> dict[str, File]:
        """The files that a COPY chooses of: those beside the Dockerfile, its here-documents, or another stage's."""
        if name:
            stage = self._stage(name)
            return {path.lstrip("/"): file for path, file in stage.files.items()} if stage else {}
        written = {
            f"<<{key}": (_expanded(document, self.stages[-1].told()) if variable else document).encode()
            for key, (document, variable) in instruction.documents.items()
        }
        return {**self.context, **{path: (data, PLAIN) for path, data in written.items()}}

    def _expanded(self, text: str) -> str:
        """With the values of its variables; one without is noted, as the base image may have it."""
        told = self.stages[-1].told()
        for match in VARIABLE.finditer(text):
            name = match[1] or match[2]
            if name not in told and not match[3]:
                self._note(f"its Dockerfile says ${name}, but not what it is: here it is empty")
        return _expanded(text, told)

    def _note(self, text: str) -> None:
        self.notes[text] = None


def _instructions(text: str) -> Iterator[_Instruction]:
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if line.lstrip().startswith("#"):
            continue
        while lines and line.rstrip().endswith("\\"):
            after = lines.pop(0)
            line = line if after.lstrip().startswith("#") else f"{line.rstrip()[:-1]} {after}"
        word, _, rest = re.sub(r"\s+", " ", line.strip(), count=1).partition(" ")
        documents = _documents(rest, lines) if word.upper() in ("RUN", "COPY", "ADD") else {}
        if documents and word.upper() != "RUN":
            rest = HEREDOC.sub(r"'<<\3'", rest)
        options, rest = _options(rest.strip())
        yield _Instruction(word.upper(), options, rest, documents)


def _documents(rest: str, lines: list[str]) -> dict[str, tuple[str, bool]]:
    """The here-documents that an instruction begins; their lines are taken away."""
    found = {}
    for match in HEREDOC.finditer(rest):
        bare = [line.lstrip("\t") if match[1] else line for line in lines]
        if match[3] in bare:
            end = bare.index(match[3])
            found[match[3]] = "".join(f"{line}\n" for line in bare[:end]), not match[2]
            del lines[: end + 1]
    return found


def _options(rest: str) -> tuple[list[tuple[str, str]], str]:
    """The options that an instruction begins with, and what follows."""
    found = []
    while match := re.match(r"--([\w-]+)(?:=(\S*))?(\s+|$)", rest):
        found.append((match[1], (match[2] or "").strip("\"'")))
        rest = rest[match.end() :]
    return found, rest


def _array(rest: str) -> list[str]:
    """The words of a JSON array; none where it is no such."""
    try:
        found = json.loads(rest) if rest.startswith("[") else []
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []


def _pairs(given: Sequence[str], told: Mapping[str, str]) -> dict[str, str | None]:
    """Variable -> value of each NAME=VALUE, None where it says none."""
    pairs = (word.partition("=") for word in given)
    return {name: _expanded(value, told) if said else None for name, said, value in pairs}


def _expanded(text: str, told: Mapping[str, str], *, unknown: bool = False) -> str:
    """With the values of its variables; one without is empty, or left to the shell where it is `unknown`."""

    def value(match: re.Match[str]) -> str:
        known, how, word = told.get(match[1] or match[2]), match[3] or "", match[4] or ""
        if known is None and not how:
            return match[0] if unknown else ""
        missing = not known if how.startswith(":") else known is None
        return _expanded(word, told) if missing == how.endswith("-") and how else ("" if missing else known or "")

    return VARIABLE.sub(value, text)


def _chosen(
    source: str, files: Mapping[str, File], options: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, File]]:
    """Of each file that a source means: what it means, the file's path below that (empty where it is it), the file."""
    whole = _normal(f"/{source}")[1:]
    levels = whole.count("/") + 1 if whole else 0
    pattern, without = _glob(whole), [_glob(value) for name, value in options if name == "exclude"]
    above = re.fullmatch(r"(?:(.*)/\./)?.*", source)
    pivot = _normal(f"/{above[1] or ''}")[1:] if above else ""
    for path, file in files.items():
        parts = path.split("/")
        meant, below = "/".join(parts[:levels]), "/".join(parts[levels:])
        if len(parts) < levels or not pattern.fullmatch(meant):
            continue
        inner = (below or parts[-1]).split("/")
        if not any(each.fullmatch("/".join(inner[:count])) for each in without for count in range(1, len(inner) + 1)):
            yield meant, (posixpath.relpath(path, pivot or ".") if ("parents", "") in options else below), file


def _glob(pattern: str) -> re.Pattern[str]:
    """Matches as Docker does: Go's filepath.Match, and `**` for any folders."""
    found = []
    for token in re.findall(r"\\.|\*\*/|\*\*|\*|\?|\[\^?[^\]]+\]|.", pattern, re.DOTALL):
        if token[0] == "[" and len(token) > 1:
            found.append("[" + token[1:].replace("[", r"\["))
        else:
            known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
            found.append(known.get(token) or re.escape(token[-1] if token[0] == "\\" else token))
    try:
        return re.compile("".join(found), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def _normal(path: str) -> str:
    """An absolute path without what it need not say."""
    return posixpath.normpath(re.sub(r"^/+", "/", path))
