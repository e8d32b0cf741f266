"""Programs in other languages than Python: what tree-sitter tells of them, and what the mutator makes of that."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evogit.agents import NoUsableChangeError
from evogit.agents.mutation.mix import Mix
from evogit.agents.mutation.mutator import mutate
from evogit.agents.mutation.tuning import TUNING
from evogit.source import MAX_SOURCE_BYTES, languages
from evogit.source.constants import Constant, named
from evogit.source.pieces import WHOLE, exchanged, split

SOURCES = {
    "a.cpp": b"""\
#include <cmath>
#include <vector>

constexpr double OUTWARD = 0.5, TURN = -0.25f;
const int PASSES = 3;

double cost(const std::vector<double>& w, double a, double b) {
    double value = std::sqrt(a * a + b * b);  // how far
    value -= OUTWARD * std::hypot(a, b);
    if (w.size() > 1 && value < 2.5) {
        value += TURN * w[0];
    }
    for (int i = 0; i < PASSES; ++i) {
        value *= 0.99;
    }
    return value;
}
""",
    "a.c": b"""\
#define OUTWARD 0.5f
static const double TURN = -0.25, G[2] = {0.1, 2};

int f(int a, double b) {
    int s = 0;
    while (s < a) s += 2;
    do { s--; } while (s);
    s = a * 2 - (b >= 1.5);
    return s;
}
""",
    "a.rs": b"""\
const OUTWARD: f64 = 0.5;
static TURN: f64 = -0.25f64;

fn cost(w: &[f64], a: f64) -> f64 {
    let mut value: f64 = a * 2.0;
    for i in 0..w.len() {
        value -= w[i] * OUTWARD;
    }
    if value < 1.5 && a >= 0.0 {
        value = -value;
    }
    value
}
""",
    "a.go": b"""\
package main

const Outward = 0.5

var turn float64 = -0.25

func cost(w []float64, a float64) float64 {
\tvalue := a * 2.0
\tfor i := 0; i < len(w) && a >= 2; i++ {
\t\tvalue -= w[i] * Outward
\t}
\tvalue += turn
\treturn value
}
""",
    "a.js": b"""\
export const OUTWARD = 0.5;
const WAYS = {turn: -0.25, last: 1};

function cost(w, a) {
  let value = a * 2.5;
  for (let i = 0; i < w.length; i++) {
    value -= w[i] * OUTWARD;
  }
  return value === 3 ? true : value > 2 || a !== 1;
}
""",
    "a.R": b"""\
outward <- 0.5

cost <- function(w, a = 0.3) {
  value <- a * 2.5 - sum(w)
  if (value > 3 && TRUE) {
    value <- -value
  }
  value
}
""",
    "a.java": b"""\
class A {
    static final double OUTWARD = 0.5;

    double cost(double a) {
        double value = a * 2.0;
        value -= OUTWARD;
        return value;
    }
}
""",
    "a.lua": b"""\
local OUTWARD = 0.5

local function cost(w, a)
  local value = a * 2.5
  if value > 3 and a < 1 then
    value = -value
  end
  return value
end
""",
}

NAMED = {
    "a.cpp": {"OUTWARD": 0.5, "TURN": -0.25},
    "a.c": {"OUTWARD": 0.5, "TURN": -0.25, "G": 0.1},
    "a.rs": {"OUTWARD": 0.5, "TURN": -0.25},
    "a.go": {"Outward": 0.5, "turn": -0.25},
    "a.js": {"OUTWARD": 0.5, "WAYS": -0.25},
    "a.R": {"outward": 0.5},
    "a.java": {"OUTWARD": 0.5},
    "a.lua": {"OUTWARD": 0.5},
}


def made(path: str, source: bytes, times: int = 300) -> list[tuple[str, bytes]]:
    """Ways and results of so many mutations."""
    found = [mutate({path: source}, {}, seed) for seed in range(times)]
    return [(each.strategy, each.changes[path] or b"") for each in found]


@pytest.mark.parametrize("path", SOURCES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64 - 1))
def test_every_proposal_parses_differs_and_repeats(path: str, seed: int) -> None:
    files = {path: SOURCES[path]}
    proposal = mutate(files, {}, seed)
    new = proposal.changes[path]
    assert new
    assert new != SOURCES[path]
    assert languages.faults(languages.grammar(path), SOURCES[path]) == 0
    assert languages.faults(languages.grammar(path), new) == 0
    assert mutate(files, {}, seed) == proposal
    assert 0 < len(proposal.title) <= 72


def test_numbers_operators_and_statements_change_and_expressions_grow_and_shrink() -> None:
    found = made("a.cpp", SOURCES["a.cpp"])
    ways = {way.partition("@")[0] for strategy, _ in found for way in strategy.split("+")}
    assert ways >= {"perturb_number", "swap_operator", "insert_term", "drop_operand", "swap_name", "swap_literal"}
    assert ways >= {"move_statement", "duplicate_statement", "delete_statement"}
    texts = [new for _, new in found]
    assert any(b"PASSES = 4;" in new for new in texts)
    assert any(b"value <= 2.5" in new for new in texts)
    assert any(b"|| value" in new for new in texts)
    assert any(b"f;\nconst int" in new and b"TURN = -0.25f" not in new for new in texts), "the suffix of a number stays"


def test_tuned_numbers_keep_their_suffix_and_no_sign_joins_another() -> None:
    source = b"const float A = 0.5f, B = 1-0.5f;\n"
    found = [mutate({"a.c": source}, {}, seed, Mix(steps={})) for seed in range(100)]
    texts = [each.changes["a.c"] or b"" for each in found if each.strategy in TUNING]
    assert len(texts) > 50
    assert all(re.fullmatch(rb"const float A = [-.\de]+f, B = 1-(| -)[.\de]+f;\n", text) for text in texts)


def test_what_no_edit_improves_is_left_alone() -> None:
    source = b'const char *S = "1 + 2 < 3";  // 4 < 5\nint f(struct p q) {\n    int x = 7;\n    return x;\n}\n'
    for _, new in made("a.c", source, 100):
        assert b'"1 + 2 < 3";  // 4 < 5' in new
        assert new.count(b"int x = ") == 1, "a declaration is neither made twice nor taken away"
    member = b"fn f(p: (f64, f64)) -> f64 {\n    p.0\n}\nconst N: i32 = 5;\n"
    assert not any(b"p.1" in new or b"p.2" in new for _, new in made("a.rs", member, 100))


@pytest.mark.parametrize("path", SOURCES)
def test_floats_outside_of_functions_are_named(path: str) -> None:
    found = named(path, SOURCES[path])
    assert {key.name: number.value for key, number in found.numbers.items()} == NAMED[path]
    for number in found.numbers.values():
        assert float(SOURCES[path][number.start : number.end]) == number.value
    other = SOURCES[path].replace(b"0.5", b"0.75", 1)
    assert named(path, other).rest == found.rest, "no more than a number changed"
    assert named(path, other + b"\n").rest != found.rest


def test_the_floats_of_one_name_are_told_apart_and_what_is_in_functions_has_no_name() -> None:
    source = b"const W = [0.5, -1.5, 2];\nconst f = (x) => {\n  const y = 0.25;\n  return x * y;\n};\n"
    assert {key: each.value for key, each in named("a.js", source).numbers.items()} == {
        Constant("a.js", "W", 0): 0.5,
        Constant("a.js", "W", 1): -1.5,
    }


@pytest.mark.parametrize("path", SOURCES)
def test_pieces_are_the_file_and_can_be_exchanged(path: str) -> None:
    source = SOURCES[path]
    pieces = split(path, source)
    assert "".join(pieces.values()).encode() == source
    first = next(iter(NAMED[path]))
    if path != "a.java":  # all is in one class
        assert b"0.5" in pieces[first].encode()
        other = source.replace(b"0.5", b"0.75", 1)
        assert exchanged(path, source, other, {first}) == other
        assert exchanged(path, source, other, set(pieces) - {first}) == source


def test_definitions_of_the_donor_are_taken_over() -> None:
    mine = SOURCES["a.cpp"]
    other = mine.replace(b"0.5,", b"0.75,").replace(b"value *= 0.99", b"value /= 2.0")
    found = [mutate({"a.cpp": mine}, {"a.cpp": other}, seed) for seed in range(200)]
    taken = {each.changes["a.cpp"] for each in found if each.strategy == "exchange"}
    assert taken == {mine.replace(b"0.5,", b"0.75,"), mine.replace(b"value *= 0.99", b"value /= 2.0")}


def test_what_a_grammar_did_not_understand_before_is_no_reason_to_refuse() -> None:
    source = b"@@@ what is this\nint f(int a) {\n    return a * 2;\n}\n"
    before = languages.faults("cpp", source)
    assert before
    assert all(languages.faults("cpp", new) <= before for _, new in made("a.cpp", source, 50))
    assert list(split("a.cpp", source)) == [WHOLE]


def test_only_what_stands_between_marks_changes() -> None:
    source = b"const double A = 0.5;\n// EVOLVE-BLOCK-START\nconst double B = 1.5;\n// EVOLVE-BLOCK-END\n"
    for _, new in made("a.cpp", source, 60):
        assert new.startswith(b"const double A = 0.5;\n// EVOLVE-BLOCK-START\nconst double B = ")
        assert new.endswith(b"// EVOLVE-BLOCK-END\n")


@pytest.mark.parametrize(
    "source",
    [
        b"int f() { return " + b"(" * 20_000 + b"1" + b")" * 20_000 + b"; }",
        b"int f() { return " + b"1 + " * 9_000 + b"1; }",
        b"{" * 20_000,
        b"const double W[] = {" + b"0.5, " * 9_000 + b"1};",
        b"x" * (MAX_SOURCE_BYTES + 1) + b" 12",
    ],
    ids=["deep", "long", "open", "wide", "large"],
)
def test_odd_programs_are_edited_or_refused(source: bytes) -> None:
    try:
        proposal = mutate({"a.cpp": source}, {}, 1)
    except NoUsableChangeError:
        return
    assert proposal.changes["a.cpp"] != source


def test_all_grammars_are_here_and_only_programs_have_one() -> None:
    assert languages.is_installed()
    for language in sorted(set(languages.GRAMMARS.values())):
        assert languages.faults(language, b"") == 0
        assert languages._parser(language) is not None, language
    assert languages.grammar("x/A.CPP") == "cpp"
    assert not any(map(languages.grammar, ("a.py", "a.json", "Makefile", "cpp", "cpp/a", ".c/README")))


@pytest.fixture
def without_grammars(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "tree_sitter_language_pack", None)  # as if it were not installed
    languages.is_installed.cache_clear()
    named.cache_clear()
    yield
    languages.is_installed.cache_clear()
    named.cache_clear()


@pytest.mark.usefixtures("without_grammars")
def test_without_grammars_programs_are_edited_as_text() -> None:
    ways = {strategy.partition("@")[0].partition("+")[0] for strategy, _ in made("a.cpp", SOURCES["a.cpp"], 100)}
    assert ways <= {"perturb_number", "delete_line", "duplicate_line", "swap_lines"}
    assert not named("a.cpp", SOURCES["a.cpp"]).numbers
    assert list(split("a.cpp", SOURCES["a.cpp"])) == [WHOLE]
