"""A repository keeps 64 kB of what was seen in an evaluation, and the ends of what is longer."""

from __future__ import annotations

from evogit.core import Evidence
from evogit.evaluation.evidence import MOST, ends, shares, thinned


def test_what_is_short_stays_as_it_is() -> None:
    evidence = Evidence(stdout=b"o" * 9000, stderr=b"e", log="l\u00e4nger", feedback={"b": "x", "a": "y" * 9000})
    assert thinned(evidence) == evidence
    assert thinned(Evidence()) == Evidence()


def test_of_what_is_long_the_ends_are_kept_and_nothing_is_lost_to_others() -> None:
    feedback = {f"case {number}": "f" * 100_000 + "!" for number in range(50)} | {"short": "all of it"}
    output = b"a" + b"o" * 1_000_000 + b"z"
    kept = thinned(Evidence(stdout=output, stderr=b"e" * 100, log="l" * 100_000, feedback=feedback))
    assert (kept.stdout[:1], kept.stdout[-1:], kept.stderr) == (b"a", b"z", b"e" * 100)
    assert kept.feedback["short"] == "all of it"
    assert b"bytes left out" in kept.stdout
    assert all(said.endswith("!") for case, said in kept.feedback.items() if case != "short")
    texts = [kept.log, *kept.feedback.values()]
    assert 0.9 * MOST < len(kept.stdout) + len(kept.stderr) + sum(map(len, texts)) <= 1.01 * MOST


def test_shares_are_fair() -> None:
    assert shares([10, 1000, 1000], 610) == [10, 300, 300]
    assert shares([1, 2], 100) == [1, 2]
    assert shares([], 5) == []
    assert len(ends(b"x" * 500, 100)) <= 100
