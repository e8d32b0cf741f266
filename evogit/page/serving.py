"""Runs the page's server until somebody ends it."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn

from evogit.core import UsageError
from evogit.page.app import Site
from evogit.page.guard import Guard
from evogit.repository import Repository

LOOPBACK = ("127.0.0.1", "::1", "localhost")

TOKEN = 32
"""Bytes of the token: 256 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the page is; `token` is what lets a browser in, once for each start of the server."""

    host: str
    port: int
    token: str

    @property
    def url(self) -> str:
        """What a person opens."""
        return f"http://{self._name}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> list[str]:
        """What browsers may call this server."""
        names = {self._name, "127.0.0.1", "localhost"} if self.host in LOOPBACK else {self._name}
        return [f"{name}:{self.port}" for name in sorted(names)]

    @property
    def _name(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def serve(
    repository: Repository,
    run: str | None,
    host: str,
    port: int,
    *,
    read_only: bool,
    ready: Callable[[Address], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; `ready` is told where, as soon as the port is open. Port 0: any free one.

    `run` is shown first, None for the one at work or the latest.

    Raises:
        UsageError: the port is taken, or there is no such address here.
    """
    opened = _listen(host, port)
    address = Address(host=host, port=opened.getsockname()[1], token=secrets.token_urlsafe(TOKEN))
    forced = host not in LOOPBACK
    site = Site(repository, run, read_only=read_only or forced)
    app = Guard(site.app(), address.token, address.hosts, address.port)
    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=1)
    ready(address)
    asyncio.run(uvicorn.Server(config).serve([opened]))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen()  # so that whoever is told the address can connect at once
    except OSError as error:
        opened.close()
        raise UsageError(f"expected an address that is free, got {host} port {port}: {error.strerror}") from error
    return opened
