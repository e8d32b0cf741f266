"""Which Python programs find in a sandbox, and the supervisor compiled for it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from evogit.content import content
from evogit.core import SandboxError
from evogit.sandbox.cache import recall, remember
from evogit.subprocesses import QUERY_SECONDS, TooLongError, python, run_child
from evogit.text import one_line

OLDEST = (3, 11)
SYSTEM = Path("/usr/bin/python3")
FIXED = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Environment variables of programs in every sandbox: nothing of the host's, and nothing that differs between runs."""
PROBE = """
import glob, importlib.util, json, marshal, os, sys
sources = json.load(sys.stdin)
header = importlib.util.MAGIC_NUMBER + bytes(12)
code = {name: compile(text, name + ".py", "exec", dont_inherit=True) for name, text in sources.items()}
libraries = sorted(os.path.basename(info) for folder in sys.path for info in glob.glob(folder + "/*-info"))
print(json.dumps({
    "version": sys.version_info[:2],
    "about": [sys.version, sys.platform, os.confstr("CS_GNU_LIBC_VERSION"), libraries],
    "folders": {folder: os.stat(folder).st_mtime_ns for folder in sys.path if os.path.isdir(folder)},
    "modules": {name: (header + marshal.dumps(body)).hex() for name, body in code.items()},
}))
"""
"""Run by the sandbox's interpreter, outside: only its own compiler writes code that it can load. What it says holds
until one of its folders changes, where libraries are installed."""

MODULES = (
    "bytes", "files", "meter", "cgroup", "waits", "kernel", "values", "ahead", "calls", "program", "words", "places",
    "tunnel", "keeper", "session", "main",
)  # fmt: skip
"""Files of the supervisor, `jail_*.py`, each after those that it imports."""
NAMES = tuple(f"jail_{part}" for part in MODULES)
BOOTSTRAP = """\
import os, sys
def read(size):
    data = b""
    while len(data) < size and (piece := os.read(0, size - len(data))): data += piece
    return data
exec(compile(read(int.from_bytes(read(4), "big")), "supervisor", "exec"), {"__name__": "supervisor"})
"""
"""The program for the sandbox's `python3 -c`, with the arguments of jail_main.py; it reads the rest from its input."""
LOADER = """
import sys
for name, text in sources.items():
    module = sys.modules[name] = type(sys)(name)
    exec(compile(text, name + ".py", "exec"), module.__dict__)
sys.modules["jail_main"].main()
"""


NAMES_OF_PYTHON = ("python", "python3")
SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders of programs that sandboxes share with the machine."""


class Interpreter(Struct, frozen=True, kw_only=True):
    """A Python for sandboxes: `folders` are what it needs outside /usr, `modules` the supervisor's, compiled for it."""

    path: Path
    version: tuple[int, int]
    folders: tuple[Path, ...]
    modules: dict[str, bytes]
    digest: str


def choose(*, privileged: bool) -> tuple[Path, tuple[Path, ...]]:
    """Return the engine's base interpreter, else the system's, and its folders outside /usr. Raises SandboxError."""
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    prefix = Path(sys.base_prefix).resolve()
    folders = () if prefix.is_relative_to("/usr") else (prefix / "bin", prefix / "lib")
    if not privileged or all(map(_open_to_all, (base, *folders))):
        return base, folders
    if SYSTEM.exists():
        return SYSTEM, ()
    raise SandboxError(
        f"expected a Python that an unprivileged user can reach, got only {base}; "
        "install one for all users (Debian: apt-get install python3), or run evogit without root"
    )


def environment(python: Path, box: str, programs: str) -> dict[str, str]:
    """Return the environment of programs.

    `box` is writable, the folder `programs` has the interpreter by `NAMES_OF_PYTHON`. Folders of the system are in the
    order of the user's PATH, so that programs find the same version of a tool.
    """
    first = [programs] if str(python.parent) in SYSTEM_FOLDERS else [str(python.parent), programs]
    system = [each for each in os.environ.get("PATH", "").split(":") if each in SYSTEM_FOLDERS]
    path = ":".join(dict.fromkeys((*first, *system, *SYSTEM_FOLDERS)))
    return {"PATH": path, "HOME": f"{box}/home", "TMPDIR": f"{box}/tmp", **FIXED}


def prepare(path: Path, folders: Iterable[Path], sources: Path) -> Interpreter:
    """Compile the supervisor in `sources` for an interpreter. Raises SandboxError if that is too old or broken."""
    texts = {file.stem: file.read_text() for file in sorted(sources.glob("jail_*.py"))}
    binary = path.resolve().stat()
    about = [str(path), binary.st_mtime_ns, binary.st_size, os.confstr("CS_GNU_LIBC_VERSION"), PROBE, texts]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    found = recall(str(path), key) or remember(str(path), key, _probed(path, texts))
    modules = {name: bytes.fromhex(code) for name, code in found["modules"].items()}
    version = (found["version"][0], found["version"][1])
    return Interpreter(path=path, version=version, folders=tuple(folders), modules=modules, digest=found["digest"])


def _probed(path: Path, texts: Mapping[str, str]) -> dict[str, Any]:
    """What the interpreter itself says and compiles, with the digest of all that programs find in it."""
    command = python("-c", PROBE, program=str(path), isolated=True)
    expected = f"expected a working Python at {path} for sandboxes, got"
    try:
        probe = run_child(command, seconds=QUERY_SECONDS, env={}, stdin=json.dumps(texts).encode())
    except (OSError, TooLongError) as error:
        raise SandboxError(f"{expected}: {error}") from error
    if probe.returncode:
        said = one_line(probe.stderr.decode(errors="replace"))
        raise SandboxError(f"{expected} exit code {probe.returncode}: {said}")
    found = json.loads(probe.stdout)
    if tuple(found["version"]) < OLDEST:
        raise SandboxError(f"expected Python 3.11 or newer for sandboxes, got {found['version']} at {path}")
    digest = hashlib.sha256(json.dumps([found["about"], texts], sort_keys=True).encode())
    digest.update(path.resolve().read_bytes())
    return {**found, "digest": digest.hexdigest()}


def _open_to_all(path: Path) -> bool:
    try:
        readable = path.stat().st_mode & stat.S_IROTH and all(p.stat().st_mode & stat.S_IXOTH for p in path.parents)
    except OSError:
        return False
    return bool(readable) and os.access(path, os.R_OK)


def program(folder: Path) -> bytes:
    """Return the input of `BOOTSTRAP`: the length (four bytes, big-endian) and the whole program."""
    sources = {name: (folder / f"{name}.py").read_text() for name in NAMES}
    text = f"sources = {json.dumps(sources)}\n{LOADER}".encode()
    return len(text).to_bytes(4, "big") + text


def helper(name: str) -> str:
    """The text of a program that is sent into a sandbox beside the supervisor, such as `porter.py`."""
    return (content("sandbox") / name).read_text(encoding="utf-8")
