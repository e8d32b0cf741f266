from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evogit.content import content
from evogit.sandbox import Sandbox
from evogit.sandbox.providers import provider


@pytest.fixture(scope="session")
def providers() -> Iterator[dict[str, Sandbox]]:
    found = {name: provider(name) for name in ("bubblewrap", "none")}
    yield found
    for sandbox in found.values():
        sandbox.close()


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
            "pid": os.getpid(),
            "port": server.getsockname()[1],
            "abstract": abstract,
        }
