"""Benches of tiny tasks: real runs, and what is kept of them."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.bench.bench import Bench
from evogit.bench.comparison import Findings, findings, points
from evogit.bench.methods import KNOWN, Method, methods
from evogit.bench.outcome import BenchRun, read, write
from evogit.bench.report import markdown, record, tables
from evogit.bench.worker_run import BenchTask
from evogit.bench.workers import Order
from evogit.config import Task
from evogit.core import EvoGitError

pytestmark = pytest.mark.slow

Tiny = Callable[..., Task]


def bench_of(task: Task, folder: Path, compared: Sequence[Method], *, seeds: int, **about: Any) -> Bench:
    return Bench(bench_task=BenchTask(task=task, **about), methods=tuple(compared), seeds=range(seeds), folder=folder)


EVOLVE = (KNOWN["evolve"],)


def made_up(tiny: Tiny, folder: Path, curves: dict[str, list[list[float]]], evaluations: int = 4) -> Findings:
    """What is found when runs had these curves, a list for each method."""
    compared = methods([name for name in curves if name in KNOWN], [name for name in curves if name not in KNOWN], [])
    bench = bench_of(tiny(), folder, compared, seeds=len(next(iter(curves.values()))), evaluations=evaluations)
    done = {
        (method, seed): BenchRun(method=method.name, seed=seed, curve=tuple(curve), evaluated=len(curve))
        for method in compared
        for seed, curve in enumerate(curves[method.name])
    }
    found = findings(bench, done)
    assert found
    return found


# --- files --------------------------------------------------------------------------------------------------------


def test_what_is_kept_of_a_run_comes_back(tmp_path: Path) -> None:
    outcome = BenchRun(method="m", seed=3, curve=(1.0, 2.5), depends={"a": 1})
    write(tmp_path / "x" / "m-3.json", outcome)
    assert read(tmp_path / "x" / "m-3.json") == outcome
    content = (tmp_path / "x" / "m-3.json").read_text()
    (tmp_path / "x" / "m-3.json").write_text(content.partition(" ")[2])
    assert read(tmp_path / "x" / "m-3.json") is None  # anybody could have written it
    (tmp_path / "x" / "m-3.json").write_text(content.replace('"seed": 3', '"seed": 4'))
    assert read(tmp_path / "x" / "m-3.json") is None
    assert [file.name for file in (tmp_path / "x").iterdir()] == ["m-3.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": 99}', '{"schema": 1, "method": 3}', "\x00"])
def test_a_damaged_file_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.json").write_text(text)
    assert read(tmp_path / "m.json") is None
    assert read(tmp_path / "none.json") is None


def test_no_run_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine\n")
    (tmp_path / "m.json").symlink_to("mine")
    write(tmp_path / "m.json", BenchRun(method="m", seed=1, curve=(1.0,)))
    assert (tmp_path / "mine").read_text() == "mine\n"


def test_only_runs_that_would_come_out_the_same_are_taken_for_done(tiny: Tiny, tmp_path: Path) -> None:
    def found(bench: Bench) -> tuple[int, int]:
        done = bench.done()
        return len(done), bench.stale(done)

    evolve = KNOWN["evolve"]
    bench = bench_of(tiny(), tmp_path, EVOLVE, seeds=2, evaluations=9)
    for seed in (0, 1):
        depends = bench.bench_task.depends(evolve)
        write(bench.file(evolve, seed), BenchRun(method="evolve", seed=seed, curve=(1.0,), depends=depends))
    assert found(bench) == (2, 0)
    task = tiny("other", program="A = 3.0\n")
    for bench_task in ({"evaluations": 10}, {"task": task}, {"source": "edited meanwhile"}):
        assert found(replace(bench, bench_task=replace(bench.bench_task, **bench_task))) == (0, 2)
    bench.file(evolve, 0).write_text("{")
    assert found(bench) == (1, 1)


# --- what is found ------------------------------------------------------------------------------------------------


def test_methods_are_compared_seed_by_seed_on_the_way_from_the_seed_to_the_best_known(
    tiny: Tiny, tmp_path: Path
) -> None:
    found = made_up(
        tiny,
        tmp_path,
        {"evolve": [[-8, -4, -4, 0], [-8, -2, -2, -2]], "best-of-n": [[-8, -8, -8, -4], [-8, -8, -2, -2]]},
    )
    assert (found.seed_value, found.top, found.top_known) == (-8, 0, True)
    evolve, sampling = found.results
    assert evolve.area.mean == pytest.approx(((0 + 0.5 + 0.5 + 1) / 4 + (0 + 0.75 * 3) / 4) / 2)
    assert sampling.value == -3
    [area] = found.comparisons
    assert (area.method, area.against, area.wins, area.losses) == ("evolve", "best-of-n", 2, 0)
    assert (area.better, area.verdict) == (1 / 4, "open")


def test_with_lower_values_better_and_no_known_best_the_best_seen_is_the_top(tiny: Tiny, tmp_path: Path) -> None:
    task = tiny()
    metrics = tuple(replace(each, direction="minimize", best_known=None) for each in task.metrics)
    found = made_up(
        lambda: replace(task, metrics=metrics), tmp_path, {"evolve": [[8, 4, 2]], "sequential": [[8, 8, 6]]}
    )
    assert (found.top, found.top_known) == (2, False)
    assert [each.final.mean for each in found.results] == pytest.approx([1.0, 1 / 3])
    assert found.comparisons[0].wins == 1


def test_a_best_known_value_that_the_seed_beats_is_no_top(tiny: Tiny, tmp_path: Path) -> None:
    found = made_up(tiny, tmp_path, {"evolve": [[2, 3, 6]], "sequential": [[2, 2, 4]]})  # 0 is declared
    assert (found.top, found.top_known) == (6, False)
    assert [each.final.mean for each in found.results] == [1.0, 0.5]


def test_something_is_compared_whatever_takes_part(tiny: Tiny, tmp_path: Path) -> None:
    task, good, bad = tiny(), [[-8.0, -2, 0, 0]], [[-8.0, -8, -8, -4]]
    own = made_up(lambda: task, tmp_path, {"weighted": good, "pareto": bad})
    assert {(each.method, each.against) for each in own.comparisons} == {("pareto", "weighted")}
    controls = made_up(lambda: task, tmp_path, {"best-of-n": good, "sequential": bad})
    assert {each.against for each in controls.comparisons} == {"sequential"}


def test_the_greatest_numbers_are_compared_like_any(tiny: Tiny, tmp_path: Path) -> None:
    up, down = [[-1.5e308, 1.6e308, 1.7e308]] * 3, [[-1.5e308, -1e308, 5e-324]] * 3
    found = made_up(tiny, tmp_path, {"evolve": up, "best-of-n": down})
    json.dumps(record([found]), allow_nan=False)
    assert markdown([found], "evogit bench tiny").count("\n| evolve |") == 3
    assert found.comparisons[0].wins == 3


def test_few_runs_show_neither_better_nor_worse(tiny: Tiny, tmp_path: Path) -> None:
    task, good, bad = tiny(), [-8.0, -2, 0, 0], [-8.0, -8, -8, -4]
    for n, verdict in ((1, "open"), (4, "open"), (5, "worse")):
        found = made_up(lambda: task, tmp_path, {"evolve": [bad] * n, "best-of-n": [good] * n})
        [area] = found.comparisons
        assert (area.verdict, area.worse, area.better) == (verdict, 0.5**n, 1.0)


def test_seeds_without_all_methods_are_left_out(tiny: Tiny, tmp_path: Path) -> None:
    compared = methods(["evolve", "best-of-n"], [], [])
    bench = bench_of(tiny(), tmp_path, compared, seeds=3, evaluations=2)
    done: dict[Order, BenchRun] = {}
    assert findings(bench, done) is None
    for method, seed in bench.orders[1:]:
        done[method, seed] = BenchRun(method=method.name, seed=seed, curve=(-8.0, -4.0))
    found = findings(bench, done)
    assert found
    assert found.seeds == (1, 2)


def test_what_decides_fits_into_80_columns(tiny: Tiny, tmp_path: Path) -> None:
    found = made_up(tiny, tmp_path, {"evolve": [[2, 3, 6]], "one-plus-lambda": [[2, 2, 4]]})
    values, work, *_, paired = tables(found)
    for shown, told in ((values, "final [95 %]"), (work, "seconds"), (paired, "difference [95 %]")):
        columns = list(shown.rows[0]).index(told) + 1
        wide = [max(len(row[i]) for row in shown.rows) for i in range(columns)]
        assert sum(wide) + 2 * (columns - 1) <= 80, told
    assert all(len(line) <= 80 for line in values.title.splitlines())


def test_points_double() -> None:
    assert points(200) == [25, 50, 100, 200]
    assert points(250) == [25, 50, 100, 200, 250]
    assert points(10) == [10]


# --- real runs ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bench_is_the_same_however_often_it_is_cut_off(tiny: Tiny, tmp_path: Path) -> None:
    about = {"evaluations": 8, "source": "as the bench began"}
    bench = bench_of(tiny(), tmp_path / "a", EVOLVE, seeds=2, **about)
    race = bench.race(jobs=1)
    first = next(race)
    race.close()
    assert len(first.curve) == first.evaluated == 8
    assert first.curve == tuple(sorted(first.curve)), "the best so far"
    assert first.depends["evogit"] == "as the bench began"
    assert len(bench.done()) == 1
    assert len(list(bench.race(jobs=1))) == 1
    whole = replace(bench, folder=tmp_path / "b")
    list(whole.race(jobs=2))

    def told(outcome: BenchRun) -> BenchRun:
        return replace(outcome, seconds=0.0)

    assert {order: told(each) for order, each in bench.done().items()} == {
        order: told(each) for order, each in whole.done().items()
    }


def test_what_a_killed_bench_left_is_removed_and_nobody_elses(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    left, fresh, at_work = (tmp_path / f"evogit-bench-{name}" for name in ("left", "fresh", "at-work"))
    for folder in (left, fresh, at_work):
        (folder / "evolve-0.git").mkdir(parents=True)
    for folder in (left, at_work):
        os.utime(folder, (0, 0))
    lock = os.open(at_work, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    bench = bench_of(tiny(), tmp_path / "o", EVOLVE, seeds=0, evaluations=2)
    assert list(bench.race(jobs=1)) == []
    os.close(lock)
    assert sorted(folder.name for folder in tmp_path.glob("evogit-bench-*")) == [at_work.name, fresh.name]


@pytest.mark.slow
def test_a_worker_that_dies_is_told_and_a_broken_seed_too(tiny: Tiny, tmp_path: Path) -> None:
    bench = bench_of(tiny(), tmp_path, EVOLVE, seeds=1, evaluations=2000)
    race = bench.race(jobs=1)

    def kill() -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signal.SIGKILL)

    threading.Timer(1.0, kill).start()
    with pytest.raises(EvoGitError, match="a worker of the bench was killed"):
        next(race)
    broken = replace(
        bench, bench_task=BenchTask(task=tiny("broken", program="def value(x):\n    return None\n"), evaluations=2)
    )
    with pytest.raises(EvoGitError, match="the seed of .* itself fails"):
        list(broken.race(jobs=1))
