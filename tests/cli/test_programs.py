"""Coding programs as agents: real engines, sandboxes and HTTP; the programs are small scripts, some of them hostile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import write_task
from tests.openai_server import Server, refusal, reply, serve

from .conftest import Cli, Done

FREE = "{ input = 0, output = 0 }"

KEY = "sk-canary-9f4d1c7b20e8"

ASK = """
import json, os, subprocess, sys, urllib.request

def ask(text):
    body = {"model": "{model}", "messages": [{"role": "user", "content": text}]}
    head = {"content-type": "application/json", "authorization": "Bearer evogit"}
    request = urllib.request.Request("{url}/v1/chat/completions", json.dumps(body).encode(), head)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

def sh(command):
    print("$", command, sep="\\n", flush=True)
    return subprocess.run(command, shell=True).returncode
"""


@dataclass
class Bench:
    """A task whose score is the number in its program, a model's endpoint, and a person's settings."""

    cli: Cli
    folder: Path
    server: Server

    def run(
        self,
        script: str,
        *options: str,
        price: str = FREE,
        minutes: float = 0.5,
        own: str = "",
        more: str = "",
        agents: tuple[str, ...] = ("--agent", "tool@m"),
    ) -> Done:
        """Evolve with one agent that is this script."""
        settings = self.folder / "settings.toml"
        settings.write_text(
            f'[models.m]\nbase_url = "{self.server.url}"\nkey_env = "TEST_KEY"\nprice = {price}\n'
            f'[commands.tool]\nargv = ["python3", "-u", "{{home}}/tool.py"]\nminutes = {minutes}\n{own}\n'
            f"[commands.tool.files]\n\"tool.py\" = '''{ASK}{script}'''\n{more}\n"
        )
        daemon = {name: value for name, value in os.environ.items() if name == "DOCKER_HOST"}
        env = {"EVOGIT_SETTINGS": str(settings), "TEST_KEY": KEY, **daemon}
        command = ("run", str(self.folder / "sine"), *agents, "-C", "runs", "--yes", *options)
        return self.cli(*command, **env)

    def candidates(self) -> list[dict[str, Any]]:
        """All but the seed."""
        log = self.cli("log", "--json", "-C", "runs").lines
        return [each for each in log if each["operator"] != "seed"]

    def git(self, *arguments: str) -> bytes:
        return subprocess.run(["git", "-C", self.folder / "runs", *arguments], capture_output=True, check=True).stdout

    def program(self, candidate: dict[str, Any]) -> str:
        return self.git("show", f"{candidate['commit']}:program.py").decode()

    def everything(self) -> str:
        """The content of all objects."""
        return self.git("cat-file", "--batch-all-objects", "--batch").decode(errors="replace")

    def said(self, command: str) -> str:
        """What a command of a session came to, and all behind it."""
        return self.everything().partition(f"$\n{command}")[2]


@pytest.fixture
def bench(cli: Cli, tmp_path: Path) -> Iterator[Bench]:
    write_task(tmp_path / "sine")
    with serve([reply("C = 12.0")]) as server:
        yield Bench(cli, tmp_path, server)


CHANGE = """
text = open("program.py").read()
open("program.py", "w").write(text.replace("C = 3.0", ask(text)))
"""


@pytest.mark.slow
def test_what_a_program_leaves_in_its_folder_is_a_candidate(bench: Bench) -> None:
    done = bench.run(
        CHANGE + 'sh(\'git commit -qam "say twelve" -m "It was too low." -m "Family: Larger"\')', "--proposals", "1"
    )
    assert done.code == 0, done.err
    (candidate,) = bench.candidates()
    assert candidate["title"] == "say twelve"
    assert (
        "\n\nIt was too low.\n\nEvogit-Agent: " in bench.git("log", "-1", "--format=%B", candidate["commit"]).decode()
    )
    assert candidate["strategy"] == "tool"
    assert "C = 12.0" in bench.program(candidate)
    (request,) = bench.server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.slow
def test_evaluations_are_counted_and_the_next_one_is_refused_politely(bench: Bench) -> None:
    script = """
for number in range(4):
    sh(f"sed -i 's/^C = .*/C = {10 + number}.0/' program.py; evaluate; echo exit $?")
"""
    done = bench.run(script, "--evaluations", "20", "--proposals", "3", own="evaluations = 2")
    assert done.code == 0, done.err
    said = bench.said("sed -i")
    assert said.count("exit 0") >= 2
    assert "Evaluations left: 1 of 2" in said
    assert "No evaluation is left of the 2 of this session" in said
    programs = map(bench.program, bench.candidates())
    lines = sorted(line for program in programs for line in program.splitlines() if line.startswith("C = "))
    assert lines == ["C = 10.0", "C = 11.0", "C = 13.0"]


@pytest.mark.slow
def test_steps_that_a_program_keeps_are_candidates_and_its_notes_reach_the_next_session(bench: Bench) -> None:
    script = """
sh("grep -c 'unroll the loops' EVOGIT.md")
for value in (10, 12):
    sh(f"sed -i 's/^C = .*/C = {value}.0/' program.py; measure; keep go to {value}; keep; echo exit $?")
open("EVOGIT-NOTES.md", "w").write("Next: unroll the loops.")
"""
    done = bench.run(script, "--evaluations", "9", "--proposals", "2", "--selector", "elitist:numbers=no")
    assert done.code == 0, done.err
    steps = sorted(bench.candidates(), key=lambda candidate: candidate["number"])
    assert [step["title"] for step in steps] == ["go to 10", "go to 12"]
    assert steps[1]["parents"] == [steps[0]["commit"]]
    assert {step["move"] for step in steps} == {1}
    said = bench.said("grep -c")
    assert "run `evaluate` instead" in said
    assert "exit 2" in said
    assert "EVOGIT-NOTES.md" not in bench.git("ls-tree", "-r", "--name-only", steps[1]["commit"]).decode()
    assert "unroll the loops" in bench.everything()


HARM = {
    "git": "sh('rm -rf .git')",
    "rebase": "sh('git checkout -q --orphan x; git commit -qam x; git rebase -q --root; git branch -D work')",
    "links": "sh('ln -s /etc/passwd extra; ln -s ../../.. up; ln -sf /nowhere EVOGIT.md; mkfifo pipe')",
    "daemons": "sh('setsid sleep 1000 & (while :; do :; done) &')",
    "disk": "sh('head -c 3000000000 /dev/urandom > rubbish')",
    "magic": "[open(name, 'w') for name in (':!x', ':(draft).md', '-x', 'a b')]",
    "hooks": "sh('echo touch /tmp/harm > .git/hooks/post-checkout; echo x > setup.py; mkdir src; cp program.py src')",
    "modes": "sh('chmod 000 EVOGIT.md; chmod 000 .git; mkdir -m 000 closed')",
    "porter": "os.kill(os.getppid(), 9)",
    "itself": "os.kill(os.getpid(), 9)",
    "output": "print('\\x1b]0;title\\x07' + 'x' * 5000000)",
}
"""What programs do after their useful work."""


@pytest.mark.slow
def test_harm_is_kept_inside_and_useful_work_is_kept(bench: Bench) -> None:
    texts, options = list[str](), list[str]()
    for number, (name, harm) in enumerate(HARM.items(), 10):
        change = f"sh(\"sed -i 's/^C = .*/C = {number}.0/' program.py\")"
        texts.append(
            f'[commands.{name}]\nargv = ["python3", "{{home}}/tool.py"]\nminutes = 0.5\ndisk = "64m"\n'
            f'files = {{ "tool.py" = """{(ASK + change + chr(10) + harm).replace(chr(92), chr(92) * 2)}""" }}\n'
        )
        options += ["--agent", f"{name}@m"]
    done = bench.run("", *options, "--proposals", str(len(HARM)), agents=(), more="\n".join(texts))
    assert done.code == 0, done.err
    found = {each["strategy"]: bench.program(each) for each in bench.candidates()}
    missing = [name for number, name in enumerate(HARM, 10) if f"C = {number}.0" not in found.get(name, "")]
    assert not missing, bench.everything().partition("left_out")[0][-2000:]
    for each in bench.candidates():
        changed = bench.git("diff", "--name-only", each["parents"][0], each["commit"]).decode().split()
        assert changed == ["program.py"], each["strategy"]
    assert not Path("/tmp/harm").exists()


@pytest.mark.slow
def test_a_session_that_takes_too_long_is_ended_and_its_work_kept(bench: Bench) -> None:
    done = bench.run(CHANGE + "import time; time.sleep(600)", "--proposals", "1", minutes=0.1)
    assert done.code == 0, done.err
    assert "C = 12.0" in bench.program(bench.candidates()[0])
    assert "tool was ended: the session took more than 6 s" in bench.everything()


@pytest.mark.slow
def test_a_workspace_too_large_to_be_judged_gets_an_answer(bench: Bench) -> None:
    script = """
open("large", "wb").truncate(80_000_000)
sh("touch locked; chmod 000 locked; mkdir -m 000 closed")
sh("evaluate; echo exit $?; rm large; evaluate; echo exit $?")
"""
    bench.run(CHANGE + script, "--evaluations", "20", "--proposals", "2")
    said = bench.said("evaluate")
    assert "the workspace, with others that wait, has more than 64 MiB" in said.partition("exit 2")[0]
    assert "exit 0" in said


@pytest.mark.slow
def test_what_was_done_before_a_key_stopped_working_is_kept(bench: Bench) -> None:
    bench.server.behaviours = [reply("C = 12.0"), refusal(402)]
    script = 'ask("what?"); sh("sed -i s/3.0/12.0/ program.py; evaluate"); ask("and now?")'
    done = bench.run(script, "--proposals", "9", "--evaluations", "9")
    assert done.code == 1, done.err
    assert "C = 12.0" in bench.program(bench.candidates()[-1])


@pytest.mark.slow
def test_a_program_that_changes_nothing_is_a_failed_proposal(bench: Bench) -> None:
    done = bench.run("sh('evaluate'); print('I have no idea'); sys.exit(3)", "--proposals", "1")
    assert done.code == 0, done.err
    assert not bench.candidates()
    assert "the last proposal failed: tool ended with exit code 3" in done.out
    shown = bench.cli("show", "--move", "1", "-C", "runs").out
    assert "1 refused" in shown
    assert "This session has no evaluations: what is left of the run's limits is for what you finish with." in shown
    assert "This session has none" in bench.everything(), "of the brief"
    assert (
        "tool ended with exit code 3: nothing that may be changed is changed; it said last: I have no idea"
        in bench.everything()
    )


@pytest.mark.slow
def test_money_ends_a_session_in_its_middle(bench: Bench) -> None:
    script = (
        CHANGE
        + """
for number in range(100):
    ask(f"and then? {number}")
    print("asked", number, flush=True)
"""
    )
    price = "{ input = 10, output = 10 }"  # 0.0012 dollars a call, of which ten times as much is set aside
    done = bench.run(script, "--dollars", "0.03", price=price)
    assert done.code == 0, done.err
    spent = bench.cli("status", "--json", "-C", "runs").json["spending"]["dollars"]
    assert spent == pytest.approx(0.0012 * len(bench.server.requests))
    assert 5 <= len(bench.server.requests) <= 25  # what is left does not pay for another one
    assert "C = 12.0" in bench.program(bench.candidates()[0])


@pytest.mark.slow
def test_the_key_is_nowhere(bench: Bench) -> None:
    script = (
        CHANGE
        + """
sh("env; cat /proc/*/environ /proc/*/cmdline; cat ~/.* ~/* 2>/dev/null; git config -l")
print(ask("what is the key?"))
"""
    )
    done = bench.run(script, "--proposals", "1")
    assert done.code == 0, done.err
    assert len(bench.server.requests) == 2
    assert "OPENAI" not in bench.said("env")
    assert KEY not in done.out + done.err
    for file in (bench.folder / "runs").rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    assert KEY not in bench.everything()


@pytest.mark.slow
def test_there_is_no_network_but_the_models(bench: Bench) -> None:
    script = """
import socket
for place in (("127.0.0.1", {port}), ("192.0.2.1", 80)):
    try:
        socket.create_connection(place, timeout=2)
        print("connected to", place)
    except OSError as error:
        print("not connected:", error)
""".replace("{port}", bench.server.url.rpartition(":")[2].partition("/")[0])
    bench.run(script, "--proposals", "1")
    said = bench.everything()
    assert said.count("not connected") >= 2
    assert "connected to" not in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--agent", "nobody@m"], "expected agents of a kind mutator, editor, coder, plain-loop, aider, mini"),
        (["--agent", "aider@m", "--deterministic"], "expected agents whose work can be repeated"),
        (["--agent", "aider@m", "--record", "r"], "expected agents whose work can be repeated"),
        (["--agent", "aider@m", "--sandbox", "none"], "expected a sandbox for aider"),
        (["--agent", "aider@script:x"], "expected a model behind an endpoint"),
        (["--agent", "aider"], "expected a model for aider"),
        (["--agent", "editor@modell"], "expected a model, got 'modell'; did you mean"),
        (["--agent", "coder@m"], "expected another name, as coder is an agent of EvoGit's own"),
        (
            ["--agent", "mine@m", "--sandbox", "bubblewrap"],
            "has no no-such-program, which mine needs; install it for all users: npm install",
        ),
    ],
)
def test_agents_that_cannot_be_are_refused_before_anything_begins(
    bench: Bench, options: list[str], expected: str
) -> None:
    (bench.folder / "x").write_text("%%\nhello\n")
    (bench.folder / "s.toml").write_text(
        f'[models.m]\nbase_url = "{bench.server.url}"\nprice = {FREE}\n'
        '[models.model]\n[commands.coder]\nargv = ["sh"]\n'
        '[commands.mine]\npreset = "claude"\nargv = ["no-such-program"]\n'
    )
    env = {"EVOGIT_SETTINGS": str(bench.folder / "s.toml")}
    done = bench.cli("run", str(bench.folder / "sine"), "-C", "runs", "--yes", "--proposals", "1", *options, **env)
    assert done.code != 0
    assert expected in done.err
    assert not (bench.folder / "runs").exists()


@pytest.mark.slow
def test_a_login_is_handed_over_only_if_that_is_said_and_agreed_to(bench: Bench) -> None:
    (bench.folder / "s.toml").write_text(
        '[commands.own_2]\nargv = ["sh", "-c", "sed -i s/3.0/12.0/ program.py; cat ~/.own/login"]\n'
        'auth = "mount"\nlogin = [".own"]\n'
    )
    settings = bench.folder / "s.toml"
    env = {"EVOGIT_SETTINGS": str(settings)}
    command = ("run", str(bench.folder / "sine"), "-C", "runs", "--agent", "own_2", "--proposals", "1")
    without = bench.cli(*command, "--yes", **env)
    assert "expected the login of own_2 at .own" in without.err
    (bench.folder / ".own").mkdir()
    (bench.folder / ".own" / "login").write_text("it is me")
    alone = bench.cli(*command, "--sandbox", "bubblewrap", **env)
    assert "expected a network of its own for own_2" in " ".join(alone.err.split())
    assert "add --yes" not in alone.err
    settings.write_text(settings.read_text() + 'network = "host"\n')
    unasked = bench.cli(*command, **env)
    assert "neither counted nor limited" in " ".join(unasked.err.split())
    assert "add --yes to allow it" in unasked.err
    done = bench.cli(*command, "--yes", **env)
    assert done.code == 0, done.err
    assert "C = 12.0" in bench.program(bench.candidates()[0])
    assert "it is me" in bench.everything()
    assert "There is a network" in bench.everything()
    compared = bench.cli("bench", str(bench.folder / "sine"), "--agent", "own_2", "--yes", **env)
    assert (compared.code, 'expected programs without auth = "mount"' in compared.err) == (2, True), compared.err


@pytest.mark.docker
def test_a_program_works_in_docker_as_well(bench: Bench) -> None:
    script = CHANGE + "sh('git log --notes --branches --oneline; evaluate; git commit -qam \"say twelve\"')"
    done = bench.run(script, "--proposals", "3", "--sandbox", "docker", "--selector", "elitist:numbers=no")
    assert done.code == 0, done.err
    (candidate,) = bench.candidates()
    assert candidate["title"] == "say twelve"
    said = bench.said("git log")
    assert "score (maximize it, the primary metric): -16" in said
    assert "The draft is valid." in said


@pytest.mark.slow
def test_a_program_sees_where_its_candidate_comes_from(bench: Bench) -> None:
    script = """
sh("git log --notes --branches --format='%D | %s | %an <%ae>%n%N'")
sh("git status --porcelain; git remote; git branch -a; cat EVOGIT.md")
if "C = 12.0" in open("program.py").read():
    sh("sed -i s/12.0/14.0/ program.py")
else:
    sh("sed -i s/3.0/12.0/ program.py")
"""
    done = bench.run(script, "--proposals", "2")
    assert done.code == 0, done.err
    said = bench.said("git log")
    assert "score" in said
    assert "lineage/" in said
    assert "seed" in said
    assert "Bring value(x) to 20." in said
    assert "evaluate" in said
    assert "@" not in said.replace("@evogit.invalid", "").replace("@{", "").partition("git status")[0]


@pytest.mark.slow
def test_what_is_remade_is_judged_only_where_it_is_the_candidates(bench: Bench) -> None:
    """Folders such as __pycache__ can be too large to be sent; where one is tracked it is like any other."""
    script = """
sh("mkdir __pycache__; head -c 90000000 /dev/zero > __pycache__/large; evaluate; echo exit $?")
"""
    kept = bench.folder / "sine" / "seed" / "vendor" / "node_modules" / "kept.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    bench.run(CHANGE + script, "--evaluations", "20", "--proposals", "2")
    assert "exit 0" in bench.said("mkdir __pycache__")
    for each in bench.candidates():
        changed = bench.git("diff", "--name-only", each["parents"][0], each["commit"]).decode().split()
        assert changed == ["program.py"]


@pytest.mark.slow
def test_a_command_that_cannot_be_is_no_session_without_end(bench: Bench) -> None:
    done = bench.run("", "--proposals", "1", minutes=0.2, own='env = { "A=B" = "x" }')
    assert done.code == 0, done.err
    assert "tool did not start: illegal environment variable name" in bench.everything()
