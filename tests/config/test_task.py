"""What the author of a task meets: defaults, globs, digests, and sentences that name every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.adopt import find_task
from evogit.config import Task, load_repository_task, load_task
from evogit.config.values import Gate, MetricReader, is_safe_path, matches, seconds, size
from evogit.core import ConfigError, EvoGitError, NotFoundError, UsageError

SMALLEST = """\
name = "tiny"
goal = "Make it bigger."
editable = ["answer.py"]

[metrics.score]
direction = "maximize"

[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
"""


def folder(root: Path, toml: str = SMALLEST) -> Path:
    (root / "task.toml").write_text(toml)
    (root / "evaluator").mkdir(exist_ok=True)
    (root / "evaluator" / "evaluate.py").write_text("def evaluate(program, split): ...\n")
    (root / "seed").mkdir(exist_ok=True)
    (root / "seed" / "answer.py").write_text("def answer(): return 1\n")
    return root


def errors(root: Path, toml: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_task(folder(root, toml))
    return str(caught.value)


def test_the_smallest_task_has_sensible_defaults(tmp_path: Path) -> None:
    task = load_task(folder(tmp_path))
    assert (task.name, task.goal, task.splits, task.gates) == ("tiny", "Make it bigger.", ("train",), {})
    assert task.primary.name == "score"
    assert task.primary.primary
    assert (task.limits.wall, task.limits.cpu, task.limits.memory) == (30, 10, 512 * 1024**2)
    assert task.seed_files() == {"answer.py": (b"def answer(): return 1\n", 0o100644)}


def test_every_key_reaches_the_task(tmp_path: Path) -> None:
    toml = SMALLEST.replace('editable = ["answer.py"]', 'editable = ["answer.py"]\nwithheld = ["secret/**"]')
    toml += """\
splits = ["smoke", "train", "holdout"]
gate.smoke = "score > 0"
[metrics.length]
direction = "minimize"
primary = true
aggregate = "max"
baseline = 3
best_known = 1.5
[sandbox]
memory = "64m"
timeout = "500ms"
cpu = 0.25
pids = 7
disk = "1m"
preload = ["json.decoder"]
"""
    task = load_task(folder(tmp_path, toml))
    length = task.primary
    assert (length.name, length.aggregate, length.baseline, length.best_known) == ("length", "max", 3, 1.5)
    limits = task.limits
    assert (limits.wall, limits.cpu, limits.memory, limits.processes) == (0.5, 0.25, 64 * 1024**2, 7)
    assert (limits.disk, limits.output, task.preload) == (1024**2, 1024**2, ("json.decoder",))
    assert task.withheld == ("secret/**",)
    assert task.gates == {"smoke": Gate("score", ">", 0)}
    assert [task.stages(split) for split in ("train", "lite", "smoke", "holdout")] == [("smoke",), ("smoke",), (), ()]


def test_keys_that_are_fixed_now_change_nothing_but_warn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain = load_task(folder(tmp_path))
    old = load_task(folder(tmp_path, f'{SMALLEST}requirements = ["no-such-thing"]\n'))
    assert (old.digest, old.parts, old.limits) == (plain.digest, plain.parts, plain.limits)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_the_goal_comes_from_goal_md_by_default(tmp_path: Path) -> None:
    toml = SMALLEST.replace('goal = "Make it bigger."\n', "")
    assert "goal: expected a text, or a file goal.md" in errors(tmp_path, toml)
    (tmp_path / "goal.md").write_text("# Bigger\n")
    assert load_task(tmp_path).goal == "# Bigger"


def test_every_mistake_is_named_at_once_with_its_place(tmp_path: Path) -> None:
    toml = SMALLEST.replace("name =", "nmae =").replace('"maximize"', '"up"').replace('"answer.py"', '"../x"')
    message = errors(tmp_path, toml + '[sandbox]\nmemroy = "1g"\ntimeout = "ten"\npids = true\n')
    assert message.count(f"{tmp_path / 'task.toml'}: ") == len(message.splitlines()) == 7
    assert 'nmae: unknown key; did you mean "name"?' in message
    assert "name: missing" in message
    assert "metrics.score.direction: expected 'maximize' or 'minimize', got 'up'" in message
    assert "editable.0: expected a relative path" in message
    assert 'sandbox.memroy: unknown key; did you mean "memory"?' in message
    assert "sandbox.timeout: expected a positive duration" in message
    assert "sandbox.pids: expected a valid integer, got True" in message


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('kind = "python"', 'kind = "oracle"', "evaluator.kind: expected"),
        ('file = "evaluator/evaluate.py"', "", "evaluator.file: missing"),
        ('"python"', '"python"\ncommand = "make"', "evaluator.command: "),
        ('"evaluator/evaluate.py"', '"evaluate.py"', "evaluator.file: expected a file in a folder of its own"),
        ('"evaluator/evaluate.py"', '"evaluator/other.py"', "evaluator.file: there is no file"),
        ('"python"', '"python"\nsplits = ["smoke", "holdout"]', "evaluator.splits: "),
        ('"python"', '"python"\ngate.smok = "score > 0"\nsplits = ["smoke", "train"]', 'did you mean "smoke"?'),
        ('"python"', '"python"\ngate.smoke = "scor > 0"\nsplits = ["smoke", "train"]', 'did you mean "score"?'),
        ('"python"', '"python"\ngate.smoke = "score > 1e9999"\nsplits = ["smoke", "train"]', "METRIC OP NUMBER"),
        ("[metrics.score]", "[metrics.feedback]", "metrics: "),
        ("[evaluator]", '[metrics.b]\ndirection = "minimize"\n[evaluator]', "metrics: expected primary = true"),
        ('["answer.py"]', '["new/**", "answre.py"]', "no file of seed/ matches new/**, answre.py"),
        ('["answer.py"]', "[", "not TOML"),
        ("[evaluator]", '[sandbox]\npackages = "numpy"\n[evaluator]', 'expected a list, such as ["numpy"], got'),
        ("[evaluator]", '[sandbox]\npackages = ["apt:-q"]\n[evaluator]', "sandbox.packages.0: "),
        ('"tiny"', '"Tiny task"', "name: expected small letters"),
    ],
)
def test_a_mistake_is_explained(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert sentence in errors(tmp_path, SMALLEST.replace(old, new))


COMMAND = """\
name = "tiny"
goal = "Make it bigger."
editable = ["answer.py"]
[metrics.score]
direction = "maximize"
primary = true
[metrics.tests]
direction = "maximize"
[evaluator]
kind = "command"
command = "make bench"
[evaluator.read]
score = "json:a.b"
tests = "junit:build/report.xml"
"""


def test_a_command_judges_by_what_is_read_of_it(tmp_path: Path) -> None:
    task = load_task(folder(tmp_path, COMMAND))
    command = task.command
    assert command
    assert (command.text, command.directory, command.folder, command.prepare) == ("make bench", "", ".evogit", "")
    assert command.reads == {"score": MetricReader("json", "a.b"), "tests": MetricReader("junit", "build/report.xml")}
    assert (task.evaluator, task.evaluator_folder) == (tmp_path / "task.toml", tmp_path / ".evogit")
    assert task.evaluator_files() == {}
    assert not task.is_editable(".evogit/hidden_test.py")
    assert task.is_judged(".evogit/hidden_test.py")


def test_times_have_a_log_scale_which_changes_no_digest(tmp_path: Path) -> None:
    def task(toml: str) -> Task:
        (tmp_path / "task.toml").write_text(toml)
        return load_task(tmp_path)

    folder(tmp_path, COMMAND)
    plain = task(COMMAND)
    assert [metric.noise for metric in plain.metrics] == ["", ""]
    assert [metric.noise for metric in task(COMMAND.replace('"json:a.b"', '"cpu"')).metrics] == ["log", ""]
    assert [
        metric.noise for metric in task(COMMAND.replace("primary", 'aggregate = "geometric"\nprimary')).metrics
    ] == ["log", ""]
    declared = task(COMMAND.replace("primary", 'scale = "log"\nprimary'))
    assert [metric.noise for metric in declared.metrics] == ["log", ""]
    assert (declared.digest, declared.parts) == (plain.digest, plain.parts)


def test_a_bound_changes_no_digest_and_needs_a_value(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    plain = load_task(
        folder(tmp_path / "a", f"{SMALLEST}[metrics.length]\ndirection = 'minimize'\nprimary = true\nbest_known = 1\n")
    )
    toml = tmp_path / "a" / "task.toml"
    toml.write_text(f"{toml.read_text()}bound = true\n")
    bounded = load_task(tmp_path / "a")
    assert (plain.primary.bound, bounded.primary.bound) == (False, True)
    assert (bounded.digest, bounded.parts) == (plain.digest, plain.parts)
    toml.write_text(toml.read_text().replace("best_known = 1\n", ""))
    with pytest.raises(ConfigError, match="best_known"):
        load_task(tmp_path / "a")


def test_all_of_a_command_counts_as_its_evaluator(tmp_path: Path) -> None:
    def digest(old: str = "", new: str = "") -> str:
        return load_task(folder(tmp_path, COMMAND.replace(old, new) if old else COMMAND)).evaluator_digest

    changes = [("make bench", "make"), ("json:a.b", "json:a"), ('"command"', '"command"\nprepare = "make deps"')]
    digests = {digest(), *(digest(*change) for change in changes)}
    (tmp_path / ".evogit").mkdir()
    (tmp_path / ".evogit" / "hidden.txt").write_text("42")
    assert len(digests | {digest()}) == 5


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('command = "make bench"\n', "", "evaluator.command: missing"),
        ('"json:a.b"', '"jason"', "evaluator.read: score: expected one of"),
        ('"json:a.b"', '"junit:../x"', 'expected "junit:FILE" with a relative path'),
        ('"json:a.b"', '"regex:("', "is not a valid regular expression"),
        ('tests = "junit:build/report.xml"', "", "evaluator: read.tests: missing"),
        ('tests = "junit', 'test = "junit', 'did you mean "tests"?'),
        ('make bench"', 'make bench"\ndirectory = "../up"', "evaluator.directory: "),
        ('make bench"', 'make bench"\nfolder = ""', "evaluator.folder: "),
    ],
)
def test_a_mistake_about_a_command_is_explained(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert sentence in errors(tmp_path, COMMAND.replace(old, new))


def test_what_is_excluded_goes_nowhere(tmp_path: Path) -> None:
    for toml in (SMALLEST, COMMAND):
        task = load_task(folder(tmp_path, toml.replace("[metrics", 'excluded = ["data/**"]\n[metrics', 1)))
        assert not task.is_visible("data/big.bin")
        assert not task.is_judged("data/big.bin")
        assert not task.is_editable("data/big.bin")


def test_globs_cross_slashes_only_with_two_stars() -> None:
    assert matches("a/b.py", ["a/*.py"])
    assert not matches("a/b/c.py", ["a/*.py"])
    assert matches("a/b/c.py", ["a/**"])
    assert matches("a.py", ["**/*.py"])
    assert matches("x/y/a.py", ["**/*.py"])
    assert not matches("a.pyc", ["*.py"])
    assert matches("a[1].py", ["a[1].py"])
    assert not matches("a1.py", ["a[1].py"])
    assert not matches("sub/answer.py", ["answer.py"])


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a//b", "./a", ".git/config", "a/.GIT./x", "a\\b", "GIT~1/x", ""]
)
def test_paths_that_leave_the_tree_or_touch_git_are_never_editable(tmp_path: Path, path: str) -> None:
    task = load_task(folder(tmp_path, SMALLEST.replace('"answer.py"', '"**"')))
    assert not is_safe_path(path)
    assert not task.is_editable(path)
    assert task.is_editable("any/other.py")


def test_digests_follow_what_they_stand_for(tmp_path: Path) -> None:
    def digests() -> tuple[str, str]:
        task = load_task(tmp_path)
        return task.digest, task.evaluator_digest

    first = load_task(folder(tmp_path)), digests()
    (tmp_path / "README.md").write_text("prose")
    (tmp_path / "evaluator" / "__pycache__").mkdir()
    (tmp_path / "evaluator" / "__pycache__" / "evaluate.pyc").write_bytes(b"1")
    (tmp_path / "seed" / "__pycache__").mkdir()
    (tmp_path / "seed" / "__pycache__" / "answer.pyc").write_bytes(b"1")
    assert digests() == first[1]
    (tmp_path / "task.toml").write_text(SMALLEST.replace("bigger", "smaller"))
    reworded = digests()
    assert reworded[0] != first[1][0]
    assert reworded[1] == first[1][1]
    (tmp_path / "evaluator" / "data.json").write_text("{}")
    assert digests()[1] != reworded[1]


def test_the_seed_keeps_modes_and_follows_no_link_out(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "seed" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "seed" / "run.sh").chmod(0o755)
    (tmp_path / "seed" / "same.py").symlink_to("answer.py")
    files = load_task(tmp_path).seed_files()
    assert files["run.sh"][1] == 0o100755
    assert files["same.py"] == files["answer.py"]
    (tmp_path / "seed" / "out.py").symlink_to("../evaluator/evaluate.py")
    with pytest.raises(ConfigError, match=r"out\.py"):
        load_task(tmp_path)


def test_a_repository_withholds_its_evaluator_and_its_settings(tmp_path: Path) -> None:
    folder(tmp_path)
    toml = SMALLEST.replace('"answer.py"', '"**"').replace("evaluator/evaluate.py", ".evogit/judge.py")
    (tmp_path / "evogit.toml").write_text(toml)
    (tmp_path / ".evogit").mkdir()
    (tmp_path / ".evogit" / "judge.py").write_text("def evaluate(program, split): ...\n")
    task = load_repository_task(tmp_path)
    assert [task.is_editable(path) for path in ("src/a.py", ".evogit/judge.py", "evogit.toml")] == [True, False, False]
    with pytest.raises(UsageError, match="is a commit"):
        task.seed_files()


def test_a_task_is_found_by_its_folder(tmp_path: Path) -> None:
    assert isinstance(find_task(str(folder(tmp_path))), Task)
    with pytest.raises(NotFoundError, match="there is no task.toml"):
        load_task(tmp_path / "seed")
    with pytest.raises(EvoGitError, match=r"has no task.toml or evogit.toml"):
        find_task(str(tmp_path / "seed"))


@pytest.mark.parametrize(("text", "value"), [("10s", 10), ("500ms", 0.5), ("2m", 120), ("1.5h", 5400), (3, 3)])
def test_durations(text: str | int, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["10", "s", "-1s", 0, -1, True, float("nan"), float("inf"), None])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a positive duration"):
        seconds(text)


def test_sizes() -> None:
    assert [size(text) for text in ("512m", "2G", "64k", "7", 9)] == [512 * 1024**2, 2 * 1024**3, 65536, 7, 9]
    with pytest.raises(ValueError, match="expected a size"):
        size("1.5m")


@pytest.mark.parametrize(("op", "results"), [(">", "001"), (">=", "011"), ("<", "100"), ("<=", "110"), ("==", "010")])
def test_gates(op: str, results: str) -> None:
    gate = Gate.parse(f"score {op} -1.5")
    assert [gate.passes({"score": value}) for value in (-2, -1.5, 0)] == [bit == "1" for bit in results]
    assert str(gate) == f"score {op} -1.5"


def test_instructions_to_agents_change_only_where_they_are_named(tiny: Callable[..., Task]) -> None:
    task = replace(tiny(), editable=("**", "docs/AGENTS.md"))
    paths = ("main.py", "AGENTS.md", "src/agents.md", "docs/AGENTS.md", "docs/agents.md.txt")
    assert [task.is_editable(path) for path in paths] == [True, False, False, True, True]


_OBEYED = """
CLAUDE.md src/claude.MD a/b/GEMINI.md QWEN.md AGENTS.override.md CLAUDE.local.md .claude/settings.json
src/.claude/commands/x.md .Claude .codex/config.toml .mcp.json mcp.json opencode.json opencode.jsonc
.opencode/plugin/x.js .qwen/settings.json .gemini/settings.json .aider.conf.yml .aider.model.settings.yml mini.yaml
.env .cursorrules .cursor/rules/x.mdc .github/copilot-instructions.md .github/instructions/x.instructions.md
.vscode/mcp.json .goosehints CONVENTIONS.md docs/conventions.MD .augment-guidelines .augment/rules/x.md
.openhands_instructions .openhands/microagents/repo.md replit.md .replit .devcontainer/devcontainer.json mise.toml
.mise.toml mise.local.toml .tool-versions .npmrc skills/x/SKILL.md .idea/workspace.xml CLAUDE.md.
"""
OBEYED = re.findall(r"\S+", _OBEYED)


@pytest.mark.parametrize("path", [*OBEYED, "CLAUDE\u3164.md", "CLAUDE\u200b.md", "\uff23LAUDE.md"])
def test_what_coding_programs_obey_is_out_of_reach_of_patterns(tiny: Callable[..., Task], path: str) -> None:
    task = tiny()
    for pattern in ("**", f"{path[:-1]}?", f"{path.rpartition('/')[0]}/**"):
        assert not replace(task, editable=(pattern,)).is_editable(path)


def test_what_coding_programs_obey_can_be_named(tiny: Callable[..., Task]) -> None:
    task = replace(tiny(), editable=("CLAUDE.md", ".claude/agents/x.md"))
    paths = ("CLAUDE.md", ".claude/agents/x.md", "src/CLAUDE.md", ".claude/agents/y.md")
    assert [task.is_editable(path) for path in paths] == [True, True, False, False]


@pytest.mark.parametrize(
    "path",
    [".github/workflows/x.yml", ".unknown-tool", "src/.unknown/rules.txt", ".pre-commit-config.yaml", "\uff0ex/y"],
)
def test_a_name_with_a_dot_has_to_stand_in_the_pattern(tiny: Callable[..., Task], path: str) -> None:
    task = tiny()
    for pattern in ("**", "*", "**/*"):
        assert not replace(task, editable=(pattern,)).is_editable(path)
    assert replace(task, editable=(path,)).is_editable(path)


def test_a_secret_file_is_neither_shown_nor_changed_unless_shared(tiny: Callable[..., Task]) -> None:
    task = replace(tiny(), editable=("**", "deploy/.env"))
    for path in ("id_rsa", "deploy/.env", "tls/server.pem"):
        assert not task.is_visible(path)
        assert not task.is_editable(path)
        assert task.is_judged(path)
        assert replace(task, shared=(path,)).is_visible(path)


def test_a_seed_of_files_is_screened(tiny: Callable[..., Task]) -> None:
    folder = tiny().folder
    (folder / "seed" / "extra").mkdir()
    (folder / "seed" / "extra" / "key.txt").write_text("AKIAQ7ZK2MWV9XTB4NLR")
    task = load_task(folder)
    assert task.secret == ("extra/key.txt",)
    assert not task.is_editable("extra/key.txt")
    toml = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text('shared = ["extra/*"]\n' + toml)
    assert load_task(folder).is_editable("extra/key.txt")


def test_what_is_secret_is_no_part_of_what_a_run_is_compared_by(tiny: Callable[..., Task]) -> None:
    task = tiny()
    screened = replace(task, secret=("program.py",))
    assert (screened.digest, screened.parts) == (task.digest, task.parts)
    assert not {"secret", "shared"} & task.parts.keys()
    assert "shared" in replace(task, shared=("a",)).parts


@pytest.mark.parametrize("text", [SMALLEST, COMMAND], ids=["python", "command"])
def test_templates_of_briefs_are_out_of_reach_of_candidates(tmp_path: Path, text: str) -> None:
    (folder(tmp_path, re.sub("editable = .*", 'editable = ["**"]', text)) / "task.toml").rename(
        tmp_path / "evogit.toml"
    )
    task = load_repository_task(tmp_path)
    assert task.templates == tmp_path / "evogit-brief"
    for path in ("evogit-brief/rules.md", "evogit.toml"):
        assert not task.is_editable(path)
        assert not task.is_visible(path)
        assert not task.is_judged(path)
