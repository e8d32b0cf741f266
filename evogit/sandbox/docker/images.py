"""Docker images for the environments of tasks: made once, found again by what they are made from, named by content."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shlex
import shutil
import tarfile
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import docker
from docker.errors import APIError, BuildError, DockerException, ImageNotFound
from msgspec import Struct

from evogit.content import content
from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.cache import Say, locked
from evogit.sandbox.docker.worker import MARK, labels
from evogit.sandbox.packages import DEBIAN, SHOWN, Platform, packages_folder
from evogit.subprocesses import PIPE, start

IMAGES, BASES = "evogit/sandbox", "evogit/base"  # names of all images that are made here; the tag says what from
LABEL = "evogit.digest"

SUITE = "bookworm"
EPOCH = "1700000000"  # the time that no file is newer than, so that equal packages give equal archives, bit by bit
INCLUDED = ("python3", "python-is-python3")  # the second is the name `python`, which scripts use
LEFT_OUT = ("doc", "man", "info", "locale")  # folders of /usr/share that no program needs
COPIED = ("etc/resolv.conf", "etc/hostname")  # files of this machine that mmdebstrap uses
APT_STEPS = (  # which install Debian packages in an image that has not come with them
    "apt-get -qq -o Acquire::Languages=none update && "
    "DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends {} && "
    "apt-get clean && rm -rf /var/lib/apt/lists/*"
)


class Image(Struct, frozen=True, kw_only=True):
    """An image of this daemon: `id` differs per build, `digest` (SHA-256) is the content's, equal on any machine."""

    id: str
    digest: str
    name: str


def find_image(client: docker.DockerClient, environment: Environment) -> Image | None:
    """Return the image of an environment, None if it is not built. Raises SandboxError if the daemon is away."""
    with _plainly():
        source = _local(client, environment.image) if environment.image else None
        if environment.image and source is None:
            return None
        name = f"{IMAGES}:{_key(environment, source)}"
        found = _local(client, name)
        return _described(found, name, environment) if found else None


def build_image(client: docker.DockerClient, environment: Environment, say: Say) -> Image:
    """Return the image of an environment, built under a lock if needed. Raises SandboxError: it cannot be, and why."""
    if here := find_image(client, environment):
        return here
    with _plainly():
        source = _source(client, environment.image, say) if environment.image else None
        key = _key(environment, source)
        with locked(f"image-{key}", say):
            if here := find_image(client, environment):
                return here
            say("making the sandbox's image, once, which may take minutes; `evogit doctor build` does only that")
            return _build(client, environment, source, f"{IMAGES}:{key}", say)


def remove_images(client: docker.DockerClient, keep: Iterable[Environment]) -> Iterator[str]:
    """Remove our images that no environment needs, and no container uses; yield their names. Raises SandboxError."""
    with _plainly():
        needed = set()
        for environment in keep:
            source = _local(client, environment.image) if environment.image else None
            needed |= {f"{IMAGES}:{_key(environment, source)}", f"{BASES}:{_base_key()}"}
        listed = [(name, image) for name in (IMAGES, BASES) for image in client.images.list(name)]
        ours = {tag for name, image in listed for tag in image.tags if tag.startswith(f"{name}:")}
        for name in sorted(ours - needed):
            try:
                client.images.remove(name)
            except APIError as error:
                if error.status_code != 409:
                    raise
            else:
                yield name


# --- what it is made from -----------------------------------------------------------------------------------------


def _source(client: docker.DockerClient, name: str, say: Say) -> Any:
    """The image that the task names, pulled if it is not here."""
    found = _local(client, name)
    if found:
        return found
    say(f"pulling {name}")
    try:
        return client.images.pull(name, tag=None if "@" in name or ":" in name.split("/")[-1] else "latest")
    except (ImageNotFound, APIError) as error:
        raise SandboxError(
            f"there is no image {name} (sandbox.image) on this machine, and Docker cannot pull it: "
            f"{error.explanation}; look at its name, or make it here with docker build -t {name}"
        ) from error


def _beginning(client: docker.DockerClient, environment: Environment, say: Say) -> Any:
    """Return the largest image that this environment only adds to, else a base from a registry or Debian packages."""
    debian_alone = Environment(packages=tuple(f"{DEBIAN}{name}" for name in _apt(environment)))
    for less in (debian_alone, Environment()):
        if _key(less, None) != _key(environment, None):
            return client.images.get((find_image(client, less) or build_image(client, less, say)).id)
    name = f"{BASES}:{_base_key()}"
    with locked(name.replace("/", "-"), say):
        if found := _local(client, name):
            return found
        say("asking Docker's registry for a Python image")
        try:
            return client.images.build(fileobj=io.BytesIO(_dockerfile()), tag=name, rm=True)[0]
        except (BuildError, APIError):
            return _from_packages(client, name, say)


def _from_packages(client: docker.DockerClient, name: str, say: Say) -> Any:
    say("no registry answers: making a system from Debian packages (about 20 s)")
    with tempfile.TemporaryDirectory(prefix="evogit-image-") as folder:
        archive = Path(folder, "base.tar")
        try:
            make_archive(archive)
        except SandboxError as error:
            raise SandboxError(
                "expected an image for sandboxes from Docker's registry, which does not answer, or from Debian "
                f"packages, but {error}\nOr name an image with Python 3.11 or newer as image in [sandbox]"
            ) from error
        said = client.api.import_image_from_file(str(archive), repository=BASES, tag=name.partition(":")[2])
    found = _local(client, name)
    if found is None:
        raise SandboxError(f"Docker did not accept the image that was made from Debian packages: {said.strip()}")
    return found


def _build(client: docker.DockerClient, environment: Environment, source: Any, name: str, say: Say) -> Image:
    """Add to the source, or to our own base, what the environment asks for; the caller holds the lock."""
    source = source or _beginning(client, environment, say)
    platform, site = probe(client, source, environment.image or "that EvoGit made")
    repository, _, tag = name.partition(":")
    if _as_it_is(environment):
        source.tag(repository, tag)
        return _described(client.images.get(name), name, environment)
    folder = packages_folder(environment, platform.version, platform=platform, say=say)
    names = " ".join(map(shlex.quote, _apt(environment)))
    apt = [f"dpkg -s {names} >/dev/null 2>&1 || {{ {APT_STEPS.format(names)}; }}"] if names else []
    commands = [*apt, *environment.setup]
    command = ["python3", "-I", "-c", FINISH, json.dumps([LABEL in source.labels, site, commands])]
    with half_made(client, source, command, network=bool(commands)) as container:
        if folder:
            with layer(folder, site) as archive:
                container.put_archive("/", archive)
        finish(container, say)
        changes = [f"LABEL {LABEL}={content_digest(container)} {MARK}=image", "ENTRYPOINT []", 'CMD ["python3"]']
        made = container.commit(repository, tag, changes=changes)
    return _described(made, name, environment)


# --- what it is called --------------------------------------------------------------------------------------------


def _key(environment: Environment, source: Any) -> str:
    """What an image is made from; a task's own image counts by its id, since names are given anew."""
    parts = [source.id if source else _base_key(), sorted(environment.packages), environment.setup, FINISH]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _base_key() -> str:
    parts = [_dockerfile().decode(), SUITE, EPOCH, INCLUDED, LEFT_OUT]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _described(image: Any, name: str, environment: Environment) -> Image:
    if _as_it_is(environment):
        digest = hashlib.sha256(json.dumps(image.attrs["RootFS"]["Layers"]).encode()).hexdigest()
    else:
        digest = image.labels[LABEL]
    return Image(id=image.id, digest=digest, name=name)


def _local(client: docker.DockerClient, name: str) -> Any | None:
    try:
        return client.images.get(name)
    except ImageNotFound:
        return None
    except APIError as error:
        if error.status_code != 400:  # nothing can have such a name
            raise
        return None


def _as_it_is(environment: Environment) -> bool:
    return bool(environment.image) and not environment.packages and not environment.setup


def _apt(environment: Environment) -> list[str]:
    return sorted({name.removeprefix(DEBIAN).strip() for name in environment.packages if name.startswith(DEBIAN)})


def _dockerfile() -> bytes:
    return (content("sandbox") / "Dockerfile").read_bytes()


@contextmanager
def _plainly() -> Iterator[None]:
    try:
        yield
    except (DockerException, OSError) as error:
        raise SandboxError(f"cannot manage the images of sandboxes: {error}") from error


def make_archive(archive: Path) -> None:
    """Write a tar archive of a system with Python. Raises SandboxError when mmdebstrap is missing or fails."""
    if shutil.which("mmdebstrap") is None:
        raise SandboxError("mmdebstrap is not installed (Debian: apt-get install mmdebstrap debian-archive-keyring)")
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io"]
    command += [f"--include={','.join(INCLUDED)}"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    command += ["--customize-hook=rm -f " + " ".join(f'"$1/{name}"' for name in COPIED)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    process = start([*command, SUITE, str(archive.absolute())], env=environment, session=False, stderr=PIPE)
    try:
        _, said = process.communicate()
    except BaseException:
        process.terminate()  # it removes its folder; a second Ctrl-C may not find it still at that
        process.wait()
        raise
    if process.returncode:
        advice = "" if os.geteuid() == 0 else " (it needs root, or unprivileged user namespaces and ids in /etc/subuid)"
        last = said.decode(errors="replace").splitlines()[-SHOWN:]
        raise SandboxError("mmdebstrap failed" + advice + ":\n" + "\n".join(last))


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
