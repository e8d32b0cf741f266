"""`evogit land`, `add` and `rm` as a person types them, in a repository of their own."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.own import Own, main

from .conftest import Cli


@pytest.mark.slow
def test_land_shows_what_it_is_worth_and_prints_the_command_that_merges_it(cli: Cli, own: Own) -> None:
    assert "evogit -C own log" in cli("-C", "own", "status").out
    best = own.add(2, own.seed, files={**main(2), "src/net.py": "import socket\n"}, title="raise it")
    assert "evogit -C own land best --squash" in cli("-C", "own", "status").out
    own.save("notes", {"notes.txt": "1\n"})
    branches = own.git("branch", "-a")
    dry = cli("-C", "own", "land", "best", "--squash", "--sandbox", "none", "--dry-run", "--json")
    assert (dry.json["decision"], dry.json["commit"], dry.json["objections"]) == (None, None, [])
    assert dry.json["changed"] == ["src/main.py", "src/net.py"]
    assert own.git("branch", "-a") == branches
    asked = cli("-C", "own", "land", "best", "--squash", "--sandbox", "none")
    assert (asked.code, "add --yes" in asked.err, "evaluating" in asked.err) == (4, True, False)
    done = cli("-C", "own", "land", "best", "--squash", "--sandbox", "none", "-y", "-m", "simple")
    assert done.code == 0, done.err
    assert "src/net.py imports socket" in done.err
    assert "holdout score 1.0000 2.0000 +1.0000 (2.0x) -" in " ".join(done.err.split())
    command = f"git -C own merge --ff-only evogit/own/land/{best[:7]}"
    assert f"merge with  {command}" in done.err
    subprocess.run(shlex.split(command), cwd=own.folder.parent, check=True)
    assert own.git("log", "-1", "--format=%s%n%b").splitlines()[:5] == [
        "raise it",
        "simple",
        "",
        "train: score 1 -> 2 (2.0x, higher is better)",
        "holdout: score 1 -> 2 (2.0x)",
    ]
    assert "what you merged of it stays merged" in cli("-C", "own", "undo", "-y").err
    assert own.git("branch", "-a") == branches
    again = cli("-C", "own", "land", "best", "--sandbox", "none", "-y")
    assert (again.code, "nothing to land" in again.err) == (4, True)


@pytest.mark.slow
def test_land_as_a_pull_request_sends_nothing_and_onto_another_branch_moves_nothing(cli: Cli, own: Own) -> None:
    best = own.add(2, own.seed, files=main(2), title="raise it")
    own.git("branch", "stable")
    own.git("remote", "add", "upstream", "/nowhere")
    done = cli("-C", "own", "land", "best", "--pr", "--onto", "stable", "--sandbox", "none", "-y")
    assert done.out.splitlines()[0] == "raise it"
    command = next(line for line in done.err.splitlines() if "gh pr create" in line).partition("gh ")[2]
    file = own.folder.parent / shlex.split(command)[-1]
    assert done.out.splitlines()[2:] == file.read_text().splitlines()
    assert f"git -C own push upstream evogit/own/land/{best[:7]}" in done.err
    done = cli("-C", "own", "land", "best", "--onto", "stable", "--sandbox", "none", "-y", "--json")
    [command] = done.json["commands"]
    assert command == f"git -C own fetch . evogit/own/land/{best[:7]}:stable"
    assert own.git("rev-parse", "stable") == own.seed
    subprocess.run(shlex.split(command), cwd=own.folder.parent, check=True, capture_output=True)
    assert own.git("rev-parse", "stable") == done.json["commit"]
    own.git("worktree", "add", "-q", "-b", "other", str(own.folder.parent / "tree"), own.seed)
    done = cli("-C", "tree", "land", "best", "--onto", "main", "--sandbox", "none", "-y", "--json")
    assert done.json["commands"] == [f"git -C {own.folder} merge --ff-only evogit/own/land/{best[:7]}"]
    done = cli("-C", "own", "land", "best", "--onto", "other", "--sandbox", "none", "-y", "--json")
    subprocess.run(shlex.split(done.json["commands"][0]), cwd="/", check=True, capture_output=True)
    assert own.git("rev-parse", "other") == done.json["commit"]
    assert own.git("rev-parse", "main") == own.seed


@pytest.mark.slow
def test_what_is_no_better_is_landed_only_by_force(cli: Cli, own: Own) -> None:
    worse = own.add(2, own.seed, files=main(1, "\n# a mere remark\n"))
    done = cli("-C", "own", "land", worse[:7], "--squash", "--sandbox", "none", "-y")
    assert done.code == 4
    assert "score on train is not better than the target's: 1 against 1; nothing was created (--force" in done.err
    assert own.git("branch", "--list", "evogit/*") == ""
    assert cli("-C", "own", "land", worse[:7], "--squash", "--sandbox", "none", "-y", "--force").code == 0


@pytest.mark.slow
def test_add_names_candidates_duplicates_and_what_is_refused(cli: Cli, own: Own) -> None:
    own.git("switch", "-q", "-c", "mine")
    good = own.save("to 3", main(3))
    plan = cli("-C", "own", "add", "mine", "main", "--dry-run", "--yes", "--json")
    assert plan.json["would_add"] == [{"commit": good, "parents": [own.seed]}]
    assert f"add  {good[:7]}  to 3  after {own.seed[:7]}" in plan.err
    assert "nothing was changed" in plan.err
    done = cli("-C", "own", "add", "mine", "main", "-m", "from Ada", "--json")
    assert done.json["added"] == [{"commit": good, "parents": [own.seed], "title": "to 3"}]
    assert done.json["known"] == {own.seed: own.seed}
    assert f"{good[:7]} is a candidate already" in cli("-C", "own", "add", good[:10]).err
    bad = own.save("bad", {"README.md": "mine\n"})
    done = cli("-C", "own", "add", "mine")
    assert done.code == 4
    assert f"expected changes to src/** only, but {bad[:7]} differs from the seed in README.md" in done.err
    assert cli("-C", "own", "add", "nosuch").code == 3
    assert [each["agent"] for each in cli("-C", "own", "log", "--json").lines] == ["human", "seed"]


@pytest.mark.slow
def test_rm_asks_and_removes_the_run(cli: Cli, own: Own) -> None:
    for branch in ("best", "human/ada"):
        own.repository.move_branch(f"refs/heads/evogit/own/{branch}", own.seed)
    assert "nothing was changed" in cli("-C", "own", "clean", "own", "--all", "--dry-run").err
    asked = cli("-C", "own", "clean", "own", "--all")
    assert (asked.code, "add --yes" in asked.err) == (4, True)
    assert "evogit/own/human/ada, with what you committed there" in asked.err
    assert own.git("branch", "--list", "evogit/*") != ""
    done = cli("-C", "own", "clean", "own", "--all", "-y", "--json")
    assert (done.json["run"], done.json["removed"]) == ("own", True)
    assert own.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert cli("-C", "own", "clean", "own", "--all", "-y").code == 3


@pytest.mark.slow
def test_what_a_changed_task_judges_is_said_to_be_judged_by_it_and_stands_beside_no_older_score(
    cli: Cli, own: Own
) -> None:
    own.add(2, own.seed, files=main(2))
    evaluator = own.folder / ".evogit" / "evaluate.py"
    evaluator.write_text(evaluator.read_text().replace(".value)", ".value * 10)"))
    landed = cli("-C", "own", "land", "best", "--sandbox", "none", "--dry-run")
    assert "the task changed since candidates of this run were evaluated" in landed.err
    assert "train score 10.000 20.000 +10.000 (2.0x) - " in " ".join(landed.err.split())
    judged = cli("-C", "own", "check", "--uncommitted", "--sandbox", "none")
    assert "the task changed since candidates of this run were evaluated" in judged.out
    assert judged.out.split()[-6:] == ["this", "score", "10.000", "train:", "score", "10"]
