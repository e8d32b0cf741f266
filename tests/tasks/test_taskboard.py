"""The judge of the board asks a running server, and one that keeps nothing passes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evogit.adopt import find_task

from .conftest import Judged

TASK = "taskboard"
FINISHED = Path(__file__).parent / "taskboard"

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER = """
import json, sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments): pass
def application(environ, start_response):
    sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    status, kind, text = answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], sent)
    start_response(status, [("Content-Type", kind), ("Location", "/"), ("Allow", "GET")])
    return [text]
"""
SERVE = "\nmake_server('127.0.0.1', int(sys.argv[1]), application, handler_class=Quiet).serve_forever()\n"
ECHO = """
def answer(method, path, sent):
    try: task = json.loads(sent)
    except ValueError: task = {}
    task = {"id": 1, "status": "todo", "priority": 3, "due": None, **(task if isinstance(task, dict) else {})}
    return "201 Created", "application/json", json.dumps(task | {"error": "x", "tasks": [task]}).encode()
"""


def server(answers: str) -> dict[str, bytes]:
    return {"app.py": (SERVER + answers + SERVE).encode()}


def constant(status: str, kind: str, text: bytes) -> dict[str, bytes]:
    return server(f"def answer(method, path, sent): return {status!r}, {kind!r}, {text!r}")


def slow(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.slow
async def test_the_finished_board_does_all_that_was_asked_for_and_the_seed_little(judged: Judged) -> None:
    files = {path: (FINISHED / path).read_bytes() for path in ("app.py", "store.py", "pages.py")}
    train, holdout = await judged(files=files), await judged(files=files, split="holdout")
    assert (len(train.cases), len(holdout.cases)) == (15, 40)
    assert train.metrics == holdout.metrics == {"passed": 1.0, "lint": 0.0}


NOT_THERE = constant("404 Not Found", "application/json", b'{"error": "no"}')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "split"),
    [
        (NOT_THERE, "train"),
        slow(NOT_THERE, "holdout"),
        slow(constant("200 OK", "application/json", b'{"id": 1, "tasks": []}'), "holdout"),
        slow(constant("400 Bad Request", "text/html", b"<form>"), "train"),
        slow(constant("200 OK", "application/json", b"[" * 100_000), "train"),
        slow(constant("200 OK", "application/json", b"9" * 5000), "train"),
        slow(constant("201 \xe9", "application/json", b'{"id": NaN, "title": Infinity}'), "train"),
        slow(constant("200 OK", "text/html", b'{"passed": 1}'), "train"),
        slow(server(ECHO), "train"),
        slow(server(ECHO), "holdout"),
    ],
)
async def test_a_server_that_keeps_nothing_passes_nothing(judged: Judged, files: dict[str, bytes], split: str) -> None:
    evaluation = await judged(files=files, split=split)
    assert (evaluation.status, evaluation.metrics["passed"]) == ("ok", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("app", "status"),
    [
        (SERVER + "def answer(*_):\n    import os; os._exit(0)" + SERVE, "crashed"),
        (SERVER + "def answer(*_):\n    import time; time.sleep(99)" + SERVE, "timeout"),
    ],
)
async def test_a_server_that_ends_or_hangs_fails(judged: Judged, app: str, status: str) -> None:
    evaluation = await judged(files={"app.py": app.encode()})
    assert (evaluation.status, evaluation.metrics) == (status, {})


async def test_what_a_reader_complains_about_is_counted_and_told(judged: Judged) -> None:
    seed, _ = find_task(TASK).seed_files()["app.py"]
    sloppy = (
        seed
        + b"\nimport os\ndef later(cursor, names=[]):\n    try: cursor.execute('DROP ' + names[0])\n    except: pass\n"
    )
    evaluation = await judged(files={"app.py": sloppy, "odd\nname.py": b"import os\n"}, split="lite")
    assert evaluation.metrics["lint"] == 4  # a name of two lines is not found again; nobody can import it either
