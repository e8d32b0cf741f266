"""Runs the page's server until somebody ends it."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from msgspec import Struct

from evogit.core import UsageError
from evogit.page.app import Site
from evogit.page.guard import Guard
from evogit.repository import Repository

LOOPBACK = ("127.0.0.1", "::1", "localhost")

EVERYWHERE = ("0.0.0.0", "::")

HTTP = 80
"""The port that browsers do not name."""

PORT = re.compile(r":\d+$", re.ASCII)

TOKEN = 32
"""Bytes of the token: 256 bits."""


class Address(Struct, frozen=True, kw_only=True):
    """Where the page is; `token` is what lets a browser in, once for each start of the server."""

    host: str
    port: int
    token: str

    @property
    def url(self) -> str:
        """What a person opens."""
        return f"http://{self._name}:{self.port}/?token={self.token}"

    def is_named(self, host: str) -> bool:
        """Whether a browser may call this server so: another name may have been rebound to it by a stranger.

        Where it listens on all addresses, any number will do, as numbers cannot be rebound.
        """
        name, _, port = (host if PORT.search(host) else f"{host}:{HTTP}").rpartition(":")
        if port != str(self.port):
            return False
        if self.host in EVERYWHERE:
            return name in ("localhost", socket.gethostname().lower()) or _is_number(name)
        return name == self._name or (self.host in LOOPBACK and name in ("127.0.0.1", "localhost"))

    @property
    def _name(self) -> str:
        host = "127.0.0.1" if self.host in EVERYWHERE else self.host
        return f"[{host}]" if ":" in host else host


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


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
    app = Guard(site.app(), address.token, address.is_named, address.port)
    ready(address)
    quiet: dict[str, Any] = {"log_level": "critical", "access_log": False, "server_header": False}
    # whatever else is installed: the one parser whose strictness the guard was tested with, no sockets beside HTTP
    config = uvicorn.Config(app, http="h11", ws="none", proxy_headers=False, timeout_graceful_shutdown=1, **quiet)
    asyncio.run(uvicorn.Server(config).serve([opened]))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: only then asyncio sends each piece at once, not once the browser has confirmed the one before
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen()  # so that whoever is told the address can connect at once
    except OSError as error:
        opened.close()
        raise UsageError(f"expected an address that is free, got {host} port {port}: {error.strerror}") from error
    return opened
