"""`evogit init` in repositories of other people."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.cli.commands.init import tried_out
from evogit.cli.init_questions import Given, choose
from evogit.cli.terminal import Terminal
from evogit.config import Task, load_repository_task
from evogit.core import Cost, Evaluation, Evidence
from evogit.repository import Repository
from evogit.review.checking import SeedEvaluation, advice
from evogit.scaffold.project import Project
from evogit.scaffold.repository_files import Choices, files, write
from tests.plain_git import git

from .conftest import Cli
from .test_run import Screen

PROJECTS = Path(__file__).parent.parent / "projects"
MEASURED = {"sort.sh": "sleep 0\n", "bench.sh": "sh sort.sh; echo '{\"seconds\": 2.5}'\n"}
BY_HAND = ("--editable", "sort.sh", "--goal", "Sort fast.", "--command", "sh bench.sh", "--read", "seconds=json")


def commit(folder: Path) -> Path:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    def make(files: dict[str, str]) -> Path:
        for path, text in files.items():
            (tmp_path / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "repo" / path).write_text(text)
        return commit(tmp_path / "repo")

    return make


Make = Callable[[dict[str, str]], Path]


@pytest.mark.slow
def test_init_writes_two_things_and_judges_head(cli: Cli, repository: Make) -> None:
    folder = repository(MEASURED)
    (folder / "bench.sh").write_text("exit 1\n")
    before = {path: path.read_bytes() for path in (folder / ".git").rglob("*") if path.is_file()}
    done = cli("init", *BY_HAND, "--json", cwd=folder)
    assert done.code == 0, done.err
    assert "uncommitted edits are not evaluated" in done.err
    assert done.json["written"] == ["evogit.toml", ".evogit/README.md"]
    assert (done.json["evaluation"]["metrics"], done.json["evaluation"]["judged"]) == ({"seconds": 2.5}, "inside")
    assert {path: path.read_bytes() for path in (folder / ".git").rglob("*") if path.is_file()} == before
    assert git(folder, "status", "--porcelain") == " M bench.sh\n?? .evogit/\n?? evogit.toml\n"
    again = cli("init", *BY_HAND, cwd=folder)
    assert (again.code, "--force" in again.err) == (4, True)


@pytest.mark.slow
def test_a_failure_shows_the_output_and_what_to_change_and_leaves_the_files(cli: Cli, repository: Make) -> None:
    folder = repository({"sort.sh": "", "bench.sh": "echo begun; no-such-program\n"})
    options = (*BY_HAND, "--sandbox", "bubblewrap", "--force")
    done = cli("init", *options, cwd=folder)
    assert done.code == 1
    assert "HEAD fails (invalid)" in done.out
    assert "begun" in done.out
    assert "The sandbox lacks no-such-program, and so does this machine." in done.out
    assert ("for all users (Debian: apt-get install)" in done.out, "apt:" in done.out) == (True, False)
    program = folder.parent / "bin" / "no-such-program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = cli("init", *options, "--json", cwd=folder, PATH=f"{program.parent}:{os.environ['PATH']}")
    assert f"it has what is in /usr of this machine, and yours is {program}." in done.json["advice"]
    assert (folder / "evogit.toml").exists()


def test_below_a_monorepo_everything_is_named_from_the_root(cli: Cli, repository: Make) -> None:
    folder = repository({f"services/sorter/{name}": text for name, text in MEASURED.items()} | {"other.py": ""})
    done = cli("init", "services/sorter", *BY_HAND, "--dry-run", "--json", cwd=folder)
    toml = done.json["files"]["evogit.toml"]
    assert 'name = "sorter"' in toml
    assert 'directory = "services/sorter"' in toml
    assert 'editable = ["services/sorter/sort.sh"]' in toml
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("with_docker", [True, False])
def test_debian_packages_are_for_docker_alone(with_docker: bool) -> None:
    project = Project(tests="make test", editable=("src/**",), python=("numpy",), debian=("gcc",))
    given = Given(
        **{"goal": None, "editable": (), "command": None, "reads": (), "maximize": (), "minimize": ()},
        **{"prepare": None, "timeout": "1m", "name": None, "tests": None, "python": False, "ask": False, "take": True},
    )
    toml = files(choose(given, project, (), Path("/x/My Tool"), "", with_docker))["evogit.toml"]
    table = tomllib.loads(toml)
    assert table["sandbox"]["packages"] == (["numpy", "apt:gcc"] if with_docker else ["numpy"])
    assert "apt:gcc" in toml
    assert (table["name"], table["evaluator"]["read"]) == ("my-tool", {"cpu_seconds": "cpu"})


def test_without_a_terminal_it_asks_nothing_but_says_what_it_needs(cli: Cli, repository: Make) -> None:
    folder = repository({"Makefile": "test:\n\techo\n", "main.c": ""})
    assert "expected --command or --yes" in cli("init", cwd=folder).err
    unknown = cli("init", "--command", "make x", "--read", "quux=json", "--yes", cwd=folder)
    assert (unknown.code, "--maximize quux or --minimize quux" in unknown.err) == (2, True)
    assert "--python takes no --read" in cli("init", "--python", "--read", "a=json", cwd=folder).err
    assert not (folder / "evogit.toml").exists()


def test_what_cannot_be_improved_is_refused_before_anything_is_written(cli: Cli, repository: Make) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"
    folder = repository({**MEASURED, "data/a.bin": pointer})
    done = cli("init", *BY_HAND, "--dry-run", cwd=folder)
    assert (done.code, "data/a.bin: pointers of Git LFS" in done.err) == (2, True)
    done = cli("init", *BY_HAND[2:], "--editable", "src/**", "--dry-run", cwd=folder)
    assert (done.code, "no file of the commit at HEAD matches src/**" in done.err) == (2, True)
    assert not (folder / "evogit.toml").exists()


@pytest.mark.slow
def test_answers_are_in_the_file_also_where_head_cannot_be_a_seed(cli: Cli, repository: Make) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"
    folder = repository({**MEASURED, "data/a.bin": pointer, ".gitignore": ".*\n"})
    done = cli("init", *BY_HAND, cwd=folder)
    assert (done.code, 'excluded = ["data/a.bin"]' in done.err) == (2, True)
    assert "Git ignores .evogit/" in done.err
    toml = folder / "evogit.toml"
    toml.write_text('excluded = ["data/a.bin"]\n' + toml.read_text())
    assert cli("check", cwd=folder).code == 0


JUMPS = """echo '{"share": '$(od -An -N2 -tu2 /dev/urandom)'}'\n"""
"""A number that neither its name nor the way that it is read calls noisy."""


@pytest.mark.slow
def test_a_score_that_does_not_repeat_is_found_out_and_repeats_are_set(cli: Cli, repository: Make) -> None:
    folder = repository({"sort.sh": "", "bench.sh": JUMPS})
    options = (*BY_HAND[:-1], "share=json", "--maximize", "share")
    done = cli("init", *options, cwd=folder)
    assert done.code == 0, done.err
    assert re.search(r"share was \d+ to \d+ in 3 evaluations, [\d.]+ % apart", done.out)
    assert load_repository_task(folder).repeats == 3
    assert "can prove is about" in done.out
    done = cli("check", cwd=folder)
    assert (done.code, "can prove is about" in done.out) == (0, True)


@pytest.mark.slow
def test_a_number_is_measured_after_the_tests_and_without_their_cpu(cli: Cli, repository: Make) -> None:
    burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    folder = repository({"sort.sh": "", "test.sh": f"{burn}; touch tested\n", "bench.sh": "test -e tested\n"})
    options = (*BY_HAND[:-1], "seconds=cpu", "--tests", "sh test.sh")
    done = cli("init", *options, "--json", cwd=folder)
    assert done.code == 0, done.err
    evaluation = done.json["evaluation"]
    assert evaluation["metrics"]["seconds"] < evaluation["cost"]["cpu"] / 4
    assert (
        "sh test.sh (must exit with 0; what follows is measured)\nsh bench.sh\n"
        in cli("show", "--brief", cwd=folder).out
    )
    done = cli("init", *options[:-1], "exit 3", "--force", cwd=folder)
    assert (done.code, "HEAD fails (invalid): the tests ended with exit code 3" in done.out) == (1, True)


@pytest.mark.slow
def test_tests_that_fail_only_beside_another_evaluation_are_called_flaky(
    cli: Cli, repository: Make, tmp_path: Path
) -> None:
    (tmp_path / "beside").mkdir()
    script = f"cd {tmp_path}/beside; touch $$; sleep 1; n=$(ls | wc -l); sleep 1; rm $$; test $n = 1\n"
    folder = repository({**MEASURED, "watch.sh": script})
    done = cli("init", *BY_HAND, "--tests", "sh watch.sh", "--sandbox", "none", "--yes", "--json", cwd=folder)
    assert (done.code, done.json["evaluations"]) == (1, 3), done.err
    advice = done.json["advice"]
    assert "failed 2 of 3 times" in advice
    assert "retry = 1" in advice
    assert "exclusive = true" in advice
    assert "clone" not in advice


@pytest.mark.slow
def test_a_run_whose_seed_failed_takes_the_mended_commit(cli: Cli, repository: Make) -> None:
    folder = repository({**MEASURED, "bench.sh": "exit 3\n"})
    assert cli("init", *BY_HAND, "--name", "night", cwd=folder).code == 1
    (folder.parent / "replies.txt").write_text("%%\nnothing to say\n")
    model = ("--agent", f"editor@script:{folder.parent}/replies.txt", "--yes")
    evolve = ("run", *model, "--evaluations", "1", "--proposals", "1")
    failed = cli(*evolve, cwd=folder)
    assert failed.code != 0
    assert "commit that, or its evaluator, test it with `evogit check`, and do the same again" in failed.err
    (folder / "bench.sh").write_text(MEASURED["bench.sh"])
    git(folder, "commit", "-q", "-a", "-m", "mended")
    mended = cli(*evolve, cwd=folder)
    assert mended.code == 0, mended.err
    assert "which failed: it begins anew" in mended.err
    assert cli("show", "seed", "--json", cwd=folder).json["commit"] == git(folder, "rev-parse", "HEAD").strip()
    assert "begins anew" not in cli(*evolve, cwd=folder).err


def test_what_is_no_repository_to_improve_is_refused_in_a_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    nowhere = cli("init", "--yes", cwd=tmp_path)
    assert (nowhere.code, "lie in a Git repository" in nowhere.err) == (3, True)
    assert "expected a commit at HEAD" in cli("init", "--yes", cwd=tmp_path / "empty").err
    assert "is bare" in cli("init", "--yes", cwd=tmp_path / "bare.git").err
    assert "Directory 'misspelt' does not exist" in cli("init", "misspelt", "--yes", cwd=tmp_path / "empty").err


@pytest.mark.slow
def test_a_person_is_asked_and_may_answer_nonsense(repository: Make) -> None:
    folder = repository({**MEASURED, "sort.c": "", "Makefile": "bench:\n\tsh bench.sh\n"})
    screen = Screen("init", "repo", cwd=folder.parent)
    screen.press(
        "\n\n\nspeed=often\nspeed=regex:([0-9.]+)\nup\nhigher\nit's\nsrc/**\n/x\nsort.c\n'\nhidden/**\nBe quick.\n"
    )
    assert screen.end() == 0, screen.text
    for words in ("expected one of", "no closing quotation", "matches none", "without .."):
        assert words in screen.text
    task = load_repository_task(folder)
    assert (task.goal, task.editable, task.withheld[0]) == ("Be quick.", ("sort.c",), "hidden/**")
    assert (task.primary.name, task.primary.direction) == ("speed", "maximize")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c", "javascript"])
def test_real_projects_are_ready_with_what_was_found(cli: Cli, tmp_path: Path, name: str) -> None:
    shutil.copytree(PROJECTS / name, tmp_path / name)
    done = cli("init", "--yes", "--json", cwd=commit(tmp_path / name))
    assert done.code == 0, done.out + done.err
    assert done.json["evaluation"]["metrics"]["milliseconds"] > 0
    assert cli("check", cwd=tmp_path / name).code == 0


@pytest.mark.slow
def test_a_judge_in_python_compares_with_the_seed_from_outside(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "c", tmp_path / "c")
    done = cli("init", "--yes", "--python", "--prepare", "make build/bench", "--json", cwd=commit(tmp_path / "c"))
    assert done.code == 0, done.out + done.err
    assert done.json["evaluation"]["judged"] == "outside"
    assert 0.2 < done.json["evaluation"]["metrics"]["speedup"] < 5
    assert load_repository_task(tmp_path / "c").evaluator.name == "evaluate.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checks", "bench", "kept"), [("exit 0", "", True), ("exit 1", "", False), ("exit 1", "exit 3\n", True)]
)
def test_checks_that_head_fails_are_left_out_unless_it_fails_anyway(
    repository: Make, checks: str, bench: str, kept: bool
) -> None:
    place = Repository.open(repository({**MEASURED, "bench.sh": bench + MEASURED["bench.sh"]}))
    choices = Choices(
        name="sort",
        goal="Sort fast.",
        editable=("sort.sh",),
        work="sh bench.sh",
        reads={"seconds": "json"},
        directions={"seconds": "minimize"},
        checks=checks,
    )
    write(place.path, files(choices), force=True)
    task, judged = tried_out(Terminal("never", json=True), place, choices, "none")
    assert task.command
    assert (task.command.tests == checks, bool(judged.failed)) == (kept, bool(bench))


@pytest.mark.slow
def test_a_head_that_fails_now_and_then_is_set_up_with_a_retry(cli: Cli, repository: Make, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    script = f"mkdir {tmp_path}/there/first && exit 1; exit 0\n"
    folder = repository({**MEASURED, "once.sh": script})
    done = cli("init", *BY_HAND, "--tests", "sh once.sh", "--sandbox", "none", "--yes", "--json", cwd=folder)
    assert done.code == 0, done.err
    command = load_repository_task(folder).command
    assert command
    assert command.retry == 1


def test_a_failure_on_a_busy_machine_is_not_looked_for_in_a_fresh_clone(tiny: Callable[..., Task]) -> None:
    task = tiny()

    def told(waited: float) -> str:
        cost = Cost(wall=10.0, waited=waited)
        failed = Evaluation(status="invalid", reason="the tests ended with exit code 1", cost=cost)
        return advice(task, SeedEvaluation(failed, Evidence(), "bubblewrap", "counted", (failed, failed)))

    assert "clone" in told(0.1)
    assert "clone" not in told(5.0)
    assert "retry" in told(5.0)
    assert "exclusive" in told(5.0)


def test_advice_names_a_file_that_git_ignores_and_a_repository_that_is_missing(
    repository: Make, tmp_path: Path
) -> None:
    folder = repository({**MEASURED, ".gitignore": "words.txt\n"})
    (folder / "words.txt").write_text("a\n")
    (folder / "evogit.toml").write_text(
        'name = "t"\ngoal = "g"\neditable = ["sort.sh"]\n[metrics.seconds]\ndirection = "minimize"\n'
        '[evaluator]\nkind = "command"\ncommand = "sh bench.sh"\nread = {seconds = "json"}\n'
    )
    task = load_repository_task(folder)

    def advised(stderr: str) -> str:
        failed = Evaluation(status="invalid", reason="the tests ended with exit code 1")
        return advice(task, SeedEvaluation(failed, Evidence(stderr=stderr.encode()), "bubblewrap", "counted"))

    assert "words.txt" in advised("FileNotFoundError: [Errno 2] No such file or directory: 'words.txt'")
    assert "words.txt" in advised("cat: words.txt: No such file or directory")
    assert "words.txt" not in advised("No such file or directory: 'other.txt'")
    assert "Git repository" in advised("Command '['git', 'ls-files']' returned non-zero exit status 128.")
