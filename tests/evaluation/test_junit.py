"""What agents are told of a JUnit report: every cause once, that of most failures first, with what was said of it."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import pytest

from evogit.evaluation.junit import Report
from tests.clock import assert_grows_linearly

Failed = tuple[str, str, str]
PLACE = "calc.py:18: ValueError"


def told(*failed: Failed, passed: int = 1) -> str:
    """Of a report with these failures, each a name, a message and a text."""
    cases = [
        f"<testcase classname='tests' name={quoteattr(name)}>"
        f"<failure message={quoteattr(message)}>{escape(text)}</failure></testcase>"
        for name, message, text in failed
    ]
    cases += ["<testcase name='fine'/>"] * passed
    report = Report("r.xml", f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode())
    assert report.share() == passed / (passed + len(failed))
    return report.failures()


def test_a_failure_is_told_with_what_the_report_says_of_it() -> None:
    said = told(
        ("a", "assert 3 == 2.5\n + where", "def a():\n>   assert median(x) == 2.5\n\ntest_calc.py:8: AssertionError")
    )
    assert said == (
        "1 of 2 test cases failed.\n\ntests.a: assert 3 == 2.5\ndef a():\n>   assert median(x) == 2.5\n\n"
        "test_calc.py:8: AssertionError"
    )
    assert told(("a", "no", "")) == "1 of 2 test cases failed.\n\ntests.a: no"
    assert told(("a", "", "")) == "1 of 2 test cases failed.\n\ntests.a"


def test_what_fails_alike_is_told_once_and_most_failures_come_first() -> None:
    alike = [(f"spread[{n}]", f"spread of {n} values", f"n = {n}\n\n{PLACE}") for n in range(14)]
    said = told(("mean", "by zero", "calc.py:10: ZeroDivisionError"), *alike)
    assert said.count(PLACE) == 1
    assert said.index("tests.spread[0]: spread of 0 values\nn = 0") < said.index("tests.mean: by zero")
    assert "Failed like it: tests.spread[1], tests.spread[2]" in said
    assert "tests.spread[10] and 3 more" in said
    elsewhere = told(("one", "no", "a.py:1: E"), ("two", "no", "b.py:2: E"))
    assert "Failed like it" not in elsewhere


def test_many_and_long_failures_stay_short_and_keep_the_end_of_each() -> None:
    failed = [(f"t{n}", f"why {chr(97 + n)}", f"{'noise ' * 2_000}\nE  the reason\nx.py:{n}: Error") for n in range(20)]
    said = told(*failed)
    assert len(said) < 8 * 2_000 + 500
    assert "E  the reason\nx.py:0: Error" in said
    assert "more bytes ...]" in said
    assert "Failed otherwise: tests.t8, tests.t9" in said
    assert "and 2 more" in said


@pytest.mark.slow
def test_a_report_full_of_failures_is_read_in_a_time_like_its_length_and_told_in_short() -> None:
    def full(number: int) -> str:
        return told(*((f"t{n}", f"{n}", f"x\ny.py:{n}: E") for n in range(number)), passed=0)

    assert_grows_linearly(full, 1_000)
    assert len(full(20_000)) < 20_000
