"""A local HTTP server of JSON, what the gate and the endpoint have in common, and how to ask one."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

Answer = Callable[[str, Mapping[str, Any]], tuple[int, Mapping[str, Any]]]
"""Of a path and the body of a request: the status and the body of the reply."""
SELF = Path(__file__).parent


def serve(answer: Answer) -> None:
    """Serve on a free port of this machine, which is printed, until the process ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said = answer(self.path, json.loads(body) if body else {})
            reply = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST  # noqa: N815 - the name is the library's

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 100

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing where whoever asked was killed."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    with Server(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


class Served:
    """A server in a process of its own: `with Served("gate.py") as gate: gate.ask("/evaluate", ...)`."""

    def __init__(self, script: str, *arguments: str) -> None:
        self._command = [sys.executable, str(SELF / script), *arguments]

    def __enter__(self) -> Served:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"{self._command[1]} did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()

    def ask(self, path: str, **body: object) -> dict[str, Any]:
        """What is replied to a body, if only a refusal: `{"refused": ...}`."""
        return asked(self.url + path, **body)


def asked(url: str, **body: object) -> dict[str, Any]:
    """What the server at an address replies."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            found: dict[str, Any] = json.load(reply)
    except urllib.error.HTTPError as refusal:
        with refusal:
            found = json.load(refusal)
    return found


def best_so_far(scores: Sequence[float]) -> list[float]:
    """The best of the first, the first two, and so on."""
    best: list[float] = []
    for score in scores:
        best.append(max(score, best[-1]) if best else score)
    return best
