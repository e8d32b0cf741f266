"""What `prepare` makes of the seed, once, is what every candidate starts from."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evogit.config import load_task
from evogit.core import BaseFiles, Evaluation, Files, SandboxError
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import write_task

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

PREPARE = """\
from evogit import Case

def prepare(program):
    script = "mkdir build; cp program.py build/tool; chmod +x build/tool; ln -s tool build/link; " \\
        "touch -d @1000000000 build/old; head -c 8 /dev/urandom | od -An -tx1 > build/when; " \\
        "echo at home > ~/installed"
    assert program.run(["sh", "-c", script], timeout="1m").code == 0

def evaluate(program, split):
    yield Case("seen", score=1, feedback=program.run(["sh", "-c", LOOK]).stdout)
"""
LOOK = """\
LOOK = "cat build/when; stat -c '%n %Y %A' build/old; test -x build/link && readlink build/link; " \\
    "wc -l < build/tool; cat program.py; echo spoilt > build/tool; rm build/old; ls build; cat ~/installed"
"""
NETWORK = """\
from evogit import Case

ASK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:%d', timeout=60).read().decode())"

def prepare(program):
    done = program.run(["python3", "-c", ASK], timeout="60s")
    program.run(["tee", "answer"], stdin=(done.stdout + done.stderr[-200:]).encode())

def evaluate(program, split):
    done = program.run(["sh", "-c", "cat answer; exec python3 -c '%s'" % ASK.replace("'", '"')])
    yield Case("seen", score=1, feedback=done.stdout + done.stderr)
"""
MANY = """\
from evogit import Case

def prepare(program):
    assert program.run(["sh", "-c", "for n in $(seq 3000); do echo $n > some-generated-file-$n; done"]).code == 0

def evaluate(program, split):
    yield Case("seen", score=1, feedback=program.run(["sh", "-c", "ls | wc -l"]).stdout)
"""
PROVIDERS = ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)]


async def judged(folder: Path, provider: str, candidates: list[Files]) -> list[tuple[Evaluation, str]]:
    """Status and feedback of candidates of the task in a folder, one after the other."""
    task = load_task(folder)
    async with Evaluator(task, provider=provider, jobs=1) as evaluator:
        found = [await evaluator.evaluate(f"tree{n}", each, split="train") for n, each in enumerate(candidates)]
    return [(evaluation, "".join(evidence.feedback.values())) for evaluation, evidence in found]


def task_of(folder: Path, evaluate: str, sandbox: str = "") -> Path:
    write_task(folder, evaluate=evaluate)
    file = folder / "task.toml"
    plain = file.read_text()
    for line in ('splits = ["smoke", "train", "holdout"]\n', 'gate.smoke = "score > -1e9"\n'):
        assert line in plain, "else feedback of the stage would come before that of the split"
        plain = plain.replace(line, "")
    file.write_text(f"{plain}{sandbox}\n")
    return folder


SEED = BaseFiles("seed", pack({"program.py": b"first\n"}))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_candidates_start_from_what_was_prepared_once(tmp_path: Path, provider: str, caplog) -> None:
    folder = task_of(tmp_path / "task", PREPARE + LOOK)
    changed = Files(pack({"program.py": b"second\n"}), (), SEED)
    first = await judged(folder, provider, [Files(pack({}), (), SEED), changed])
    again = await judged(folder, provider, [changed])
    seen = [feedback.split("\n") for _, feedback in (*first, *again)]
    assert [lines[1:] for lines in seen] == [
        ["build/old 1000000000 -rw-r--r--", "tool", "1", text, "link", "tool", "when", "at home", ""]
        for text in ("first", "second", "second")
    ]
    assert len({lines[0] for lines in seen}) == 1
    assert caplog.text.count("preparing the seed") == 1


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_was_prepared_may_be_many_files(tmp_path: Path, provider: str) -> None:
    [(evaluation, feedback)] = await judged(
        task_of(tmp_path / "task", MANY), provider, [Files(pack({"program.py": b"second\n"}), (), SEED)]
    )
    assert (evaluation.status, feedback.strip()) == ("ok", "3001")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_file_may_take_the_place_of_a_folder_that_was_prepared(tmp_path: Path, provider: str) -> None:
    folder = task_of(tmp_path / "task", PREPARE + 'LOOK = "cat build; ls"\n')
    [(evaluation, seen)] = await judged(folder, provider, [Files(pack({"build": b"mine\n"}), (), SEED)])
    assert (evaluation.status, seen) == ("ok", "mine\nbuild\nprogram.py\n")


async def test_prepare_that_fails_is_the_evaluators_error(tmp_path: Path) -> None:
    failing = PREPARE.replace("assert program.run", "program.call('program:missing'); assert program.run") + LOOK
    [(evaluation, _)] = await judged(task_of(tmp_path / "task", failing), "bubblewrap", [Files(pack({}), (), SEED)])
    assert evaluation.status == "evaluator-error"
    assert evaluation.reason.startswith("prepare() failed on the seed: raised ")


@pytest.mark.slow
async def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    folder, odd = task_of(tmp_path / "task", PREPARE + LOOK), BaseFiles("odd", pack({"a\udcff.py": b""}))
    with pytest.raises(SandboxError, match=r"the name of a file is not UTF-8: 'a\\udcff.py'; rename it"):
        await judged(folder, "bubblewrap", [Files(pack({}), (), odd)])


async def test_prepare_needs_a_seed(tmp_path: Path) -> None:
    folder = task_of(tmp_path / "task", PREPARE + LOOK)
    [(evaluation, _)] = await judged(folder, "bubblewrap", [Files(pack({"program.py": b""}))])
    assert "prepare() needs the seed's files" in evaluation.reason


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server on this host that says hello."""

    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("setting", "prepared"), [("network = true", "hello"), ("", "refused")])
async def test_only_prepare_can_have_a_network(tmp_path: Path, port: int, setting: str, prepared: str) -> None:
    folder = task_of(tmp_path / "task", NETWORK.replace("%d", str(port)), setting)
    [(evaluation, seen)] = await judged(folder, "bubblewrap", [Files(pack({}), (), SEED)])
    assert evaluation.status == "ok"
    assert prepared in seen
    assert seen.count("hello") == (prepared == "hello")
    assert "Connection refused" in seen
