"""What other systems found, as runs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import evogit
from evogit.adopt import find_task
from evogit.adopt.past_runs import read_past
from evogit.core import NotFoundError, RefusedError, UsageError
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review import open_run
from evogit.review.importing import bring_in
from evogit.review.rescoring import plan, rescore
from tests.adopt.evaluating import write
from tests.plain_git import git

PROGRAM = "X = 1\n"
EVALUATOR = "def evaluate(path):\n    return {'combined_score': float(open(path).read()[4:])}\n"


def checkpoint(folder: Path) -> Path:
    programs = [
        {
            "id": "c",
            "code": "X = 3\n",
            "parent_id": "b",
            "iteration_found": 1,
            "metrics": {"combined_score": 3.0, "n": 1},
        },
        {"id": "b", "code": "X = 2\n", "parent_id": "a", "iteration_found": 2, "metrics": {"a": 1.0, "b": 2.0}},
        {"id": "a", "code": PROGRAM, "parent_id": None, "iteration_found": 0, "metrics": {"combined_score": 1}},
        {"id": "d", "code": "X = 4\n", "parent_id": "gone", "metrics": {"error": 0.0, "timeout": True}},
    ]
    place = folder / "openevolve_output" / "checkpoints"
    for number, some in ((9, programs[:1]), (10, programs)):
        texts = {f"programs/{each['id']}.json": json.dumps({"language": "python", **each}) for each in some}
        write(place / f"checkpoint_{number}", {**texts, "metadata.json": "{}", "programs/half.json": '{"id": "e", "co'})
    return folder / "openevolve_output"


def test_a_checkpoint_is_a_run_with_lineage_and_scores(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR})
    past = read_past(checkpoint(folder), "initial_program.py", "combined_score")
    assert (past.system, [each.id for each in past.programs][-2:]) == ("OpenEvolve", ["b", "c"])
    assert (past.unread, past.orphans) == (1, 1)
    repository = Repository.create(tmp_path / "run")
    task = find_task(str(folder))
    done = bring_in(repository, task, "x", past)
    assert (done.candidates, done.same, done.refused) == (3, 0, 0)
    history = open_run(repository, "x").history
    found = {
        repository.trees.files(each.tree, lambda _: True)["initial_program.py"]: each for each in history.phylogeny
    }
    assert found[b"X = 3\n"].parents == (found[b"X = 2\n"].commit,)
    assert found[b"X = 2\n"].parents == (history.seed,)
    values = {text: history.evaluation(each.commit) for text, each in found.items()}
    assert {text: value.metrics for text, value in values.items() if value and value.ok} == {
        b"X = 1\n": {"combined_score": 1.0},
        b"X = 2\n": {"combined_score": 1.5},
        b"X = 3\n": {"combined_score": 3.0},
    }
    assert history.best == found[b"X = 3\n"].commit
    assert history.started
    assert history.started.judged == "inside"
    with pytest.raises(RefusedError):
        bring_in(repository, task, "x", past)


def test_a_run_whose_seed_the_task_has_no_more_is_rescored_again_and_again(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR})
    past = read_past(checkpoint(folder), "initial_program.py", "combined_score")
    repository = Repository.create(tmp_path / "run")
    bring_in(repository, find_task(str(folder)), "x", past)
    write(folder, {"initial_program.py": "X = 7\n"})
    for factor in (1, 2):
        write(folder, {"evaluator.py": EVALUATOR.replace("float(", f"{factor} * float(")})
        context = StoredRun.open(repository, "x").about(find_task(str(folder)))
        asyncio.run(rescore(context, provider="none", jobs=1))
        assert evogit.read(repository.path).best.score == factor * 3.0
    assert not any("scores are those of" in each for each in evogit.read(repository.path).remarks)


def skydiscover(folder: Path, **programs: dict[str, object]) -> Path:
    texts = {
        f"out/checkpoints/checkpoint_9/programs/{id}.json": json.dumps({"id": id, "metrics": {}, **about})
        for id, about in programs.items()
    }
    return write(folder, {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR, **texts}) / "out"


def test_programs_that_later_checkpoints_have_dropped_or_half_written_are_read_from_earlier_ones(
    tmp_path: Path,
) -> None:
    def program(id: str, time: int, **about: object) -> str:
        said = {"id": id, "code": f"X = {time}\n", "timestamp": time, "metrics": {"combined_score": time}}
        return json.dumps({**said, **about})

    place = tmp_path / "out" / "checkpoints"
    copied = {"iteration_found": 0, "metadata": {"island": 2, "migrant": True}}
    early = {"seed": program("seed", 1), "b": program("b", 2, parent_id="seed"), "half": program("half", 3)}
    late = {"c": program("c", 5, parent_id="b"), "half": '{"id": "half", "co', "m": program("m", 4, **copied)}
    for number, texts in ((10, early), (20, late)):
        write(place / f"checkpoint_{number}" / "programs", {f"{name}.json": text for name, text in texts.items()})
    past = read_past(tmp_path / "out", "initial_program.py", "combined_score")
    assert [each.id for each in past.programs] == ["seed", "b", "half", "m", "c"], "as they were made"
    assert (past.unread, past.orphans) == (0, 0)
    assert past.programs[3].told == {"iteration": "0", "island": "2"}
    alone = read_past(place / "checkpoint_20", "initial_program.py", "combined_score")
    assert ([each.id for each in alone.programs], alone.unread, alone.orphans) == (["m", "c"], 1, 1)


def test_metrics_by_which_programs_are_told_apart_do_not_rank(tmp_path: Path) -> None:
    metrics = {"size": 90.0, "accuracy": 0.5}
    text = json.dumps({"id": "a", "code": PROGRAM, "metrics": metrics})
    stats = json.dumps({"feature_stats": {"size": {}, "complexity": {}}})
    write(tmp_path / "checkpoint_1", {"programs/a.json": text, "metadata.json": stats})
    program = read_past(tmp_path, "initial_program.py", "combined_score").programs[0]
    assert (program.value, program.numbers) == (0.5, metrics)


def test_a_run_of_skydiscover_keeps_metrics_artifacts_reasons_and_what_was_shown(tmp_path: Path) -> None:
    caught = {"failure_stage": "stage1", "stderr": "first\nnegative value", "traceback": "..."}
    folder = skydiscover(
        tmp_path / "x",
        a={"solution": PROGRAM, "timestamp": 1.5, "metrics": {"combined_score": 1.0}},
        b={
            "solution": "X = 2\n",
            "timestamp": 2.5,
            "parent_id": "a",
            "metrics": {"combined_score": 2.0, "n": 7},
            "artifacts": {"hint": "larger"},
            "metadata": {"changes": "Change 1: 'X = 1' → 'X = 2'"},
        },
        c={
            "solution": "X = 0\n",
            "timestamp": 3.5,
            "parent_id": "a",
            "other_context_ids": ["b", "a", "gone"],
            "metrics": {"stage1_passed": 0.0, "error": 0.0},
            "artifacts": caught,
        },
    )
    past = read_past(folder, "initial_program.py", "combined_score")
    assert past.system == "SkyDiscover"
    repository = Repository.create(tmp_path / "run")
    bring_in(repository, find_task(str(tmp_path / "x")), "x", past)
    result = evogit.read(repository.path)
    assert (result["seed"].score, result.best.text, result.best.title) == (1.0, "X = 2\n", "'X = 1' → 'X = 2'")
    assert result.remarks[0].startswith("scores are those of SkyDiscover; evaluate the best here")
    [failed] = [each for each in result if each.status != "ok"]
    assert failed.failure == "it has no score in SkyDiscover: negative value"
    bare = {"solution": "X = 5\n", "metrics": {"stage1_passed": 0.0, "error": 0.0}}
    silent = read_past(skydiscover(tmp_path / "y", a=bare), "initial_program.py", "combined_score")
    assert silent.programs[0].failure == "it failed in stage1"
    assert failed.record()["shown"] == [result.best.id]
    evaluation = open_run(repository, "x").history.evaluation(result.best.id)
    assert evaluation
    assert evaluation.cases == {"SkyDiscover": {"combined_score": 2.0, "n": 7.0}}
    assert b"[hint] larger" in result.best.evidence["feedback.json"]


def test_a_program_that_was_evaluated_again_has_the_mean_and_copies_do_not_count(tmp_path: Path) -> None:
    scores = {"a": ("X = 1\n", 1.0), "b": ("X = 2\n", 2.0), "c": ("X = 2\n", 3.0), "d": ("X = 2\n", 3.0)}
    programs: dict[str, dict[str, object]] = {
        id: {"solution": text, "timestamp": ord(id), "metrics": {"combined_score": value}}
        for id, (text, value) in scores.items()
    }
    past = read_past(skydiscover(tmp_path / "x", **programs), "initial_program.py", "combined_score")
    repository = Repository.create(tmp_path / "run")
    done = bring_in(repository, find_task(str(tmp_path / "x")), "x", past)
    assert (done.candidates, done.same) == (1, 2)
    best = evogit.read(repository.path).best
    assert (best.score, best.record()["repeats"]) == (2.5, 1)


def test_a_database_of_shinkaevolve_is_read_while_it_is_at_work(tmp_path: Path) -> None:
    file = tmp_path / "results" / "programs.sqlite"
    write(file.parent / "gen_1", {"results/correct.json": '{"correct": false, "error": "X must be even"}'})
    columns = (
        "id, code, parent_id, generation, timestamp, combined_score, public_metrics, text_feedback, correct, metadata"
    )
    rows = [
        ("a", "X = 1\n", None, 0, 5.0, 1.0, "{}", "", 1, "{}"),
        ("b", "X = 2\n", "a", 1, 6.0, 2.0, '{"n": 3}', "fine", 1, '{"patch_name": "double"}'),
        ("c", "X = 9\n", "a", 1, 7.0, 9.0, None, None, 0, None),
    ]
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"CREATE TABLE programs ({columns})")
        database.executemany(f"INSERT INTO programs VALUES ({', '.join('?' * 10)})", rows)
        database.commit()
        with closing(sqlite3.connect(file.with_name("prompts.sqlite"))) as other:
            other.execute(f"CREATE TABLE prompts ({'x' * 9000})")
        past = read_past(tmp_path / "results", "initial.py", "combined_score")
    assert past.system == "ShinkaEvolve"
    assert [(each.id, each.parent, each.value) for each in past.programs] == [
        ("a", "", 1.0),
        ("b", "a", 2.0),
        ("c", "a", None),
    ]
    [_, second, third] = past.programs
    assert (second.title, second.numbers, second.feedback) == ("double", {"n": 3.0}, "fine")
    assert third.failure == "X must be even"


def test_a_database_that_is_none_of_shinkaevolve_or_not_whole_is_told_what_it_has(tmp_path: Path) -> None:
    def refused(*statements: str) -> str:
        (tmp_path / "programs.sqlite").unlink(missing_ok=True)
        with closing(sqlite3.connect(tmp_path / "programs.sqlite")) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
        with pytest.raises(NotFoundError) as error:
            read_past(tmp_path / "programs.sqlite", "initial.py", "combined_score")
        return str(error.value)

    assert "no plain table" in refused("CREATE TABLE x (a)")
    table = "CREATE TABLE programs (id, source, combined_score)"
    assert "has no program yet" in refused(table)
    newer = refused(table, "INSERT INTO programs VALUES (1, 2, 3)")
    assert "without code" in newer
    assert "columns id, source, combined_score" in newer
    whole = (tmp_path / "programs.sqlite").read_bytes()
    (tmp_path / "programs.sqlite").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NotFoundError, match=r"programs.sqlite is no database .* that can be read: "):
        read_past(tmp_path, "initial.py", "combined_score")


def test_results_of_autoresearch_are_read_with_their_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    commits = []
    for value in (1, 2):
        (tmp_path / "train.py").write_text(f"X = {value}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", f"step {value}")
        commits.append(git(tmp_path, "rev-parse", "HEAD").strip())
    rows = [[commits[0][:7], "1.5", "44.0", "keep", "baseline"], ["0123456", "1.4", "4", "discard", "gone"]]
    rows.append([commits[1][:7], "0.000000", "0.0", "crash", "twice"])
    lines = [["commit", "val_bpb", "memory_gb", "status", "description"], *rows]
    (tmp_path / "results.tsv").write_text("\n".join("\t".join(line) for line in lines) + "\n")
    past = read_past(tmp_path, "train.py", "val_bpb")
    assert (past.system, past.unread) == ("autoresearch", 1)
    assert [(each.title, each.value, each.files) for each in past.programs] == [
        ("baseline", 1.5, {"train.py": b"X = 1\n"}),
        ("twice", None, {"train.py": b"X = 2\n"}),
    ]
    assert past.programs[1].parent == past.programs[0].id
    assert [each.numbers for each in past.programs] == [{"val_bpb": 1.5, "memory_gb": 44.0}, {}]


def test_tables_of_other_shapes_in_folders_with_other_commits_between_are_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    table = tmp_path / "lab" / "results.tsv"
    rows = []

    def commit(text: str, *row: str) -> None:
        write(tmp_path / "lab", {"train.py": text})
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
        if row:
            rows.append(["2026-06-20", git(tmp_path, "rev-parse", "--short=9", "HEAD").strip(), *row])
            git(tmp_path, "commit", "-q", "--allow-empty", "-m", "log")

    commit("X = 1\n", "KEEP", "7", "1.5", "the beginning")
    commit("X = 2\n", "discard", "7", "1.8", '"worse')
    commit("X = 1\n")
    commit("X = 3\n", "keep", "7", "1.25", "better")
    commit("X = 4\n", "discard", "0.0", "0.0", "broken off")
    rows.append(["2026-06-21", "HEAD", "keep", "7", "0.1", "no commit"])
    head = "# metric_direction: lower\ntime\tsha\tstatus\tcycle\tval_bpb\tdescription\n"
    table.write_text(head + "".join("\t".join(row) + "\n" for row in rows))
    past = read_past(table.parent, "train.py", "val_bpb")
    titles = {each.id: each.title for each in past.programs}
    assert [(each.title, each.value, titles.get(each.parent)) for each in past.programs] == [
        ("the beginning", 1.5, None),
        ('"worse', 1.8, "the beginning"),
        ("better", 1.25, "the beginning"),
        ("broken off", None, "better"),
    ]
    assert past.unread == 1
    session = {"autoresearch.md": "**Primary**: val_bpb (lower is better)\n## Files in Scope\n- `train.py`\n"}
    session |= {"autoresearch.sh": "python3 train.py\n", "train.py": "print('METRIC val_bpb=', 4)\n"}
    task = find_task(str(write(tmp_path / "lab", session)))
    repository = Repository.create(tmp_path / "run")
    assert bring_in(repository, task, "lab", past).candidates == 3
    history = open_run(repository, "lab").history
    assert history.fitness(history.seed or "") == 1.5
    assert history.phylogeny[history.best or ""].title == "better"
    session["train.py"] = "print('METRIC val_bpb=', 8)\n"
    judged = find_task(str(write(tmp_path / "lab", session)))
    assert plan(StoredRun.open(repository, "lab").about(judged)), "`rescore` goes on though train.py was edited"
    table.write_text(head + "".join("\t".join(row) + "\n" for row in reversed(rows)))
    latest_first = read_past(table, "train.py", "val_bpb").programs
    assert {each.id: (each.value, each.parent) for each in latest_first} == {
        each.id: (each.value, each.parent) for each in past.programs
    }
    table.write_text("commit\tscore\nexp0\t1.0\n")
    with pytest.raises(NotFoundError, match="has 1 rows; none names"):
        read_past(table.parent, "train.py", "val_bpb")
    table.write_text("commit\tscore\n")
    with pytest.raises(NotFoundError, match="has no rows yet"):
        read_past(table.parent, "train.py", "val_bpb")


def test_of_several_runs_below_a_folder_none_is_chosen_silently(tmp_path: Path) -> None:
    for name in ("one", "two"):
        skydiscover(tmp_path / name, a={"solution": PROGRAM})
    with pytest.raises(UsageError, match=r"holds 2 runs .*one/out/checkpoints, .*two/out/checkpoints"):
        read_past(tmp_path, "initial_program.py", "combined_score")


def test_a_folder_without_a_run_is_told_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="a checkpoint of OpenEvolve or SkyDiscover"):
        read_past(tmp_path, "x.py", "score")


def session(place: Path) -> tuple[Path, dict[str, str]]:
    """A session of pi-autoresearch over two files, and the commit of each experiment that was kept."""
    folder = place / "lab"
    words = "**Primary**: val_ms (lower is better)\n## Files in Scope\n- `src/*.py`\n"
    files = {
        ".auto/prompt.md": words,
        ".auto/measure.sh": "cat src/*.py\n",
        "src/a.py": "A = 0\n",
        "src/b.py": "B = 0\n",
    }
    write(folder, files)
    git(place, "init", "-q")
    kept, lines = dict[str, str](), list[str]()

    def say(**line: object) -> None:
        lines.append(json.dumps(line))
        write(folder, {".auto/log.jsonl": "\n".join(lines) + "\n"})

    def run(title: str, status: str, metric: float, **changed: str) -> None:
        write(folder, {f"src/{name}.py": text for name, text in changed.items()})
        if status == "keep":
            git(place, "add", "-A")
            git(place, "commit", "-q", "--allow-empty", "-m", title)
            kept[title] = git(place, "rev-parse", "HEAD").strip()
        else:
            git(place, "checkout", "-q", "--", "lab/src")
        commit = git(place, "rev-parse", "--short=7", "HEAD").strip()
        say(run=len(lines), commit=commit, metric=metric, status=status, description=title, timestamp=1_790_000_000_123,
            metrics={"memory": 5}, asi={"hypothesis": f"why {title}"})  # fmt: skip

    say(type="config", name="first", metricName="other", bestDirection="higher")
    run("of another metric", "keep", 99.0)
    say(type="config", name="second", metricName="val_ms", bestDirection="lower")
    run("baseline", "keep", 10.0)
    run("one", "keep", 8.0, a="A = 1\n")
    run("worse", "discard", 12.0, a="A = 2\n")
    run("broken", "checks_failed", 1.0, b="B = 1\n")
    run("both", "keep", 6.0, a="A = 3\n", b="B = 3\n")
    say(type="hook", stage="after")
    with (folder / ".auto" / "log.jsonl").open("a") as log:
        log.write('{"run": 9, "comm')
    return folder, kept


def test_the_log_of_a_session_is_read_with_its_commits(tmp_path: Path) -> None:
    folder, kept = session(tmp_path)
    task = find_task(str(folder))
    assert (task.primary.name, task.primary.direction) == ("val_ms", "minimize")
    for place in (folder, folder / ".auto", folder / ".auto" / "log.jsonl"):
        past = read_past(place, "", "val_ms", task.is_editable)
        titles = {each.id: each.title for each in past.programs}
        assert titles == {kept[title]: title for title in ("baseline", "one", "both")}
        assert past.unread == 3
    assert [(each.title, each.value, titles.get(each.parent)) for each in past.programs] == [
        ("baseline", 10.0, None),
        ("one", 8.0, "baseline"),
        ("both", 6.0, "one"),
    ]
    last = past.programs[-1]
    assert last.files == {"src/a.py": b"A = 3\n", "src/b.py": b"B = 3\n"}
    assert (last.numbers, last.told["hypothesis"], last.time) == ({"memory": 5.0}, "why both", 1_790_000_000)
    repository = Repository.create(tmp_path / "run")
    done = bring_in(repository, task, "lab", past)
    assert (done.candidates, done.refused) == (2, 0)
    history = open_run(repository, "lab").history
    assert history.fitness(history.seed or "") == 10.0
    assert history.phylogeny[history.best or ""].title == "both"


def test_a_log_that_is_about_something_else_is_not_read(tmp_path: Path) -> None:
    folder, _ = session(tmp_path)
    with pytest.raises(NotFoundError, match="is about val_ms, the task about seconds"):
        read_past(folder, "src/a.py", "seconds")
    (folder / ".auto" / "log.jsonl").write_text('{"run": 1, "commit": "0000000", "metric": 1, "status": "keep"}\n')
    with pytest.raises(NotFoundError, match="of 1 experiments none was kept and names a commit that Git still has"):
        read_past(folder, "src/a.py", "val_ms")
    (folder / ".auto" / "log.jsonl").write_text("")
    with pytest.raises(NotFoundError, match="no experiment yet"):
        read_past(folder, "src/a.py", "val_ms")
