"""Where the Docker daemon listens, and whether it does: cheap to ask, without a client."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from evogit.core import SandboxError
from evogit.sandbox import NotHereError


class UnreachableError(SandboxError):
    """No daemon answers."""


class AbsentError(UnreachableError, NotHereError):
    """No daemon listens."""


def address() -> str:
    """Return the socket from DOCKER_HOST, else the usual one. Raises SandboxError if it is not of this machine."""
    named = os.environ.get("DOCKER_HOST", "")
    if named and not named.startswith("unix://"):
        raise SandboxError(
            f"expected DOCKER_HOST to name a socket of this machine, such as unix:///var/run/docker.sock, got {named}; "
            "sandboxes on another machine would be slow, and outlive an engine that dies"
        )
    if named:
        return named.removeprefix("unix://")
    runtime, home = os.environ.get("XDG_RUNTIME_DIR"), Path.home()
    usual = [
        "/var/run/docker.sock",
        *([f"{runtime}/docker.sock"] if runtime else []),
        f"{home}/.docker/run/docker.sock",
    ]
    return next(filter(os.path.exists, usual), usual[0])


def knock(path: str, answer: float) -> None:
    """Wait for a daemon's reply. Raises AbsentError: none listens; UnreachableError: it hangs; SandboxError."""
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.settimeout(answer)
        try:
            knocking.connect(path)
            knocking.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            knocking.recv(1)
        except PermissionError:
            raise SandboxError(
                f"this user may not use the Docker daemon at {path}; join its group (`sudo usermod -aG docker "
                f"{os.environ.get('USER', 'YOU')}`, then log in again), or use bubblewrap"
            ) from None
        except TimeoutError:
            raise UnreachableError(
                f"the Docker daemon at {path} did not answer in {answer:g} s; restart it (systemctl restart docker)"
            ) from None
        except OSError as error:
            raise AbsentError(
                f"no Docker daemon answers at {path} ({error.strerror or error}); start it (systemctl start docker), "
                "or name its socket with DOCKER_HOST"
            ) from None
