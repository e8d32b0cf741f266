"""Reads the Dockerfile of a task's image: where its files lie among a candidate's, and the packages that it needs.

Read is what the images of tasks do as a rule: `FROM`, `WORKDIR`, `ENV`, `COPY`, and of `RUN` what installs packages,
makes folders or prints into a file. A note names the rest, for which `docker build` and `[sandbox] image` are the way.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from msgspec import Struct, field

from evogit.adopt.foreign_task import EXECUTABLE, PLAIN, VIEW, File, may_link
from evogit.adopt.packages import commands, debian, has_version, installed, lists, requirements_of, statements, words
from evogit.config.values import matches
from evogit.contained import MAX_LINE_CHARS
from evogit.text import one_line

MAX_CHARS = 1 << 16  # characters of a Dockerfile that are read
MAX_INSTRUCTIONS = 500
MAX_LAID_BYTES = 64 << 20  # bytes that all instructions may lay into an image, twice what comes along with a task
MIN_FILE_BYTES = 1024  # the least bytes that a file counts
MAX_RULES = 200  # lines of a .dockerignore that count
HERE = re.compile(r"(?<!\S)\d?<<-?[ \t]{0,8}[\"']?([\w.]{1,80})[\"']?(?!\S)")  # the beginning of a here-document
VARIABLE = re.compile(r"\$(?:(\w{1,80})|\{(\w{1,80})\})")
_USUAL = "/ /etc /home /mnt /opt /root /srv /tmp /usr /usr/bin /usr/local /usr/local/bin /usr/src /var"
USUAL = frozenset(_USUAL.split())  # folders that images have
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # PATH of images that do not set another one
BUILD = "`docker build` it, and name it as [sandbox] image of a task of your own (`evogit new --from`)"
_IDLE = """
: [ apk apt apt-get cd echo export groupadd mkdir pip pip3 printf set test true umask unset useradd usermod uv which
"""
IDLE = frozenset(_IDLE.split())
"""Programs that install what is installed here too, make folders, or leave no file that anything needs."""
NEEDLESS = re.compile(
    r"rm -\w+ (/var/lib/apt/|/tmp/|/root/\.cache)|curl [^|]*/uv/[^|]*\|\s*sh$|"
    r"python[\d.]* -m pip |git config "
)
"""Commands that need not be done here."""
WRITES = re.compile(r"(?<!\d)>>?\s*(?!/dev/|/etc/apt/|&)\S")
_STOCK = """
almalinux alpine amazonlinux archlinux bash buildpack-deps busybox centos clojure composer dart debian eclipse-temurin
elixir erlang fedora gcc golang gradle groovy haskell julia maven node openjdk oraclelinux perl php pypy python r-base
rockylinux ruby rust scratch swift ubuntu
"""
STOCK = frozenset(_STOCK.split())  # images with a system or a language, and no files of a task
MAX_COMMANDS, MAX_COMMAND_CHARS = 4, 60  # commands that a note shows, and characters of each
IMAGE = "image"  # the folder of theirs with what an image has elsewhere
TEMPORARY = "tmp"  # the folder that cannot be linked: stand-ins copy what is in a tmp/ to where /tmp is
FOLDER: File = (b"", 0)  # stands for an empty folder among an image's files
MAX_PATHS = 5  # paths that a note names


class Recipe(Struct, frozen=True):
    """The files and packages of an image."""

    workdir: str  # where its programs run
    packages: tuple[str, ...] = ()  # Python requirements that it installs
    # absolute path in the image -> file, of those that it copies
    files: Mapping[str, File] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)  # variable -> value, of those that it sets
    folders: tuple[str, ...] = ()  # absolute paths of the empty folders that it makes
    notes: tuple[str, ...] = ()  # what the user has to see to: its Debian packages, and what could not be read

    @property
    def places(self) -> tuple[str, ...]:
        """Paths at which there is no file, in the folders that are empty."""
        return tuple(f"{path}/." for path in self.folders)


def read_dockerfile(context: Mapping[str, File], workdir: str = "/") -> Recipe:
    """Return the recipe in the Dockerfile among the files beside it; `workdir` counts until that names one."""
    text = context.get("Dockerfile", (b"", 0))[0][:MAX_CHARS].decode(errors="replace")
    files = {path: file for path, file in _sent(context).items() if path != "Dockerfile"}
    image = _Image(files, workdir)
    image.add_folder(workdir)
    text = re.sub(r"\\[ \t]*\n", " ", re.sub(r"(?m)^[ \t]*#.*\n?", "", text))
    *earlier, text = re.split(r"(?im)^[ \t]*(?=FROM[ \t])", text)
    if any(map(str.strip, earlier)):
        image.undone["several stages"] = None
    lines = islice(filter(str.strip, text.splitlines()), MAX_INSTRUCTIONS)
    for line in lines:
        word, *rest = line.strip()[:MAX_LINE_CHARS].split(None, 1)
        document = HERE.search(line) if word.upper() in ("RUN", "COPY", "ADD") else None
        image.take("HERE" if document else word.upper(), "".join(rest))
        while document and next(lines, document[1]).strip() != document[1]:
            pass
    system = ", ".join(image.system)
    return Recipe(
        image.workdir,
        tuple(image.packages.values()),
        image.files,
        {name: value for name, value in image.environment.items() if (name, value) != ("PATH", PATH)},
        image.empty(),
        (
            *([f"its image installs {system}, which bubblewrap takes from this machine"] if system else ()),
            *told_base(image.base),
            *([image.told_undone()] if image.undone else ()),
        ),
    )


def _sent(files: Mapping[str, File]) -> dict[str, File]:
    """Return the files that a build gets: those that the last matching rule of .dockerignore does not leave out."""
    text = files.get(".dockerignore", (b"", PLAIN))[0].decode(errors="replace")
    rules = [line.strip()[:MAX_LINE_CHARS] for line in text.splitlines() if line.strip() and line[0] != "#"][:MAX_RULES]

    def is_sent(path: str) -> bool:
        kept = True
        for rule in rules:
            glob = rule.removeprefix("!").strip("/").removeprefix("./")
            if matches(path, [glob, f"{glob}/**"]):
                kept = rule.startswith("!")
        return kept

    return {path: file for path, file in files.items() if is_sent(path)}


class _Image(Struct):
    """An image that is being built; `undone` are the instructions that are not done here."""

    context: Mapping[str, File]
    workdir: str
    base: str = ""
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: set(USUAL))
    made: set[str] = field(default_factory=set)
    packages: dict[str, str] = field(default_factory=dict)
    system: dict[str, None] = field(default_factory=dict)
    undone: dict[str, None] = field(default_factory=dict)
    room: int = MAX_LAID_BYTES

    def take(self, word: str, rest: str) -> None:
        """Do what an instruction says; what needs Docker becomes a note."""
        if word == "FROM":
            self.base = "".join(rest.split()[:1])
        elif word == "ENV":
            name, _, value = rest.partition(" ")
            pairs = words(rest) if "=" in name else [f"{name}={value.strip()}"]
            values = {name: _expanded(value, self.environment) for name, _, value in (p.partition("=") for p in pairs)}
            self.environment |= values
        elif word == "WORKDIR":
            self.workdir = self.at(_expanded(rest.strip("\"' "), self.environment))
            self.add_folder(self.workdir)
        elif word in ("COPY", "ADD"):
            self._copy(word, rest)
        elif word == "RUN":
            self._run(rest)
        elif word in ("ARG", "HERE"):
            self.undone[f"{word if word == 'ARG' else 'a here-document:'} {rest}"] = None

    def at(self, path: str) -> str:
        """Return the absolute path that one of this image's means."""
        return normal_path(posixpath.join(self.workdir, path))

    def lay(self, path: str, file: File) -> None:
        """Have a file at a path, as long as there is room."""
        self.room -= len(file[0]) + MIN_FILE_BYTES
        if self.room < 0:
            self.undone[f"files of more than {MAX_LAID_BYTES >> 20} MB"] = None
            return
        self.files[self.at(path)] = file
        self.add_folder(posixpath.dirname(self.at(path)))

    def add_folder(self, path: str) -> None:
        """Have this folder, and those above it."""
        while path not in self.folders:
            self.folders.add(path)
            self.files.pop(path, None)
            path = posixpath.dirname(path)

    def told_undone(self) -> str:
        """Return the note that names the commands which are not done here."""
        undone = list(self.undone)
        named = ", ".join(f'"{one_line(text, MAX_COMMAND_CHARS)}"' for text in undone[:MAX_COMMANDS])
        more = f" and {len(undone) - MAX_COMMANDS} more" if undone[MAX_COMMANDS:] else ""
        return f"its image has {named}{more}, which is not done here: files that it makes are missing; {BUILD}"

    def empty(self) -> tuple[str, ...]:
        """Return the folders that commands make in which there is nothing."""
        full = {posixpath.dirname(path) for path in (*self.files, *self.folders)}
        return tuple(sorted(self.made - USUAL - full - {self.workdir}))

    def _run(self, rest: str) -> None:
        """Note what a command installs; make its folders, and the files that it prints."""
        line = shlex.join(given) if (given := _array(rest)) else re.sub(r"^(--\S+\s+)+", "", rest)
        script = _expanded(line, self.environment, unknown=True)
        self.system.update(dict.fromkeys(debian(script)))
        files = (self.files.get(self.at(p)) or self.context.get(posixpath.basename(p)) for p in lists(script))
        listed = (asked for file in files if file for asked in requirements_of(file[0]))
        for name, asked in [*listed, *installed(script)]:
            if has_version(asked) or name not in self.packages:
                self.packages[name] = asked
        workdir = self.workdir
        for text in _apart(script):
            if not self._done(text):
                undone = (command for command in statements(text) if not _is_idle(command))
                self.undone |= dict.fromkeys(re.sub(r"\s+", " ", command) for command in undone)
        self.workdir = workdir

    def _done(self, text: str) -> bool:
        """Do a `cd`, a `mkdir`, or a `printf` or `echo` into a file; return whether that was all of a command."""
        given = words(text)
        if given[:1] == ["cd"]:
            self.workdir = self.at("".join(given[1:2]))
        for path in (each for each in given[1:] if given[0] == "mkdir" and re.fullmatch(r"[\w./][\w./-]*", each)):
            self.made.add(self.at(path))
            self.add_folder(self.at(path))
        paths = [self.at(path) for path in given[2:]] if given[:2] == ["chmod", "+x"] else []
        if paths and self.files.keys() >= set(paths):
            self.files |= {path: (self.files[path][0], EXECUTABLE) for path in paths}
            return True
        plain, sign, into = re.sub(r"(>>?)\s*(\S+)$", r"\0\1\0\2", text).partition("\0")
        sign, _, into = into.partition("\0")
        content = _printed(plain) if sign and not into.startswith(("/dev/", "/etc/apt/")) else None
        if content is None or re.search(r"[$`'\"(){}<>|&;*?]", into):
            return False
        before, mode = self.files.get(self.at(into), (b"", PLAIN))
        self.lay(into, ((before if sign == ">>" else b"") + content.encode(errors="replace"), mode))
        return True

    def _copy(self, word: str, rest: str) -> None:
        """Lay files where a COPY has them; one of another image, an address or an archive is not read."""
        given = re.sub(r"^(--[\w-]+(=\S*)?\s+)*", "", rest)
        options, paths = rest[: len(rest) - len(given)], _array(given.strip()) or words(given)
        *sources, last = [_expanded(path, self.environment) for path in paths] or [""]
        chosen = {source: list(_chosen(source, self.context)) for source in sources}
        odd = re.sub(r"--(chown=\S+|link|chmod=\d+)\s+", "", options).strip()
        if odd or not all(chosen.values()) or (word == "ADD" and re.search(r"\.(tar|t?gz|bz2|t?xz|zip)\b", rest)):
            self.undone[f"{word} {rest}"] = None
        several = sum(len({meant for meant, _, _ in found}) for found in chosen.values()) > 1
        into = several or last.endswith(("/", "/.")) or self.at(last) in self.folders
        for meant, inner, file in (item for found in chosen.values() for item in found if not odd):
            name = posixpath.basename(meant) if into else ""
            self.lay(posixpath.join(last, inner or name), file)


def _chosen(source: str, files: Mapping[str, File]) -> Iterator[tuple[str, str, File]]:
    """Yield of each file that a source means: what it means, the file's path below that, the file."""
    pattern = normal_path(f"/{source}").strip("/")
    depth = pattern.count("/") + 1 if pattern else 0
    for path, file in files.items():
        names = path.split("/")
        meant = "/".join(names[:depth])
        if len(names) >= depth and (meant == pattern or fnmatch.fnmatchcase(meant, pattern.replace("[^", "[!"))):
            yield meant, "/".join(names[depth:]), file


def _array(rest: str) -> list[str]:
    """Return the words of a JSON array; none if it is not one."""
    try:
        found = json.loads(rest) if rest.startswith("[") else []
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []


def _expanded(text: str, values: Mapping[str, str], *, unknown: bool = False) -> str:
    """Return a text with the values of its variables; one without is empty, or left to the shell if `unknown`."""

    def value(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2], match[0] if unknown else "")

    return VARIABLE.sub(value, text)[: max(len(text), MAX_LINE_CHARS)]


def _apart(script: str) -> Iterator[str]:
    """Yield the commands of a line that run one after the other; an end in quotes ends none."""
    begin = 0
    for match in re.finditer(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|(?P<end>&&|;)|.", script, re.DOTALL):
        if match["end"]:
            yield script[begin : match.start()].strip()
            begin = match.end()
    yield script[begin:].strip()


def _printed(command: str) -> str | None:
    """Return what a plain `printf` or `echo` prints; None if more is needed to know it."""
    given = words(command)
    if re.search(r"[$`|<>()&]", re.sub(r"'[^']*'", "", command)) or len(given) < 2:
        return None
    if given[0] == "echo" and "\\" not in command and given[1] != "-n":
        return " ".join(given[1:]) + "\n"
    if given[0] != "printf" or re.search(r"%(?!s)|\\[^nt\\]", given[1].replace("%%", "")):
        return None
    form = given[1].replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
    values = iter(given[2:])
    holes = max(1, form.replace("%%", "").count("%s"))
    rounds = range(0, max(len(given) - 2, 1), holes)
    return "".join(re.sub("%(.)", lambda hole: "%" if hole[1] == "%" else next(values, ""), form) for _ in rounds)


def _is_idle(command: str) -> bool:
    """Return whether a command leaves no file that is missing here."""
    programs = {posixpath.basename(given[0]) for given in commands(command)}
    harmless = WRITES.search(command) is None or programs <= {"apt", "apt-get", "pip", "pip3", "uv"}
    return NEEDLESS.match(command) is not None or (programs <= IDLE and harmless)


def told_base(base: str) -> Iterator[str]:
    """Yield the note on an image that another one begins as, if it may bring files or programs."""
    name = re.sub(r"^((index\.)?docker\.io/)?(.*\blibrary/)?|[:@].*$", "", base)
    if name and name not in STOCK and not name.endswith("/astral-sh/uv"):
        yield f"its image begins as {base}: what that brings is not known here, and missing; {BUILD}"


def normal_path(path: str) -> str:
    """Return an absolute path without what it need not say."""
    return posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)


# --- where the files of an image lie among a candidate's ----------------------------------------------------------


class Places(Struct, frozen=True):
    """The places of an image's files."""

    folder: str  # absolute path of the folder in which programs work, with all that the image has around it
    own: tuple[str, ...]  # top folders beside it that are folders of the candidate's
    files: Mapping[str, File]  # path among the candidate's -> file
    elsewhere: Mapping[str, File]  # path among theirs -> file, of those outside of it
    links: Mapping[str, str]  # absolute path -> folder of the candidate's
    lost: tuple[str, ...]  # absolute paths that a sandbox cannot have


def arranged(
    recipe: Recipe,
    leads: str,
    taken: Collection[str] = (),
    others: Mapping[str, File] = MappingProxyType({}),
    named: Collection[str] = (),
) -> Places:
    """Return the places of a recipe's files: the working folder `leads` there; the `taken` tops are for other things.

    A link cannot lie below another one: what lies beside the working folder, below the same top, makes the folder above
    both the one that is linked. `others` are files of another image, which never come to lie among a candidate's; paths
    that are `named`, which the image does not have, are a candidate's to bring.
    """
    folder = _folder(recipe, taken, named)
    own = _own(recipe, folder, taken, named)
    files: dict[str, File] = {}
    links = {folder: leads} if _linkable(folder, taken) else {}
    links |= {f"/{top}": posixpath.normpath(f"{leads}/{top}") for top in own if top != TEMPORARY}
    left = dict(others)
    for path, file in [*recipe.files.items(), *((path, FOLDER) for path in recipe.places)]:
        if folder != "/" and is_below(path, folder):
            files[posixpath.relpath(path, folder)] = file
        elif f"/{_top(path)}" in links:
            files[path[1:]] = file
        else:
            left[path] = file
    elsewhere: dict[str, File] = {}
    lost = []
    tops = {_top(path) for path in links}
    for path, file in left.items():
        top = _top(path)
        if top in tops or not (top == TEMPORARY or _linkable(f"/{top}", taken)):
            lost += [path] if not path.endswith("/.") else []
        else:
            elsewhere[f"{IMAGE}{path}"] = file
            links |= {f"/{top}": f"{VIEW}/{IMAGE}/{top}"} if top != TEMPORARY else {}
    return Places(folder, own, _real(files), _real(elsewhere), links, tuple(lost))


def _own(recipe: Recipe, folder: str, taken: Collection[str], named: Collection[str]) -> tuple[str, ...]:
    """Return the tops beside the folder that are a candidate's: of what is named; in all of an image, of its files."""
    has = [path for path in named if any(file == path or is_below(file, path) for file in recipe.files)]
    paths = [*recipe.files, *recipe.places, *named] if folder == "/" else [path for path in named if path not in has]
    tops = {_top(path) for path in paths} - {_top(folder)}
    inside = {posixpath.relpath(path, folder).split("/")[0] for path in recipe.files if is_below(path, folder)}
    own = {top for top in tops - (inside if folder != "/" else set()) if _linkable(f"/{top}", taken)}
    temporary = any(is_below(path, f"/{TEMPORARY}") for path in named if path not in has)
    return (*sorted(own), *((TEMPORARY,) if temporary else ()))


def _folder(recipe: Recipe, taken: Collection[str], named: Collection[str]) -> str:
    """Return the working folder, or the one above it and all below the same top that the image has or that is named."""
    workdir = recipe.workdir
    if workdir == "/" or not _linkable(workdir, taken):
        return workdir
    paths = (*recipe.files, *recipe.places, *named)
    near = [posixpath.dirname(path) for path in paths if is_below(path, f"/{_top(workdir)}")]
    return posixpath.commonpath([workdir, *near])


def _top(path: str) -> str:
    return path.split("/")[1]


def _real(files: Mapping[str, File]) -> dict[str, File]:
    return {path: file for path, file in files.items() if file != FOLDER}


def is_below(path: str, folder: str) -> bool:
    """Return whether an absolute path is below a folder."""
    return path.startswith(f"{folder.rstrip('/')}/")


def told_lost(lost: Sequence[str]) -> Iterator[str]:
    """Yield the note on files of an image that a sandbox cannot have."""
    if lost:
        more = f" and {len(lost) - MAX_PATHS} more" if len(lost) > MAX_PATHS else ""
        yield (
            f"its image has {', '.join(lost[:MAX_PATHS])}{more}, where a sandbox has the system: no program will find "
            "that"
        )


def _linkable(path: str, taken: Collection[str]) -> bool:
    return may_link(path) and _top(path) not in taken
