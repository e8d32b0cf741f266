"""The provider `docker`, declared without its client, which takes 0.15 s to import; see `sandbox/docker/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from evogit.sandbox import Environment
from evogit.sandbox.cache import Say
from evogit.sandbox.docker.socket import address, knock
from evogit.sandbox.providers import Check, Provider
from evogit.sandbox.session import Sandbox

QUICK = 2.0  # seconds that `auto` waits for a daemon to say something


class Docker(Provider):
    """Containers of the Docker daemon of this machine."""

    name = "docker"
    title = "Docker"
    rank = 1
    needs_image = True
    supports = frozenset({"image", "setup", "debian", "runtime", "gpus", "cpus"})

    @classmethod
    def start(cls, wanted: Environment, private: Sequence[Path] | None, *, worked: bool) -> Sandbox:
        """Return a sandbox; the daemon of one that `worked` may be away for a while."""
        from evogit.sandbox.docker.provider import Docker as Containers

        return Containers(wanted, worked=worked)

    @classmethod
    def knock(cls) -> None:
        """Raise SandboxError if no daemon answers soon."""
        knock(address(), QUICK)

    @classmethod
    def describe(cls, environment: Environment) -> Iterator[Check]:
        """Yield checks of the daemon."""
        from evogit.sandbox.docker.daemon import describe

        yield from describe(environment)

    @classmethod
    def details(cls, environment: Environment) -> Iterator[Check]:
        """Yield the image if there is one, and whether programs can have GPUs."""
        from evogit.sandbox.docker.daemon import connect
        from evogit.sandbox.docker.images import find_image

        with closing(connect()) as client:
            image, runtimes = find_image(client, environment), client.api.info()["Runtimes"]
        if image:
            yield "image", True, f"{image.name}, content {image.digest[:16]}"
        gpus = "nvidia" in runtimes
        sentence = "Docker gives programs those of NVIDIA" if gpus else "Docker has no runtime for them (nvidia)"
        yield "GPUs", gpus or not environment.gpus, sentence

    @classmethod
    def variants(cls, environment: Environment) -> Mapping[str, Environment]:
        """Return gVisor's runtime where the daemon has it."""
        from evogit.sandbox.docker.daemon import GVISOR, connect

        with closing(connect()) as client:
            there = GVISOR in client.api.info()["Runtimes"] and not environment.runtime
        return {"gVisor": replace(environment, runtime=GVISOR)} if there else {}

    @classmethod
    def build(cls, environment: Environment, say: Say) -> dict[str, str | int]:
        """Build the image, and describe it."""
        from evogit.sandbox.docker.daemon import connect
        from evogit.sandbox.docker.images import build_image

        with closing(connect()) as client:
            image = build_image(client, environment, say)
            taken = client.images.get(image.id).attrs["Size"]
        return {"image": image.name, "digest": image.digest, "size": taken}
