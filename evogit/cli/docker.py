"""The Docker daemon, as far as commands ask it themselves."""

from __future__ import annotations

from evogit.core import SandboxError


def docker_answers() -> bool:
    """Return whether there is a Docker daemon, which `auto` prefers."""
    from evogit.sandbox.docker.daemon import connect

    try:
        connect().close()
    except SandboxError:
        return False
    return True
