"""Evaluations that a lost sandbox cuts off: they begin again, and nothing of them counts twice."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.core import Evaluation, Files, SandboxError, SandboxLostError
from evogit.evaluation.scorer import ATTEMPTS, Scorer
from evogit.sandbox import CallReply, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.session import Session
from tests.conftest import MakeTask

EVALUATE = """\
from evogit import Case

def evaluate(program, split, rng):
    for x in {"smoke": [0], "train": [1, 2, 3]}[split]:
        yield Case(f"x={x}", feedback=f"drew {rng.random()}", score=program.call("program:value", [x]).value)
"""

CATCHES = """\
from evogit import Case, Invalid

def evaluate(program, split):
    for x in {{"smoke": [0], "train": [1, 2, 3]}}[split]:
        try:
            value = program.call("program:value", [x]).value
        except Exception:
            {}
        yield Case(f"x={{x}}", score=value)
"""
HIDES = CATCHES.format("value = -1")
BLAMES = CATCHES.format("raise Invalid('it gave no value')")
FALLS = CATCHES.format("raise ConnectionError('nobody answers') from None")

COUNTS = b"N = []\ndef value(x):\n    N.append(x)\n    return len(N)\n"


class Fragile:
    """Real sessions, of which the first few go away under the program at their third call."""

    name = "fragile"

    def __init__(self, sandbox: Bubblewrap, losses: int) -> None:
        self._sandbox = sandbox
        self._losses = losses

    def image(self) -> str:
        return ""

    def open(self, files: bytes | Files, limits: Limits, preload: Sequence[str] = (), *, seed: int = 0) -> Session:
        session = self._sandbox.open(files, limits, preload, seed=seed)
        if self._losses:
            self._losses -= 1
            losing = Losing(session)
            session.call, session.output = losing.call, losing.output  # type: ignore[method-assign]
        return session

    def close(self) -> None:
        self._sandbox.close()


class Losing:
    """What a session that is lost says to every request."""

    def __init__(self, session: Session) -> None:
        self._call = session.call
        self._output = session.output
        self._left = 3

    def call(self, *arguments: Any, **options: Any) -> CallReply:
        self._left -= 1
        self._check()
        return self._call(*arguments, **options)

    def output(self) -> tuple[bytes, bytes]:
        self._check()
        return self._output()

    def _check(self) -> None:
        if self._left <= 0:
            raise SandboxLostError("the daemon was restarted")


@pytest.fixture
def judged(tiny: MakeTask, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Evaluates the counting program in a sandbox that is lost so many times; gives its frames, too."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def judge(losses: int, evaluate: str = EVALUATE) -> tuple[Evaluation, list[dict[str, Any]]]:
        frames: list[dict[str, Any]] = []
        with closing(Fragile(Bubblewrap(), losses)) as sandbox:
            task, files = tiny(f"lost{losses}", evaluate=evaluate), Files(pack({"program.py": COUNTS}))
            evaluation, _ = Scorer(task, sandbox, lambda header: frames.append(dict(header))).evaluate(
                "train", 0, files, {}
            )
        return evaluation, frames

    return judge


@pytest.mark.parametrize("losses", [1, ATTEMPTS - 1])
def test_a_lost_evaluation_begins_again_as_if_nothing_had_been(judged: Callable[..., Any], losses: int) -> None:
    _, undisturbed = judged(0)
    evaluation, frames = judged(losses)
    assert (evaluation.status, evaluation.metrics, evaluation.stages) == ("ok", {"score": 3}, {"smoke": {"score": 1}})
    again = [number for number, frame in enumerate(frames) if "again" in frame]
    assert [frames[number]["again"] for number in again] == ["the daemon was restarted"] * losses
    assert frames[again[-1] + 1 :] == undisturbed, "all cases, from a new life of the program and the same generator"


@pytest.mark.parametrize("evaluate", [HIDES, BLAMES, FALLS], ids=["hides", "blames", "falls"])
def test_an_evaluator_cannot_take_a_loss_for_something_else(judged: Callable[..., Any], evaluate: str) -> None:
    evaluation, frames = judged(2, evaluate)
    assert (evaluation.status, evaluation.metrics) == ("ok", {"score": 3})
    assert sum("again" in frame for frame in frames) == 2


@pytest.mark.slow
def test_a_sandbox_that_is_lost_again_and_again_is_an_error(judged: Callable[..., Any]) -> None:
    with pytest.raises(SandboxError, match=f"lost {ATTEMPTS} times in a row .*: the daemon was restarted") as caught:
        judged(ATTEMPTS)
    assert not isinstance(caught.value, SandboxLostError)


@pytest.mark.parametrize(
    ("beside", "status"),
    [({"valid": False}, "invalid"), ({"error": "no x"}, "invalid"), ({"error": 0.5, "valid": True}, "ok")],
)
def test_a_failure_beside_the_metrics_of_a_case_is_a_failure(
    judged: Callable[..., Any], beside: dict[str, object], status: str
) -> None:
    told = f"case = Case('all', score=1.0); case.beside = {beside!r}; yield case"
    evaluation, _ = judged(0, f"from evogit import Case\n\ndef evaluate(program, split):\n    {told}\n")
    assert evaluation.status == status


def test_a_name_beside_the_metrics_is_whole_or_left_out(judged: Callable[..., Any]) -> None:
    beside = f"case = Case('all', score=1.0); case.beside = {{'free text': 2, {'x' * 61!r}: 3}}; yield case"
    _, frames = judged(0, f"from evogit import Case\n\ndef evaluate(program, split):\n    {beside}\n")
    assert frames[-1]["metrics"] == {"free text": 2.0, "score": 1.0}


ECHOES = """\
from evogit import Case

CASES = {"smoke": [0], "train": [1, 2, 3], "holdout": [4]}

def evaluate(program, split):
    for x in CASES[split]:
        value = program.call("program:value", [x]).value
        yield Case(f"x={x}", score=1.0).answer(value)
"""
HOARDS = b"SEEN = []\ndef value(x):\n    SEEN.append(f'input {x}')\n    print('saw', SEEN)\n    return SEEN\n"
"""A candidate that copies what it is given into its answers and its output."""


@pytest.mark.parametrize(
    ("public", "split", "shown"),
    [
        (False, "train", {}),
        (True, "train", {1: "0 1", 2: "0 1 2", 3: "0 1 2 3"}),
        (True, "holdout", {}),
        (("x=0", "x=1"), "train", {1: "0 1"}),
        (("x=0", "x=1", "x=3"), "train", {1: "0 1"}),
        (("x=1", "x=2", "x=3"), "train", {}),
    ],
)
def test_what_a_candidate_says_is_told_until_it_was_given_a_case_that_is_not_public(
    tiny: MakeTask, monkeypatch: pytest.MonkeyPatch, public: bool | tuple[str, ...], split: str, shown: dict[int, str]
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    frames: list[dict[str, Any]] = []
    task = replace(tiny("echo", evaluate=ECHOES), public=public, splits=("smoke", "train", "holdout"))
    with closing(Bubblewrap()) as sandbox:
        scorer = Scorer(task, sandbox, lambda header: frames.append(dict(header)))
        evaluation, _ = scorer.evaluate(split, 0, Files(pack({"program.py": HOARDS})), {})
    assert evaluation.ok, evaluation.reason
    told = {frame["case"]: frame["feedback"] for frame in frames if "case" in frame}
    for case, text in told.items():
        inputs = shown.get(int(case[-1]), "").split()
        answer = f"answered: {[f'input {each}' for each in inputs]}"
        assert (answer in text and "printed: " in text) if inputs and ":" not in case else not text
        assert set(re.findall(r"input (\d)", text)) <= set(inputs)
