"""What the commands that look at a run print, in text and as JSON."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from evogit.cli.group import FIRST_WEEK, SECTIONS
from evogit.cli.text import percent
from evogit.events import FailedProposal

from .conftest import EVOGIT, Cli, Small, Story


def steady(text: str, small: Small) -> str:
    """Ids by name, ages by a constant."""
    for name in ("seed", "step", "fail", "left", "right", "dead", "merge"):
        text = text.replace(getattr(small, name)[:7], name.ljust(7, "."))
    return re.sub(r" \d+[smhd]\b", lambda age: "1s".rjust(len(age[0])), text)


GRAPH = """\
run toy · 7 candidates · 2 agents
 score     gain       age  agent  candidate
2.0000  +0.3000  ★─╮   1s  a1     merge..  merge: start and step size  ← best, a1
1.6000  +0.1000  │ ●   1s  a2     right..  adaptive step size  ← a2
1.7000  +0.2000  ● │   1s  a1     left...  corner circles first
1.5000  +0.5000  ●─╯   1s  a1     step...  replace greedy start  ▸1
1.0000           ◆     1s  a1     seed...  Seed  ▸1
★ best  ● scored  ○ failed  ◆ seed  ✚ promoted  ✂ pruned  two parents: merge or graft
▸ 2 candidates folded: --all shows them
"""


def test_the_graph_is_a_skeleton_with_merges_as_second_edges(cli: Cli, small: Small) -> None:
    assert steady(cli("-C", "repo", "graph").out, small) == GRAPH


def test_the_whole_graph_folds_nothing(cli: Cli, small: Small) -> None:
    shown = steady(cli("-C", "repo", "graph", "--all").out, small)
    lanes = [re.split(r"\s+1s\s", line)[0].split("  ")[-1].strip() for line in shown.splitlines()[2:9]]
    assert lanes == ["★─╮", "│ │ ●", "│ ● │", "● │ │", "│ │ │ ○", "●─┴─╯ │", "◆─────╯"]
    assert "folded" not in shown


def test_graph_as_json_names_candidates_and_edges(cli: Cli, small: Small) -> None:
    found = cli("-C", "repo", "graph", "--json", "--all").json
    by_id = {each["commit"]: each for each in found["candidates"]}
    assert set(by_id) == set(vars(small).values()) - {small.folder}
    assert {"child": small.merge, "parent": small.right, "index": 1, "kind": "merge"} in found["edges"]
    assert len(found["edges"]) == 7
    assert by_id[small.fail]["status"] == "timeout"


def test_log_lists_the_newest_first_and_filters(cli: Cli, small: Small) -> None:
    ids = [line["commit"] for line in cli("-C", "repo", "log", "--json").lines]
    assert ids == [small.merge, small.dead, small.right, small.left, small.fail, small.step, small.seed]
    assert [line["commit"] for line in cli("-C", "repo", "log", "--json", "--failed").lines] == [small.fail]
    assert {line["agent"] for line in cli("-C", "repo", "log", "--json", "--agent", "a2").lines} == {"a2"}
    assert len(cli("-C", "repo", "log", "-n", "2").out.splitlines()) == 2


def test_log_objects_have_the_fixed_shape(cli: Cli, small: Small) -> None:
    lines = {line["commit"]: line for line in cli("-C", "repo", "log", "--json").lines}
    merge, fail = lines[small.merge], lines[small.fail]
    fixed = {"schema", "commit", "parents", "agent", "operator", "status", "metrics", "pruned", "promoted"}
    assert fixed <= set(merge)
    assert merge["schema"] == 1
    assert merge["parents"] == [small.left, small.right]
    assert [lines[each]["operator"] for each in (small.seed, small.step, small.merge)] == ["seed", "mutation", "merge"]
    assert merge["metrics"] == {"score": 2.0}
    assert (fail["status"], fail["metrics"]) == ("timeout", {})
    assert (merge["pruned"], merge["promoted"]) == (False, False)


def test_status_is_one_object_of_the_fixed_shape(cli: Cli, small: Small) -> None:
    found = cli("-C", "repo", "status", "--json").json
    assert (found["schema"], found["run"], found["task"]) == (1, "toy", "toy")
    assert (found["evaluated"], found["failed"]) == (7, 1)
    best = {"commit": small.merge, "metrics": {"score": 2.0}, "holdout": {"score": 1.9}}
    seed = {"commit": small.seed, "metrics": {"score": 1.0}, "holdout": {"score": 1.1}}
    assert found["best"] == {**best, "interval": [2.0, 2.0], "holdout_interval": [1.9, 1.9]}
    assert found["seed"] == {**seed, "interval": [1.0, 1.0], "holdout_interval": [1.1, 1.1]}
    assert (found["repeated"], found["tied"]) == (0, [])
    assert found["agents"] == [
        {"name": "a1", "ref": "refs/heads/evogit/toy/a1", "commit": small.merge},
        {"name": "a2", "ref": "refs/heads/evogit/toy/a2", "commit": small.right},
    ]
    assert found["gap_closed"] == 0.5
    assert found["stopped_because"] == "evaluations"


def test_status_measures_how_many_lines_the_agents_are_worth_and_warns_of_one(cli: Cli, tmp_path: Path) -> None:
    story = Story(tmp_path / "one")
    seed = story.add(1.0)
    first, _ = (story.add(value, seed, adopt=True, agent=agent) for value, agent in ((2.0, "a1"), (1.5, "a2")))
    at = ("-C", story.folder, "status")
    assert cli(*at, "--json").json["diversity"] == {"agents": 2, "lines": pytest.approx(2.0), "one_line": False}
    assert "2 agents, worth 2.0 lines" in cli(*at).out
    story.adopt(story.add(3.0, first, adopt=True), "a2")
    assert cli(*at, "--json").json["diversity"] == {"agents": 2, "lines": pytest.approx(1.0), "one_line": True}
    assert "one line" in cli(*at).out


def test_show_tells_parents_metrics_files_and_evidence(cli: Cli, small: Small) -> None:
    shown = cli("-C", "repo", "show", "best").out
    for part in (small.merge, "corner circles first", "adaptive step size", "main.py", "50.0 % of the way", "hello"):
        assert part in shown
    assert "score  2.0000  holdout 1.9000  " in shown  # before the bar, so that no narrow terminal cuts it off
    found = cli("-C", "repo", "show", small.step[:8], "--json").json
    assert found["children"] == [small.left, small.right, small.dead]
    assert found["evidence"] == {"stdout": "hello\n"}
    assert "10 s" in cli("-C", "repo", "show", small.fail).out


SESSION = {
    "program": "aider",
    "model": "big",
    "seconds": 41.5,
    "end": "aider was ended: the limit on dollars is reached",
    "evaluations": ["ok", "invalid"],
    "left_out": ["1 file outside what may be edited (setup.py)"],
}


@pytest.fixture
def session(tmp_path: Path) -> Story:
    """A run whose best candidate was made by a program that printed hundred lines, and a proposal that failed."""
    story = Story(tmp_path / "repo")
    seed = story.add(1.0)
    printed = "".join(f"step {number}\n" for number in range(100)) + HOSTILE
    texts = {"prompt.md": "Do it.\n" * 100, "session.json": json.dumps(SESSION), "transcript.txt": printed}
    story.add(2.0, seed, made={name: text.encode() for name, text in texts.items()})
    lost = story.journal.keep({"transcript.txt": b"I have no idea\n"})
    story.journal.append(
        FailedProposal(engine="e", move=7, agent="a2", parents=(seed,), reason="nothing is changed", evidence=lost)
    )
    return story


def test_show_tells_what_the_agent_was_told_said_and_did(cli: Cli, session: Story) -> None:
    shown = cli("-C", "repo", "show", "best").out
    for part in (
        "session of a1",
        "aider on big, 41.5 s",
        "the limit on dollars is reached",
        "ok, invalid",
        "setup.py",
        "prompt.md, 700 bytes",
        "step 99",
    ):
        assert part in shown
    assert "step 50" not in shown
    assert "Do it." not in shown
    command = shown.rpartition("all of it:  evogit ")[2].split()
    assert cli(*command).out.splitlines()[:100] == [f"step {number}" for number in range(100)]
    found = cli("-C", "repo", "show", "best", "--json").json
    assert json.loads(found["session"]["session.json"]) == SESSION
    assert found["evidence"] == {"stdout": "hello\n"}
    assert cli("-C", "repo", "show", "seed", "--json").json["session"] == {}


def test_a_piece_of_evidence_is_printed_whole_or_named(cli: Cli, session: Story) -> None:
    assert cli("-C", "repo", "show", "best", "--file", "stdout").out == "hello\n"
    told = cli("-C", "repo", "show", "best", "--file", "prompt.md", "--json").json
    assert told == {"schema": 1, "file": "prompt.md", "text": "Do it.\n" * 100}
    done = cli("-C", "repo", "show", "best", "--file", "reply.md")
    assert (done.code, done.out) == (3, "")
    assert "expected one of stdout, prompt.md, session.json, transcript.txt" in done.err


@pytest.mark.parametrize("content", [b"", b"no json", b"[" * 100_000, b'["x"]', b'{"left_out": 3, "evaluations": {}}'])
def test_a_session_that_cannot_be_read_hides_nothing_else(cli: Cli, tmp_path: Path, content: bytes) -> None:
    story = Story(tmp_path / "repo")
    story.add(1.0, made={"session.json": content, "transcript.txt": b"here"})
    shown = cli("-C", "repo", "show", "seed").out
    assert "transcript.txt, 4 bytes" in shown
    assert max(map(len, shown.splitlines())) < 400


def test_an_attempt_that_made_no_candidate_is_shown_by_its_move(cli: Cli, session: Story) -> None:
    assert "show --move 7" in cli("-C", "repo", "report").out
    shown = cli("-C", "repo", "show", "--move", "7").out
    for part in ("a2, mutation", "nothing is changed", "I have no idea"):
        assert part in shown
    assert cli("-C", "repo", "show", "--move", "7", "--file", "transcript.txt").out == "I have no idea\n"
    found = cli("-C", "repo", "show", "--move", "7", "--json").json
    assert (found["schema"], found["move"], found["session"]) == (1, 7, {"transcript.txt": "I have no idea\n"})
    unknown = cli("-C", "repo", "show", "--move", "8")
    assert (unknown.code, unknown.out) == (3, "")
    assert "the latest: 7" in unknown.err
    assert cli("-C", "repo", "show").code == cli("-C", "repo", "show", "best", "--move", "7").code == 2


def test_blame_names_who_brought_a_line_through_merges(cli: Cli, tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed", files={"main.py": b"a = 1\nb = 1\nc = 1\n"})
    left = story.add(2.0, seed, files={"main.py": b"a = 2\nb = 1\nc = 1\n"})
    right = story.add(1.5, seed, files={"main.py": b"a = 1\nb = 1\nc = 3\n"})
    merge = story.add(3.0, left, right, files={"main.py": b"a = 2\nb = 1\nc = 3\nd = 4\n"})
    found = cli("-C", "repo", "blame", "best", "main.py", "--json").json["files"]["main.py"]
    assert [each["commit"] for each in found] == [left, seed, right, merge]
    summary = cli("-C", "repo", "blame").out.splitlines()
    assert [line.split()[:2] for line in summary[2:]] == [["1", "+1.0000"], ["1", "+0.5000"], ["1", "+1.0000"]]
    missing = cli("-C", "repo", "blame", "best", "other.py")
    assert (missing.code, "got 'other.py'" in missing.err) == (3, True)


def test_diff_shows_metrics_then_code(cli: Cli, small: Small) -> None:
    shown = cli("-C", "repo", "diff").out
    assert shown.index("+1.0000") < shown.index("-VALUE = 0") < shown.index("+VALUE = 6")
    assert cli("-C", "repo", "diff", "a2").out.splitlines()[-2:] == ["-VALUE = 1", "+VALUE = 4"]
    found = cli("-C", "repo", "diff", "seed", "best", "--json").json
    assert (found["a"]["commit"], found["b"]["commit"]) == (small.seed, small.merge)


@pytest.mark.parametrize(
    ("revision", "sentence"),
    [("beef", "expected a candidate's id"), ("a9", "an agent (a1, a2)"), ("zz--", "4 digits or more"), ("", "got ''")],
)
def test_an_unknown_revision_is_not_found(cli: Cli, small: Small, revision: str, sentence: str) -> None:
    done = cli("-C", "repo", "show", "--", revision)
    assert (done.code, done.out) == (3, "")
    assert sentence in done.err


def test_the_repository_is_the_one_you_are_in_if_it_has_a_run(cli: Cli, small: Small) -> None:
    (small.folder / "deep").mkdir()
    assert cli("status", "--json", cwd=small.folder / "deep").json["run"] == "toy"
    assert cli("status", "-C", small.folder, "--json", cwd=Path("/")).json["run"] == "toy"


def test_several_runs_need_a_name(cli: Cli, tmp_path: Path) -> None:
    for name in ("one", "two"):
        Story(tmp_path / "repo", run=name).add(1.0)
    done = cli("-C", "repo", "log")
    assert done.code == 2
    assert "one, two" in done.err
    assert cli("-C", "repo", "status", "--name", "two", "--json").json["run"] == "two"
    assert cli("-C", "repo", "status", "--name", "three").code == 3


HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m [bold]b[/bold] \u202eevil\r\nsecond"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="seed")
    story.add(2.0, seed, title=HOSTILE, agent="a1", files={"main.py": HOSTILE.encode()}, adopt=True)
    story.add(None, seed, title=HOSTILE, reason=HOSTILE)
    return story.folder


@pytest.mark.parametrize("command", ["log", "graph --all", "show best", "diff", "status"])
def test_nothing_that_a_candidate_wrote_reaches_the_terminal_raw(cli: Cli, hostile: Path, command: str) -> None:
    shown = cli("-C", hostile, *command.split()).out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", shown)
    assert "[bold]b[/bold]" in shown


@pytest.mark.parametrize("more", ["", "--file transcript.txt", "--color always --file transcript.txt"])
def test_nothing_that_a_program_printed_reaches_the_terminal_raw(cli: Cli, session: Story, more: str) -> None:
    shown = cli("-C", "repo", "show", "best", *more.split()).out
    assert "\\x1b]0;owned" in shown
    assert not re.search(r"\x1b\]|[\x00-\x09\x0b-\x1a\x7f\u202e]", shown)


def test_colour_is_ours_alone_even_when_forced(cli: Cli, hostile: Path) -> None:
    shown = cli("-C", hostile, "log", "--color", "always").out
    assert "\x1b[" in shown
    assert "\x1b]0;" not in shown
    assert "\\x1b]0;owned" in shown


def test_no_colour_without_a_terminal_or_with_no_color(cli: Cli, small: Small) -> None:
    for arguments, env in (([], {}), ([], {"NO_COLOR": "1"}), (["--color", "never"], {"FORCE_COLOR": "1"})):
        assert "\x1b" not in cli("-C", "repo", "graph", *arguments, **env).out
    assert "\x1b[" in cli("-C", "repo", "graph", "--color", "always").out
    assert "\x1b[" in cli("--color", "always", "-C", "repo", "graph").out


def test_ascii_where_the_output_is_not_utf8(script: Cli, small: Small) -> None:
    done = script("-C", "repo", "graph", PYTHONIOENCODING="ascii")
    assert done.out.isascii()
    assert [line.split("  ")[2] for line in steady(done.out, small).splitlines()[2:6]] == ["@-.", "| *", "* |", "*-'"]


def test_a_reader_that_leaves_early_is_no_error(small: Small) -> None:
    command = f"{EVOGIT} -C {small.folder} log --json | head -c 10"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, "rror" in done.stderr) == (0, False)


@pytest.mark.parametrize(
    "closed", ["<&- >&- 2>&-", *(pytest.param(one, marks=pytest.mark.slow) for one in ("<&-", ">&-", "2>&-"))]
)
def test_a_closed_stream_is_nobody_who_reads_or_answers(small: Small, closed: str) -> None:
    command = f"{EVOGIT} -C {small.folder} status {closed} && {EVOGIT} -C {small.folder} promote a2 -m x {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_help_groups_the_commands_and_every_one_has_an_example(cli: Cli) -> None:
    first, everything = (
        re.findall(r"^  ([a-z]+) +\S.* evogit", cli(*words).out, re.MULTILINE)
        for words in (["--help"], ["help", "--all"])
    )
    assert {*first} == {*FIRST_WEEK}
    assert everything == [name for commands in SECTIONS.values() for name in commands]
    assert cli("--help", "--all").out == cli("help", "--all").out
    assert all(f"Example: evogit {name}" in cli(name, "--help").out for name in everything)


def test_an_unknown_command_or_option_is_a_usage_error(cli: Cli) -> None:
    assert cli("grpah").code == 2
    assert "Did you mean 'graph'?" in cli("grpah").err
    assert cli("status", "--jsno").code == 2


def test_looking_imports_neither_the_mutator_nor_a_model_client(script: Cli, small: Small) -> None:
    looking = script("-C", "repo", "status", PYTHONPROFILEIMPORTTIME="1")
    assert not re.search(r"\b(openai|evogit\.run)\b", looking.err)
    helping = script("--help", PYTHONPROFILEIMPORTTIME="1")
    assert not re.search(r"\b(openai|pygit2)\b", helping.err)


def test_the_shell_completes_revisions_and_tasks(cli: Cli, small: Small) -> None:
    def complete(line: str) -> list[str]:
        words = {"_EVOGIT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        return [found.partition(",")[2] for found in cli(**words).out.split()]

    assert complete("evogit -C repo show ") == ["best", "seed", "a1", "a2"]
    assert complete(f"evogit diff -C repo {small.left[:5]}") == [small.left[:10]]
    assert complete("evogit run circ") == ["circle_packing"]


def test_no_share_is_minus_nothing() -> None:
    assert [percent(share) for share in (-1e-9, -0.0, -0.0012, 0.5)] == ["0.0 %", "0.0 %", "-0.1 %", "50.0 %"]


def test_a_short_graph_keeps_what_tells_most(cli: Cli, small: Small) -> None:
    shown = steady(cli("-C", "repo", "graph", "-n", "3").out, small)
    assert [word for word in ("merge..", "right..", "left...", "step...", "seed...") if word in shown] == [
        "merge..",
        "right..",
        "seed...",
    ]
    assert "┴" not in shown.splitlines()[2]


def test_best_compares_train_and_holdout_with_the_seed(cli: Cli, small: Small) -> None:
    shown = cli("-C", "repo", "status").out
    assert re.search(r"score +1\.0000 +2\.0000 +\+1\.0000 \(2\.0x\) +1\.1000 +1\.9000 +\+0\.8000 \(1\.7x\)", shown)
    assert "50.0 % of the gap to the best known 3 is closed" in shown
    assert cli("-C", "repo", "status", "--json").json["best"]["commit"] == small.merge


def test_lower_is_better_for_a_metric_to_minimize(cli: Cli, tmp_path: Path) -> None:
    story = Story(tmp_path / "repo", direction="minimize")
    seed = story.add(5.0)
    best = story.add(4.0, seed)
    story.add(6.0, seed)
    found = cli("-C", "repo", "status", "--json").json
    assert found["best"]["commit"] == best
    assert found["gap_closed"] == 0.5


def test_where_there_is_no_run_the_error_names_those_below(cli: Cli, tmp_path: Path) -> None:
    Story(tmp_path / "evogit-toy")
    done = cli("status")
    assert done.code == 3
    assert "-C evogit-toy" in done.err


def test_json_is_ascii(cli: Cli, hostile: Path) -> None:
    assert cli("-C", hostile, "log", "--json").out.isascii()


def test_json_numbers_are_strict(cli: Cli, small: Small) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(cli("-C", "repo", "status", "--json").out, parse_constant=refuse)
