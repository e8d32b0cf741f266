from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evogit.content import content
from evogit.sandbox import Environment
from evogit.sandbox.providers import isolating, provider
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.session import Sandbox

JAILS = [
    pytest.param("bubblewrap", marks=pytest.mark.slow),
    pytest.param("sampled", marks=pytest.mark.slow),
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("runsc", marks=[pytest.mark.docker, pytest.mark.slow]),
    *(pytest.param(name, marks=pytest.mark.slow) for name in isolating() if name not in ("bubblewrap", "docker")),
]
"""Everything that promises isolation, a new provider, too; `runsc` is Docker with that runtime, gVisor, `sampled` is
bubblewrap without control groups. Attacks are few seconds in all for who works on a sandbox, and too many for
everybody else: slow."""

APART = [JAILS[0], *JAILS[2:]]
"""For what has nothing to do with what a program uses: `sampled` keeps it apart as `bubblewrap` does."""

ONE_KERNEL = [JAILS[0], JAILS[2]]
"""For what is decided in Python, outside or by the supervisor, whatever the kernel: gVisor shows nothing more of it."""


@pytest.fixture(scope="session")
def providers() -> Iterator[Callable[[str], Sandbox]]:
    """Gives the provider of a name, warm workers and all; `runsc` is Docker with that runtime, gVisor."""
    found: dict[str, Sandbox] = {}

    def get(name: str) -> Sandbox:
        if name not in found:
            gvisor = name == "runsc"
            if name == "sampled":
                found[name] = Bubblewrap(counted=False)
                return found[name]
            found[name] = provider("docker" if gvisor else name, Environment(runtime="runsc" if gvisor else ""))
        return found[name]

    yield get
    for sandbox in found.values():
        sandbox.close()


@pytest.fixture(scope="session", params=APART)
def sandbox(request: pytest.FixtureRequest, providers: Callable[[str], Sandbox]) -> Sandbox:
    return providers(request.param)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What a hostile program may know of the host: real files, processes and listening sockets."""
    secret = tmp_path / "secret"
    secret.write_text("hidden case")
    tmp_path.chmod(0o777)
    abstract = f"evogit-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind("\0" + abstract)
        unix.listen()
        yield {
            "secret": str(secret),
            "folder": str(tmp_path),
            "tasks": str(content("tasks")),
            "docker": os.environ.get("DOCKER_HOST", "").removeprefix("unix://"),
            "pid": os.getpid(),
            "port": server.getsockname()[1],
            "abstract": abstract,
        }
