"""What a Dockerfile tells of the programs that run in its image: where they lie, and what they need.

Read is what images of tasks do as a rule: `FROM`, `WORKDIR`, `ENV`, `COPY`, and of `RUN` what installs packages, makes
folders or prints into a file. A note names the rest, for which Docker has to build the image.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct, field

from evogit.adopt.build_context import below, changed, chosen, normal, sent
from evogit.adopt.dockerfile_text import MAX_CHARS, VARIABLE, Instruction, array, expanded, instructions
from evogit.adopt.foreign_task import PLAIN, File
from evogit.adopt.installs import commands, debian, installed, lists, told_unknown, virtual, words
from evogit.adopt.shell_files import parts, printed, simple
from evogit.adopt.sources import has_version, requirements_of
from evogit.adopt.undone import told_base, told_undone, undone

_USUAL = "/ /etc /home /mnt /opt /root /srv /tmp /usr /usr/bin /usr/local /usr/local/bin /usr/src /var"
USUAL = frozenset(_USUAL.split())
"""Folders that images have."""
PROGRAMS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of images that do not say another one."""
MAX_INSTRUCTIONS = 500
MAX_LAID_BYTES = 64 << 20
"""Bytes that all instructions may lay into an image, twice what comes along with a task."""
FILE_BYTES = 1024
"""The least bytes that a file counts."""
ELSEWHERE = ("/dev/", "/etc/apt/")
"""Where what is written is of no use here."""
BUILD = "for that, build it with Docker and name it as [sandbox] image of a task of your own (`evogit adopt`)"
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

    `workdir` is where none is told; notes say `whose` image it is.
    """
    text = context.get("Dockerfile", (b"", 0))[0][:MAX_CHARS].decode(errors="replace")
    files = {path: file for path, file in sent(context).items() if path != "Dockerfile"}
    image = _Image(whose, files, workdir, workdir)
    image.add_folder(workdir)
    for each in islice(instructions(text), MAX_INSTRUCTIONS):
        image.take(each)
    system = tuple(image.system)
    needs = (f"{whose} installs {', '.join(system)}, which bubblewrap takes from this machine",) if system else ()
    return Recipe(
        image.workdir,
        tuple(image.packages.values()),
        system,
        {path: file for path, file in image.files.items() if file != VIRTUAL},
        {name: value for name, value in image.environment.items() if (name, value) != ("PATH", PROGRAMS)},
        tuple(path for path, file in image.files.items() if file == VIRTUAL),
        image.empty(),
        (*needs, *told_base(image.base, whose), *told_undone(list(image.undone), whose), *image.notes),
    )


class _Image(Struct):
    """An image on its way."""

    whose: str
    context: Mapping[str, File]
    home: str
    workdir: str
    base: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PROGRAMS})
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: set(USUAL))
    made: set[str] = field(default_factory=set)
    packages: dict[str, str] = field(default_factory=dict)
    system: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    undone: dict[str, None] = field(default_factory=dict)
    room: int = MAX_LAID_BYTES

    def take(self, instruction: Instruction) -> None:
        """Do what an instruction says."""
        rest = instruction.rest
        if instruction.has_document:
            self._note(f"{self.whose} has files or commands in here-documents, which are not read; {BUILD}")
        elif instruction.word == "FROM":
            if self.base:
                self._note(f"{self.whose} is built in several stages, of which only the last one is read; {BUILD}")
                self.files, self.folders, self.made, self.environment = {}, set(USUAL), set(), {"PATH": PROGRAMS}
            self.base, self.workdir = "".join(expanded(rest, self.arguments).split()[:1]) or rest, self.home
            self.add_folder(self.workdir)
        elif instruction.word == "ENV":
            name, _, value = rest.partition(" ")
            given = words(rest) if "=" in name else [f"{name}={value.strip()}"]
            self.environment |= self._values(given)
        elif instruction.word == "ARG":
            self.arguments |= self._values(word for word in words(rest) if "=" in word)
        elif instruction.word == "WORKDIR":
            self.workdir = self.at(self._expanded(rest.strip("\"'")))
            self.add_folder(self.workdir)
        elif instruction.word in ("COPY", "ADD"):
            self._copy(instruction)
        elif instruction.word == "RUN":
            self._run(instruction)

    @property
    def told(self) -> dict[str, str]:
        """Variable -> value."""
        return self.arguments | self.environment

    def _values(self, given: Iterable[str]) -> dict[str, str]:
        told = self.told
        return {name: expanded(value, told) for name, _, value in (word.partition("=") for word in given)}

    def at(self, path: str) -> str:
        """The absolute path that one of this image's means."""
        return normal(posixpath.join(self.workdir, path))

    def lay(self, path: str, file: File) -> None:
        """Have a file at a path, as long as there is room."""
        self.room -= len(file[0]) + FILE_BYTES
        if self.room < 0:
            self._note(
                f"{self.whose} has more than {MAX_LAID_BYTES >> 20} MB of files, of which the last ones are missing"
            )
            return
        self.files[self.at(path)] = file
        self.add_folder(posixpath.dirname(self.at(path)))

    def empty(self) -> tuple[str, ...]:
        """The folders that commands make in which there is nothing."""
        full = {posixpath.dirname(path) for path in (*self.files, *self.folders)}
        return tuple(sorted(self.made - USUAL - full - {self.workdir}))

    def add_folder(self, path: str) -> None:
        """Say that there is this folder, and those above it."""
        while path not in self.folders:
            self.folders.add(path)
            self.files.pop(path, None)
            path = posixpath.dirname(path)

    def _run(self, instruction: Instruction) -> None:
        """What a command installs, and the folders, files and virtual environments that it makes."""
        workdir, given = self.workdir, array(instruction.rest)
        line = shlex.join(given) if given else instruction.rest
        script = expanded(line, self.told, unknown=True)
        self.system.update(dict.fromkeys(debian(script)))
        self.notes |= dict.fromkeys(told_unknown(script))
        for name, asked in [*self._listed(script), *installed(script)]:
            if has_version(asked) or name not in self.packages:
                self.packages[name] = asked
        for path in virtual(script):
            self.lay(path, VIRTUAL)
        left = [text for text in parts(line) if not self._done(text)]
        self.undone |= dict.fromkeys(undone("\n".join(left)))
        self.workdir = workdir

    def _done(self, text: str) -> bool:
        """Do what a command of a RUN does to files, False where more of it may not be known."""
        for program, *paths in commands(expanded(text, self.told, unknown=True)):
            for path in (each for each in paths if re.fullmatch(r"[\w./][\w./-]*", each)):
                if program == "mkdir":
                    self.made.add(self.at(path))
                    self.add_folder(self.at(path))
                elif program == "touch":
                    self.lay(path, self.files.get(self.at(path), (b"", PLAIN)))
            if program == "chmod":
                self._change([word for word in paths if not word.startswith("-")], paths)
        command = simple(text, self.told)
        if command is None:
            return False
        program, *given = command.words or [":"]
        if program == "cd":
            self.workdir = self.at("".join(given[:1]))
        if program == "rm":
            for path in (found for each in given for found in below(self.at(each), self.files)):
                self.files.pop(path, None)
        said = printed(program, given) if command.into and not command.into.startswith(ELSEWHERE) else None
        if said is not None:
            before, mode = self.files.get(self.at(command.into), (b"", PLAIN))
            self.lay(command.into, ((before if command.adds else b"") + said.encode(errors="replace"), mode))
        return said is not None or command.into.startswith(ELSEWHERE)

    def _change(self, words: Sequence[str], given: Sequence[str]) -> None:
        """Change the modes of files as `chmod` does; of all below a folder only with -R."""
        recursive = any(re.match("-[a-zA-Z]{0,8}R|--recursive", word) for word in given)
        for path in map(self.at, words[1:]):
            for found in below(path, self.files):
                data, mode = self.files[found]
                if mode and (recursive or found.count("/") == path.count("/")):
                    self.files[found] = data, changed(words[0], mode)

    def _listed(self, script: str) -> Iterator[tuple[str, str]]:
        """Name -> requirement of the packages that files ask for which a script installs of, also mounted ones."""
        for path in lists(script):
            file = self.files.get(self.at(path)) or self.context.get(posixpath.basename(path))
            yield from requirements_of(file[0]) if file else ()

    def _copy(self, instruction: Instruction) -> None:
        """Lay files where a COPY or ADD has them."""
        *sources, last = [self._expanded(word) for word in array(instruction.rest) or words(instruction.rest)] or [""]
        origin = "".join(value for name, value in instruction.options if name == "from")
        mode = "".join(value for name, value in instruction.options if name == "chmod")
        if odd := [name for name, _ in instruction.options if name not in ("from", "chmod", "chown", "link")]:
            self._note(f"{self.whose} copies with --{odd[0]}, which is not done here; {BUILD}")
        for source in sources:
            found = [] if origin else list(chosen(source, self.context))
            if not found and not (origin and posixpath.basename(source) in ("uv", "uvx")):
                where = f" of {origin}" if origin else ""
                self._note(f"{self.whose} copies {source}{where}: no such file is known here; {BUILD}")
            several = len(sources) > 1 or len({meant for meant, _, _ in found}) > 1
            into = several or last.endswith(("/", "/.")) or self.at(last) in self.folders
            for meant, inner, file in found:
                name = posixpath.basename(meant) if into else ""
                self.lay(posixpath.join(last, inner or name), (file[0], changed(mode, file[1])))
                if instruction.word == "ADD" and meant.endswith((".tar", ".tgz", ".gz", ".bz2", ".xz", ".txz")):
                    self._note(f"{self.whose} unpacks {meant}, which is here as it is")

    def _expanded(self, text: str) -> str:
        """With the values of its variables; one without is noted, as the base image may have it."""
        for match in VARIABLE.finditer(text):
            name = match[1] or match[2]
            if name not in self.told and not match[3]:
                self._note(f"the Dockerfile of {self.whose} says ${name}, but not what it is: here it is empty")
        return expanded(text, self.told)

    def _note(self, text: str) -> None:
        self.notes[text] = None
