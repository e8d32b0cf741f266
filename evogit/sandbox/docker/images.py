"""Docker images for the environments of tasks: made once, found again by what they are made from, named by content."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, BuildError, DockerException, ImageNotFound
from msgspec import Struct

from evogit.content import content
from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.cache import Say, locked
from evogit.sandbox.docker.image_container import FINISH, content_digest, finish, half_made, layer, probe
from evogit.sandbox.docker.worker import MARK
from evogit.sandbox.packages import DEBIAN, packages_folder
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
SHOWN = 15  # last lines of its output that an error tells


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
            found = find_image(client, environment)
            return found or _build(client, environment, source, f"{IMAGES}:{key}", say)


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
