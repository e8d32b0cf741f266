"""A project below what bubblewrap gives programs of the host, such as /usr/src/app, is not there for them."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evogit.agents.programs.registry import Programs, define
from evogit.config import load_task
from evogit.config.user_settings import CommandTable, UserSettings
from evogit.core import SandboxError
from evogit.evaluation.evaluator import Evaluator
from evogit.llm.registry import OpenModels
from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap, covered, projects
from tests.conftest import write_task

LOOKS = b"""
import os

def found(path, word):
    inside = []
    for top, folders, names in os.walk(path):
        inside += [os.path.join(top, name) for name in folders + names]
        for name in names:
            with open(os.path.join(top, name), "rb") as file:
                if word.encode() in file.read():
                    inside.append("the word itself")
    return inside
"""
EVALUATE = """\
from evogit import Case

SECRET = "holdout 8675309"

def evaluate(program, split):
    yield Case("one", feedback=str(program.call("looks:found", [PLACE, SECRET]).value), score=1)
"""
needs_usr = pytest.mark.skipif(not os.access("/usr/local", os.W_OK), reason="may not write below /usr")


@pytest.fixture(params=["/usr/src", "/usr/local/src", "/usr/local/share", "/usr/lib"])
def project(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A repository below /usr with a task, a key that Git ignores, and all open to everybody."""
    existed, folder = Path(request.param).exists(), Path(request.param) / f"evogit-test-{os.getpid()}"
    place = folder / "tasks" / "tiny"
    place.mkdir(parents=True)
    try:
        write_task(place, evaluate=f"PLACE = {str(folder)!r}\n{EVALUATE}")
        (folder / ".env").write_text("KEY=holdout 8675309")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
        yield folder
    finally:
        shutil.rmtree(folder)
        if not existed:
            Path(request.param).rmdir()


@needs_usr
async def test_programs_find_nothing_of_a_project_below_usr_or_where_the_engine_stands(project: Path, monkeypatch):
    task = load_task(project / "tasks" / "tiny")
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        evaluation, evidence = await evaluator.evaluate("0" * 40, pack({"looks.py": LOOKS}), split="holdout")
    assert evaluation.ok, evaluation.reason
    assert evidence.feedback == {"one": "[]"}
    monkeypatch.chdir(project / "tasks")
    with closing(Bubblewrap()) as sandbox, sandbox.open(pack({"looks.py": LOOKS}), Limits()) as session:
        reply = session.call("looks:found", json.dumps({"args": [str(project), "holdout 8675309"]}).encode())
    assert json.loads(reply.value) == []


def test_what_lies_elsewhere_needs_no_cover_and_what_holds_the_system_cannot_have_one(tmp_path: Path) -> None:
    usr, prefix = [tmp_path / "usr"], tmp_path / "usr" / "local"
    inner = tmp_path / "usr" / "app" / "inner"
    inner.mkdir(parents=True)
    assert covered(usr, [inner, inner.parent], [], prefix, privileged=False) == [inner.parent]
    assert covered(usr, [tmp_path / "elsewhere"], [tmp_path / "usr" / "gone"], prefix, privileged=False) == []
    inner.parent.chmod(0o700)
    assert covered(usr, [inner], [], prefix, privileged=True) == []  # another user cannot get there
    prefix.mkdir()
    assert covered(usr, [prefix], [prefix], prefix, privileged=False) == []
    (prefix / ".git").mkdir()
    with pytest.raises(SandboxError, match=r"cannot keep .*local from programs, which need .*; move the repository"):
        covered(usr, [prefix], [], prefix, privileged=False)


def test_a_checkout_beside_its_repository_hides_both(tmp_path: Path) -> None:
    main, beside = tmp_path / "main", tmp_path / "beside"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    about = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(main), *about, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run(["git", "-C", str(main), "worktree", "add", "-q", str(beside)], check=True)
    (beside / "deep").mkdir()
    assert {beside / "deep", beside, main / ".git"} <= set(projects([beside / "deep"]))


@needs_usr
@pytest.mark.parametrize("project", ["/usr/local/share"], indirect=True)
def test_coding_programs_cannot_read_a_repository_that_is_named_from_elsewhere(project, tmp_path, monkeypatch):
    """As with `-C DIR`, where the engine stands somewhere else."""
    monkeypatch.chdir(tmp_path)
    programs = Programs(OpenModels(UserSettings(), random.Random(0)), {}, "bubblewrap", [project / "tasks" / "tiny"])
    found = define("mine", {"mine": CommandTable(argv=("sh",))})
    assert found
    sandbox = programs._sandbox(found)
    with closing(sandbox), sandbox.open(pack({"looks.py": LOOKS}), Limits()) as session:
        reply = session.call("looks:found", json.dumps({"args": [str(project), "holdout"]}).encode())
        assert (reply.failure, json.loads(reply.value)) == ("", [])
