"""Nothing that comes from elsewhere runs, counts or costs before the user of this machine trusts it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from evogit.core import RunStarted
from evogit.repository import Repository
from evogit.repository.journal_records import encode
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


def way_on(done: Done) -> list[str]:
    """The arguments of `evogit` in the command that a refusal names."""
    assert done.code == 4, done.err
    found = re.search(r"evogit (trust .*)$", done.err, re.MULTILINE)
    assert found, done.err
    return shlex.split(found[1])


@pytest.mark.parametrize(
    "command",
    [
        ["check", "theirs"],
        ["run", "theirs", *START],
        ["audit", "theirs", "--seconds", "1"],
        ["bench", "theirs", "--seeds", "1", "--evaluations", "2"],
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
    "command", ["check", "eval", "verify best", "minimize best", "rescore", "run", "shell best", "shell best -- true"]
)
def test_a_clone_whose_evaluator_is_not_trusted_is_looked_at_only(fresh: Cli, tmp_path: Path, command: str) -> None:
    """The run was made by the clone's author; a shell's scorer loads the evaluator, too."""
    canary = tmp_path / "canary"
    author = tmp_path / "author"
    write_task(author, evaluate=EVALUATE)
    (author / "task.toml").rename(author / "evogit.toml")
    (author / "seed" / "program.py").rename(author / "program.py")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", author, *words], check=True)
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
    for words in (["init", "-q"], ["add", "-fA"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", clone, *words], check=True)
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
    for words in (["init", "-q"], ["add", "-fA"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", clone, *words], check=True)
    choices = ["init", "--yes", "--editable", "main.py", "--command", "python3 main.py", "--sandbox", "bubblewrap"]
    assert way_on(fresh(*choices, "--python", cwd=clone)) == ["trust", str(clone)]
    assert not (clone / "evogit.toml").exists()
    assert fresh(*choices, "--read", "x=wall", "--minimize", "x", cwd=clone).code in (0, 1)
    assert [each["kind"] for each in fresh("trust", "--json").json["records"]] == ["sent"]
    assert not (tmp_path / "canary").exists()


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


# --- what journals claim ------------------------------------------------------------------------------------------


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
    from evogit.config import load_task

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


def test_a_key_that_an_archive_brings_along_is_asked_about_once(fresh: Cli, cli: Cli, tmp_path: Path) -> None:
    assert cli("new", "mine").code == 0
    assert cli("run", "mine", *START).code == 0
    assert fresh("trust", "mine").code == 0
    assert fresh("-C", "evogit-mine", "prune", "seed", "-m", "x", "-y").code == 4
    grant = way_on(fresh("run", "mine", *START, "--evaluations", "5"))
    assert fresh(*grant).code == 0
    assert fresh("run", "mine", *START, "--evaluations", "5").code == 0


def test_a_digest_is_no_folder_that_a_stranger_named_so(fresh: Cli, tmp_path: Path) -> None:
    digest = "0123456789abcdef" * 2
    (tmp_path / digest).symlink_to(tmp_path)
    assert fresh("trust", digest).code == 0
    assert [each["kind"] for each in fresh("trust", "--json").json["records"]] == ["digest"]


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
