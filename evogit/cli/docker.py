"""The Docker daemon, as far as commands ask it themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evogit.core import SandboxError


def docker_answers() -> bool:
    """Whether a Docker daemon is there, which `auto` prefers."""
    try:
        with docker_client():
            return True
    except SandboxError:
        return False


@contextmanager
def docker_client() -> Iterator[Any]:
    """A client of the daemon, closed at the end. Raise SandboxError if no daemon answers."""
    from evogit.sandbox.docker.daemon import connect

    client = connect()
    try:
        yield client
    finally:
        client.close()
