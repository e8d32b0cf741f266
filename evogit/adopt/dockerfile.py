"""What a Dockerfile tells of the programs that run in its image: where they lie, and what they need."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from evogit.adopt.build_context import changed, chosen, named, normal, sent
from evogit.adopt.dockerfile_text import VARIABLE, Instruction, array, expanded, instructions, pairs
from evogit.adopt.foreign_task import PLAIN, File
from evogit.adopt.installs import commands, debian, installed, lists, told_unknown, virtual, words
from evogit.adopt.shell_files import changes, parts, simple
from evogit.adopt.sources import has_version, requirements_of
from evogit.adopt.undone import told_base, told_undone, undone

_USUAL = "/ /etc /home /mnt /opt /root /srv /tmp /usr /usr/bin /usr/local /usr/local/bin /usr/src /var"
USUAL = frozenset(_USUAL.split())
"""Folders that images have."""
PROGRAMS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of images that do not say another one."""
SCRIPT = re.compile(r"((/bin/)?(ba|da)?sh( -\w+)* *)?<<")
"""A RUN whose here-documents are scripts."""
VIRTUAL: File = (b"", 0)
"""Stands for a virtual environment among an image's files: there is none to copy, but a place for ours."""


class Recipe(Struct, frozen=True):
    """What an image is made of.

    Attributes:
        workdir: where its programs run.
        packages: Python requirements that it installs.
        system: Debian packages that it installs.
        files: absolute path in the image -> file, of those that it copies.
        environment: variable -> value, of those that it sets.
        virtual: absolute paths of the virtual environments that it makes.
        folders: absolute paths of the empty folders that it makes.
        notes: what a person has to see to: its Debian packages, and what could not be read.
    """

    workdir: str
    packages: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    files: Mapping[str, File] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    virtual: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Paths at which there is no file, but something to be made, or in a folder that is empty."""
        return (*self.virtual, *(f"{path}/." for path in self.folders))


def read_dockerfile(context: Mapping[str, File], workdir: str = "/", whose: str = "its image") -> Recipe:
    """The recipe in the Dockerfile among these files, which are those beside it.

    Files, folders, variables and packages are read; whatever else its commands do is passed over. Of several stages,
    the last one is the image; what it copies of others is what these copied. `workdir` is where none is told; notes
    say `whose` image it is.
    """
    text = context.get("Dockerfile", (b"", 0))[0].decode(errors="replace")
    files = {path: file for path, file in sent(context).items() if path != "Dockerfile"}
    build = _Build(whose, files, [_Stage("", workdir)])
    build.stages[0].add_folder(workdir)
    for each in instructions(text):
        build.take(each)
    last, system = build.stages[-1], tuple(build.system)
    needs = (f"{whose} installs {', '.join(system)}, which bubblewrap takes from this machine",) if system else ()
    return Recipe(
        last.workdir,
        tuple(build.packages.values()),
        system,
        {path: file for path, file in last.files.items() if file != VIRTUAL},
        {name: value for name, value in last.environment.items() if (name, value) != ("PATH", PROGRAMS)},
        tuple(path for path, file in last.files.items() if file == VIRTUAL),
        last.empty(),
        (*needs, *told_base(last.base, whose), *told_undone(list(build.undone), whose), *build.notes),
    )


class _Stage(Struct):
    """An image on its way."""

    name: str
    workdir: str
    base: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: set(USUAL))
    made: set[str] = field(default_factory=set)

    def told(self) -> dict[str, str]:
        """Variable -> value."""
        return self.arguments | self.environment

    def at(self, path: str) -> str:
        """The absolute path that one of this stage's means."""
        return normal(posixpath.join(self.workdir, path))

    def lay(self, path: str, file: File) -> None:
        """Have a file at a path."""
        self.files[self.at(path)] = file
        self.add_folder(posixpath.dirname(self.at(path)))

    def empty(self) -> tuple[str, ...]:
        """The folders that commands make in which there is nothing."""
        full = {posixpath.dirname(path) for path in (*self.files, *self.folders)}
        return tuple(sorted(self.made - USUAL - full - {self.workdir}))

    def do(self, text: str, instruction: Instruction) -> bool:
        """Do what a command of a RUN does to files, False where more of it is not known."""
        self.make(expanded(text, self.told(), unknown=True))
        command = simple(text, self.told())
        if command and command.words[:1] == ["cd"]:
            self.workdir = self.at("".join(command.words[1:2]))
        documents = {
            name: expanded(document, self.told()) if variable else document
            for name, (document, variable) in instruction.documents.items()
        }
        done = changes(command, documents, self.files, self.folders, self.at) if command else None
        for path, file in (done or {}).items():
            if file is None:
                self.files.pop(path, None)
            else:
                self.lay(path, file)
        return done is not None

    def make(self, script: str) -> None:
        """Make the folders and empty files that a script makes, and change modes as it does."""
        for program, *paths in commands(script):
            if program == "chmod":
                self.change(paths)
            for path in (each for each in paths if re.fullmatch(r"[\w./][\w./-]*", each)):
                if program == "mkdir":
                    self.made.add(self.at(path))
                    self.add_folder(self.at(path))
                if program == "touch":
                    self.lay(path, self.files.get(self.at(path), (b"", PLAIN)))

    def change(self, words: Sequence[str]) -> None:
        """Do what a `chmod` with these words does."""
        said, *paths = [word for word in words if not word.startswith("-")] or [""]
        below = any(re.match("-[a-zA-Z]*R|--recursive", word) for word in words)
        for path in (found for each in paths for found in named(self.at(each), self.files, below=below)):
            data, mode = self.files[path]
            self.files[path] = data, changed(said, mode)

    def add_folder(self, path: str) -> None:
        """Say that there is this folder, and those above it."""
        while path not in self.folders:
            self.folders.add(path)
            self.files.pop(path, None)
            path = posixpath.dirname(path)


class _Build(Struct):
    """All stages so far; the first one is what stands before any FROM."""

    whose: str
    context: Mapping[str, File]
    stages: list[_Stage]
    packages: dict[str, str] = field(default_factory=dict)
    system: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    undone: dict[str, None] = field(default_factory=dict)

    def take(self, instruction: Instruction) -> None:
        """Do what an instruction says."""
        stage, rest = self.stages[-1], instruction.rest
        if instruction.word == "FROM":
            self._begin(rest)
        elif instruction.word == "ARG":
            defaults = self.stages[0].arguments
            for name, value in pairs(words(rest), stage.told()).items():
                known = value if value is not None else defaults.get(name)
                stage.arguments |= {} if known is None else {name: known}
        elif instruction.word == "ENV":
            name, _, value = rest.partition(" ")
            given = words(rest) if "=" in name else [f"{name}={value.strip()}"]
            stage.environment |= {name: value or "" for name, value in pairs(given, stage.told()).items()}
        elif instruction.word == "WORKDIR":
            stage.workdir = stage.at(self._expanded(rest.strip("\"'")))
            stage.add_folder(stage.workdir)
        elif instruction.word in ("COPY", "ADD"):
            self._copy(instruction)
        elif instruction.word == "RUN":
            self._run(instruction)

    def _begin(self, rest: str) -> None:
        """A stage, which begins as another one where that is its base."""
        base, *called = expanded(rest, self.stages[0].arguments).split() or [""]
        name = called[1] if len(called) > 1 else ""
        stage = _Stage(name, self.stages[0].workdir, base, environment={"PATH": PROGRAMS})
        if found := self._stage(base, by_number=False):
            stage.workdir, stage.base, stage.environment = found.workdir, found.base, dict(found.environment)
            stage.files, stage.folders, stage.made = dict(found.files), set(found.folders), set(found.made)
        stage.add_folder(stage.workdir)
        self.stages.append(stage)

    def _stage(self, name: str, *, by_number: bool = True) -> _Stage | None:
        """The stage with this name, or number."""
        if by_number and name.isdecimal():
            return self.stages[int(name) + 1] if int(name) + 2 < len(self.stages) else None
        return next((each for each in self.stages[1:] if name and each.name.lower() == name.lower()), None)

    def _run(self, instruction: Instruction) -> None:
        """What a command installs, and the folders, files and virtual environments that it makes."""
        stage, workdir = self.stages[-1], self.stages[-1].workdir
        given = array(instruction.rest)
        line = shlex.join(given) if given else instruction.rest
        told = [document for document, _ in instruction.documents.values()] if SCRIPT.match(line) else []
        script = expanded("\n".join([line, *told]), stage.told(), unknown=True)
        self.system.update(dict.fromkeys(debian(script)))
        self.notes |= dict.fromkeys(told_unknown(script))
        for name, asked in [*self._listed(script), *installed(script)]:
            if has_version(asked) or name not in self.packages:
                self.packages[name] = asked
        for path in virtual(script):
            stage.lay(path, VIRTUAL)
        left = [text for text in parts(line) if not stage.do(text, instruction)]
        self.undone |= dict.fromkeys(undone("\n".join(told or left)))
        for text in told:
            stage.make(text)
        stage.workdir = workdir

    def _listed(self, script: str) -> Iterator[tuple[str, str]]:
        """Name -> requirement of the packages that files ask for which a script installs of, also mounted ones."""
        stage = self.stages[-1]
        for path in lists(script):
            file = stage.files.get(stage.at(path)) or self.context.get(posixpath.basename(path))
            yield from requirements_of(file[0]) if file else ()

    def _copy(self, instruction: Instruction) -> None:
        """Lay files where a COPY or ADD has them."""
        stage = self.stages[-1]
        *sources, last = [self._expanded(word) for word in array(instruction.rest) or words(instruction.rest)] or [""]
        origin = "".join(value for name, value in instruction.options if name == "from")
        mode = "".join(value for name, value in instruction.options if name == "chmod")
        beside = self._origin(origin, instruction)
        for source in sources:
            found = list(chosen(source, beside, instruction.options))
            if not found and not (origin and posixpath.basename(source) in ("uv", "uvx")):
                self._note(
                    f"{self.whose} copies {source}{f' of {origin}' if origin else ''}: no such file is known here"
                )
            several = len(sources) > 1 or len({meant for meant, _, _ in found}) > 1
            into = several or last.endswith(("/", "/.")) or stage.at(last) in stage.folders
            for meant, below, file in found:
                name = posixpath.basename(meant).removeprefix("<<") if into else ""
                stage.lay(posixpath.join(last, below or name), (file[0], changed(mode, file[1])))
                if instruction.word == "ADD" and re.search(r"\.(tar(\.\w+)?|tgz|tbz2?|txz)$", meant):
                    self._note(f"{self.whose} unpacks {meant}, which is here as it is")

    def _origin(self, name: str, instruction: Instruction) -> dict[str, File]:
        """The files that a COPY chooses of: those beside the Dockerfile, its here-documents, or another stage's."""
        if name:
            stage = self._stage(name)
            return {path.lstrip("/"): file for path, file in stage.files.items()} if stage else {}
        written = {
            f"<<{key}": (expanded(document, self.stages[-1].told()) if variable else document).encode()
            for key, (document, variable) in instruction.documents.items()
        }
        return {**self.context, **{path: (data, PLAIN) for path, data in written.items()}}

    def _expanded(self, text: str) -> str:
        """With the values of its variables; one without is noted, as the base image may have it."""
        told = self.stages[-1].told()
        for match in VARIABLE.finditer(text):
            name = match[1] or match[2]
            if name not in told and not match[3]:
                self._note(f"the Dockerfile of {self.whose} says ${name}, but not what it is: here it is empty")
        return expanded(text, told)

    def _note(self, text: str) -> None:
        self.notes[text] = None
