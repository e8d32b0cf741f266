from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task, neighbours
from evogit.adopt.script import number_of
from evogit.config.values import MetricReader
from evogit.review.checking import advice, judge_seed
from tests.adopt.evaluating import evaluated, metrics, write


@pytest.mark.parametrize(
    ("name", "text", "metric", "value", "direction"),
    [
        ("plain.py", "print('begin 3')\nprint(7 * 6)\n", "score", 42.0, "maximize"),
        ("labels.py", "loss = 0.25\nprint(f'done, loss: {loss} after 10 steps')\n", "loss", 0.25, "minimize"),
        ("lines.sh", "echo METRIC speed=12.5\necho METRIC other=1\n", "speed", 12.5, "maximize"),
        ("object.py", "import json\nprint(json.dumps({'accuracy': 0.5}))\n", "accuracy", 0.5, "maximize"),
        (
            "indented.py",
            "import json\nr = {'n': 1, 'fitness': 2.5, 'of': {'w': 9}}\nprint(json.dumps(r, indent=2))\n",
            "fitness",
            2.5,
            "maximize",
        ),
        ("all.py", "x = 3\nprint(f'avg_score: {x}')\nprint(f'worst_score: {x - 1}')\n", "avg_score", 3.0, "maximize"),
        ("error.py", "m = 1.5\nprint(f'MAE: {m:.4f}')\nprint('Done in 0.5 s')\n", "mae", 1.5, "minimize"),
        ("words.py", "x = 4\nprint(f'Tour length (km): {x}')\nprint(f'Time: {9}')\n", "tour_length", 4.0, "minimize"),
        ("space.py", "print('perplexity', 10 + 1)\nprint(3)\n", "perplexity", 11.0, "minimize"),
        ("groups.py", "x = 12340\nprint(f'Score: {x:,}')\n", "score", 12340.0, "maximize"),
        ("last_group.py", "x = 12340\nprint(f'{x:,}')\n", "score", 12340.0, "maximize"),
        ("shell.sh", 'total=7\necho "Total score: $total"\necho "Done in 0.5 s"\n', "total_score", 7.0, "maximize"),
        ("bare.sh", "echo cost = $((3 * 3))\necho 5\n", "cost", 9.0, "minimize"),
        ("metric.sh", "echo METRIC other=1\necho METRIC score=$((3 * 2))\n", "score", 6.0, "maximize"),
        (
            "caught.py",
            "gap = 0.5\ntry:\n    print(f'gap is {gap}')\nexcept OSError as e:\n    print(f'Error: {e}')\n",
            "gap",
            0.5,
            "minimize",
        ),
        ("took.py", "t = 5\nprint(7)\nprint('--- %s seconds ---' % t)\n", "seconds", 5.0, "minimize"),
        ("ms.js", "const t = 6;\nconsole.log('Solved in', t, 'ms', 'by 9');\n", "milliseconds", 6.0, "minimize"),
        (
            "date.sh",
            'i=1; a=$(date +%s)\necho "Run $i: ${i}ms"\necho "Mean: $((8 / 2))ms"\n',
            "milliseconds",
            4.0,
            "minimize",
        ),
        (
            "sieve.py",
            "import time\nn, t = 0, time.perf_counter()\nwhile time.perf_counter() - t < 0:\n    n += 1\n"
            "print('Passes: %s, Time: %s, Valid: %s' % (n + 5, t, True))\n",
            "passes",
            5.0,
            "maximize",
        ),
    ],
)
def test_a_script_that_prints_a_number_is_a_task(tmp_path: Path, name, text, metric, value, direction) -> None:
    task = find_task(str(write(tmp_path, {name: text}) / name))
    assert (task.primary.name, task.primary.direction, task.judged) == (metric, direction, "inside")
    assert task.editable == (name,)
    assert metrics(task, evaluated(task, tmp_path / "box")) == {metric: value}


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ('printf("score: %f\\n", x);', "score"),
        ('println!("Best score: {}", x);', "best_score"),
        ('cout << "Score: " << x << endl;', "score"),
        ("console.log(`score ${x}`)", "score"),
        ("console.log(JSON.stringify({ fitness: fit, params: { W } }, null, 2));", "fitness"),
        ('puts "score #{x}"', "score"),
        ('cat("RMSE:", x, "\\n")', "rmse"),
        ('print "regret = " . $x;', "regret"),
        ('fmt.Println("makespan:", x)', "makespan"),
        ('fprintf(stderr, "error: %s", message); printf("val_acc=%.3f\\n", x);', "val_acc"),
        ('println!("Time: {:?}", start.elapsed());', "time"),
        ('println!("Time elapsed in f() is: {:?}", duration);', "time"),
        ("console.time('sudoku');\nconsole.timeEnd('sudoku');", "time"),
        ("print(time.time() - begun)", "time"),
        ('cout << "Taken by f(): " << d.count() << " microseconds" << endl;', "microseconds"),
        ('printf("%d loss\\n", x);', None),
        ('printf("Error: %e\\n", fabs(x - y));', "error"),
        ("print(timeit.timeit(f))", "time"),
        ('parser.add_argument("--n", help="cost: %(default)s")\nrun(env={"loss": 1}, loss={x})', None),
    ],
)
def test_prints_of_other_languages_have_labels_too(text: str, metric: str | None) -> None:
    number = number_of([text])
    assert (number.metric, number.direction is None) == (metric or "score", metric is None)


@pytest.mark.parametrize("text", ["print(7 * 6)\n", "x = 3\nprint(f'objective: {x}')\n"])
def test_a_direction_that_nothing_tells_is_said_to_be_a_guess(tmp_path: Path, caplog, text: str) -> None:
    find_task(str(write(tmp_path, {"plain.py": text}) / "plain.py"))
    assert "taken to be better the higher it is" in caplog.text


NEIGHBOURS = {
    "data.txt": "1 2 3\n",
    "in/a.csv": "4\n",
    "util.h": '#include "deep.h"\n',
    "deep.h": "const int X = 5;\n",
    "solver.py": "print('cost:', len(open('data.txt').read()))\n",
    "lib/part.js": "module.exports = 4;\n",
    "unrelated.txt": "",
    "other/data.txt": "",
    ".secret": "",
}


@pytest.mark.parametrize(
    ("name", "text", "beside", "editable"),
    [
        (
            "read.py",
            "from pathlib import Path\nprint(Path(__file__).with_name('data.txt').read_text()[0], '.secret')\n",
            ["data.txt"],
            ["read.py"],
        ),
        ("glob.py", "import glob\nprint('*', len(glob.glob('in/*.csv')), '\\0')\n", ["in/a.csv"], ["glob.py"]),
        ("list.py", "import os\nprint(len(os.listdir('in')))\n", ["in/a.csv"], ["list.py"]),
        ("sim.c", '#include "util.h"\nint main() { return X; }\n', ["deep.h", "util.h"], ["sim.c"]),
        ("run.sh", 'D=$(dirname "$0")\npython3 $D/solver.py\n', ["data.txt", "solver.py"], None),
        ("two.py", "import os, solver as s\n", ["data.txt", "solver.py"], ["two.py"]),
        ("run.sh", "python3 -u -m solver\n", ["data.txt", "solver.py"], None),
        ("a.js", "console.log(require('./lib/part'), '../x')\n", ["lib/part.js"], ["a.js"]),
    ],
)
def test_files_that_a_script_names_come_along(tmp_path: Path, name, text, beside, editable) -> None:
    task = find_task(str(write(tmp_path, {**NEIGHBOURS, name: text}) / name))
    assert sorted(task.seed_files()) == sorted([name, *beside])
    assert list(task.editable) == (editable or ["run.sh", "solver.py"])


def test_a_file_that_is_too_large_stays_and_is_named(tmp_path: Path, caplog, monkeypatch) -> None:
    monkeypatch.setattr(neighbours, "LARGEST", 200)
    files = {"data.txt": "1" * 300, "a.py": "print(len(open('data.txt').read()))\n"}
    assert list(find_task(str(write(tmp_path, files) / "a.py")).seed_files()) == ["a.py"]
    assert "data.txt did not come along" in caplog.text


def test_modules_beside_a_script_come_along_and_stay_as_they_are(tmp_path: Path) -> None:
    files = {
        "main.py": "from part import VALUE\nprint(VALUE)\n",
        "part.py": "VALUE = 5\n",
        "other.py": "import torch\n",
    }
    task = find_task(str(write(tmp_path, files) / "main.py"))
    assert task.seed_files().keys() == {"main.py", "part.py"}
    assert not task.is_editable("part.py")
    assert task.environment.packages == ()
    assert MetricReader.parse("json")


@pytest.mark.slow
async def test_a_program_that_misses_its_arguments_says_nothing_and_check_says_why(tmp_path: Path) -> None:
    text = "import sys\nfor each in sys.argv[1:]:\n    print('cost:', each)\n"
    task = find_task(str(write(tmp_path, {"a.py": text}) / "a.py"))
    [failed] = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
    assert "it printed nothing" in failed.evaluation.reason
    assert advice(task, failed).startswith("It may expect arguments or an input")
