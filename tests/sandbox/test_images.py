"""Images for environments, made by a real daemon; those of other people on it are left alone."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from evogit.core import SandboxError
from evogit.sandbox import Environment
from evogit.sandbox.cache import locked
from evogit.sandbox.docker.daemon import connect
from evogit.sandbox.docker.images import IMAGES, Image, build_image, find_image, make_archive
from evogit.sandbox.docker.worker import BORN, clean, labels
from tests.clock import PATIENCE

from .wheels import only_from, write_wheel

pytestmark = pytest.mark.docker

PLAIN = Environment()
BUILD = """
import sys
from evogit.sandbox import Environment
from evogit.sandbox.docker.daemon import connect
from evogit.sandbox.docker.images import build_image
print(build_image(connect(), Environment(setup=("echo %s; sleep 1",)), lambda said: print(said, file=sys.stderr)).id)
"""


@pytest.fixture(scope="module")
def client() -> Iterator[DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="module")
def plain(client: DockerClient) -> Image:
    """What programs find where a task asks for nothing."""
    return build_image(client, PLAIN, print)


@pytest.fixture
def made(client: DockerClient) -> Iterator[list[str]]:
    """Names of images to remove after the test."""
    names: list[str] = []
    yield names
    for name in names:
        client.images.remove(name)


def run(client: DockerClient, image: Image, *command: str) -> str:
    options = {"network_mode": "none", "entrypoint": [], "read_only": True, "remove": True}
    output: bytes = client.containers.run(image.id, list(command), **options)
    return output.decode().strip()


def words() -> str:
    """A part of a command that makes the image another one."""
    return uuid.uuid4().hex


def test_what_is_here_waits_for_nobody_who_makes_it_elsewhere(client: DockerClient, plain: Image) -> None:
    with locked(plain.name.replace(f"{IMAGES}:", "image-"), pytest.fail):
        assert build_image(client, PLAIN, pytest.fail) == plain


def test_the_default_image_has_python_with_its_compiled_library_and_a_shell(client: DockerClient, plain: Image) -> None:
    modules = "asyncio, bz2, ctypes, curses, decimal, json, lzma, multiprocessing, sqlite3, ssl, unittest, zoneinfo"
    script = f"import sys, {modules}; print(sys.version_info >= (3, 11))"
    assert run(client, plain, "/bin/sh", "-c", f"cat /dev/null | sort && python3 -I -c '{script}'") == "True"
    script = "import json.decoder as d; print(open(d.__cached__, 'rb').read(8)[4])"
    assert run(client, plain, "python3", "-c", script) == "1"  # the flag of code that is valid whatever the times are


def test_it_is_found_again_by_what_it_is_made_from(client: DockerClient, plain: Image) -> None:
    said: list[str] = []
    assert find_image(client, PLAIN) == plain == build_image(client, PLAIN, said.append)
    assert {each.split()[0] for each in said} <= {"waiting"}, "for another test that asks for the image"
    assert find_image(client, Environment(setup=(words(),))) is None
    assert find_image(client, Environment(image="evogit-nowhere")) is None


def test_packages_are_installed_without_a_network(
    client: DockerClient, plain: Image, made: list[str], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    name = f"tiny_{words()}"
    write_wheel(tmp_path / "wheels", name, "ANSWER = 42\n")
    only_from(tmp_path / "wheels", monkeypatch)
    image = build_image(client, Environment(packages=(name,)), print)
    made.append(image.name)
    script = f"import {name} as t, os; print(t.ANSWER, os.path.exists(t.__cached__))"
    assert run(client, image, "python3", "-c", script) == "42 True"
    assert image.digest != plain.digest


def test_a_package_that_debian_does_not_have_is_told(client: DockerClient, plain: Image) -> None:
    environment = Environment(packages=("apt:evogit-nowhere",))
    with pytest.raises(SandboxError, match=r"(?s)packages\).*Unable to locate package evogit-nowhere"):
        build_image(client, environment, print)
    assert find_image(client, environment) is None


def test_setup_gives_the_same_digest_whenever_it_runs(client: DockerClient, plain: Image) -> None:
    setup = (f"echo {words()} > /about", "useradd -m somebody", "date > /var/log/today; python3 -c 'import this' >&2")
    environment = Environment(image=plain.name, setup=setup)
    images = []
    for _ in range(2):
        images.append(build_image(client, environment, print))
        assert run(client, images[-1], "stat", "-c", "%U", "/home/somebody") == "somebody"
        client.images.remove(images[-1].name)
    assert images[0].digest == images[1].digest != plain.digest
    assert images[0].id != images[1].id


def test_setup_that_fails_tells_its_last_lines(client: DockerClient, plain: Image) -> None:
    environment = Environment(image=plain.name, setup=("true", f"seq 30; echo {words()} >&2; exit 3"))
    before = {container.id for container in client.containers.list(all=True, ignore_removed=True)}
    with pytest.raises(SandboxError, match=r"(?s)failed at 'seq 30.*setup.*\n13\n.*\n30\n.*exit code 3") as error:
        build_image(client, environment, print)
    assert "\n11\n" not in str(error.value)
    ours = [
        c
        for c in client.containers.list(all=True, ignore_removed=True)
        if c.id not in before and "seq 30" in str(c.attrs["Args"])
    ]
    assert ours == []
    assert find_image(client, environment) is None


def test_an_image_of_the_task_is_taken_as_it_is_until_its_name_means_another(
    client: DockerClient, plain: Image, made: list[str]
) -> None:
    name = f"evogit-test-{words()}"
    client.images.get(plain.id).tag(name, "latest")
    environment = Environment(image=name)
    first = build_image(client, environment, print)
    assert first.id == plain.id
    other = build_image(client, Environment(image=name, setup=(f"echo {words()} >/about",)), print)
    client.images.get(other.id).tag(name, "latest")
    assert find_image(client, environment) is None
    second = build_image(client, environment, print)
    assert second.id == other.id
    assert second.digest != first.digest
    made += {first.name, second.name, other.name, f"{name}:latest"}


def test_an_image_without_python_is_refused(client: DockerClient, made: list[str]) -> None:
    name = f"evogit-test-{words()}"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("file"))
    client.api.import_image_from_data(archive.getvalue(), repository=name, tag="latest")
    made.append(f"{name}:latest")
    with pytest.raises(SandboxError, match=rf"expected Python 3.11 or newer as python3 in the image {name}, got"):
        build_image(client, Environment(image=name), print)


def test_an_image_that_is_nowhere_is_told(client: DockerClient) -> None:
    with pytest.raises(SandboxError, match=r"no image evogit-nowhere \(sandbox.image\) on this machine"):
        build_image(client, Environment(image="evogit-nowhere"), print)
    with pytest.raises(SandboxError, match=r"(?s)no image NoWhere::: \(sandbox.image\).*look at its name"):
        build_image(client, Environment(image="NoWhere:::"), print)


def test_one_process_builds_and_the_other_waits(client: DockerClient, plain: Image, made: list[str]) -> None:
    word = words()
    command = [sys.executable, "-c", BUILD % word]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [builder.communicate(timeout=PATIENCE) for builder in builders]
    found = find_image(client, Environment(setup=(f"echo {word}; sleep 1",)))
    assert found
    made.append(found.name)
    assert [out.strip() for out, _ in told] == [found.id, found.id]
    assert sorted("waiting for another process" in err for _, err in told) == [False, True]
    assert sorted("running echo" in err for _, err in told) == [False, True]


def test_what_a_killed_build_leaves_is_removed_and_nothing_else(client: DockerClient, plain: Image) -> None:
    left = client.containers.create(plain.id, labels={**labels(), BORN: "1"})
    others = [client.containers.create(plain.id, labels=each) for each in (labels(), {})]  # at work, and a person's
    try:
        assert left.id in clean(client)
        assert {each.id for each in others} <= {each.id for each in client.containers.list(all=True)}
    finally:
        for other in others:
            other.remove()


def test_mmdebstrap_that_is_missing_or_fails_is_told(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(SandboxError, match=r"(?s)mmdebstrap failed.*/nowhere/archive"):
        make_archive(Path("/nowhere/archive"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="apt-get install mmdebstrap"):
        make_archive(tmp_path / "archive")
