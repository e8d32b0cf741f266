"""Secrets stay home: credentials of a repository reach no model, journal or server unless they are shared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from evogit.config import load_repository_task
from evogit.evaluation.seed_files import check_tree
from evogit.repository import Repository
from evogit.testing import RecordedRun
from tests.openai_server import Server, reply, serve
from tests.own import Own
from tests.plain_git import git

from .conftest import Cli, Done, Story

pytestmark = pytest.mark.slow

MIXED = "q7Zk2mWv9XtB4nLr8PsD"


def pem(canary: str) -> str:
    return f"-----BEGIN PRIVATE KEY-----\n{canary}{MIXED}\n{canary}{MIXED}==\n-----END PRIVATE KEY-----\n"


SECRETS = {
    ".env": "export DB_PASSWORD='c4nary-of-the-dotenv'\nMODE=c4nary-of-the-mode\n",
    "deploy/.env.production": "TOKEN=c4nary-of-production\n",
    "id_rsa": "c4nary-of-the-id-rsa-file\n",
    "config/.npmrc": "//registry.example.org/:_authToken=c4nary-of-the-npmrc\n",
    ".aws/credentials": f"[default]\naws_secret_access_key = c4naryOfTheCloud{MIXED}ABCD\n",
    "credentials.json": '{"client": "c4nary-of-the-client"}\n',
    "tests/fixtures/server.pem": pem("c4naryOfThePem"),
    "src/settings.py": f'TOKEN = "ghp_c4naryOfTheToken{MIXED}"\n',
    "notes/deploy.txt": f"the key is\n{pem('c4naryOfTheNotes')}",
    "notes/wide.txt": "",
}
"""Path -> content, each with a canary of its own."""

CANARY = "c4nary"

TOML = """\
name = "own"
goal = "Bring VALUE up."
editable = ["src/**"]
{more}
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = ".evogit/evaluate.py"
[sandbox]
timeout = "60s"
"""

EVALUATE = """\
from evogit import Case, Invalid

PATHS = {paths!r}

def evaluate(program, split):
    read = program.run(["cat", *PATHS])
    if read.code != 0:
        raise Invalid(f"the fixtures are not here: {{read.stderr}}")
    print(read.stdout)
    value = float(program.call("src.main:value", returns=int).value)
    yield Case(split, f"it printed {{read.stdout}}", score=value)
"""

MAIN = 'import sys\n\nVALUE = 1\n\ndef value():\n    print(open(".env").read(), file=sys.stderr)\n    return VALUE\n'

WRITE = "TITLE: more\n<<<<<<< WRITE src/main.py\n" + MAIN.replace("VALUE = 1", "VALUE = {}") + ">>>>>>> END\n"

LOOKS = (
    *(f"<<<<<<< READ {path}\n>>>>>>> END\n" for path in SECRETS),
    "<<<<<<< LIST\n",
    f"<<<<<<< GREP {CANARY[1:]}\n",
    "<<<<<<< GREP PRIVATE KEY\n",
    "<<<<<<< RUN cat .env id_rsa */*.p* */*/*.pem; cat .[a-z]* notes/* .aws/*; env; git log -p\n",
)

COMMAND = TOML.replace(
    'kind = "python"\nfile = ".evogit/evaluate.py"', 'kind = "command"\ncommand = "python3 src/main.py"'
).replace("[sandbox]", 'read.score = "json"\n[sandbox]')

PRINTS = """\
import json
VALUE = 1
secret = open("PATH").read().split("=")[1].strip()
print("it printed", secret)
print(json.dumps({"score": VALUE, secret: 1.0, "it printed " + secret: 2.0, "plain_" + "name": 3.0}))
"""

TOOL = """
import json, os, subprocess, urllib.request

def ask(text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    head = {"content-type": "application/json", "authorization": "Bearer evogit"}
    request = urllib.request.Request("URL/v1/chat/completions", json.dumps(body).encode(), head)
    urllib.request.urlopen(request).read()

def sh(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout

ask(sh("ls -laR . | head -c 20000; git log -p --all | head -c 100000; grep -r . . | head -c 200000; cat .env id_rsa"))
text = open("src/main.py").read()
open("src/main.py", "w").write(text.replace("VALUE = 1", "VALUE = 7"))
ask(sh("evaluate"))
"""


@dataclass
class Project:
    """A user's own repository with secrets in its commit, and a model that records what it is sent."""

    cli: Cli
    folder: Path
    server: Server

    def save(self, files: Mapping[str, str], title: str = "start") -> str:
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-16" if path == "notes/wide.txt" else "utf-8")
        git(self.folder, "add", "-fA")
        git(self.folder, "-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-qm", title)
        return git(self.folder, "rev-parse", "HEAD").strip()

    def run(self, *options: str, price: str = "{ input = 0, output = 0 }") -> Done:
        settings = self.folder.parent / "settings.toml"
        tool = TOOL.replace("URL", "{url}").replace('"m"', '"{model}"', 1)
        settings.write_text(
            f'[models.m]\nbase_url = "{self.server.url}"\nkey_env = "TEST_KEY"\nprice = {price}\n'
            '[commands.tool]\nargv = ["python3", "-u", "{home}/tool.py"]\nminutes = 0.5\n'
            f"[commands.tool.files]\n\"tool.py\" = '''{tool}'''\n"
        )
        daemon = {name: value for name, value in os.environ.items() if name == "DOCKER_HOST"}
        env = {"EVOGIT_SETTINGS": str(settings), "TEST_KEY": "an-endpoint-key", **daemon}
        return self.cli("run", *options, cwd=self.folder, **env)

    @property
    def sent(self) -> str:
        return "\n".join(f"{request.path} {request.headers} {request.text}" for request in self.server.requests)

    def objects(self) -> set[str]:
        """All that the repository has, a line each."""
        return set(git(self.folder, "cat-file", "--batch-all-objects", "--batch-check").split("\n"))

    def kept(self, before: set[str]) -> str:
        """The content of all that it did not have before."""
        made = sorted(map(str.split, self.objects() - before))
        return "".join(git(self.folder, "cat-file", kind, name) for name, kind, _ in made if kind != "tree")

    def candidates(self) -> list[str]:
        """The programs of all candidates but the seed."""
        listed = [each for each in self.cli("log", "--json", cwd=self.folder).lines if each["operator"] != "seed"]
        return [git(self.folder, "show", f"{each['commit']}:src/main.py") for each in listed]


@pytest.fixture
def project(cli: Cli, tmp_path: Path) -> Iterator[Project]:
    with serve([]) as server:
        made = Project(cli, tmp_path / "own", server)
        made.folder.mkdir()
        git(made.folder, "init", "-q", "-b", "main")
        secrets = {**SECRETS, "notes/wide.txt": pem("c4naryOfTheWide")}
        made.save(
            {
                **secrets,
                "evogit.toml": TOML.format(more=""),
                ".evogit/evaluate.py": EVALUATE.format(paths=[path for path in SECRETS if "wide" not in path]),
                "src/__init__.py": "",
                "src/main.py": MAIN,
                ".env.example": "DB_PASSWORD=change-me-please\n",
            }
        )
        yield made


def looks(number: int) -> list[str]:
    """Replies that ask for everything, evaluate, and go on once they have seen the feedback."""
    return ["".join(LOOKS) + WRITE.format(number) + "<<<<<<< EVALUATE\n", "<<<<<<< FINISH more\n"]


REPLIES = {
    "editor@m": ["".join(LOOKS[: len(SECRETS)]), WRITE.format(2), "".join(LOOKS[:1]), WRITE.format(3)],
    "coder@m": [*looks(2), *looks(3)],
    "tool@m": ["done"],
}


@pytest.mark.parametrize("agent", REPLIES)
def test_no_byte_of_a_secret_reaches_a_model(project: Project, agent: str) -> None:
    project.server.behaviours[:] = [reply(text) for text in REPLIES[agent]]
    done = project.run("--agent", agent, "--yes", "--proposals", "2")
    assert done.code == 0, done.err
    assert project.candidates(), "nothing was evaluated in the sandbox"
    assert CANARY not in project.sent
    assert "src/main.py" in project.sent
    assert agent == "editor@m" or "it printed [redacted]" in project.sent, "no feedback was shown"
    assert CANARY not in done.out + done.err


def test_nothing_that_a_run_keeps_has_a_secret_that_was_printed(project: Project) -> None:
    before = project.objects()
    project.server.behaviours[:] = [reply(text) for text in REPLIES["coder@m"]]
    assert project.run("--agent", "coder@m", "--yes", "--proposals", "1").code == 0
    content = project.kept(before)
    assert "it printed" in content
    assert CANARY not in content


def test_secret_files_are_named_before_anything_is_sent(project: Project) -> None:
    done = project.run("--agent", "editor@m", "--proposals", "2", price="{ input = 1, output = 1 }")
    assert done.code != 0
    assert ".env" in done.err
    assert "credentials" in done.err
    assert not project.server.requests
    repository = Repository.open(project.folder)
    (note,) = check_tree(load_repository_task(project.folder), repository, repository.tree_of(repository.head()))
    assert ".env" in note


def test_a_shared_file_is_shown_and_no_other(project: Project) -> None:
    project.save({"evogit.toml": TOML.format(more='shared = ["tests/fixtures/*.pem", "src/settings.py"]')}, "share")
    project.server.behaviours[:] = [reply(text) for text in REPLIES["editor@m"]]
    assert project.run("--agent", "editor@m", "--yes", "--proposals", "2").code == 0
    assert "c4naryOfThePem" in project.sent
    assert "c4naryOfTheToken" in project.sent
    assert "c4nary-of" not in project.sent
    assert "c4naryOfTheNotes" not in project.sent


@pytest.mark.parametrize(
    "change",
    [
        "TITLE: t\n<<<<<<< WRITE src/key.py\nKEY = 'AKIAQ7ZK2MWV9XTB4NLR'\n>>>>>>> END\n",
        "TITLE: use ghp_" + MIXED * 2 + "\n<<<<<<< WRITE src/main.py\nVALUE = 5\n>>>>>>> END\n",
        "TITLE: t\n<<<<<<< WRITE src/.env\nA = 1\n>>>>>>> END\n",
        "TITLE: t\n<<<<<<< WRITE src/id_rsa\nA = 1\n>>>>>>> END\n",
        "TITLE: t\n<<<<<<< WRITE src/settings.py\nTOKEN = ''\n>>>>>>> END\n",
    ],
    ids=["token", "title", "dotenv", "key", "over"],
)
def test_a_candidate_brings_no_credentials(project: Project, change: str) -> None:
    project.server.behaviours[:] = [reply(change)]
    assert project.run("--agent", "editor@m", "--yes", "--proposals", "1").code == 0
    assert project.candidates() == []
    found = git(project.folder, "for-each-ref", "--format=%(refname)")
    everything = git(project.folder, "log", "-p", "--format=%B", *found.split()) if found else ""
    assert "AKIAQ7ZK2MWV9XTB4NLR" not in everything
    assert MIXED * 2 not in everything


def check_printing(project: Project, path: str, *options: str) -> None:
    """Have an editor asked twice about a program that prints the value in a file, as text and as names of numbers."""
    before = project.objects()
    told = PRINTS.replace("PATH", path).replace("VALUE = 1", "VALUE = {}")
    change = f"TITLE: t\n<<<<<<< WRITE src/main.py\n{told}>>>>>>> END\n"
    project.server.behaviours[:] = [reply(change.replace("{}", str(number))) for number in (2, 3)]
    done = project.run(*options, "--agent", "editor@m", "--yes", "--proposals", "2")
    assert done.code == 0, done.err
    for text in (project.sent, project.kept(before)):
        assert "plain_name" in text, "no name was told"
        assert "it printed [redacted]" in text, "nothing was redacted"
        assert CANARY not in text


def test_names_of_a_programs_numbers_tell_no_secret(project: Project) -> None:
    files = {"evogit.toml": COMMAND.format(more=""), "src/main.py": PRINTS.replace("PATH", "deploy/.env.production")}
    project.save(files, "command")
    check_printing(project, "deploy/.env.production")


@pytest.mark.parametrize("how", ["untracked", "task"])
def test_secrets_of_the_evaluators_folder_stay_home(project: Project, how: str) -> None:
    program = PRINTS.replace("PATH", ".evogit/.env")
    files = {"evogit.toml": COMMAND.format(more=""), "src/main.py": program}
    if how == "task":
        files = {"mine/task.toml": COMMAND.format(more=""), "mine/seed/src/main.py": program}
    project.save(files, "command")
    place = project.folder / ("mine" if how == "task" else "") / ".evogit/.env"
    place.parent.mkdir(exist_ok=True)
    place.write_text("DB_PASSWORD=c4nary-of-the-evaluator\n")
    check_printing(project, ".evogit/.env", *(["./mine", "-C", "."] if how == "task" else []))


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A bare server."""
    folder = tmp_path / "server.git"
    git(tmp_path, "init", "-q", "--bare", str(folder))
    return folder


def with_key(own: Own, tmp_path: Path, more: str = "") -> Path:
    """A repository whose run began at a commit with a key."""
    folder = tmp_path / "keyed"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    toml = own.folder.joinpath("evogit.toml").read_text().replace("[metrics", f"{more}\n[metrics", 1)
    files = {"evogit.toml": toml, "deploy/.env": f"A={MIXED}\n", "src/main.py": "VALUE = 1\n"}
    evaluate = own.folder.joinpath(".evogit/evaluate.py").read_text()
    for path, text in {**files, ".evogit/evaluate.py": evaluate}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "-fA")
    git(folder, "-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-qm", "start")
    run = RecordedRun(folder, "own")
    seed = git(folder, "rev-parse", "HEAD").strip()
    run.propose(candidate=seed, tree=run.repository.tree_of(seed), title="seed", agent="seed", operator="seed", move=0)
    return folder


def test_names_that_a_journal_has_in_plain_are_redacted_in_briefs(cli: Cli, own: Own, tmp_path: Path) -> None:
    folder = with_key(own, tmp_path)
    run = RecordedRun(folder, "own")
    numbers = {run.metric: 1.0, MIXED: 2.0}
    run.evaluate(run.history.seed or "", 1.0, cases={"one": numbers, MIXED: numbers})
    done = cli("show", "--brief", cwd=folder)
    assert "[redacted]: " in done.out, done.err
    assert "[redacted] 2" in done.out
    assert MIXED not in done.out


def refs_of(server: Path) -> str:
    return git(server, "for-each-ref", "--format=%(refname)")


def test_a_push_that_would_publish_a_secret_is_refused(cli: Cli, own: Own, server: Path, tmp_path: Path) -> None:
    folder = with_key(own, tmp_path)
    done = cli("sync", str(server), cwd=folder)
    assert done.code != 0
    assert "deploy/.env" in done.err
    assert refs_of(server) == ""
    git(folder, "push", "-q", str(server), "main")
    assert cli("sync", str(server), cwd=folder).code == 0
    assert "refs/evogit/own/journal/" in refs_of(server)


def test_a_run_with_a_server_publishes_no_secret(
    project: Project, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evogit.cli.options.run.SYNC_EVERY_S", 0.2)
    options = ("--agent", "mutator:1", "--remote", str(server), "--host", "lab1")
    assert project.run(*options, "--evaluations", "2").code == 0
    assert refs_of(server) == ""
    git(project.folder, "push", "-q", str(server), "main")
    assert project.run(*options, "--evaluations", "3").code == 0
    assert "refs/evogit/own/journal/" in refs_of(server)


def test_a_shared_secret_is_pushed(cli: Cli, own: Own, server: Path, tmp_path: Path) -> None:
    folder = with_key(own, tmp_path, 'shared = ["deploy/.env"]')
    assert cli("sync", str(server), cwd=folder).code == 0
    assert "refs/evogit/own/journal/" in refs_of(server)


@pytest.mark.parametrize("path", ["src/key.py", "src/.env"])
def test_a_persons_commit_with_credentials_is_no_candidate(cli: Cli, own: Own, path: str) -> None:
    git(own.folder, "switch", "-qc", "mine")
    (own.folder / path).write_text("A = 1\n" if path.endswith(".env") else f"KEY = 'ghp_{MIXED * 2}'\n")
    own.git("add", "-fA")
    own.git("commit", "-qm", "mine")
    done = cli("add", "mine", cwd=own.folder)
    assert done.code != 0
    assert path in done.err


def test_a_title_of_megabytes_fills_no_terminal(cli: Cli, tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    story.add(2.0, story.add(1.0), title="x" * 3_000_000)
    for command in (["log"], ["graph"], ["show", "best"], ["status"], ["report"]):
        done = cli(*command, cwd=tmp_path / "repo")
        assert done.code == 0, done.err
        assert max(map(len, done.out.splitlines())) < 3_000, command


KEYED = """\
import os
from evogit import Case
def evaluate(program, split):
    text = program.run(["cat", "a.txt"]).stdout
    yield Case("all", feedback="asked with " + os.environ["OPENAI_API_KEY"], score=len(text))
"""


@pytest.mark.parametrize("more", ["", 'shared = ["**"]'])
def test_an_evaluator_may_have_the_key_of_the_agents_too_and_what_it_says_of_it_is_redacted(
    cli: Cli, tmp_path: Path, more: str
) -> None:
    task, key = tmp_path / "task", "c4nary-of-the-judge"
    toml = (
        TOML.format(more=more)
        .replace("src/**", "a.txt")
        .replace('"python"', '"python"\nenvironment = ["OPENAI_API_KEY"]')
    )
    for path, text in {"task.toml": toml, ".evogit/evaluate.py": KEYED, "seed/a.txt": "a\n"}.items():
        (task / path).parent.mkdir(parents=True, exist_ok=True)
        (task / path).write_text(text)
    script = tmp_path / "script.txt"
    script.write_text("TITLE: b\n<<<<<<< WRITE a.txt\nlonger\n>>>>>>> END\n")
    limits = ("--proposals", "1", "--evaluations", "3")
    cli("trust", task)
    out = tmp_path / "run"
    done = cli("run", task, "--model", f"script:{script}", *limits, "--yes", "-C", out, OPENAI_API_KEY=key)
    assert done.code == 0, done.err
    shown = cli("-C", out, "show", "best").out
    assert "asked with [redacted]" in shown
    assert CANARY not in shown
