"""Programs in other languages than Python, taken apart by tree-sitter."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from evogit.source import MAX_SOURCE_BYTES, languages
from evogit.source.pieces import WHOLE, split

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

FIRST = {"a.R": "outward", "a.go": "Outward"}  # the names of the definition that holds the first 0.5, if not OUTWARD


@pytest.mark.parametrize("path", [path for path in SOURCES if path != "a.java"])  # whose only piece is a class
def test_pieces_are_the_file(path: str) -> None:
    source = SOURCES[path]
    pieces, first = split(path, source), FIRST.get(path, "OUTWARD")
    assert "".join(pieces.values()).encode() == source
    assert b"0.5" in pieces[first].encode()


@pytest.mark.parametrize(
    "source",
    [
        b"@@@ what is this\nint f(int a) {\n    return a * 2;\n}\n",
        b"int f() { return " + b"(" * 20_000 + b"1;",
        b"{" * 20_000,
        b"int x = 1;\n" * (MAX_SOURCE_BYTES // 11 + 1),
    ],
    ids=["broken", "deep", "open", "large"],
)
def test_a_program_that_cannot_be_read_is_one_piece(source: bytes) -> None:
    assert split("a.cpp", source) == {WHOLE: source.decode()}


def test_all_grammars_are_here_and_only_programs_have_one() -> None:
    assert languages.is_installed()
    for language in sorted(set(languages.GRAMMARS.values())):
        assert languages._parser(language) is not None, language
    assert languages.grammar("x/A.CPP") == "cpp"
    assert not any(map(languages.grammar, ("a.py", "a.json", "Makefile", "cpp", "cpp/a", ".c/README")))


@pytest.fixture
def without_grammars(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "tree_sitter_language_pack", None)  # as if it were not installed
    languages.is_installed.cache_clear()
    yield
    languages.is_installed.cache_clear()


@pytest.mark.usefixtures("without_grammars")
def test_without_grammars_a_program_is_one_piece() -> None:
    assert list(split("a.cpp", SOURCES["a.cpp"])) == [WHOLE]
