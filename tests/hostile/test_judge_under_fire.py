"""What a candidate says to break or to hold its evaluator costs its own evaluation, and nothing else."""

from __future__ import annotations

import pytest

from evogit.config import Task
from evogit.core import Evaluation, Evidence
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import TOML, MakeTask

ASKS = """\
import http.client, json
from evogit import Case

def evaluate(program, split):
    program.start(["python3", "server.py"])
    connection = http.client.HTTPConnection("candidate")
    connection.sock = program.connect(8000)
    connection.request("GET", "/")
    yield Case("one", score=len(json.loads(connection.getresponse().read(1_000_000))))
"""
DEEP = """\
import http.server

class Deep(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[" * 100_000)

http.server.HTTPServer(("127.0.0.1", 8000), Deep).serve_forever()
"""


async def judged(task: Task, files: dict[str, str]) -> tuple[Evaluation, Evidence]:
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        archive = pack({name: text.encode() for name, text in files.items()})
        return await evaluator.evaluate("0" * 40, archive, split="holdout")


async def test_brackets_in_brackets_are_the_candidates_failure(tiny: MakeTask) -> None:
    evaluation, evidence = await judged(tiny(evaluate=ASKS), {"server.py": DEEP})
    assert (evaluation.status, "nested too deep" in evaluation.reason) == ("invalid", True)
    assert "json.loads" in evidence.log


FEEDS = """\
from evogit import Case

def evaluate(program, split):
    value = program.call("program:value", returns=set[int]).value
    yield Case("one", feedback=f"said {value}", score=len(value))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("def value(): return [n * (2**61 - 1) for n in range(200_000)]", "invalid"),
        ("def value(): return [[]] * 900_000", "invalid"),
        ("def value(): print('x' * 900_000); return list(range(300_000))", "ok"),
    ],
)
async def test_large_replies_are_taken_or_refused_and_little_of_them_is_kept(
    tiny: MakeTask, source: str, status: str
) -> None:
    evaluation, evidence = await judged(tiny(evaluate=FEEDS), {"program.py": source})
    assert evaluation.status == status, evaluation.reason
    texts = [evidence.log, *evidence.feedback.values()]
    assert len(evidence.stdout) + len(evidence.stderr) + sum(map(len, texts)) < 66_000


HOLDS = """\
from evogit import Case

def evaluate(program, split):
    value = program.call("program:value", returns=list[list[int]]).value
    yield Case("first", score=1)
    yield Case("second", score=len(set(map(tuple, value))))
"""
SIGNS = "def value(): return [[-1 - (n >> place & 1) for place in range(20)] for n in range(25_000)]"
"""Rows of one hash, which an evaluator that makes a set of them compares each with each other."""
LIMITS = ("2 s of CPU", "12 s of wall clock")
"""Where other work leaves an evaluator less than a sixth of a core, the clock on the wall is first."""


@pytest.mark.slow
async def test_an_evaluator_that_is_held_costs_the_candidate_and_nobody_else(tiny: MakeTask) -> None:
    toml = f'{TOML.partition("[sandbox]")[0]}[sandbox]\ntotal = "2s"\ntimeout = "2s"\n'
    async with Evaluator(tiny(evaluate=HOLDS, toml=toml), provider="bubblewrap", jobs=1) as evaluator:
        for source, status in ((SIGNS, "timeout"), ("def value(): return [[1], [2]]", "ok")):
            archive = pack({"program.py": source.encode()})
            evaluation, _ = await evaluator.evaluate("0" * 40, archive, split="holdout")
            assert evaluation.status == status, evaluation.reason
            assert evaluation.counts
            if status == "timeout":
                told = [f"judging what it returned took more than {limit} (sandbox.total)" for limit in LIMITS]
                assert evaluation.reason in told
                assert [*evaluation.cases] == ["first"]


GROWS = """\
from evogit import Case

def evaluate(program, split):
    size = program.call("program:value", returns=int).value
    yield Case("one", score=len(bytes(size)))
"""


async def test_memory_that_a_candidate_makes_its_evaluator_take_is_limited(tiny: MakeTask) -> None:
    async with Evaluator(tiny(evaluate=GROWS), provider="bubblewrap", jobs=1) as evaluator:
        for size, status in ((10**11, "out-of-memory"), (10, "ok"), (5 << 30, "out-of-memory"), (1 << 20, "ok")):
            archive = pack({"program.py": f"def value(): return {size}".encode()})
            evaluation, evidence = await evaluator.evaluate("0" * 40, archive, split="holdout")
            assert evaluation.status == status, evaluation.reason
            assert "MemoryError" in evidence.log or status == "ok"
