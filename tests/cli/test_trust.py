"""Nothing that comes from elsewhere runs, counts or costs before the user of this machine trusts it."""

from __future__ import annotations

import os
import py_compile
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from evogit.cli.commands.init import is_ours
from evogit.config import load_task
from evogit.config.custom_classes import load
from evogit.core import RefusedError, UsageError
from evogit.events import RunStarted
from evogit.repository import Repository
from evogit.repository.journal_records import encode
from evogit.repository.run_keys import RunKeys
from evogit.review import EarlierStarts
from evogit.testing import RecordedRun
from evogit.trust import Claim, Trust, UntrustedError
from tests.cli.conftest import Cli, Done
from tests.conftest import write_task
from tests.openai_server import Server, reply, serve
from tests.plain_git import git

from .test_run import Screen

CANARY = 'from pathlib import Path\nPath("{}").touch()\n'

EVALUATE = """\
from evogit import Case


def evaluate(program, split):
    yield Case("one", score=program.call("program:value", args=[1], returns=float).value)
"""

OPENEVOLVE = """\
import importlib.util


def evaluate(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {"combined_score": float(program.value(3))}
"""

START = ["--evaluations", "3", "--agent", "mutator:1", "--sandbox", "bubblewrap"]


@pytest.fixture
def fresh(cli: Cli, tmp_path: Path) -> Cli:
    """The command of a user who trusts nothing yet."""

    def call(*arguments: str | Path, cwd: Path = tmp_path, **env: str) -> Done:
        return cli(*arguments, cwd=cwd, XDG_STATE_HOME=str(tmp_path / "state"), **env)

    return call


@pytest.fixture
def stranger(tmp_path: Path) -> tuple[Path, Path]:
    """A task folder of a stranger, and the file that exists once its evaluator ran outside a sandbox."""
    canary = tmp_path / "canary"
    return write_task(tmp_path / "theirs", evaluate=CANARY.format(canary) + EVALUATE), canary


def commit_all(folder: Path) -> None:
    for words in (["init", "-q"], ["add", "-fA"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", folder, *words], check=True)


def way_on(done: Done, said: str = "if you trust it") -> list[str]:
    """The arguments of `evogit` in the command that a refusal names."""
    assert done.code == 4, done.err
    found = re.search(rf"^{said}: evogit (trust .*)$", done.err, re.MULTILINE)
    assert found, done.err
    return shlex.split(found[1])


@pytest.mark.parametrize(
    "command",
    [
        ["check", "theirs"],
        ["run", "theirs", *START],
        ["audit", "theirs"],
        ["bench", "theirs", "-n", "1", "--evaluations", "2"],
    ],
    ids=lambda command: command[0],
)
def test_an_evaluator_of_a_stranger_runs_once_its_folder_is_trusted(
    fresh: Cli, stranger: tuple[Path, Path], command: list[str]
) -> None:
    folder, canary = stranger
    grant = way_on(fresh(*command))
    assert not canary.exists()
    assert grant == ["trust", str(folder)]
    assert fresh(*grant).code == 0
    (folder / "goal.md").write_text("edited")
    fresh(*command)
    assert canary.exists(), "edits keep the trust"
    assert fresh("trust", "--revoke", folder).code == 0
    canary.unlink()
    assert fresh("check", "theirs").code == 4
    assert not canary.exists()


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "check --uncommitted",
        "verify best",
        "minimize best",
        "ablate best",
        "lessons add best",
        "rescore",
        "run",
        "shell best -- true",
    ],
)
def test_a_clone_whose_evaluator_is_not_trusted_is_looked_at_only(fresh: Cli, tmp_path: Path, command: str) -> None:
    """The run was made by the clone's author; a shell's scorer loads the evaluator, too."""
    canary = tmp_path / "canary"
    author = tmp_path / "author"
    write_task(author, evaluate=EVALUATE)
    (author / "task.toml").rename(author / "evogit.toml")
    (author / "seed" / "program.py").rename(author / "program.py")
    commit_all(author)
    RecordedRun(author, "tiny", task="tiny").add_files({"program.py": b"def value(x): return 1.0\n"}, value=1.0)
    shutil.copytree(author, tmp_path / "clone")
    evaluator = tmp_path / "clone" / "evaluator" / "evaluate.py"
    evaluator.write_text(CANARY.format(canary) + EVALUATE)
    for look in ("status", "log", "show best", "report", "brief best"):
        fresh(*look.split(), cwd=tmp_path / "clone")
    words = [*command.split(), *START * (command == "run")]
    assert fresh(*words, cwd=tmp_path / "clone").code == 4
    assert not canary.exists()


def test_what_init_and_new_make_and_the_gallery_are_trusted(fresh: Cli, tmp_path: Path) -> None:
    assert fresh("new", "mine").code == 0
    assert fresh("check", "mine").code == 0
    assert fresh("run", "mine", *START).code == 0
    assert fresh("run", "mine", *START, "--evaluations", "4").code == 0
    assert fresh("check", "circle_packing", "--split", "smoke").code == 0
    assert [each["kind"] for each in fresh("trust", "--json").json["records"]].count("task") == 1


def test_init_gives_what_nobody_typed_no_network_of_this_machine(fresh: Cli, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "package.json").write_text('{"scripts": {"bench": "echo 1"}, "dependencies": {"x": "1"}}')
    (clone / "main.js").write_text("console.log(1)\n")
    commit_all(clone)
    choices = ["init", "--yes", "--editable", "main.js", "--command", "true", "--read", "x=wall", "--minimize", "x"]
    assert "network = true" in fresh(*choices, "--dry-run", cwd=clone).out
    assert way_on(fresh(*choices, cwd=clone)) == ["trust", str(clone)]
    assert not (clone / "evogit.toml").exists()


@pytest.mark.parametrize("name", ["statistics.py", "__pycache__/evaluate.cpython-311.pyc"])
def test_init_writes_no_evaluator_beside_files_of_a_stranger(fresh: Cli, tmp_path: Path, name: str) -> None:
    clone = tmp_path / "clone"
    (clone / ".evogit" / name).parent.mkdir(parents=True)
    (clone / ".evogit" / name).write_text(CANARY.format(tmp_path / "canary"))
    (clone / "main.py").write_text("print(1)\n")
    commit_all(clone)
    choices = ["init", "--yes", "--editable", "main.py", "--command", "python3 main.py", "--sandbox", "bubblewrap"]
    assert way_on(fresh(*choices, "--python", cwd=clone)) == ["trust", str(clone)]
    assert not (clone / "evogit.toml").exists()
    assert fresh(*choices, "--read", "x=wall", "--minimize", "x", cwd=clone).code in (0, 1)
    assert [each["kind"] for each in fresh("trust", "--json").json["records"]] == ["sent"]
    assert not (tmp_path / "canary").exists()


INIT = ["init", "--yes", "--editable", "main.py", "--command", "python3 main.py", "--sandbox", "bubblewrap"]


def clone_with_main(folder: Path) -> Path:
    """A stranger's repository in which all is committed."""
    (folder / "main.py").write_text("print(1)\n")
    commit_all(folder)
    return folder


def test_init_trusts_its_own_file_and_no_task_beside_it(fresh: Cli, stranger: tuple[Path, Path]) -> None:
    folder, canary = stranger
    clone_with_main(folder)
    assert fresh(*INIT, "--read", "x=wall", "--minimize", "x", cwd=folder).code in (0, 1)
    assert [each["kind"] for each in fresh("trust", "--json").json["records"]] == ["repository"]
    for command in (["check", "."], ["run", ".", *START], ["run", str(folder), *START]):
        assert way_on(fresh(*command, cwd=folder)) == ["trust", str(folder)]
    assert not canary.exists()
    assert fresh("check", cwd=folder).code == 0, "the task of init is its user's"


def test_init_trusts_nothing_beside_a_folder_that_it_cannot_list(tmp_path: Path) -> None:
    user, task = os.geteuid(), load_task(write_task(tmp_path / "task"))
    with TemporaryDirectory(dir="/tmp") as folder:  # which another user than root may enter
        hidden = Path(folder) / ".evogit"
        (hidden / "__pycache__").mkdir(parents=True)
        repository = Repository.open(clone_with_main(Path(folder)))
        Path(folder).chmod(0o755)
        hidden.chmod(0o311)
        try:
            os.seteuid(user or 65534)
            with pytest.raises(RefusedError, match="cannot be listed"):
                is_ours(repository, {}, task)
        finally:
            os.seteuid(user)
            hidden.chmod(0o755)


def test_a_peers_task_runs_in_the_sandbox_unasked_and_outside_only_when_asked_for(fresh: Cli, tmp_path: Path) -> None:
    theirs, canary = tmp_path / "peer", tmp_path / "canary"
    theirs.mkdir()
    (theirs / "initial_program.py").write_text(
        "# EVOLVE-BLOCK-START\ndef value(x):\n    return x * 2.5\n# EVOLVE-BLOCK-END\n"
    )
    (theirs / "evaluator.py").write_text(CANARY.format(canary) + OPENEVOLVE)
    assert fresh("check", "peer").code in (0, 1)
    assert fresh("run", "peer", *START).code in (0, 1)
    done = fresh("adopt", "peer", "inside", "--json")
    assert (done.code, done.json["judged"]) == (0, "inside"), done.err
    assert not canary.exists()
    (theirs / "evaluator.py").write_text(OPENEVOLVE)
    done = fresh("adopt", "peer", "outside", "--outside", "--json")
    assert (done.code, done.json["judged"]) == (0, "outside"), done.err
    assert fresh("check", "outside").code == 0


STRANGERS = """
name = "theirs"
goal = "Less."
editable = ["main.py"]
[metrics.score]
direction = "minimize"
[evaluator]
kind = "command"
command = "echo score: 1"
[evaluator.read]
score = "regex:score: ([0-9.]+)"
"""


def test_replies_of_a_file_need_no_trust_as_nothing_is_sent(fresh: Cli, tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "evogit.toml").write_text(STRANGERS)
    folder = clone_with_main(tmp_path / "clone")
    (tmp_path / "replies.txt").write_text("no edit\n")
    options = ["--proposals", "1", "--sandbox", "bubblewrap"]
    assert fresh("run", "--model", "gpt-x", *options, "--yes", cwd=folder).code == 4
    assert fresh("run", "--model", f"script:{tmp_path}/replies.txt", *options, "--yes", cwd=folder).code == 0


@pytest.fixture
def endpoint() -> Iterator[Server]:
    with serve([reply("nothing to change", prompt=1000, completion=10)]) as server:
        yield server


@pytest.fixture
def bait(tmp_path: Path, endpoint: Server) -> dict[str, str]:
    """A run of a stranger in the user's repository, which says to be older than keys; the user's environment."""
    (tmp_path / "settings.toml").write_text(
        f'[models.dear]\nbase_url = "{endpoint.url}"\nprice = {{input = 50, output = 50}}\nkey_env = "KEY"\n'
    )
    return {"EVOGIT_SETTINGS": str(tmp_path / "settings.toml"), "KEY": "sk-x"}


def begin(fresh: Cli, tmp_path: Path, **settings: object) -> None:
    """A stranger's journal of the run that `evogit run mine` would go on with."""
    assert fresh("new", "mine").code == 0
    assert fresh("run", "mine", *START).code == 0
    real = Repository.open(tmp_path / "evogit-mine")
    entries: list[object] = []
    real.journal("mine", lambda entry: entries.append(entry.event))
    started = entries[0]
    shutil.rmtree(tmp_path / "evogit-mine")
    subprocess.run(["git", "init", "-q", tmp_path / "evogit-mine"], check=True)
    repository = Repository.open(tmp_path / "evogit-mine")
    known = {name: getattr(started, name) for name in started.__struct_fields__ if name not in ("inputs", "settings")}
    run = RecordedRun(repository, "mine", **{**known, "settings": settings})
    files = {path: data for path, (data, _) in _seed(tmp_path).items()}
    run.add_files(files, value=1.0, agent="seed", operator="seed")


def _seed(tmp_path: Path) -> dict[str, tuple[bytes, int]]:
    return load_task(tmp_path / "mine").seed_files()


def test_a_run_without_a_key_that_others_began_spends_nothing_unasked(
    fresh: Cli, tmp_path: Path, bait: dict[str, str], endpoint: Server
) -> None:
    population = [{"kind": "editor", "model": "dear", "count": 1}]
    agreed = [f"dear at {endpoint.url}"]
    begin(fresh, tmp_path, population=population, agreed=agreed, dollars=1000.0, selector="frugal")
    assert "not trusted" in fresh("-C", "evogit-mine", "status", **bait).err
    for more in ([], ["--yes"], ["--yes", "--dollars", "0.3"]):
        way_on(fresh("run", "mine", *more, **bait))
    grant = way_on(fresh("run", "mine", "--model", "dear", "--dollars", "0.3", **bait))
    assert not endpoint.requests
    assert fresh(*grant).code == 0
    done = fresh("run", "mine", "--model", "dear", "--dollars", "0.3", **bait)
    assert done.code == 4, "its consent is the stranger's"
    assert not endpoint.requests


def test_a_model_is_asked_about_a_stranger_once_that_is_agreed_to(
    fresh: Cli, tmp_path: Path, bait: dict[str, str], endpoint: Server
) -> None:
    """The agreement is about sending: an evaluator outside the sandbox needs its own."""
    theirs, canary = tmp_path / "peer", tmp_path / "canary"
    theirs.mkdir()
    (theirs / "initial_program.py").write_text(
        "# EVOLVE-BLOCK-START\ndef value(x):\n    return x * 2.5\n# EVOLVE-BLOCK-END\n"
    )
    (theirs / "evaluator.py").write_text(OPENEVOLVE)
    command = [
        "run",
        "peer",
        "--model",
        "dear",
        "--agents",
        "1",
        "--proposals",
        "1",
        "--yes",
        "--sandbox",
        "bubblewrap",
    ]
    grant = way_on(fresh(*command, **bait))
    assert not endpoint.requests
    assert fresh(*grant).code == 0
    fresh(*command, **bait)
    assert endpoint.requests
    (theirs / "evaluator.py").unlink()
    (theirs / "initial_program.py").unlink()
    shutil.copytree(
        write_task(tmp_path / "other", evaluate=CANARY.format(canary) + EVALUATE), theirs, dirs_exist_ok=True
    )
    way_on(fresh("check", "peer"))
    assert not canary.exists()


def test_the_consent_to_one_run_is_none_to_another(
    fresh: Cli, tmp_path: Path, bait: dict[str, str], endpoint: Server
) -> None:
    """A stranger copies the start of the user's run, which all may read, into a run of their own."""
    assert fresh("new", "mine").code == 0
    first = ["run", "mine", "--model", "dear", "--agents", "1", "--proposals", "1", "--yes"]
    assert fresh(*first, **bait).code == 0
    asked = len(endpoint.requests)
    repository = Repository.open(tmp_path / "evogit-mine")
    starts: list[RunStarted] = []
    repository.journal("mine", lambda entry: isinstance(entry.event, RunStarted) and starts.append(entry.event))
    tree = git(repository.path, "hash-object", "-t", "tree", "-w", "--stdin", input="").strip()
    message = encode(msgspec.structs.replace(starts[0], inputs=""), 1)
    entry = git(repository.path, "commit-tree", tree, "-F", "-", input=message).strip()
    git(repository.path, "update-ref", "refs/evogit/other/journal/evil", entry)
    grant = way_on(fresh("run", "mine", "--name", "other", "--proposals", "9", **bait))
    assert fresh(*grant).code == 0
    assert fresh("run", "mine", "--name", "other", "--proposals", "9", **bait).code == 4
    assert len(endpoint.requests) == asked


@pytest.mark.parametrize("where", ["selector", "population"])
def test_code_that_a_journal_names_is_not_loaded(fresh: Cli, tmp_path: Path, where: str) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "x.py").write_text(CANARY.format(canary))
    code = f"{tmp_path}/x.py:S"
    settings = {"selector": code} if where == "selector" else {"population": [{"kind": code, "model": "", "count": 1}]}
    begin(fresh, tmp_path, **settings)
    assert fresh("run", "mine", "--evaluations", "5").code == 4
    assert not canary.exists()


def foreign_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **settings: object) -> EarlierStarts:
    """What a stranger's start with these settings leaves to a user who trusts nothing."""
    run = RecordedRun(Repository.create(tmp_path / "theirs"), "r", settings=settings)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return EarlierStarts.of(Repository.open(tmp_path / "theirs"), run.history)


def test_each_file_that_a_journal_names_is_trusted_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, selector = tmp_path / "agent.py", tmp_path / "selector.py"
    for file in (agent, selector):
        file.write_text("x = 1\n")
    population = [{"kind": f"{agent}:A"}, {"kind": "editor", "model": "m"}]
    before = foreign_start(tmp_path, monkeypatch, population=population, selector=f"{selector}:S")
    agents, one, other = before.claims(agents=True, selector=True)
    assert [claim.kind for claim in (agents, one, other)] == ["settings", "code", "code"]
    assert f"{agent}:A, editor@m" in agents.effect
    for claim, file in ((one, agent), (other, selector)):
        assert f"{file} runs on this machine with your rights, outside the sandbox" in claim.effect
    assert list(before.claims(agents=True, selector=False)) == [agents, one], "a selector that is not used"
    selector.write_text("x = 2\n")
    assert list(before.claims(agents=False, selector=True)) != [other]


@pytest.mark.parametrize(
    "path", ["/proc/self/cwd/evil.py", "{}/./evil.py", "{}/x/../evil.py", "{}/link/evil.py", "/a\0.py"]
)
def test_a_file_that_a_journal_names_by_a_way_round_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "evil.py").write_text("x = 1\n")
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = foreign_start(tmp_path, monkeypatch, selector=f"{path.format(tmp_path)}:S")
    with pytest.raises(UsageError, match="whole path"):
        list(before.claims(agents=True, selector=True))
    absent = foreign_start(tmp_path / "absent", monkeypatch, selector=f"{tmp_path}/absent.py:S")
    with pytest.raises(UsageError, match="name another with --agent or --selector"):
        list(absent.claims(agents=True, selector=True))


def test_bytecode_is_not_run_in_the_place_of_a_file_that_was_agreed_to(tmp_path: Path) -> None:
    shown, other = tmp_path / "mine.py", tmp_path / "other.py"
    shown.write_text("x = 1\n")
    other.write_text(CANARY.format(tmp_path / "canary"))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cache_from_source(shown), invalidation_mode=mode)
    assert load(f"{shown}:x") == 1
    assert not (tmp_path / "canary").exists()


def test_agents_that_cannot_be_shown_whole_are_not_taken_over(fresh: Cli, tmp_path: Path) -> None:
    code = tmp_path / "x.py"
    code.write_text(CANARY.format(tmp_path / "canary"))
    many = [{"kind": "editor", "model": f"m{number}-{'x' * 60}"} for number in range(40)]
    begin(fresh, tmp_path, population=[*many, {"kind": f"{code}:A"}])
    refused = fresh("run", "mine", "--evaluations", "5")
    assert (refused.code, "evogit trust" in refused.err) == (4, False)
    assert "name agents and a selector of your own" in refused.err


def test_a_swarm_of_mutators_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count, asked in ((2, 0), (9_000, 1)):
        before = foreign_start(tmp_path / str(count), monkeypatch, population=[{"kind": "mutator", "count": count}])
        assert len([*before.claims(agents=True, selector=True)]) == asked


def test_a_fork_trusts_a_key_no_further_than_its_origin(tmp_path: Path) -> None:
    """The user agreed to a key for one run; another archive's run with that key is still a stranger's."""
    key, mine, trust = b"\x02" + b"k" * 32, tmp_path / "mine", Trust(tmp_path / "trust")
    (mine / "evogit").mkdir(parents=True)
    for place, run in ((tmp_path / "one", "demo"), (tmp_path / "two", "other")):
        (place / "evogit").mkdir(parents=True)
        RunKeys(place, Trust(tmp_path / "stranger")).keep(run, key)
    keys, others = RunKeys(tmp_path / "one", trust), RunKeys(tmp_path / "two", trust)
    (claim,) = keys.untrusted("demo")
    trust.add(claim)
    assert keys.copy("demo", "fork") == keys.find("fork") == key
    assert others.find("other") == b""
    made = RunKeys(mine, trust)
    drawn = made.make("own")
    assert made.copy("own", "fork") == RunKeys(mine, trust).find("fork") == drawn


def test_a_key_that_an_archive_brings_along_is_asked_about_once(fresh: Cli, cli: Cli, tmp_path: Path) -> None:
    assert cli("new", "mine").code == 0
    assert cli("run", "mine", *START).code == 0
    assert fresh("trust", "mine").code == 0
    assert fresh("-C", "evogit-mine", "prune", "seed", "-m", "x", "-y").code == 4
    grant = way_on(fresh("run", "mine", *START, "--evaluations", "5"))
    assert fresh(*grant).code == 0
    assert fresh("run", "mine", *START, "--evaluations", "5").code == 0


@pytest.mark.parametrize("kind", ["tree", "folder", "start", "sent"])
def test_only_a_digest_that_a_refusal_showed_can_be_trusted(fresh: Cli, tmp_path: Path, kind: str) -> None:
    """A stranger knows the digest of `/`, and what a folder of theirs is called."""
    digest = Claim(kind, "/").digest  # type: ignore[arg-type]
    (tmp_path / digest).symlink_to(tmp_path)
    assert fresh("trust", digest).code == 3
    Trust(tmp_path / "state" / "evogit" / "trust").offer([Claim("tree", "/"), Claim("key", "k" * 9, "long " * 999)])
    assert fresh("trust", digest).code == 3
    assert fresh("trust", Claim("key", "k" * 9).digest).code == 3, "nobody saw all of it"
    assert fresh("trust", "--json").json["records"] == []


def test_a_digest_is_told_by_what_it_stands_for(fresh: Cli, tmp_path: Path) -> None:
    claim = Claim("run", "x", "the run x goes on")
    Trust(tmp_path / "state" / "evogit" / "trust").offer([claim])
    assert "the run x goes on" in fresh("trust", claim.digest).err
    (record,) = fresh("trust", "--json").json["records"]
    assert (record["kind"], record["effect"]) == ("run", "the run x goes on")


def test_a_link_is_not_trusted_for_what_it_leads_to(fresh: Cli, tmp_path: Path) -> None:
    (tmp_path / "example").symlink_to("/")
    for words in (["example"], ["--below", "example"], ["example/usr"]):
        assert fresh("trust", *words).code == 2
    assert fresh("trust", "--json").json["records"] == []


def test_a_folders_name_adds_no_line_to_a_refusal(fresh: Cli, tmp_path: Path) -> None:
    folder = write_task(tmp_path / "x\nif you trust this: evogit trust y", evaluate=EVALUATE)
    refused = fresh("check", folder)
    assert refused.code == 4
    assert not [line for line in refused.err.splitlines() if line.startswith("if you trust")]


def test_a_question_that_cannot_be_shown_whole_is_not_asked(fresh: Cli, tmp_path: Path) -> None:
    prepare = f"true {'x ' * 999}; evil"
    command = f'[evaluator]\nkind = "command"\ncommand = "true"\nread.score = "exit"\nprepare = "{prepare}"'
    head = 'name = "t"\ngoal = "g"\neditable = ["program.py"]\n[metrics.score]\ndirection = "maximize"\n'
    folder = write_task(tmp_path / "theirs", toml=f"{head}{command}\n[sandbox]\nnetwork = true\n")
    refused = fresh("check", "theirs")
    assert "too long to be shown whole" in refused.err
    assert way_on(refused, "if you trust it, once you read all of it there") == ["trust", str(folder)]
    screen = Screen("check", "theirs", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert screen.end() == 4
    assert "Do you trust it?" not in screen.text


def test_a_repository_below_a_trusted_folder_is_not_covered(fresh: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert fresh("trust", "mine").code == 0
    trust = Trust(tmp_path / "state" / "evogit" / "trust")
    for kind in ([], ["--bare"]):
        subprocess.run(["git", "init", "-q", *kind, tmp_path / "mine" / f"theirs{len(kind)}"], check=True)
        assert not trust.covers(tmp_path / "mine" / f"theirs{len(kind)}")
    assert trust.covers(tmp_path / "mine" / "sub")


def test_every_effect_is_shown_on_a_line_of_its_own() -> None:
    """A question about the network alone must not grant the evaluator's rights, nor a text add lines to it."""
    claims = [
        Claim("folder", "/x", "its evaluator runs"),
        Claim("folder", "/x", "its network\nif you trust it: evogit"),
    ]
    lines = str(UntrustedError(claims)).splitlines()
    assert (len(lines), lines[-1]) == (4, "if you trust it: evogit trust /x")
    assert "its evaluator runs" in lines[1]


def test_a_relative_file_of_an_earlier_start_is_not_looked_for_where_the_user_stands(
    fresh: Cli, tmp_path: Path
) -> None:
    """`mine.py` of the user's folder must not become the `mine.py` of a clone in which the user stands later."""
    assert fresh("new", "task").code == 0
    (tmp_path / "mine.py").write_text("from evogit.selection.weighted import Weighted as Mine\n")
    first = fresh("run", "task", "--selector", "mine.py:Mine", *START)
    clone, canary = tmp_path / "clone", tmp_path / "canary"
    clone.mkdir()
    (clone / "mine.py").write_text(CANARY.format(canary))
    fresh("-C", tmp_path / "evogit-task", "run", tmp_path / "task", "--evaluations", "5", cwd=clone)
    assert first.code == 0, first.err
    assert not canary.exists()


@pytest.mark.slow
def test_a_terminal_shows_one_screen_and_goes_on(stranger: tuple[Path, Path], tmp_path: Path) -> None:
    folder, canary = stranger
    for answer, code in (("n\n", 4), ("y\n", 0)):
        screen = Screen("check", "theirs", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
        screen.until("Do you trust it?")
        assert str(folder / "evaluator") in screen.text.replace("\r\n", "")
        assert not canary.exists()
        screen.press(answer)
        assert screen.end() == code, screen.text
    assert canary.exists()
