"""Python packages for sandboxes: wheels that pip unpacks into a folder named by its content; no code of theirs runs."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import select
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from msgspec import Struct

from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.cache import Say, cache_folder, locked
from evogit.subprocesses import DEVNULL, PIPE, STDOUT, end_group, leash, python, run_child, start

logger = logging.getLogger(__name__)

DEBIAN = "apt:"
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^]/@]*\])?[^/@]*")
"""A name with extras, versions and markers; what a path or an address leads to may have to be built."""
PIP = """
import ctypes, os, runpy, signal, sys

if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit("ERROR: what started pip is gone")

def refuse(event, about):
    if event == "subprocess.Popen" and os.fsdecode(about[0]) == sys.executable:
        print("ERROR: a dependency comes as an address of sources, and its own code would build it", file=sys.stderr)
        raise PermissionError("nothing is built")

sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""pip that builds nothing, also no dependency by address; it ends with the process whose id is the first argument."""
SHOWN = 20  # last lines of a failed command's output that an error tells
UNFINISHED = ".new-"  # the prefix of folders of installations that are under way, or were until the process was killed
WHEEL = re.compile(r"\s*(Downloading|Using cached) (?:\S*/)?(\S+\.whl) \((\d+(?:\.\d+)?) ([kMG]?)B\)")
"""The line that pip prints before it downloads a wheel."""
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
LARGE_BYTES = 20 * 10**6  # size of a wheel from which on it is named before it is downloaded
FREE_BYTES = 10**9  # room that an installation leaves on a disk
POLL_S = 0.5  # seconds between two looks at the room that is left


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
    """List an environment's Python packages. Raises SandboxError for a path, an address or an option."""
    found = sorted({name.strip() for name in environment.packages if not name.startswith(DEBIAN)})
    for requirement in found:
        if not REQUIREMENT.fullmatch(requirement):
            raise SandboxError(
                f"expected sandbox.packages to name packages, such as numpy>=2 or apt:gcc, got {requirement!r}; "
                "what has to be built belongs in sandbox.setup, with an image of your own"
            )
    return found


def packages_folder(
    environment: Environment,
    python: tuple[int, int],
    *,
    platform: Platform | None = None,
    say: Say = logger.warning,
    free: int = FREE_BYTES,
) -> Path | None:
    """Return the folder with an environment's packages, None if it asks for none; made at the first use.

    Its name is the SHA-256 of its content. Whoever uses it holds a `lease`. `say` is sent what takes time; `free` bytes
    stay on the disk. Raises SandboxError: no wheels, or too little room.
    """
    wanted, platform = requirements(environment), platform or host(python)
    if not wanted:
        return None
    recipe = f"{_recipe(wanted)}-{hashlib.sha256(repr(platform).encode()).hexdigest()[:16]}"
    packages = cache_folder() / "packages"
    link = packages / "recipes" / recipe
    try:
        for _, size in remove_unfinished(packages):
            say(f"removed {gigabytes(size)} that an interrupted installation of packages left behind")
        if not link.is_dir():
            with locked(f"packages-{recipe}", say):
                if not link.is_dir():
                    _install(wanted, platform, link, Progress(say, free, environment.gpus > 0))
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
    """Remove folders that are neither needed nor used; yield names and bytes. Raises SandboxError: not a package."""
    packages, needed = cache_folder() / "packages", {_recipe(requirements(environment)) for environment in keep}
    yield from remove_unfinished(packages)
    kept = set()
    for link in (packages / "recipes").glob("*"):
        if link.name.partition("-")[0] in needed:
            kept.add(link.resolve().name)
        else:
            link.unlink()
    for folder in sorted(path for path in packages.glob("*") if path.is_dir() and len(path.name) == 64):
        if folder.name in kept:
            continue
        lock = folder.with_suffix(".lease")
        with lock.open("wb") as file, suppress(BlockingIOError):  # a process has a lease on it
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = _size(folder)
            shutil.rmtree(folder)
            lock.unlink()
            yield folder.name, size


def remove_unfinished(packages: Path) -> Iterator[tuple[str, int]]:
    """Remove what installations left behind whose process is gone: name and size in bytes of each folder."""
    for folder in sorted(packages.glob(f"{UNFINISHED}*")):
        with _lock(folder) as lock:
            if lock is not None:
                size = _size(folder)
                shutil.rmtree(folder, ignore_errors=True)
                yield folder.name, size


@contextmanager
def _unfinished(packages: Path) -> Iterator[Path]:
    """Make a folder to install into, locked, and removed at the end, however this process ends."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=packages, prefix=UNFINISHED))
        with _lock(folder) as lock:
            if lock is not None and folder.exists():  # else another process took it for a leftover
                try:
                    yield folder
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                return


@contextmanager
def _lock(folder: Path) -> Iterator[int | None]:
    """Hold the lock of a folder; None if another process holds it, or the folder is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
    else:
        yield descriptor
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size if path.is_file() else 0
    return total


def gigabytes(size: int) -> str:
    """A size for people, such as 5.2 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 10**8 else f"{size / 1e6:.1f} MB"


def _recipe(wanted: Sequence[str]) -> str:
    return hashlib.sha256(repr(wanted).encode()).hexdigest()[:32]


def digest_of(folder: Path) -> str:
    """SHA-256 over the names, kinds and contents of the files below a folder, compiled ones left out."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder)}\0{path.stat().st_mode & 0o111:o}\0{content}\0".encode())
    return total.hexdigest()


class Progress:
    """Tells the user of an installation, and keeps room on the disk free."""

    def __init__(self, say: Say, free: int, gpus: bool) -> None:
        self.say = say
        self._free = free
        self._gpus = gpus
        self._bytes = 0.0

    def begin(self, wanted: Sequence[str], platform: Platform) -> None:
        """Say what is installed; what of it is known to be large, with a way to have less."""
        self.say(
            f"installing {', '.join(wanted)} for Python {'.'.join(map(str, platform.version))}; wheels of "
            f"{LARGE_BYTES // 10**6} MB and more are named as they come"
        )
        if not self._gpus and any(re.match(r"torch(?![\w-])", name) for name in wanted):
            self.say(
                "torch comes with libraries for GPUs, 5 GB and more, which no sandbox here uses; wheels for the CPU "
                "alone take a fifth of that, if pip's own configuration names PyTorch's index of them (docs/tasks.md)"
            )

    def read(self, line: str) -> None:
        """Take a line that pip prints; name a wheel that is large."""
        if match := WHEEL.match(line):
            size = float(match[3]) * UNITS[match[4]]
            self._bytes += size
            if size >= LARGE_BYTES:
                verb = "downloading" if match[1] == "Downloading" else "using"
                self.say(f"{verb} {match[2]}, {gigabytes(int(size))} packed; {gigabytes(int(self._bytes))} so far")

    def check_room(self, folder: Path, wanted: Sequence[str]) -> None:
        """Refuse to fill the disk. Raises SandboxError if less is free than has to stay free."""
        if (free := shutil.disk_usage(folder).free) < self._free:
            raise SandboxError(
                f"no room to install {', '.join(wanted)}: {gigabytes(free)} are free on the disk of {folder.parent}, "
                f"and {gigabytes(self._free)} have to stay free; make room (`evogit clean` removes packages "
                "that no task here needs), or name a folder on another disk with XDG_CACHE_HOME"
            )

    def end(self, folder: Path, began: float) -> None:
        """Say how much was installed."""
        number = len(list(folder.glob("*.dist-info")))
        seconds = time.monotonic() - began
        self.say(f"installed {number} package{'s' * (number != 1)}, {gigabytes(_size(folder))}, in {seconds:.0f} s")


def _install(wanted: Sequence[str], platform: Platform, link: Path, progress: Progress) -> None:
    """Make the folder beside the others under another name, and give it its own in one step."""
    link.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with _unfinished(link.parent.parent) as new:
        folder = new / "site"
        for place in (folder, new / "tmp"):
            place.mkdir()
        progress.check_room(new, wanted)
        progress.begin(wanted, platform)
        _pip(wanted, platform, folder, progress)
        # what tells of this machine goes: commands start with the path of our Python, addresses are of local files
        shutil.rmtree(folder / "bin", ignore_errors=True)
        for info in folder.glob("*.dist-info"):
            (info / "direct_url.json").unlink(missing_ok=True)
            record, ours = info / "RECORD", ("../../bin/", "bin/")
            lines = record.read_text(encoding="utf-8").splitlines(keepends=True) if record.exists() else []
            lines = [line for line in lines if not line.startswith(ours) and "direct_url.json" not in line]
            record.write_text("".join(sorted(lines)), encoding="utf-8")
        final = link.parent.parent / digest_of(folder)
        if platform.version == sys.version_info[:2]:  # for fast imports: the folder will be read-only
            command = [*python("-m", "compileall", isolated=True), "-qq", "--invalidation-mode", "unchecked-hash"]
            tests = f"^{re.escape(str(folder))}/(.*/)?tests/"  # half of NumPy's code, which no program imports
            command += ["-x", tests, "-s", str(folder), "-p", "/packages", str(folder)]
            run_child(command, seconds=None, env={})  # some packages carry files that do not compile
        for path in (*folder.rglob("*"), folder):  # equal times, and everyone may read
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            os.utime(path, (0, 0))
        progress.end(folder, began)
        if not final.is_dir():
            folder.rename(final)
        (new / "link").symlink_to(Path("..", final.name))
        (new / "link").rename(link)


def _pip(wanted: Sequence[str], platform: Platform, folder: Path, progress: Progress) -> None:
    """Have pip unpack wheels, with the user's configuration. It builds nothing, and runs where it imports no wheel."""
    command = [*python("-c", PIP, str(os.getpid()), "install"), "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar=off", "--no-color", "--target", str(folder), "--only-binary=:all:", "--no-compile"]
    command += ["--implementation=cp", "--python-version", ".".join(map(str, platform.version))]
    command += [f"--platform={tag}" for tag in platform.tags()]
    environment = {**os.environ, "TMPDIR": str(folder.with_name("tmp")), "PYTHONUNBUFFERED": "1"}
    last, said = deque[str](maxlen=SHOWN), list[str]()

    def read(line: str) -> None:
        progress.read(line)
        last.append(line)
        said.extend([line] * line.startswith("ERROR"))

    if _run([*command, "--", *wanted], environment, read, lambda: progress.check_room(folder.parent, wanted)):
        told = "\n".join(said or last)
        raise SandboxError(
            f"pip cannot get sandbox.packages ({', '.join(wanted)}) as wheels for Python "
            f"{'.'.join(map(str, platform.version))} on {platform.machine}, {platform.libc}:\n{told}\n"
            "Check the names and versions, and `pip config list`"
        )


def _run(argv: Sequence[str], env: dict[str, str], read: Callable[[str], None], look: Callable[[], None]) -> int:
    """Run a program, read its lines as they come, and `look` in between; its exit code. It ends if either raises."""
    with start([*leash(), *argv], env=env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT) as process:
        assert process.stdout
        output, rest = process.stdout.fileno(), b""
        try:
            while True:
                look()
                if select.select([output], [], [], POLL_S)[0]:
                    if not (piece := os.read(output, 1 << 16)):
                        break
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        read(line.decode(errors="replace"))
            return process.wait()
        finally:
            end_group(process.pid)
