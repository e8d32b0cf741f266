"""A client of the candidate's server: one request, one answer, and nothing believed about it."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

LARGEST = 1_000_000
"""Bytes that are read of an answer."""


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The value of the body, None if it is not JSON or not called so."""
        if self.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def html(self) -> str:
        """The text of a page, empty if it is not called one."""
        return (
            self.body.decode(errors="replace") if self.headers.get("content-type", "").startswith("text/html") else ""
        )


class Client:
    """Requests to a port of the candidate."""

    def __init__(self, program, port: int) -> None:
        self._program = program
        self._port = port

    def request(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("board")
        connection.sock = self._program.connect(self._port)
        try:
            connection.request(method, path, body or None, {"Content-Type": kind} if body else {})
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read(LARGEST))
        finally:
            connection.close()

    def get(self, path: str, **query: object) -> Answer:
        """GET with a query."""
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path)

    def send(self, method: str, path: str, value: object) -> Answer:
        """A request with a value as JSON."""
        return self.request(method, path, json.dumps(value).encode())

    def fill(self, path: str, **fields: str) -> Answer:
        """A form, as a browser sends it."""
        return self.request("POST", path, urlencode(fields).encode(), "application/x-www-form-urlencoded")

    def create(self, title: str, **fields: object) -> dict[str, Any]:
        """A new task; an empty one if the server did not make it."""
        return task_of(self.send("POST", "/api/tasks", {"title": title, **fields}))

    def task(self, made: dict[str, Any]) -> dict[str, Any]:
        """The task as the server has it now."""
        return task_of(self.get(path_of(made)))

    def found(self, **query: object) -> list[Any]:
        """The tasks of a list."""
        listed = self.get("/api/tasks", **query).json
        tasks = listed.get("tasks") if isinstance(listed, dict) else None
        return tasks if isinstance(tasks, list) else []


def task_of(answer: Answer) -> dict[str, Any]:
    """The task that an answer holds, empty if it holds none."""
    value = answer.json
    return value if isinstance(value, dict) and type(value.get("id")) is int and 0 < value["id"] < 1 << 53 else {}


def path_of(made: dict[str, Any]) -> str:
    """Where a task is."""
    return f"/api/tasks/{made.get('id', 'none')}"


def same(one: object, other: object) -> bool:
    """Equal as JSON: 1 is neither True nor 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
