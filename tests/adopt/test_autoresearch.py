from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.core import NotFoundError
from tests.adopt.evaluating import evaluated, metrics, write


def test_the_primary_metric_of_a_benchmark_in_another_language_is_read(tmp_path: Path) -> None:
    words = (
        "## Metrics\n- **Primary**: total_us (µs, lower is better)\n- **Secondary**: compile_us\n"
        "## Files in Scope\n- `src/sorter.js`\n## Off Limits\n- `bench.js`\n"
    )
    files = {
        "autoresearch.md": words,
        "autoresearch.sh": "echo METRIC compile_us=12\nnode bench.js\n",
        "bench.js": "const t = require('./src/sorter.js').sort(); // by random\nconsole.log(`METRIC total_us=${t}`);\n",
        "src/sorter.js": "module.exports = { sort: () => 5 };\n",
    }
    task = find_task(str(write(tmp_path / "x", files)))
    assert (task.editable, task.primary.name, task.primary.direction) == (("src/sorter.js",), "total_us", "minimize")
    assert task.repeats > 0, "a run measures whether the score repeats, whatever the sources say"


def test_a_session_with_metric_lines_is_one_too(tmp_path: Path) -> None:
    words = (
        "# Autoresearch: sort\n## Metrics\n- **Primary**: seconds (s, lower is better)\n## How to Run\n"
        "`./autoresearch.sh` outputs METRIC name=number lines.\n## Files in Scope\n- `sort.py`: the sorter\n"
        "## Off Limits\n- `check.py`\n"
    )
    files = {"autoresearch.md": words, "autoresearch.sh": "python3 sort.py\necho METRIC seconds=0.5\n"}
    files |= {"sort.py": "print('sorted')\n", "check.py": ""}
    task = find_task(str(write(tmp_path / "sort", files)))
    assert (task.editable, task.primary.name, task.primary.direction) == (("sort.py",), "seconds", "minimize")
    assert "METRIC seconds=0.5" in evaluated(task, tmp_path / "box").stdout
    files["autoresearch.sh"] = "#!/usr/bin/env python3\nprint('METRIC seconds=0.25')\n"
    files["autoresearch.checks.sh"] = 'cd "$(git rev-parse --show-toplevel)" && grep sorted sort.py\n'
    checked = find_task(str(write(tmp_path / "checked", files)))
    assert checked.editable == ("sort.py",)
    assert metrics(checked, evaluated(checked, tmp_path / "box2")) == {"seconds": 0.25}
    assert evaluated(checked, tmp_path / "box3", **{"sort.py": "print()\n"}).returncode != 0


@pytest.mark.parametrize(("name", "metric"), [("mul_µs", "mul_us"), ("render.ms", "render_ms")])
def test_metrics_may_have_names_that_tasks_cannot(tmp_path: Path, name: str, metric: str) -> None:
    words = f"- **Primary**: `{name}` (lower is better)\n## Files in Scope\n- `a.py`\n"
    files = {"autoresearch.md": words, "autoresearch.sh": "python3 -m bench.run\n", "a.py": ""}
    files["bench/run.py"] = f"import time\nprint('METRIC steps=3')\nprint('METRIC {name}=2.5')\n"
    task = find_task(str(write(tmp_path / "x", files)))
    assert metrics(task, evaluated(task, tmp_path / "box")) == {metric: 2.5}


def test_the_log_of_a_session_says_what_counts(tmp_path: Path) -> None:
    files = {"autoresearch.md": "Higher is better.\n## Files in Scope\n- `a.py`\n", "a.py": ""}
    files["autoresearch.sh"] = "echo METRIC score=1\necho METRIC quux=2\n"
    files["autoresearch.jsonl"] = (
        '{"type":"config","metricName":"score","bestDirection":"higher"}\n{"run":1,"metric":1,"status":"keep"}\n'
        '{"type":"config","name":"b","metricName":"quux","metricUnit":"","bestDirection":"lower"}\n{"run":2,\n'
    )
    task = find_task(str(write(tmp_path / "x", files)))
    assert (task.primary.name, task.primary.direction, task.editable) == ("quux", "minimize", ("a.py",))


def test_what_measures_stays_as_it_is_though_instructions_name_it_among_what_may_change(tmp_path: Path, caplog) -> None:
    words = "- **Primary**: `us` (lower is better)\n## Files in Scope\n- `sort.js`\n- `tests/bench_sort.js`: times it\n"
    files = {"autoresearch.md": words, "autoresearch.sh": "node tests/bench_sort.js\n", "sort.js": ""}
    files["tests/bench_sort.js"] = "require('../sort.js');\nconsole.log('METRIC us=5');\n"
    assert find_task(str(write(tmp_path / "x", files))).editable == ("sort.js",)
    assert "what may change: tests/bench_sort.js" in caplog.text
    files["autoresearch.md"] = words.replace("- `sort.js`\n", "")
    assert find_task(str(write(tmp_path / "y", files))).editable == ("tests/bench_sort.js",)


SESSION = {
    "a.py": "print('METRIC quux=1')\n",
    "autoresearch.sh": "python3 a.py\n",
    "autoresearch.md": "## Files in Scope\n- `a.py`\n",
}


def test_the_newer_layout_of_a_session_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    names = {"autoresearch.md": ".auto/prompt.md", "autoresearch.sh": ".auto/measure.sh", "a.py": "a.py"}
    files = {names[path]: text for path, text in SESSION.items()}
    files[".auto/log.jsonl"] = '{"type":"config","metricName":"quux","bestDirection":"lower"}\n'
    files[".auto/checks.sh"] = "test -f a.py\n"
    task = find_task(str(write(tmp_path / "x", files)))
    assert (task.editable, task.primary.name, task.primary.direction) == (("a.py",), "quux", "minimize")
    assert not task.is_editable(".auto/measure.sh")
    assert metrics(task, evaluated(task, tmp_path / "box")) == {"quux": 1.0}


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("**Primary**: quux (µs, lower is better)", "minimize"),
        ("- **Primary metric:** `quux` (higher is better)", "maximize"),
        ("**Primary**: quux", "maximize"),
    ],
)
def test_the_primary_metric_is_read_with_its_direction(tmp_path: Path, caplog, text: str, direction: str) -> None:
    files = {**SESSION, "autoresearch.md": f"{text}\n{SESSION['autoresearch.md']}"}
    task = find_task(str(write(tmp_path, files)))
    assert (task.primary.name, task.primary.direction) == ("quux", direction)
    assert ("taken to be better" in caplog.text) == ("better" not in text)


@pytest.mark.parametrize(
    ("scope", "editable"),
    [
        ("## Files in Scope\n- `a.py`: all of it, but not `b.py`\n## Off Limits\n- `b.py`\n", ("a.py",)),
        ("**Files in scope**: `src/*.py`\n\n- `a.py`\n**Other**\n- `b.py`\n", ("a.py", "src/*.py")),
        ("## Files in Scope\n### Core\n1. `./a.py`\n* `src/`\n# End\n- `b.py`\n", ("a.py", "src/**")),
        ("## Files in Scope\n- `autoresearch.sh`\n- `a.py`\n- `gone.py`\n- `**`\n", ("a.py",)),
    ],
)
def test_only_the_list_of_files_in_scope_says_what_may_change(tmp_path: Path, scope: str, editable) -> None:
    files = {**SESSION, "b.py": "", "src/c.py": "", "autoresearch.md": scope}
    assert find_task(str(write(tmp_path, files))).editable == editable


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        ({**SESSION, "autoresearch.md": "Edit `a.py`.\n"}, "a file beside it to change"),
        ({**SESSION, "a.py": "print(1)\n"}, "the number that counts"),
        ({"program.md": "Edit `a.py`, run `python a.py`, grep `^loss:`.", "a.py": ""}, "evogit init"),
        ({"program.md": ""}, "autoresearch"),
    ],
)
def test_what_a_session_lacks_is_said(tmp_path: Path, files: dict[str, str], lacks: str) -> None:
    with pytest.raises(NotFoundError, match=lacks):
        find_task(str(write(tmp_path, files)))


AUTO = {
    "src/a.py": "print('METRIC quux=1')\n",
    "src/b.sh": "",
    ".auto/measure.sh": "sh .auto/lib/run.sh\n",
    ".auto/lib/run.sh": "python3 src/a.py\n",
    ".auto/prompt.md": "**Primary**: quux (lower is better)\n## Files in Scope\n{scope}",
    ".auto/hooks/before.sh": "exit 1\n",
    ".auto/ideas.md": "- none\n",
    ".auto/config.json": '{"maxIterations": 5}',
}


@pytest.mark.parametrize(
    ("scope", "editable"),
    [
        ("- `src/a.py`\n- `.auto/ideas.md`\n- `.auto/lib/run.sh`\n- `.auto/`\n", ("src/a.py",)),
        ("- `**/*.py`\n- `.auto/lib/*.sh`\n- `./.auto/measure.sh`\n", ("**/*.py",)),
        ("- `src/`\n- `*/lib/run.sh`\n", ("src/**",)),
    ],
)
def test_nothing_of_a_sessions_folder_may_change(tmp_path: Path, scope: str, editable: tuple[str, ...]) -> None:
    files = {**AUTO, ".auto/prompt.md": AUTO[".auto/prompt.md"].format(scope=scope)}
    task = find_task(str(write(tmp_path / "x", files)))
    assert task.editable == editable
    assert [
        path for path in (*files, ".auto/new.sh", ".auto/lib/new.py") if task.is_editable(path) and "auto" in path
    ] == []
    assert metrics(task, evaluated(task, tmp_path / "box")) == {"quux": 1.0}


def test_a_pattern_over_flat_session_files_leaves_these_out(tmp_path: Path) -> None:
    words = "- **Primary**: `quux` (lower is better)\n## Files in Scope\n- `*.sh`\n"
    files = {**SESSION, "autoresearch.md": words, "autoresearch.checks.sh": "true\n", "b.sh": ""}
    assert find_task(str(write(tmp_path, files))).editable == ("b.sh",)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({".auto/prompt.md": "x"}, r"\.auto/prompt\.md has no \.auto/measure\.sh beside it"),
        ({".auto/measure.sh": "x"}, r"\.auto/measure\.sh has no \.auto/prompt\.md beside it"),
        ({".auto/config.json": '{"workingDir": "../there"}'}, r"the session is in \.\./there: name that folder"),
        ({"autoresearch.sh": "x"}, r"autoresearch\.sh has no autoresearch\.md beside it"),
    ],
)
def test_a_part_of_a_session_is_told(tmp_path: Path, files: dict[str, str], told: str) -> None:
    with pytest.raises(NotFoundError, match=told):
        find_task(str(write(tmp_path, files)))


PYPROJECT = """\
[project]
name = "own"
dependencies = ["pydantic>=2"]
[project.optional-dependencies]
docs = ["mkdocs"]
dev = ["pytest-benchmark>=4", "mkdocs"]
"""


def test_packages_of_the_project_its_tests_and_its_scripts_come_along(tmp_path: Path) -> None:
    script = "python -m mypy src\npytest bench/run.py\npip install sortedcontainers\n"
    words = "- **Primary**: `us` (lower is better)\n## Files in Scope\n- `a.py`\n"
    files = {"autoresearch.md": words, "autoresearch.sh": script, "a.py": "", "pyproject.toml": PYPROJECT}
    packages = find_task(str(write(tmp_path / "x", files))).environment.packages
    assert packages == ("mypy", "pydantic>=2", "pytest", "pytest-benchmark>=4", "sortedcontainers")
