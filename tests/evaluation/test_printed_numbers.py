"""What commands print is read whole, in every notation, or not at all; and no failure is a score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evogit.config.values import EvaluationCommand, MetricReader
from evogit.evaluation.command import case_of
from evogit.evaluation.program import Invalid, Ran


def value(
    read: str,
    stdout: str,
    metric: str = "score",
    *,
    stderr: str = "",
    decimal: str = "",
    ignored: tuple[str, ...] = (),
    code: int = 0,
) -> float | None:
    """The number that is read from an output, None where the candidate is invalid."""
    command = EvaluationCommand(text="", reads={metric: MetricReader.parse(read)}, decimal=decimal)
    ran = Ran(code, None, stdout, stderr, cpu=0.25, wall=0.5, memory=1, breach=None, files={})
    try:
        return case_of(command, ran, ignored).metrics[metric]
    except Invalid:
        return None


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "line", "metric", "expected"),
    [
        ("took ([0-9.]+) seconds", "took 2.1e-06 seconds", "seconds", 2.1e-06),
        ("seconds: ([0-9.]+)", "seconds: 2.513e-06", "seconds", 2.513e-06),
        ("seconds: ([0-9]+)", "seconds: 12.5", "seconds", 12.5),
        (r"seconds: (\d\.\d+)", "seconds: 4.2E8", "seconds", 4.2e8),
        (r"seconds: (\d\.\d\d)", "seconds: 2.51e-06", "seconds", None),
        (r"(\d+)\.\d+ s", "took 12.5 s", "seconds", None),
        (".*([0-9.]+) s", "took 12.5 s", "seconds", 12.5),
        ("loss: ([0-9.]+)", "loss: -3.5", "loss", -3.5),
        ("loss: ([0-9.]+)", "loss: −3.5", "loss", -3.5),
        ("step-([0-9.]+)", "step-35", "score", 35.0),
        ("t ([0-9.]+)", "t 1.5D-03", "score", 1.5e-3),
        ("t ([0-9.]+)", "t 1.5×10^-3", "score", None),
        ("t ([0-9.]+)", "t inf", "score", None),
        ("t ([0-9.]+)", "t NaN", "score", None),
        ("t ([0-9.]+)", "t 1e999", "score", None),
        ("n ([0-9.]+)", "n 1,234,567", "score", 1234567.0),
        ("n ([0-9.]+)", "n 1.234,5", "score", 1234.5),
        ("n ([0-9.]+)", "n 1'234.5", "score", 1234.5),
        ("n ([0-9.]+)", "n 12\u202f345", "score", 12345.0),
        ("n ([0-9.]+)", "n 1_000_000", "score", 1e6),
        ("dauer: ([0-9.,]+) s", "dauer: 12,75 s", "seconds", 12.75),
        ("dauer: ([0-9.,]+) s", "dauer: 12,750 s", "seconds", None),
        ("n ([0-9.]+)", "n 1.2.3", "score", None),
        ("n ([0-9.]+)", "n 3-5", "score", None),
        ("n ([0-9.]+)", "n 0x1F", "score", None),
        ("row,([0-9]+),", "row,12,75,3", "score", 12.0),
        (r"score (\S+)", "score 5,", "score", 5.0),
        (r"score (\S+)", "score 5/10", "score", None),
        ("time: ([0-9.]+)", "time: 980.5µs", "time", 980.5e-6),
        ("time: ([0-9.]+)", "time: 1.25ms", "time", 1.25e-3),
        ("time: ([0-9.]+) ms", "time: 1.25 ms", "time", 1.25),
        ("time: ([0-9.]+) ms", "time: 1.25 ms", "seconds", 1.25e-3),
        ("time: ([0-9.]+) ?ms", "time: 980.5µs", "time", 0.9805),
        ("took ([0-9.]+) s", "took 12 steps", "seconds", None),
        ("took ([0-9.]+)", "took 1:02.5", "seconds", 62.5),
        (r"real\s+([0-9.]+)", "real\t0m1.234s", "seconds", 1.234),
        ("took ([0-9.]+)", "took 12.3 ± 0.4 ms", "seconds", 12.3e-3),
        ("rss ([0-9.]+)", "rss 12.5 MiB", "peak_mb", 12.5 * 1.048576),
        ("rss ([0-9.]+)", "rss 1.5G", "rss", 1.5 * 2**30),
        ("speed ([0-9.]+)", "speed 1.2k ops/s", "ops_per_second", 1200.0),
        ("speed ([0-9.]+) ns/op", "speed 5.5e+03 ns/op", "nanoseconds", 5500.0),
        ("took ([0-9.]+)", "took 5 MB", "seconds", None),
        ("count ([0-9.]+)", "count 5 min 3 max 9", "score", 5.0),
        ("rate: ([0-9.]+)", "rate: 1.5 Gbps", "score", 1.5e9),
        ("rate: ([0-9.]+)", "rate: 1.5 MBps", "mb_per_s", 1.5),
        ("elapsed: ([0-9.]+)", "elapsed: 2m", "elapsed", 120.0),
        ("elapsed: ([0-9.]+)", "elapsed: 1 day, 0:00:01", "elapsed", 86401.0),
        ("elapsed: ([0-9.]+)", "elapsed: 2 days", "seconds", 172800.0),
        ("elapsed ([0-9.]+)", "elapsed 1 234 ms", "elapsed", None),
        (r"elapsed ([\d ]+) ms", "elapsed 1 234 ms", "elapsed", 1234.0),
        ("row ([0-9.]+) ([0-9.]+)", "row 1 234", "score", 1.0),
        ("n ([0-9.]+)", "n 1.2 million ops/s", "score", None),
        ("n ([0-9.]+)", "n 12apples", "score", None),
        ("n ([0-9.]+)", "n 10^3", "score", None),
        ("n ([0-9.]+)", "n 2 ** 10", "score", None),
        ("n ([0-9.]+)", "n 1 000.5 ms", "elapsed", None),
        ("n ([0-9.]+)", "n 12/15", "score", 12.0),
        ("n ([0-9.]+)apples", "n 12apples", "score", 12.0),
        ("rss ([0-9.]+)", "rss 12 K", "rss", 12288.0),
        (r"\): ([0-9.]+)", "Maximum resident set size (kbytes): 2000", "peak_mb", 2.048),
        ("elapsed_ms: ([0-9.]+)", "elapsed_ms: 1500", "seconds", 1.5),
        (r"Time \(ms\): ([0-9.]+)", "Time (ms): 1500", "seconds", 1.5),
        ("elapsed_ms: ([0-9.]+)", "elapsed_ms: 1500", "elapsed", 1500.0),
        ("t ([0-9.]+)", "\x1b[32mt \x1b[1m1.5\x1b[0m", "score", 1.5),
    ],
)
def test_a_number_is_read_whole_or_not_at_all(pattern: str, line: str, metric: str, expected: float | None) -> None:
    assert value(f"regex:{pattern}", f"{line}\n", metric) == (expected and pytest.approx(expected, rel=1e-12))


@pytest.mark.parametrize(("decimal", "expected"), [(",", 12.75), (".", 12750.0)])
def test_the_task_says_which_sign_is_the_decimal_one(decimal: str, expected: float) -> None:
    assert value("regex:t ([0-9.]+)", "t 12,750 s", "seconds", decimal=decimal) == expected


def test_a_number_that_may_be_two_is_refused_with_both() -> None:
    command = EvaluationCommand(text="", reads={"seconds": MetricReader.parse(r"regex:t (\S+)")})
    with pytest.raises(Invalid, match=r"12\.750 or 12750"):
        case_of(command, Ran(0, None, "t 12,750", "", cpu=0, wall=0, memory=1, breach=None, files={}))


@pytest.mark.parametrize(
    ("pattern", "output", "expected"),
    [
        ("([0-9.]+) ms", "mean: 5 ms\nmax: 9 ms", 5.0),
        ("([0-9.]+) ms", "Time (mean ± σ):  5.1 ms ±  0.2 ms  [User: 3 ms, System: 1 ms]\nRange: 4 ms … 9 ms", 5.1),
        ("([0-9.]+) ms", "work   time:   [0.9 ms 1.1 ms 1.5 ms]", 1.1),
        ("([0-9.]+) s", "user 3.5 s\nsetup 0.5 s\nwork 4.5 s\nteardown 1 s", 4.5),
        ("([0-9.]+) s", "total 9 s\nmean 3 s", 9.0),
        ("loss: ([0-9.]+)", "loss: 3\nloss: 2", 2.0),
        ("[0-9.]+", "mean 3\n4", 4.0),
    ],
)
def test_of_several_numbers_the_whole_is_preferred_to_parts(pattern: str, output: str, expected: float) -> None:
    assert value(f"regex:{pattern}", output) == expected


@pytest.mark.parametrize(
    "output",
    [
        '{"score": 1}\n{"score": NaN}',
        '{"score": 1}\n{"score": 2, "score": 3}',
        '{"score": "fast"}',
        '{"score": [1]}',
    ],
)
def test_an_object_without_a_number_never_gives_the_one_before_it(output: str) -> None:
    assert value("json", output) is None


def test_a_number_in_a_table_has_the_unit_of_its_head() -> None:
    table = "Name (time in {})   Min    Max    Mean\n-----\ntest_a            12.5   13.5   12.75\n"
    for unit, expected in (("us", 12.5e-6), ("ms", 12.5e-3), ("s", 12.5)):
        assert value(r"regex:test_a\s+([0-9.]+)", table.format(unit), "seconds") == pytest.approx(expected, rel=1e-12)


def test_of_two_alternatives_the_one_that_matches_is_read() -> None:
    assert value("regex:a ([0-9.]+)|b ([0-9.]+)", "b 2.5e-06") == 2.5e-06


def test_an_object_may_take_several_lines() -> None:
    assert value("json", 'done\n{\n  "runs": [\n    {"score": 1}\n  ],\n  "score": 3\n}\nbye') == 3.0
    assert value("json", '{"score": "12.5 ms"}', "score") == 12.5e-3


# --- failures -------------------------------------------------------------------------------------------------------

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nNameError: no x\n'


@pytest.mark.parametrize(
    ("told", "sign"),
    [
        ('{"score": 0, "error": "no x"}', "error"),
        ('{"score": 0, "errors": ["no x"]}', "errors"),
        ('{"score": 0, "valid": false}', "valid"),
        ('{"score": 0, "success": 0}', "success"),
        ('{"score": 0, "status": "failed"}', "status"),
        ('{"score": 0, "exit_code": 1}', "exit_code"),
        ('{"score": 0, "timeout": true}', "timeout"),
        ('{"score": 0}\nerror: no x', "error"),
        (f'{{"score": 0}}\n{TRACE}', "traceback"),
    ],
)
def test_a_failure_beside_a_number_of_an_object_is_a_failure(told: str, sign: str) -> None:
    assert value("json", told) is None
    assert value("json", told, ignored=(sign,)) == value("json", told, ignored=("all",)) == 0


@pytest.mark.parametrize(
    "told",
    [
        '{"score": 0, "error": ""}',
        '{"score": 0, "error": null}',
        '{"score": 0, "error": 0.25}',
        '{"score": 0, "errors": []}',
        '{"score": 0, "correct": 0}',
        '{"score": 0, "passed": 3, "failed": 2}',
        '{"score": 0, "status": "ok", "valid": true}',
        '{"other": 1, "error": "no x"}\n{"score": 0}',
        f'{TRACE}{{"score": 0}}',
        'starting\nerror: 0.25\n{"score": 0}',
    ],
)
def test_measurements_and_successes_are_no_failures(told: str) -> None:
    assert value("json", told) == 0


@pytest.mark.parametrize(
    "told",
    [
        "score: 0 (failed)",
        "score: 0 FAILED",
        "score: 0 valid=False",
        'score: 0, "error": "no x"',
        "score: 0\nERROR: no x",
        "error: no x\nscore: 0",
        "score: 0\nstatus: failed",
        "METRIC valid=0\nstep 1\nstep 2\nMETRIC score: 0",
        f"score: 0\n{TRACE}",
        "score: 0\nthread 'main' panicked at src/main.rs:3",
    ],
)
def test_a_failure_beside_a_number_of_a_line_is_a_failure(told: str) -> None:
    assert value("regex:score: ([0-9.]+)", told) is None
    assert value("regex:score: ([0-9.]+)", told, ignored=("all",)) == 0


def test_a_crash_that_ends_the_other_stream_is_a_failure_unless_tests_are_measured() -> None:
    assert value("regex:score: ([0-9.]+)", "score: 0", stderr=TRACE) is None
    assert value("regex:score: ([0-9.]+)", "score: 0", stderr=f"{TRACE}tried again\n") == 0
    assert value("cpu", "", stderr=TRACE) is None
    assert value("exit", "", stderr=TRACE, code=1) == 0


def test_a_progress_bar_does_not_hide_the_line_of_a_metric() -> None:
    bar = "".join(f"\r{'█' * step} {step}/90" for step in range(90))
    text = f"{bar}\rMETRIC pack_ms=1.5\n" + "after\n" * 99
    command = EvaluationCommand(text="", reads={"pack_ms": MetricReader.parse("regex:METRIC pack_ms=([0-9.]+)")})
    case = case_of(command, Ran(0, None, text, "", cpu=0, wall=0, memory=1, breach=None, files={}))
    assert "METRIC pack_ms=1.5" in case.feedback
    assert case.metrics == {"pack_ms": 1.5}
    shown = case_of(
        command, Ran(0, None, text[: text.index("after")], "", cpu=0, wall=0, memory=1, breach=None, files={})
    )
    assert shown.feedback.count("/90") == 1


OUTPUTS = json.loads(Path(__file__).with_name("printed_numbers.json").read_text())
"""Outputs with what a second reader, written from docs/tasks.md alone, says of them; commit c842016e makes more."""


def test_a_reader_written_from_the_rules_reads_the_same() -> None:
    for read, stdout, stderr, metric, decimal, ignored, expected in OUTPUTS:
        found = value(read, stdout, metric, stderr=stderr, decimal=decimal, ignored=tuple(ignored))
        assert found == (None if expected is None else pytest.approx(expected, rel=1e-12)), (read, stdout, stderr)
