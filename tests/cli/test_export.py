"""A candidate's files go into the folder that was named, and nowhere else."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from .conftest import Cli, Small, Story


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    """A repository whose seed has links, some of them hostile, written with plain Git."""
    source = tmp_path / "source"
    (source / "dir").mkdir(parents=True)
    (source / "dir" / "tool.sh").write_text("#!/bin/sh\n")
    (source / "dir" / "tool.sh").chmod(0o755)
    for name, target in {
        "inside": "dir/tool.sh",
        "dir/up": "../inside",
        "absolute": str(tmp_path / "outside"),
        "climbing": "../outside",
        "dir/climbing": "../../outside",
        "sneaky": "dir/../../outside",
    }.items():
        (source / name).symlink_to(target)
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD^{tree}"], capture_output=True, text=True, check=True).stdout.strip()
    story = Story(tmp_path / "repo")
    subprocess.run(["git", "-C", story.folder, "fetch", "-q", source, "HEAD"], check=True)
    write = story.repository.trees.write
    story.repository.trees.write = lambda base, changes, modes=None: write(head, {})  # type: ignore[method-assign]
    story.add(1.0)
    return story.folder


def test_export_writes_files_and_modes_but_no_git_folder(cli: Cli, nasty: Path, tmp_path: Path) -> None:
    done = cli("-C", nasty, "export", "best", tmp_path / "out", "--json")
    assert (tmp_path / "out" / "dir" / "tool.sh").stat().st_mode & 0o111
    assert not (tmp_path / "out" / ".git").exists()
    assert done.json["files"] == 3


def test_links_that_lead_out_are_left_out_and_named(cli: Cli, nasty: Path, tmp_path: Path) -> None:
    done = cli("-C", nasty, "export", "best", "out")
    links = {path.name for path in (tmp_path / "out").rglob("*") if path.is_symlink()}
    assert links == {"inside", "up"}
    for name in ("absolute", "climbing", "dir/climbing", "sneaky"):
        assert f"left out {name}: a link out of the folder" in done.err


def test_only_an_empty_folder_is_written_to(cli: Cli, small: Small, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for folder in ("full", "full/mine", "link"):
        done = cli("-C", "repo", "export", "best", folder)
        assert done.code == 4
        assert "expected" in done.err
    assert "cannot make" in cli("-C", "repo", "export", "best", "full/mine/deep").err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]
    assert cli("-C", "repo", "export", "best", "new/deep").code == 0
    assert (tmp_path / "new" / "deep" / "main.py").read_text() == "VALUE = 6\n"


def test_the_ending_of_the_path_decides_what_is_written(cli: Cli, small: Small, tmp_path: Path) -> None:
    Story(small.folder, "second").add(1.0)
    at = ("-C", "repo", "--name", "toy")
    assert cli("export", "run.csv", *at).code == 0
    table = list(csv.DictReader((tmp_path / "run.csv").read_text().splitlines()))
    assert {row["candidate"] for row in table} == set(vars(small).values()) - {small.folder}
    assert cli("export", "run.html", *at, "--json").json["file"].endswith("run.html")
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
    assert cli("export", "best", "run.html", *at).code == 2
    assert cli("export", "best", *at).code == 2


@pytest.mark.slow
def test_figures_are_drawn_of_one_run_or_several(cli: Cli, small: Small, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    story = Story(small.folder, "second")
    story.add(2.0, story.add(1.0))
    begins = {"a.svg": b"<?xml", "a.pdf": b"%PDF", "a.png": b"\x89PNG"}
    for name, begin in begins.items():
        assert cli("export", "--figure", "lineage", name, "-C", "repo", "--name", "toy").code == 0
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert cli("export", "--figure", "best", "toy", "second", "-o", "both.svg", "-C", "repo").code == 0
    assert (tmp_path / "both.svg").exists()
    assert cli("export", "--figure", "lineage", "toy", "second", "both.svg", "-C", "repo").code == 2
    assert cli("graph", "--format", "dot", "-C", "repo", "--name", "toy").code == 2
