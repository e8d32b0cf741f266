"""An engineer's way from a clone to a commit that lands, in small projects of many kinds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evogit.sandbox.cache import cache_folder
from tests.plain_git import git
from tests.small_projects import LOCAL, PROJECTS

from .conftest import Cli

KINDS = ["npm", "pip", "cmake", "submodule"]
"""Of the first two the dependencies come from registries; others walk in `benchmarks/walks.py`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sandbox"),
    [*((kind, "bubblewrap") for kind in KINDS), pytest.param("pip", "docker", marks=pytest.mark.docker)],
)
def test_a_project_is_walked_from_clone_to_landed_commit(cli: Cli, tmp_path: Path, kind: str, sandbox: str) -> None:
    project, clone = PROJECTS[kind], tmp_path / "clone"
    if not project.present:
        pytest.skip(f"expected {', '.join(project.needs)} in /usr/bin; a machine without them has no such projects")
    project.make(tmp_path / "origin")
    git(tmp_path, *LOCAL, "clone", "-q", "--recurse-submodules", "origin", "clone")
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    (tmp_path / "reply.txt").write_text(project.reply())
    daemon = {name: value for name, value in os.environ.items() if name == "DOCKER_HOST"}
    cache = {"XDG_CACHE_HOME": str(cache_folder().parent), **daemon}
    done = cli("init", "--yes", "--name", "walk", "--sandbox", sandbox, cwd=clone, **cache)
    assert done.code == 0, done.out + done.err
    model = ("--model", f"script:{tmp_path / 'reply.txt'}", "--agents", "1", "--proposals", "1", "--yes")
    done = cli("run", *model, "--sandbox", sandbox, cwd=clone, **cache)
    assert done.code == 0, done.out + done.err
    done = cli("land", "best", "--squash", "--yes", "--sandbox", sandbox, "--json", cwd=clone, **cache)
    assert done.code == 0, done.out + done.err
    git(clone, "merge", "-q", "--ff-only", done.json["branch"])
    title, _, body = git(clone, "log", "-1", "--format=%B").partition("\n")
    assert title == project.title
    assert project.reason.split(",")[0] in body.replace("\n", " ")
    assert "cpu_seconds" in body
    assert "lower is better" in body.replace("\n", " ")
    assert git(clone, "show", f"HEAD:{project.path}") == project.files[project.path].replace(project.slow, project.fast)
    assert git(clone, "diff", "--stat", "HEAD~", "--name-only").split() == [project.path]
