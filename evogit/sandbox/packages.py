"""Python packages for sandboxes: wheels that pip unpacks into a folder named by its content; no code of theirs runs."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.cache import Say, cache_folder, locked
from evogit.subprocesses import python, run_child

logger = logging.getLogger(__name__)

DEBIAN = "apt:"
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^]/@]*\])?[^/@]*")
"""A name with extras, versions and markers; what a path or an address leads to may have to be built."""
PIP = """
import os, runpy, sys

def refuse(event, about):
    if event == "subprocess.Popen" and os.fsdecode(about[0]) == sys.executable:
        print("ERROR: a dependency comes as an address of sources, and its own code would build it", file=sys.stderr)
        raise PermissionError("nothing is built")

sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""pip that builds nothing: `--only-binary` does not hold for dependencies of wheels that are addresses."""
SHOWN = 20
"""Last lines of a failed command's output that an error tells."""


class Platform(Struct, frozen=True, kw_only=True):
    """What wheels must fit: the interpreter's version, the kind of CPU, and the C library ("glibc 2.36" or "musl")."""

    version: tuple[int, int]
    machine: str
    libc: str

    def tags(self) -> list[str]:
        """Names of platforms whose wheels run here, the best first."""
        if not self.libc.startswith("glibc 2."):
            return [f"musllinux_1_{minor}_{self.machine}" for minor in (2, 1)]
        newest = int(self.libc.split(".")[1])
        names = [f"manylinux_2_{minor}" for minor in range(newest, 4, -1)]
        return [f"{name}_{self.machine}" for name in (*names, "manylinux2014", "manylinux2010", "manylinux1", "linux")]


def host(python: tuple[int, int]) -> Platform:
    """This machine, with a Python of that version."""
    known = "CS_GNU_LIBC_VERSION" in os.confstr_names
    libc = os.confstr("CS_GNU_LIBC_VERSION") if known else None
    return Platform(version=python, machine=os.uname().machine, libc=libc or "musl")


def requirements(environment: Environment) -> list[str]:
    """The Python packages that an environment asks for.

    Raises:
        SandboxError: when one is a path, an address or an option.
    """
    found = sorted({name.strip() for name in environment.packages if not name.startswith(DEBIAN)})
    for requirement in found:
        if not REQUIREMENT.fullmatch(requirement):
            raise SandboxError(
                f"expected sandbox.packages to name packages, such as numpy>=2 or apt:gcc, got {requirement!r}; "
                "what has to be built belongs in sandbox.setup, with an image of your own"
            )
    return found


def packages_folder(
    environment: Environment, python: tuple[int, int], *, platform: Platform | None = None, say: Say = logger.info
) -> Path | None:
    """The folder with the Python packages of an environment, None when it asks for none; made at the first use.

    Its name is the SHA-256 of its content: equal for equal versions, whoever made it. Everyone may read it. `platform`
    is this machine unless given. Whoever uses the folder holds a `lease` on it.

    Raises:
        SandboxError: when pip does not get all of them as wheels.
    """
    wanted, platform = requirements(environment), platform or host(python)
    if not wanted:
        return None
    recipe = f"{_recipe(wanted)}-{hashlib.sha256(repr(platform).encode()).hexdigest()[:16]}"
    link = cache_folder() / "packages" / "recipes" / recipe
    try:
        if not link.is_dir():
            with locked(f"packages-{recipe}", say):
                if not link.is_dir():
                    say(f"installing {', '.join(wanted)} for Python {'.'.join(map(str, platform.version))}")
                    _install(wanted, platform, link)
        return link.resolve()
    except OSError as error:
        raise SandboxError(
            f"cannot keep sandbox.packages in {cache_folder()}: {error}; name a folder of yours with XDG_CACHE_HOME"
        ) from error


def lease(folder: Path) -> IO[bytes]:
    """An open file that keeps `remove_folders` off a folder until it is closed, or the process ends."""
    file = folder.with_suffix(".lease").open("wb")
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def remove_folders(keep: Iterable[Environment]) -> Iterator[tuple[str, int]]:
    """Remove folders that no environment needs and no process uses: name and size in bytes of each one removed.

    Raises:
        SandboxError: when an environment asks for what is not a package.
    """
    packages, needed = cache_folder() / "packages", {_recipe(requirements(environment)) for environment in keep}
    kept = set()
    for link in (packages / "recipes").glob("*"):
        if link.name.partition("-")[0] in needed:
            kept.add(link.resolve().name)
        else:
            link.unlink()
    for folder in sorted(path for path in packages.glob("*") if path.is_dir() and len(path.name) == 64):
        if folder.name not in kept and (size := _remove(folder)) is not None:
            yield folder.name, size


def _remove(folder: Path) -> int | None:
    """Remove a folder unless a process has a lease on it; its size in bytes."""
    lock = folder.with_suffix(".lease")
    with lock.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
        shutil.rmtree(folder)
        lock.unlink()
    return size


def _recipe(wanted: Sequence[str]) -> str:
    return hashlib.sha256(repr(wanted).encode()).hexdigest()[:32]


def digest_of(folder: Path) -> str:
    """SHA-256 over the names, kinds and contents of the files below a folder, compiled ones left out."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder)}\0{path.stat().st_mode & 0o111:o}\0{content}\0".encode())
    return total.hexdigest()


def _install(wanted: Sequence[str], platform: Platform, link: Path) -> None:
    """Make the folder beside the others under another name, and give it its own in one step."""
    link.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=link.parent.parent, prefix=".new-") as new:
        folder = Path(new, "site")
        folder.mkdir()
        _pip(wanted, platform, folder)
        _tidy(folder)
        final = link.parent.parent / digest_of(folder)
        if platform.version == sys.version_info[:2]:
            _compile(folder)
        _settle(folder)
        if not final.is_dir():
            folder.rename(final)
        Path(new, "link").symlink_to(Path("..", final.name))
        Path(new, "link").rename(link)


def _pip(wanted: Sequence[str], platform: Platform, folder: Path) -> None:
    """Let pip, with the user's own configuration, choose and unpack wheels; it builds nothing.

    It does not begin in the folder: modules of what it has just unpacked there must not be its own.
    """
    command = [*python("-c", PIP, "install"), "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--target", str(folder), "--only-binary=:all:", "--no-compile", "--implementation=cp"]
    command += ["--python-version", ".".join(map(str, platform.version))]
    command += [f"--platform={tag}" for tag in platform.tags()]
    done = run_child([*command, "--", *wanted], seconds=None, env=os.environ)
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").splitlines()
        said = "\n".join([line for line in lines if line.startswith("ERROR")] or lines[-SHOWN:])
        raise SandboxError(
            f"pip cannot get sandbox.packages ({', '.join(wanted)}) as wheels for Python "
            f"{'.'.join(map(str, platform.version))} on {platform.machine}, {platform.libc}:\n{said}\n"
            "Check the names and versions, and `pip config list`"
        )


def _tidy(folder: Path) -> None:
    """Remove what tells of this machine: commands start with the path of our Python, addresses are of local files."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for info in folder.glob("*.dist-info"):
        (info / "direct_url.json").unlink(missing_ok=True)
        record = info / "RECORD"
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True) if record.exists() else []
        kept = [line for line in lines if not line.startswith(("../../bin/", "bin/")) and "direct_url.json" not in line]
        record.write_text("".join(sorted(kept)), encoding="utf-8")


def _compile(folder: Path) -> None:
    """Compile for fast imports: the folder will be read-only, so no program could do it for the next one.

    Not the tests that packages carry, half of NumPy's code, as programs import none of them.
    """
    command = [*python("-m", "compileall", isolated=True), "-qq", "--invalidation-mode", "unchecked-hash"]
    command += ["-x", f"^{re.escape(str(folder))}/(.*/)?tests/", "-s", str(folder), "-p", "/packages", str(folder)]
    run_child(command, seconds=None, env={})  # some packages carry files that do not compile


def _settle(folder: Path) -> None:
    """Give everything the same times and let everyone read it."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (0, 0))
