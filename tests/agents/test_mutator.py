from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.agents.mutation.mix import Mix
from evogit.agents.mutation.mutator import Mutator, mutate
from evogit.core import Candidate
from evogit.source import MAX_SOURCE_BYTES
from evogit.source.definitions import compiles

SYNTAX = b"""\
@cache
@wraps(f)
def f(x: list[int] | None, *, n=3) -> dict[str, int]:
    '''doc'''
    return {y: [z * 2 for z in y if z > 0] for y in x if y}, f'{x + 1:>{10}} {max(x, 2)!r}' + 'a' 'b'  # sum


async def g(a, p):
    async with a as b:
        async for c in b:
            await c(1, 2)
    match p:
        case [1, x] if x > 2:
            return x
        case _:
            return -1


class A:
    size: int = 3

    def h(self, a):
        def inner(b):
            nonlocal a
            a -= b
            return lambda c: c * a
        while (n := a - 1) > 0 and n is not None:
            try:
                a = n / 2
            except E as e:
                raise
        self.size += self.g(1)[0]
        del self.x
        return inner(1)(2)
"""
CORPUS = {
    "syntax": SYNTAX,
    "tabs": b"def f(a):\n\tif a < 1:\n\t\treturn a\n\telse:\n\t\twhile a:\n\t\t\ta -= 1\n",
    "crlf": b"K = 3\r\ndef f(a):\r\n    b = a * K\r\n    return min(b, 2)\r\n",
    "no newline at the end": b"def f(a):\n    b = a\n    for i in range(3): b += i\n    b -= 2",
    "other alphabets": "MÜNZE = 0.5  # ☃\ndef größe(ä):\n    return ä * MÜNZE if ä >= 1 else 'ß'\n".encode(),
    "words that touch": b"def f(a):\n    return-1if a else-2\n",
    "one line": b"def f(a): b = a; return b or not(a)\n",
    "odd numbers": b"X = [0xff, 1_000, 1e3, .5, 5., 1j, -  3, 10**30, 1e-320, 1e308]\n",
}


@pytest.mark.parametrize("name", CORPUS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64 - 1))
def test_every_proposal_parses_differs_and_repeats(name: str, seed: int) -> None:
    files = {"a.py": CORPUS[name]}
    proposal = mutate(files, {}, seed)
    new = proposal.changes["a.py"]
    assert new is not None
    assert new != CORPUS[name]
    assert compiles(new)
    assert mutate(files, {}, seed) == proposal
    assert 0 < len(proposal.title) <= 72
    assert proposal.title.isprintable()


def test_a_single_edit_leaves_comments_and_formatting_elsewhere_alone() -> None:
    old = b"#!/usr/bin/env python\n# head\n\n\ndef f( a,b ):   # odd\n    return (a  +  b * 2)\n\n\n# tail  \n\n"
    for seed in range(200):
        proposal = mutate({"a.py": old}, {}, seed)
        new = proposal.changes["a.py"]
        assert new
        if "more)" not in proposal.title:
            assert new.startswith(b"#!/usr/bin/env python\n# head\n\n\ndef f( a,b ):   # odd\n")
            assert new.endswith(b"\n\n\n# tail  \n\n")


def test_line_ends_are_kept() -> None:
    for seed in range(200):
        new = mutate({"a.py": CORPUS["crlf"]}, {}, seed).changes["a.py"]
        assert new
        assert new.count(b"\n") == new.count(b"\r\n")


def test_constants_with_a_name_are_what_changes_most() -> None:
    files = {"a.py": b"RADIUS = 0.3\n\n\ndef f(x):\n    return x * RADIUS + 1\n"}
    found = [mutate(files, {}, seed).title for seed in range(300)]
    assert sum("RADIUS 0.3 ->" in title for title in found) > 90
    assert len({title.split()[0] for title in found}) >= 6  # but not all that is done


TYPED = b"""\
from math import sin

WEIGHTS = [1, 2]
RATE = 0.5


def f(items, limit):
    best = limit * RATE
    for item in items:
        best = min(best, sin(WEIGHTS[item] + limit))
    return best
"""


def test_a_list_never_takes_the_place_of_a_number_nor_a_function_that_of_one_nobody_imported() -> None:
    titles = " ".join(mutate({"a.py": TYPED}, {}, seed).title for seed in range(600))
    assert "use RATE for limit" in titles
    assert "use WEIGHTS for limit" not in titles
    assert "* WEIGHTS" not in titles
    assert "cos" not in titles


def test_nothing_is_taken_away_that_is_needed_later() -> None:
    source = b"def f(a):\n    b = a + 1\n    c = a * b\n    return c\n"
    found = [mutate({"a.py": source}, {}, seed) for seed in range(300)]
    deleted = {each.title for each in found if each.title.startswith(("delete", "move"))}
    assert not deleted


def test_a_count_stays_an_integer_and_a_list_grows_as_it_did() -> None:
    source = b"N = 4\nM = 7\nR = 0.25\n\n\ndef f(x):\n    a = [x]\n    a += [R]\n    x += R\n    return a[:N]\n"
    titles = " ".join(mutate({"a.py": source}, {}, seed).title for seed in range(900))
    assert "swap N 4 for 7" in titles
    assert "swap N 4 for 0.25" not in titles
    assert "swap R 0.25 for 4" in titles
    assert not any(b"a -= [" in (mutate({"a.py": source}, {}, seed).changes["a.py"] or b"") for seed in range(900))


def test_a_proposal_says_how_it_was_made() -> None:
    strategies = {mutate({"a.py": TYPED}, {}, seed).strategy for seed in range(300)}
    ways = {way for strategy in strategies for way in strategy.split("+")}
    assert {"insert_term", "swap_operator", "perturb_number"} <= ways
    assert any(way.startswith("perturb_number@") for way in ways)
    assert max(map(len, strategies)) <= 80


def test_several_files_change_at_once_now_and_then_and_more_when_bold() -> None:
    files = {"a.py": b"A = 1\n", "b.py": b"B = 2\n"}

    def several(boldness: float) -> int:
        return sum(len(mutate(files, {}, seed, Mix(boldness=boldness)).changes) > 1 for seed in range(200))

    assert 5 < several(1) < several(4)


@pytest.mark.parametrize("boldness", [0.0, -1.0, 1e300, float("inf"), float("nan")])
def test_no_boldness_keeps_the_mutator_from_ending(boldness: float) -> None:
    assert mutate({"a.py": b"A = 1\nB = 2.5\n"}, {}, 1, Mix(boldness=boldness)).changes


# --- exchange ---------------------------------------------------------------------------------------------------

MINE = b"A = 1\nB = 2\n\n\ndef f(x):\n    return x\n\n\ndef g(x):\n    return A\n"
OTHER = b"A = 10\nB = 2\n\n\ndef f(x):\n    y = x + A\n    return y\n\n\ndef g(x):\n    return A\n"


def exchanges(mine: bytes, other: bytes) -> list[Proposal]:
    found = (mutate({"a.py": mine}, {"a.py": other}, seed) for seed in range(150))
    return [each for each in found if each.used_donor]


def test_definitions_of_the_donor_are_taken_over_but_never_all() -> None:
    found = exchanges(MINE, OTHER)
    assert {each.strategy for each in found} == {"exchange"}
    assert {each.changes["a.py"] for each in found} == {
        MINE.replace(b"A = 1\n", b"A = 10\n"),
        MINE.replace(b"    return x\n", b"    y = x + A\n    return y\n"),
    }
    assert {each.title for each in found} == {"exchange A", "exchange f()"}


def test_without_a_choice_of_definitions_nothing_is_exchanged() -> None:
    assert not exchanges(MINE, MINE)
    assert not exchanges(MINE, MINE.replace(b"A = 1\n", b"A = 10\n"))
    assert not exchanges(MINE, b"not python")


def test_broken_and_binary_files_do_not_hide_the_others() -> None:
    files = {"a.py": b"def" * 1000, "b.bin": b"\0" * 1000, "c.py": b"X = 1\n"}
    assert {name for seed in range(20) for name in mutate(files, {}, seed).changes} == {"c.py"}


# --- as an agent ------------------------------------------------------------------------------------------------


def brief(files: dict[str, bytes]) -> Brief:
    parent = Candidate(commit="1" * 40, tree="2" * 40, parents=(), agent="a1", operator="seed")
    return Brief(goal="", parent=parent, files=files)


def test_proposals_of_a_move_follow_one_another_as_they_are_asked_for() -> None:
    proposals = Mutator().proposals(brief({"a.py": MINE}), random.Random(1))
    assert len({proposal.title for proposal in islice(proposals, 20)}) > 10


async def test_a_file_of_a_large_repository_is_changed() -> None:
    files = {f"{index}.py": MINE for index in range(2_000)}
    proposal = await Mutator().propose(brief(files), random.Random(1))
    assert proposal.changes.keys() < files.keys()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.cpp": b"int a = 1;\n", "b.json": b"[1, 2]"},
        *({"a.py": text} for text in (b"\x89PNG\0\xff", b"def", b"", b"X = 1\n" * (MAX_SOURCE_BYTES // 6 + 1))),
    ],
)
async def test_files_without_python_to_edit_give_no_proposal(files: dict[str, bytes]) -> None:
    with pytest.raises(NoUsableChangeError, match="other files need a model"):
        await Mutator().propose(brief(files), random.Random(1))
