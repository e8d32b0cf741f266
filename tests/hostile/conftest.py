from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evogit.content import content
from evogit.sandbox import Sandbox
from evogit.sandbox.providers import provider


@pytest.fixture(scope="session")
def providers() -> dict[str, Sandbox]:
    return {name: provider(name) for name in ("bubblewrap", "none")}


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


@pytest.fixture
def left_behind() -> Callable[[dict[str, str], str], list[str]]:
    """Processes and folders of a session that still exist."""

    def find(identity: dict[str, str], provider: str) -> list[str]:
        if provider == "bubblewrap":
            return [str(p.parent.parent) for p in _proc("ns/pid") if _link(p) == identity["namespace"]]
        folders = [identity["box"]] if Path(identity["box"]).exists() else []
        return folders + [str(p.parent) for p in _proc("environ") if identity["box"] in _text(p)]

    return find


def _proc(name: str) -> list[Path]:
    return [p / name for p in Path("/proc").iterdir() if p.name.isdigit()]


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
