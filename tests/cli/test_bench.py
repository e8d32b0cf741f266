"""`evogit bench` as a person uses it: real runs, a real endpoint, signals."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clock import PATIENCE
from tests.conftest import EVALUATE, PROGRAM, write_task
from tests.openai_server import Behaviour, Request, Server, reply, serve

from .conftest import EVOGIT, Cli, environment

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def task(tmp_path: Path) -> str:
    return str(write_task(tmp_path / "tiny", evaluate=EVALUATE.replace('f"x={x}"', 'f"x={x}", "a word for the next"')))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "evlove"), "no method 'evlove'"),
        (("--method", "=two"), "expected --method NAME=SELECTOR"),
        (("--selector", "nonsense"), "no selector 'nonsense'"),
        (("--selector", "map-elites:nonsense=0..1/2"), "nothing called 'nonsense' describes candidates of this task"),
        (("--dollars", "1"), "no agent asks one"),
        (("--proposals", "1"), "no agent asks one"),
        (("{task}",), "expected tasks of different names, got tiny"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(
    cli: Cli, task: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = cli("bench", task, *(each.format(task=task) for each in arguments))
    assert done.code == 2, done.err
    assert words in done.err
    assert not (tmp_path / "evogit-bench").exists()


@pytest.mark.slow
def test_a_bench_tells_who_is_better_and_what_must_be_done_again(cli: Cli, task: str, tmp_path: Path) -> None:
    command = ("bench", task, "--method", "evolve,best-of-n", "--evaluations", "6", "-n", "1", "-j", "1", "-o", "out")
    first = cli(*command)
    assert first.code == 0, first.err
    assert re.search(r"^evolve +best-of-n +[a-z ]+[+-]\d\.\d{3} \[", first.out, re.MULTILINE)
    assert "2 runs in" in first.err
    assert "1 of 2 runs in" in first.err, "without a terminal too"
    files = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"bench.json", "bench.md", "runs"} == files
    changed = cli(*command, "--json", "--split", "holdout")
    assert "2 runs of another EvoGit, task or settings made again" in changed.err
    assert changed.json["tasks"][0]["split"] == "holdout"
    assert [each["method"] for each in changed.json["tasks"][0]["results"]] == ["evolve", "best-of-n"]


@pytest.mark.slow
def test_a_signal_stops_it_and_leaves_nothing_but_what_is_done(task: str, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    bench = subprocess.Popen(
        [EVOGIT, "bench", task, "--method", "evolve", "--evaluations", "9000", "-n", "2", "-o", "out"],
        cwd=tmp_path,
        env=environment(tmp_path, TMPDIR=str(tmp_path / "scratch")),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list((tmp_path / "scratch").glob("evogit-bench-*/*.git")):
        time.sleep(0.05)
    bench.send_signal(signal.SIGTERM)
    assert bench.communicate(timeout=PATIENCE)[1].strip() == "interrupted"
    assert bench.returncode == 130
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not list((tmp_path / "out").rglob("*.json"))


def edits() -> Callable[[Request], Behaviour]:
    """Gives the program's first number ever another value, at a price of ten cents."""
    numbers = itertools.count(2)

    def edit(request: Request) -> Behaviour:
        found = re.search(r"^A = [\d.]+$", request.prompt, re.MULTILINE)
        assert found
        block = f"<<<<<<< SEARCH program.py\n{found[0]}\n=======\nA = {next(numbers)}.0\n>>>>>>> REPLACE\n"
        return reply(f"TITLE: more\n\n{block}", prompt=600, completion=400, latency=0.01)

    return edit


@pytest.fixture
def endpoint() -> Iterator[Server]:
    with serve([edits()]) as server:
        yield server


@pytest.mark.slow
def test_money_is_agreed_to_once_and_no_call_is_paid_twice(
    cli: Cli, task: str, tmp_path: Path, endpoint: Server
) -> None:
    settings = tmp_path / "settings.toml"
    price = "price = { input = 100, output = 100 }"
    settings.write_text(f'[models.dear]\nbase_url = "{endpoint.url}"\nkey_env = "TEST_KEY"\n{price}\n')
    env = {"EVOGIT_SETTINGS": str(settings), "TEST_KEY": KEY}
    command = ("bench", task, "--method", "sequential,best-of-n", "--agent", "editor@dear")
    command += ("--evaluations", "4", "-n", "1", "-o", "out")

    refused = cli(*command, **env)
    assert (refused.code, endpoint.requests) == (4, []), refused.err
    assert "for 8 evaluations" in refused.err
    assert "$5.00, as none was given" in refused.err

    cut = cli(*command, "--yes", "--dollars", "0.95", **env)
    assert cut.code == 0, cut.err
    assert "a limit is reached with 1 run missing" in cut.err
    asked = len(endpoint.requests)
    assert asked in (4, 5)

    whole = cli(*command, "--yes", "--json", **env)
    assert whole.code == 0, whole.err
    results = {each["method"]: each for each in whole.json["tasks"][0]["results"]}
    paid = sum(each["dollars"] for each in results.values())
    assert paid == pytest.approx(0.1 * len(endpoint.requests))
    assert KEY not in "".join(file.read_text() for file in (tmp_path / "out").rglob("*.json"))
    assert not list((tmp_path / "out" / "runs" / "tiny" / "repositories").iterdir())

    assert all("a word for the next" in each.prompt for each in endpoint.requests), "whichever run came first"

    calls = len(endpoint.requests)
    again = cli(*command, "--json", **env)
    assert again.json == whole.json
    assert "2 runs of 2 done before" in again.err
    assert len(endpoint.requests) == calls


@pytest.mark.slow
def test_the_plain_loop_remembers_nothing_and_a_recording_repeats_the_table(
    cli: Cli, task: str, tmp_path: Path
) -> None:
    def write(number: str) -> Behaviour:
        program = PROGRAM.replace("A = 1.0", f"A = {number}")
        return reply(f"Try.\nTITLE: try {number}\n\n<<<<<<< WRITE program.py\n{program}>>>>>>> END\n")

    (tmp_path / "settings.toml").write_text("")
    words = reply("Let me think about it.")
    replies = iter([write("2.0"), words, write("oops"), write("1.5"), write("2.5"), write("3.0")])
    heading = "The best program so far"
    command = ("bench", task, "--method", "evolve,plain-loop", "--model", "m", "--agents", "1")
    command += ("--evaluations", "60", "-n", "1", "--calls-each", "5", "--json")
    with serve([lambda request: next(replies) if heading in request.prompt else write("1.5")]) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "EVOGIT_SETTINGS": str(tmp_path / "settings.toml")}
        made = cli(*command, "--yes", "-o", "made", "--record", "calls.jsonl", **env)
    assert made.code == 0, made.err
    alone = [each.body["messages"] for each in server.requests if heading in each.prompt]
    assert [len(messages) for messages in alone] == [2] * 5, "every call is a conversation of its own"
    first, after_gain, after_words, after_fault, after_loss = (messages[1]["content"] for messages in alone)
    assert "A = 1.0" in first
    assert "Bring value(x) to 20." in first
    assert all("A = 2.0" in each for each in (after_gain, after_words, after_fault, after_loss))
    assert "attempt" not in after_gain
    assert "no edit block" in after_words
    assert "oops" in after_fault
    assert "1.5" not in after_loss
    assert not any("try 2.0" in each for each in (after_words, after_fault, after_loss)), "no title, no history"

    again = cli(*command, "-o", "again", "--replay", "calls.jsonl", EVOGIT_SETTINGS=env["EVOGIT_SETTINGS"])
    assert again.code == 0, again.err
    [before], [after] = made.json["tasks"], again.json["tasks"]
    for each in (*before["results"], *after["results"]):
        del each["seconds"]
    assert after == before
    assert set(before["at_calls"]) == set(before["at_tokens"]) == {"evolve", "plain-loop"}
    assert before["at_calls"]["plain-loop"]["5"]["holdout"] is not None
    assert len(server.requests) == 10
