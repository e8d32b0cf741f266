from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.adopt.wanted import direction_said
from evogit.core import NotFoundError
from tests.adopt.evaluating import evaluated, metrics, write

PROGRAM = """\
# research
## Setup
- `prepare.py` - constants and evaluation. Do not modify.
- `train.py` - the file you modify.
Data first: `uv run prepare.py`.
## Experimentation
Launch it as `uv run train.py`. The goal is simple: get the lowest val_bpb.
Run: `uv run train.py > run.log 2>&1`, read: `grep "^val_bpb:" run.log`. If a run exceeds 10 minutes, kill it.
"""


def test_an_autoresearch_folder_is_a_task_as_it_is(tmp_path: Path) -> None:
    files = {
        "program.md": PROGRAM,
        "train.py": "from prepare import BEST\nprint(f'val_bpb:          {BEST + 0.5:.6f}')\nprint('steps: 3')\n",
        "prepare.py": "BEST = 0.5\n",
        "pyproject.toml": '[project]\nname = "a"\ndependencies = ["numpy>=1.26"]\n',
        "results.tsv": "commit\tval_bpb\n",
    }
    task = find_task(str(write(tmp_path / "lm", files)))
    assert task.editable == ("train.py",)
    assert (task.primary.name, task.primary.direction) == ("val_bpb", "minimize")
    assert task.limits.wall == 600
    assert task.environment.packages == ("numpy>=1.26",)
    assert "the file you modify" in task.goal
    assert task.command
    assert task.command.text == "python3 train.py"
    assert "val_bpb:          1.000000" in evaluated(task, tmp_path / "box").stdout


@pytest.mark.parametrize(
    ("said", "direction"),
    [
        ("Get the highest quux.\nIf quux is equal or lower, you git reset back.", "maximize"),
        ("If quux improved (lower), keep it.\nIf quux is equal or worse, reset.", "minimize"),
        ("Goal: get the highest\nquux, reverting what is lower.", "maximize"),
        ("Keep if quux is lower, otherwise revert.", "minimize"),
        ("Reduce quux of the workload.", "minimize"),
        ("Maximize throughput and minimise quux.", "minimize"),
        ("Never increase quux. Lower is better!", "minimize"),
        ("- quux (higher is better)\n- `other_time` (lower is better)", "maximize"),
        ("The goal is the highest validation quality.", "maximize"),
        ("## Benchmark\n- primary metric: quux\n- direction: lower\n", "minimize"),
        ("If quux is lower, discard. Simpler is better, and `other_time`: lower is better.", None),
        ("Changes that reduce quux are discarded.", None),
    ],
)
def test_the_better_way_is_what_a_text_wants_not_what_it_reverts(said: str, direction: str | None) -> None:
    assert direction_said(said, "quux") == direction
    assert direction_said(said, "quux_loss") in ("minimize", "maximize")


def test_a_direction_that_nothing_tells_is_a_guess_and_said_to_be_one(tmp_path: Path, caplog) -> None:
    words = "Edit `a.py`, run `python a.py`, read `grep '^quux:' run.log`. If quux is lower, revert.\n"
    task = find_task(str(write(tmp_path, {"program.md": words, "a.py": "print('quux:', 1)\n"})))
    assert task.primary.direction == "maximize"
    assert "quux is taken to be better the higher it is" in caplog.text


@pytest.mark.parametrize(
    ("words", "command", "metric", "editable"),
    [
        ("Edit `train.py`. `python -u train.py > run.log 2>&1`; `grep '^val_bpb:' log`.", "python3 -u train.py", 0, 0),
        ("Edit `train.py`.\n```sh\ncd /workspace && python3 train.py -n 3 2>&1 | tee log\n```\n"
         "`grep -oP 'val_bpb: \\K.*'`", "python3 train.py -n 3", 0, 0),
        ("Don't edit any except `train.py`. `A=0 uv run train.py > log`, `grep '^val_bpb' log | awk '{print $2}'`.",
         "A=0 python3 train.py", 0, 0),
        ("Edit `train.py`.\nRun `make bench`. Minimise `val_bpb`.", "make bench", 0, 0),
        ("**Files in scope**: src/*.py\n\n`python train.py`: `grep '^val_bpb:'`.", "python3 train.py", 0, "src/*.py"),
        ("## Files in Scope\n- everything in `src/`, but `src/fixed.py` is read-only\n## Run\n"
         "`timeout 60 python -m train`\n`grep -E '^\\s*(steps|n):'`, lower is better", "python3 -m train", "steps",
         "src/model.py"),
        ("Edit `train.py`. Run `python train.py`.\n- **Primary**: steps (lower is better)\n- **Secondary**: val_bpb",
         "python3 train.py", "steps", 0),
        ("**Modify train.py** only. First `python train.py -b > logs/<n>.log`: `python train.py -b`. Then\n"
         "`python train.py > logs/<n>.log 2>&1`, `grep '^val_bpb:' logs/<n>.log`.", "python3 train.py", 0, 0),
        ("Edit `train.py`.\n`python train.py \"<what changed>\" > log`\nPrimary metric: minimize `steps`.",
         'python3 train.py "x"', "steps", 0),
        ("Edit `train.py`. **Primary**: quick Steps.\n```\n1. uv run prepare.py\n2. grep '^val_bpb:' log\n```",
         "python3 prepare.py", 0, 0),
        ("Edit `train.py`.\n```\npython train.py \\\n  --tag x{N} \\\n  --note \"{your words}\"\n```\n"
         "See it all: `make x &`\n`grep -E 'step:10/20 val_loss' log`, "
         "`grep '^val_bpb:' log`", 'python3 train.py --tag xx --note "x"', 0, 0),
        ("Edit `train.py`. `make bench && python3 train.py > log`, then grep for:\n```\nval_bpb: 1\n```\n"
         "- `val_bpb`: Primary metric. Lower = better.", "make bench && python3 train.py", 0, 0),
        ("## Files in Scope\n### Core\n- `train.py`: all of it\n\n**Tools**\n- `make.lua`\n## Off Limits\n### Rest\n"
         "- `prepare.py`\n## Run\n`python train.py`, `grep '^val_bpb:' log`", "python3 train.py", 0,
         ("make.lua", "train.py")),
        ("## Editable Surface\nYou may edit:\n\n- `train.py`\n\nYou may not edit:\n\n- `src/`\n- `prepare.py`\n\n"
         "Primary metric:\n\n- `val_bpb`\n\nRun `python train.py`.", "python3 train.py", 0, 0),
    ],
)  # fmt: skip
def test_texts_name_files_commands_and_numbers_in_many_ways(tmp_path: Path, words, command, metric, editable) -> None:
    files = {
        "program.md": words,
        "train.py": "print(f'val_bpb: {1.5:.3f}')\nprint(f'steps: {4}')\n",
        "prepare.py": "import train\n",
        "Makefile": "bench:\n\t@python3 train.py\n",
        "src/model.py": "",
        "src/fixed.py": "",
        "make.lua": "",
    }
    if editable == "src/*.py":
        del files["src/fixed.py"]
    task = find_task(str(write(tmp_path / "x", files)))
    assert task.command
    expected = editable if isinstance(editable, tuple) else (editable or "train.py",)
    assert (task.command.text, task.editable) == (command, expected)
    assert (task.primary.name, task.primary.direction) == (metric or "val_bpb", "minimize")
    assert metrics(task, evaluated(task, tmp_path / "box")) == {task.primary.name: 4.0 if metric else 1.5}


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
    assert task.repeats > 0, "what bench.js measures is noisy, though only the sorter may change"


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        ("Edit `a.py`, run `python a.py`.", "program.md does not name the number"),
        ("Edit `a.py`, `grep '^loss:' log`.", "program.md does not name a command"),
        ("Run `python a.py`, `grep '^loss:' log`.", "program.md does not name a file"),
        ("Be nice.", "a file beside it to change, or a command .*, or the number"),
    ],
)
def test_what_instructions_lack_is_said(tmp_path: Path, words: str, lacks: str) -> None:
    with pytest.raises(NotFoundError, match=lacks):
        find_task(str(write(tmp_path, {"program.md": words, "a.py": "print(1)\n"})))


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


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("If a run exceeds 90 seconds, stop.", 90),
        ("It may take 2 hours, then it is killed.", 7200),
        ("Kill it after 3 min.", 180),
        ("Run `timeout -k 5 20m python a.py`.", 1200),
        ("Run it (timeout: 2 min).", 120),
        ("A budget of 5 minutes.", 600),
    ],
)
def test_an_experiment_ends_when_instructions_want_it_killed(tmp_path: Path, said: str, seconds: int) -> None:
    words = f"Edit `a.py`, run `python a.py`, `grep '^loss:' log`. {said}\n"
    task = find_task(str(write(tmp_path, {"program.md": words, "a.py": "print('loss:', 1)\n"})))
    assert task.limits.wall == seconds


def test_what_no_label_tells_is_said_to_be_the_last_number(tmp_path: Path, caplog) -> None:
    words = "Edit `a.py`, run `python a.py`: it prints the score. Higher is better.\n"
    find_task(str(write(tmp_path, {"program.md": words, "a.py": "print(1)\n"})))
    assert "the last one that is printed is read" in caplog.text


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


def test_instructions_without_files_are_no_task(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="autoresearch"):
        find_task(str(write(tmp_path, {"program.md": PROGRAM})))


def test_commands_in_blocks_and_labels_in_sources_are_found(tmp_path: Path) -> None:
    words = (
        "# Solver\nOptimize `solver.py`. `bench.py` is read-only.\n\n```sh\npip install numpy\n"
        "python bench.py --all\n```\nA higher score is better; it prints score on the last line.\n"
    )
    files = {"program.md": words, "solver.py": "X = 2\n"}
    files["bench.py"] = "import solver\nprint('score:', solver.X * 2)\n"
    task = find_task(str(write(tmp_path / "solver", files)))
    assert task.command
    assert (task.editable, task.command.text) == (("solver.py",), "python3 bench.py --all")
    assert (task.primary.name, task.primary.direction) == ("score", "maximize")
    assert evaluated(task, tmp_path / "box").stdout == "score: 4\n"
