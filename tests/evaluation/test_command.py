"""What a command in the sandbox says is read with care, and what evaluates it lies there as it was written."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task, load_repository_task
from evogit.config.values import EvaluationCommand, MetricReader
from evogit.core import BaseFiles, Evaluation, Files, UsageError
from evogit.evaluation.command import case_of, in_time
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.junit import MOST_XML
from evogit.evaluation.program import Invalid, Ran
from evogit.evaluation.scorer import Scorer
from evogit.evaluation.seed_files import packed_seed
from evogit.repository import Repository
from evogit.review.uncommitted import candidate_files
from evogit.sandbox.archive import entries_of, pack
from evogit.sandbox.providers import provider
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.session import Sandbox
from tests.cli.conftest import Cli, cli  # noqa: F401
from tests.sandbox.test_workers import archive

TOML = """\
name = "own"
goal = "Improve it."
editable = ["src/**"]
withheld = ["tests/hidden/**", "secret_*.txt"]
excluded = ["big/**"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "command"
command = {command}
splits = ["train", "holdout"]
{more}
[evaluator.read]
score = {read}
[sandbox]
timeout = "60s"
{sandbox}
"""
FILES = {
    "src/main.sh": ("echo '{\"score\": 7}'\n", 0o100755),
    "tests/hidden/test.sh": ("echo hidden; test -e src/main.sh\n", 0o100755),
    "tests/visible.txt": ("visible", 0o100644),
    "secret_one.txt": ("one", 0o100644),
    "big/data.bin": ("large", 0o100644),
    ".evogit/old": ("of the commit", 0o100644),
    "evogit.toml": ("of the commit", 0o100644),
}

Judged = Callable[..., tuple[Evaluation, str]]


def own_repository(
    folder: Path,
    command: str,
    read: str = "json",
    more: str = "",
    sandbox: str = "",
    own: Mapping[str, str] | None = None,
) -> tuple[Task, Repository, str]:
    """A person's repository with an evogit.toml and a file for the judge: its task, itself, and its tree."""
    repository = Repository.create(folder)
    contents: dict[str, bytes | None] = {path: text.encode() for path, (text, _) in FILES.items()}
    tree = repository.trees.write(None, contents, {path: mode for path, (_, mode) in FILES.items()})
    toml = TOML.format(command=json.dumps(command), read=json.dumps(read), more=more, sandbox=sandbox)
    (folder / "evogit.toml").write_text(toml)
    (folder / ".evogit").mkdir()
    (folder / ".evogit" / "conf").write_text("of the working tree")
    for path, text in (own or {}).items():
        (folder / ".evogit" / path).parent.mkdir(exist_ok=True)
        (folder / ".evogit" / path).write_text(text)
    return load_repository_task(folder), repository, tree


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    found = provider(request.param)
    yield found
    found.close()


@pytest.fixture
def judged(tmp_path: Path, sandbox: Sandbox) -> Judged:
    """Evaluates a candidate, given as what differs from the seed; what was said of it comes along."""

    def judge(
        command: str,
        read: str = "json",
        *,
        changed: Mapping[str, str] | None = None,
        removed: tuple[str, ...] = (),
        split: str = "train",
        **more: Any,
    ) -> tuple[Evaluation, str]:
        task, repository, tree = own_repository(tmp_path / "own", command, read, **more)
        files = Files(archive(changed or {}), removed, asyncio.run(packed_seed(repository, tree, task)))
        told: list[Mapping[str, Any]] = []
        evaluation, evidence = Scorer(task, sandbox, told.append).evaluate(split, 0, files, {})
        return evaluation, "\n".join([*(each["feedback"] for each in told), evidence.log])

    return judge


def test_a_misspelt_split_is_refused_as_no_command_would_notice_it(tmp_path: Path) -> None:
    task, _, _ = own_repository(tmp_path / "own", "true")
    task.check_split("train")
    with pytest.raises(UsageError, match=r"expected a split of own \(train, holdout\), got 'trian'"):
        task.check_split("trian")


def test_a_number_is_read_from_the_last_json_line(judged: Judged) -> None:
    evaluation, feedback = judged("sh src/main.sh; echo done; echo {not json")
    assert (evaluation.status, evaluation.metrics) == ("ok", {"score": 7.0})
    assert 'last lines of stdout:\n{"score": 7}\ndone' in feedback


def test_files_of_a_split_are_laid_for_that_split_alone(judged: Judged, tmp_path: Path) -> None:
    own = {"holdout/cases.txt": "SECRET", "train/cases.txt": "known"}
    look = "cat .evogit/*/cases.txt; ls .evogit; sh src/main.sh"
    _, train = judged(look, own=own)
    assert ("known" in train, "SECRET" in train, "conf" in train) == (True, False, True)
    shutil.rmtree(tmp_path / "own")
    _, holdout = judged(look, own=own, split="holdout")
    assert ("known" in holdout, "SECRET" in holdout, "conf" in holdout) == (False, True, True)


def test_a_command_sees_what_is_withheld_but_the_candidate_cannot_change_it(judged: Judged) -> None:
    look = "find . -type f | sort; cat .evogit/conf tests/hidden/test.sh; echo; sh src/main.sh"
    attack = """
for name in secret_one.txt tests/hidden/test.sh .evogit/conf .evogit/new tests/hidden/new; do
    echo forged > $name; rm -f $name; mv src/main.sh $name
done
mv tests moved; mv .evogit moved; rm -rf tests .evogit; test -x tests/hidden/test.sh && echo '{"score": 1}'
"""
    evaluation, feedback = judged(f"{look}; {look}", changed={"src/main.sh": attack, "tests/visible.txt": "mine"})
    assert (evaluation.status, evaluation.metrics) == ("ok", {"score": 1.0})
    whole = ["./.evogit/conf", "./secret_one.txt", "./src/main.sh", "./tests/hidden/test.sh"]
    assert "\n".join([*whole, "./tests/visible.txt", "of the working treeecho hidden"]) in feedback
    assert "\n".join([*whole, "of the working treeecho hidden"]) in feedback


@pytest.mark.parametrize(
    "changed",
    [{"tests": "-> /tmp"}, {".evogit": "a file"}, {"secret_one.txt/below": "x"}, {"tests/hidden": "-> visible.txt"}],
)
def test_a_candidate_with_something_else_in_the_place_of_hidden_files_is_invalid(
    judged: Judged, changed: dict[str, str]
) -> None:
    evaluation, _ = judged("sh src/main.sh", changed=changed)
    assert evaluation.status == "invalid"
    assert f"{next(iter(changed))} is in the way of what the evaluator needs there" in evaluation.reason


async def test_what_a_person_committed_over_hidden_files_is_not_looked_at(tmp_path: Path) -> None:
    task, repository, seed = own_repository(tmp_path / "own", "true")
    own = {"src/main.sh": b"mine", "tests/hidden/test.sh": b"forged", ".evogit/new": b"x", "big/data.bin": b"y"}
    files = await candidate_files(repository, task, seed, repository.trees.write(seed, own))
    assert [entry[0] for entry in entries_of(files.changed)[0]] == ["src/main.sh"]
    assert files.base
    hidden = {path for path, *_ in entries_of(files.base.archive)[0]}
    assert hidden == FILES.keys() - {"big/data.bin", "evogit.toml"}


JUNIT = """<testsuites><testsuite>
<testcase classname="a.B" name="one"/>
<testcase classname="a.B" name="two"><failure message="2 != 3">trace</failure></testcase>
<testcase name="three"><error>\nno such thing\n</error><system-out>noise</system-out></testcase>
<testcase name="four"><skipped/></testcase>
<testcase name="five"><properties/></testcase>
</testsuite></testsuites>"""


def ran(stdout: str = "", stderr: str = "", code: int | None = 0, report: str | None = None) -> Ran:
    """How a command ended that could have written a report."""
    signal = None if code is not None else 9
    files = {} if report is None else {"src/out/r.xml": report.encode()}
    return Ran(code, signal, stdout, stderr, cpu=0.25, wall=0.5, memory=1, breach=None, files=files)


def read_as(read: str) -> EvaluationCommand:
    return EvaluationCommand(text="", reads={"score": MetricReader.parse(read)}, directory="src")


@pytest.mark.parametrize(
    ("read", "ended", "value"),
    [
        ("junit:out/r.xml", ran(report=f"<a>{'<testcase/>' * 9}</a>"), 1.0),
        ("exit", ran(), 1.0),
        ("exit", ran(code=3), 0.0),
        ("exit", ran(code=None), 0.0),
        ("regex:took ([0-9.e]+) ms", ran("took 2.5 ms, took 1.5e1 ms\nend\n", "took 9 ms"), 15.0),
        (r"regex:\d+", ran("none", "of 4 or 12"), 12.0),
        (r"regex:took ([\d.]+)(?P<unit>ms|s)?", ran("took 250ms"), 0.25),
        (r"regex:took ([\d.]+)(?P<unit>ms|s)?", ran("took 250"), 250.0),
        ("json:a.b", ran('{"a": {"b": 2}, "a.c": 3}\n{not json'), 2.0),
        ("json:a.c", ran('{"a": {"b": 2}, "a.c": 3}'), 3.0),
        ("json", ran('{"score": 1}\n{"score": -2e3}\nbye'), -2000.0),
        ("junit:out/r.xml", ran(code=1, report=JUNIT), 0.5),
        ("cpu", ran(), 0.25),
        ("wall", ran(), 0.5),
    ],
)
def test_ways_to_read(read: str, ended: Ran, value: float) -> None:
    case = case_of(read_as(read), ended)
    assert (case.name, case.metrics) == ("command", {"score": value})
    if ended.files and value < 1:
        assert case.feedback == "2 of 4 test cases failed.\n\na.B.two: 2 != 3\ntrace\n\nthree: no such thing"


def test_other_numbers_are_kept_under_plain_names_alone() -> None:
    names = ["score", "p99.ms", "_peak-2", "x" * 60, "x" * 61, "two words", "1st", "naïve", "", "a=b", "line\n"]
    case = case_of(read_as("json"), ran(json.dumps(dict.fromkeys(names, 1))))
    assert set(case.beside) == {"p99.ms", "_peak-2", "x" * 60}


@pytest.mark.parametrize(
    ("read", "ended"),
    [
        ("json", ran('{"score": 7}', "bad news", code=2)),
        ("json", ran('{"score": 7}', code=None)),
        ("json", ran("7")),
        ("json", ran('{"a": 7}')),
        ("json", ran('{"score": true}')),
        ("json", ran('{"score": NaN}')),
        ("json", ran('{"score": 1' + "0" * 400 + "}")),
        ("regex:score (.*)", ran("score nan")),
        ("regex:score (.*)", ran("score much")),
        ("regex:score (.*)", ran("7")),
        ("regex:score (.*)", ran()),
        ("junit:out/r.xml", ran(code=4)),
        ("junit:out/r.xml", ran(report="<testsuite>")),
        ("junit:out/r.xml", ran(report="<testsuite/>")),
        ("junit:out/r.xml", ran(report='<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><a><testcase/>&c;</a>')),
        pytest.param("junit:out/r.xml", ran(report=f"<a>{'<testcase/>' * 100_001}</a>"), marks=pytest.mark.slow),
        ("junit:out/r.xml", ran(report="<a><testcase/></a>" + " " * MOST_XML)),
    ],
)
def test_what_says_no_number_is_invalid(read: str, ended: Ran) -> None:
    with pytest.raises(Invalid) as caught:
        case_of(read_as(read), ended)
    assert caught.value.log.endswith(ended.stderr)


def test_a_pattern_that_takes_for_ever_on_some_output_is_broken_off() -> None:
    with pytest.raises(Invalid) as caught, in_time(0.05):
        case_of(read_as("regex:(a+)+ ms"), ran("a" * 60))
    assert caught.value.reason == "its output cannot be read within 0.05 s of CPU time"


def test_where_and_how_a_command_runs(judged: Judged) -> None:
    burn = "end=$(($(date +%s%N) + 30000000)); while [ $(date +%s%N) -lt $end ]; do :; done"
    tell = f"pwd; cat ../tests/visible.txt; echo $EVOGIT_SPLIT; echo seed=$EVOGIT_SEED; {burn}"
    evaluation, feedback = judged(tell, "cpu", split="holdout", more='directory = "src"')
    assert 0 < evaluation.metrics["score"] < 5
    assert "/work/src\nvisibleholdout" in feedback
    assert re.search(r"seed=\d+\n", feedback)


def test_a_profile_is_told_that_a_command_prints_before_its_numbers(judged: Judged) -> None:
    bench = "import sys\ndef work():\n    return sum(range(10**5))\nwork()\n"
    bench += "print('{\"score\": %d}' % (1 + ('cProfile' in sys.modules)))\n"
    command = "python3 -m cProfile -s tottime src/bench.py | head -n 30; python3 src/bench.py"
    evaluation, feedback = judged(command, changed={"src/bench.py": bench})
    assert (evaluation.status, evaluation.metrics) == ("ok", {"score": 1.0})
    assert re.search(r"ncalls +tottime(?s:.*)bench.py:2\(work\)", feedback)


@pytest.mark.slow
def test_what_fails_is_run_again_and_the_evaluation_tells_so(
    judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation, _ = judged("echo no; exit 3", more="retry = 1")
    assert evaluation.reason == "the command ended with exit code 3"
    told = "the command ended with exit code 3; all was run again, from the candidate's files alone\n"
    assert capsys.readouterr().out == told


@pytest.mark.slow
def test_a_flaky_test_is_forgiven_and_finds_nothing_of_the_first_try(
    tmp_path: Path, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    flaky = "tests = 'test ! -e left; touch left; test $(od -An -N1 -tu1 /dev/urandom) -lt 128'\nretry = 10"
    task, repository, tree = own_repository(tmp_path / "own", "test -e left && sh src/main.sh", more=flaky)
    files = Files(archive({}), (), asyncio.run(packed_seed(repository, tree, task)))
    scorer = Scorer(task, sandbox, lambda _: None)
    for _ in range(100):  # a coin that falls the same way so often is none
        evaluation, _ = scorer.evaluate("train", 0, files, {})
        said = capsys.readouterr().out
        if evaluation.ok and "the tests ended with exit code 1; all was run again" in said:
            break
    assert evaluation.metrics == {"score": 7.0}


def test_how_often_it_is_tried_is_no_part_of_how_scores_come_about(tmp_path: Path) -> None:
    plain, *_ = own_repository(tmp_path / "plain", "true")
    again, *_ = own_repository(tmp_path / "again", "true", more="retry = 2")
    tests, *_ = own_repository(tmp_path / "tests", "true", more="tests = 'make test'")
    comma, *_ = own_repository(tmp_path / "comma", "true", more="decimal = ','")
    believes, *_ = own_repository(tmp_path / "believes", "true", more="ignored_failures = ['error']")
    assert len({each.evaluator_digest for each in (plain, comma, believes)}) == 3
    assert comma.parts.keys() - plain.parts.keys() == {"decimal"}
    assert believes.parts.keys() - plain.parts.keys() == {"ignored_failures"}
    assert plain.evaluator_digest == again.evaluator_digest != tests.evaluator_digest
    assert plain.parts == again.parts
    assert tests.parts.keys() - plain.parts.keys() == {"tests"}


@pytest.mark.slow
def test_a_report_of_an_earlier_run_does_not_count(judged: Judged) -> None:
    evaluation, _ = judged("exit 4", "junit:src/old.xml", changed={"src/old.xml": "<a><testcase name='x'/></a>"})
    assert evaluation.reason.startswith("the command wrote no JUnit report")


@pytest.mark.slow
def test_a_limit_is_told_as_what_it_is(judged: Judged) -> None:
    evaluation, _ = judged("yes", "exit")
    assert (evaluation.status, evaluation.reason) == (
        "output-limit",
        "wrote more than 1048576 bytes of output in run 1",
    )


def test_a_link_cannot_be_withheld_alone(judged: Judged, tmp_path: Path) -> None:
    task, repository, _ = own_repository(tmp_path / "own", "true", "exit")
    base = BaseFiles("linked", archive({"secret_link.txt": "-> /etc/passwd", "src/main.sh": "x"}))
    evaluation, _ = Scorer(task, Bubblewrap(), lambda _: None).evaluate("train", 0, Files(pack({}), (), base), {})
    assert evaluation.status == "evaluator-error"
    assert "withheld: secret_link.txt is a symbolic link" in evaluation.reason


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_what_was_prepared_is_under_every_candidate(judged: Judged) -> None:
    prepare = "prepare = 'mkdir ../built; cp main.sh ../built; echo no > ../tests/hidden/test.sh; true'"
    command = "sh ../built/main.sh; sh ../tests/hidden/test.sh; touch ../tests/hidden/new"
    evaluation, feedback = judged(
        f"{command} || true", more=f'directory = "src"\n{prepare}', changed={"src/main.sh": "no"}
    )
    assert evaluation.metrics == {"score": 7.0}
    assert "hidden" in feedback


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_prepare_that_fails_is_the_evaluators_error(judged: Judged) -> None:
    evaluation, log = judged("true", "exit", more='prepare = "echo no compiler >&2; exit 7"')
    assert evaluation.status == "evaluator-error"
    assert evaluation.reason.startswith("prepare() failed on the seed: evaluator.prepare ended with exit code 7")
    assert "no compiler" in log


async def test_an_evaluation_by_a_command_says_that_it_was_judged_inside(tmp_path: Path) -> None:
    task, repository, tree = own_repository(tmp_path / "own", "sh src/main.sh")
    base = await packed_seed(repository, tree, task)
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        with pytest.raises(UsageError, match="needs the seed's files"):
            await evaluator.evaluate(tree, pack({}), split="train")
        evaluation, evidence = await evaluator.evaluate(tree, Files(pack({}), (), base), split="train")
    assert (evaluator.judged, evaluation.judged, evaluation.cases) == ("inside", "inside", {"command": {"score": 7.0}})
    assert evaluation.key == evaluator.key(tree, "train", base=base.id) != evaluator.key(tree, "train", base="other")
    assert '{"score": 7}' in evidence.feedback["command"]


@pytest.mark.slow
def test_every_display_says_that_the_judge_was_inside(tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    folder = tmp_path / "own"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("A = 1.5\n")
    toml = TOML.format(command=json.dumps('echo "{\\"score\\": 1}"'), read=json.dumps("json"), more="", sandbox="")
    (folder / "evogit.toml").write_text(toml)
    for argv in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "it")):
        subprocess.run(["git", *argv], cwd=folder, check=True)

    def evogit(*argv: str) -> str:
        done = cli(*argv, cwd=folder)
        assert done.code == 0, done
        return done.out + done.err

    shown = [evogit("check", "--sandbox", "bubblewrap", ".")]
    shown += [evogit("run", ".", "--evaluations", "3", "--agents", "1", "--sandbox", "bubblewrap")]
    shown += [evogit(*words) for words in (("status",), ("show", "best"), ("graph",), ("log",), ("report",))]
    shown += [
        subprocess.check_output(["git", "log", "-1", "--notes=evogit/own", "evogit/own/best"], cwd=folder, text=True)
    ]
    assert [text for text in shown if "judged: inside" not in text] == []
    assert all(json.loads(line)["judged"] == "inside" for line in evogit("log", "--json").splitlines())


FAST = b"""
from collections import Counter
def most_common(text, count):
    counted = Counter(text.split())
    return sorted(counted, key=lambda word: (-counted[word], word))[:count]
"""
WRONG = b"def most_common(text, count): return sorted(text.split())[:count]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "forged", "wrong"),
    [("inside", ("ok", {"seconds": 0}), "invalid"), ("outside", ("crashed", {}), "invalid")],
)
async def test_the_guides_judge_outside_is_not_fooled_and_the_one_inside_is(
    tmp_path: Path, place: str, forged: tuple[str, dict[str, float]], wrong: str
) -> None:
    repository = Repository.create(tmp_path / place)
    guide = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    blocks = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE))
    for name in (name for name in blocks if name.startswith(f"{place}/")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(blocks[name])
    seed = repository.trees.write(None, {"src/words.py": blocks["words/src/words.py"].encode()})
    task = load_repository_task(tmp_path / place)
    base = await packed_seed(repository, seed, task)
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        evaluations = [
            (await evaluator.evaluate(f"{number}", Files(pack(files), (), base), split="train"))[0]
            for number, files in enumerate(
                [
                    {},
                    {"src/words.py": FAST},
                    {"src/words.py": WRONG},
                    {"src/words.py": blocks["forged/src/words.py"].encode()},
                ]
            )
        ]
    before, after = (evaluation.metrics[task.primary.name] for evaluation in evaluations[:2])
    assert task.primary.gain(after, before) > 0
    assert evaluations[2].status == wrong
    assert (evaluations[3].status, evaluations[3].metrics) == forged
