"""A review page that is really served, and what knocks at its door: requests with headers as an attacker wants them."""

from __future__ import annotations

import dataclasses
import gzip
import http.client
import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evogit.testing import RecordedRun
from tests.cli.conftest import Forked, environment
from tests.clock import PATIENCE

RUN = "toy"


@dataclass(frozen=True)
class Answer:
    """What the server said; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        packed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)


@dataclass(frozen=True)
class Served:
    """An `evogit serve` at work, and the folder of its repository."""

    process: subprocess.Popen[str]
    folder: Path
    url: str
    host: str
    """How the page's own browser calls it."""
    port: int

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    @cached_property
    def cookie(self) -> str:
        """What a browser that opened the address has."""
        return self.enter(self.token).headers["set-cookie"].partition(";")[0]

    def enter(self, token: str, **headers: str | None) -> Answer:
        """Open the address with a token, in a browser that has no cookie yet."""
        return self.ask(f"/?token={token}", cookie=None, sec_fetch_site="none", **headers)

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **changes: str | None) -> Answer:
        """A request as the page itself would send it, but for the named headers (`x_evogit`; None: not sent)."""
        return self.knock(self.request(path, method, body, **changes))

    def decide(self, path: str = "plan", told: Any = None, **changes: str | None) -> Answer:
        """Ask for the plan of a decision, or for the decision itself."""
        asked = {"kind": "promote", "index": 1, "reason": "why"} if told is None else told
        body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        return self.ask(f"/api/runs/{RUN}/{path}", "POST", body, **changes)

    def request(self, path: str, method: str = "GET", body: bytes | None = None, **changes: str | None) -> bytes:
        """The bytes of such a request."""
        headers: dict[str, str | None] = {"host": self.host, "sec-fetch-site": "same-origin"}
        if "cookie" not in changes:
            headers["cookie"] = self.cookie
        if path.startswith("/api"):
            headers["x-evogit"] = self.token
        if body is not None:
            headers |= {"origin": self.origin, "content-type": "application/json"}
            headers["content-length"] = str(len(body))
        headers |= {name.replace("_", "-"): value for name, value in changes.items()}
        told = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *told, "", ""]).encode("latin-1") + (body or b"")

    def knock(self, told: bytes) -> Answer:
        """Send these bytes, and read one answer."""
        with self.connect() as connection:
            connection.sendall(told)
            return read_answer(connection)

    def connect(self) -> socket.socket:
        """A connection of one's own."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def decisions(self) -> list[Any]:
        """What was decided so far, as the journal has it."""
        return list(RecordedRun(self.folder, RUN).history.decisions)

    def as_called(self, host: str) -> Served:
        """The same, called by another name."""
        return dataclasses.replace(self, host=host)


def read_answer(connection: socket.socket) -> Answer:
    """One answer; what follows it stays in the connection only if it comes later."""
    told = http.client.HTTPResponse(connection)
    told.begin()
    body = b"" if told.getheader("content-type", "").startswith("text/event-stream") else told.read()
    return Answer(told.status, {name.lower(): value for name, value in told.getheaders()}, body)


def everything(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@contextmanager
def serving(folder: Path, *options: str, **env: str) -> Iterator[Served]:
    """`evogit serve` for the repository in a folder, until the end."""
    with tempfile.TemporaryFile("w+") as said:
        words = ["serve", "--json", *(options if "--port" in options else ("--port", "0", *options))]
        surroundings = environment(folder.parent, **env)
        process = Forked(words, cwd=folder, env=surroundings, stdout=subprocess.PIPE, stderr=said)
        try:
            assert process.stdout
            told: Mapping[str, Any] = json.loads(process.stdout.readline() or "null") or {}
            if not told:
                said.seek(0)
                raise AssertionError(said.read())
            parts = urlsplit(told["url"])
            yield Served(process, folder, told["url"], parts.netloc, told["port"])
        finally:
            process.terminate()
            process.communicate()
            said.seek(0)
            complaints = said.read()
        assert "Traceback" not in complaints, complaints


def small_run(folder: Path, name: str = RUN) -> Path:
    """A repository with a run of a few candidates."""
    run = RecordedRun(folder, name)
    last = run.add_files({"program.py": b"x = 0\n"}, value=0.5, title="the seed")
    for k in range(4):
        last = run.add_files({"program.py": b"x = %d\n" % (k + 1)}, last, value=0.6 + k / 10, title=f"step {k}")
    run.add_files({"program.py": b"y = 1\n"}, run.history.seed or "", value=0.1, title="aside")
    return folder
