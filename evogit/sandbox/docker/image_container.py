"""The container that becomes an image: what its Python is, what is added to it, and a digest of what came of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tarfile
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import docker
from docker.errors import APIError

from evogit.core import SandboxError
from evogit.sandbox.cache import Say
from evogit.sandbox.docker.worker import labels
from evogit.sandbox.packages import SHOWN, Platform

OLDEST = (3, 11)
PASSING = ("dev/", "proc/", "sys/", "run/", "tmp/", "var/log/", "var/cache/", "var/lib/apt/lists/")
MACHINE = ("etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/machine-id", "etc/shadow", "etc/shadow-", ".dockerenv")
"""Files that differ between two builds of the same."""

PROBE = """
import json, os, site, sys
known = "CS_GNU_LIBC_VERSION" in os.confstr_names
libc = os.confstr("CS_GNU_LIBC_VERSION") if known else "musl"
print(json.dumps([sys.version_info[:2], os.uname().machine, libc, site.getsitepackages()[0]]))
"""
FINISH = """
import compileall, json, os, py_compile, subprocess, sys, sysconfig
os.dup2(1, 2)
compiled, site, commands = json.loads(sys.argv[1])
for folder in [site] if compiled else [sysconfig.get_paths()["stdlib"], site]:
    compileall.compile_dir(folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
for command in commands:
    print("+ " + command, flush=True)
    if code := subprocess.run(["/bin/sh", "-ec", command]).returncode:
        sys.exit("exit code %d" % code)
"""
"""Run in the container that becomes the image, as its files are read-only later; prints errors with all else.

Arguments: whether the library has been compiled, the packages' folder, commands.
"""


def probe(client: docker.DockerClient, source: Any, name: str) -> tuple[Platform, str]:
    """Return the Platform of the image's Python and its packages' folder. Raises SandboxError if it is too old."""
    expected = f"expected Python 3.11 or newer as python3 in the image {name}"
    try:
        with half_made(client, source, ["python3", "-I", "-c", PROBE]) as container:
            version, machine, libc, site = json.loads("".join(_output(container)))
    except (APIError, ValueError) as error:
        raise SandboxError(f"{expected}, got: {error}; choose another image in [sandbox]") from error
    if tuple(version) < OLDEST:
        raise SandboxError(f"{expected}, got {'.'.join(map(str, version))}; choose another image in [sandbox]")
    return Platform(version=tuple(version), machine=machine, libc=libc), site


@contextlib.contextmanager
def half_made(
    client: docker.DockerClient, source: Any, command: Sequence[str], *, network: bool = False
) -> Iterator[Any]:
    """Yield a container that is not started, and removed at the end (or by the next engine or `evogit clean`)."""
    container = client.containers.create(
        source.id,
        labels=labels(),
        entrypoint=list(command),
        command=[],
        network_mode="host" if network else "none",
        user="0",
        working_dir="/",
        log_config={"type": "json-file", "config": {"max-size": "10m"}},
    )
    try:
        yield container
    finally:
        container.remove(force=True)


def finish(container: Any, say: Say) -> None:
    """Compile, and run the commands. Raises SandboxError with the last lines of the one that failed."""
    command, last = "compiling", deque[str](maxlen=SHOWN)
    for line in _output(container):
        last.append(line)
        if line.startswith("+ "):
            command = line[2:]
            say(f"running {command}")
            last.clear()
    if container.wait()["StatusCode"]:
        raise SandboxError(f"making the image failed at {command!r} ([sandbox] setup, packages):\n" + "\n".join(last))


def _output(container: Any) -> Iterator[str]:
    """Start the container, and yield the lines that it prints."""
    rest = b""
    container.start()
    for piece in container.logs(stream=True, follow=True):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")


@contextlib.contextmanager
def layer(folder: Path, site: str) -> Iterator[IO[bytes]]:
    """A tar archive that puts the content of a folder into the image's folder for packages."""

    def settled(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for path in sorted(folder.rglob("*")):
                if path.suffix != ".pyc":  # the image's own Python compiles
                    tar.add(path, f"{site.strip('/')}/{path.relative_to(folder)}", recursive=False, filter=settled)
        archive.seek(0)
        yield archive


def content_digest(container: Any) -> str:
    """SHA-256 over names, kinds, owners, modes and contents of all files but those that differ from build to build."""
    entries, exported = [], container.export()
    with tarfile.open(fileobj=cast(Any, _ByteReader(exported)), mode="r|") as tar:
        for member in tar:
            path = member.name.removeprefix("./")
            compiled = path.endswith((".pyc", "/__pycache__"))
            if not compiled and path not in MACHINE and not f"{path}/".startswith(PASSING):
                about = (path, member.type.decode(), member.mode, member.uid, member.gid, member.linkname)
                file = cast(Any, tar.extractfile(member) if member.isreg() else None)
                entries.append(repr((about, hashlib.file_digest(file, "sha256").hexdigest() if file else "")))
    deque(exported, maxlen=0)  # the connection is free again once all is read
    return hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()


class _ByteReader:
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, size: int) -> bytes:
        """The next piece, of any size."""
        return next(self._pieces, b"")
