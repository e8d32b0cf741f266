"""What an outline finds in files of several languages, and that it takes no longer than their length asks for."""

from __future__ import annotations

import pytest

from evogit.source.outline import outline
from tests.clock import assert_grows_linearly

PYTHON = '''import os

SIZE = 3


@cached
def top(
    a,
):
    """Say."""
    if a:
        return 1


class Box(Base):
    size = 1

    # what it weighs
    async def weigh(self):
        def inner():
            pass


if True:
    pass
'''
C = """#include <a.h>
/* Adds. */
static int add(int a, int b) {
  if (a) {
  }
  return a + b;
}
struct box {
  int a;
};
void
main(void)
{
  for (;;) {
  }
}
"""
TYPESCRIPT = """export class Box extends Base {
  constructor(a) {
    this.a = a;
  }
  async get(x: number) {
    while (x) {
    }
  }
}
export const twice = (a) => {
  return 2 * a;
};
"""
RUST = """impl<T> Box<T> {
    pub fn new(a: T) -> Self {
        Box { a }
    }
}
pub(crate) fn run() {
}
"""
GO = """func (b *Box) Weigh() int {
	return 1
}
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (PYTHON, [("SIZE", 3, 3, 0), ("top", 6, 12, 0), ("Box", 15, 21, 0), ("weigh", 18, 21, 1)]),
        (C, [("add", 2, 7, 0), ("box", 8, 10, 0), ("main", 12, 16, 0)]),
        (TYPESCRIPT, [("Box", 1, 9, 0), ("constructor", 2, 4, 1), ("get", 5, 8, 1), ("twice", 10, 12, 0)]),
        (RUST, [("Box", 1, 5, 0), ("new", 2, 4, 1), ("run", 6, 7, 0)]),
        (GO, [("Weigh", 1, 3, 0)]),
        ("just words\nof prose\n", []),
    ],
)
def test_definitions_are_found_with_their_lines_and_depth(text: str, parts: list[tuple[str, int, int, int]]) -> None:
    assert [(part.name, part.first, part.last, part.depth) for part in outline(text)] == parts


@pytest.mark.parametrize("line", ["def f():\n# x\n", "static " * 30 + "(\n"])
def test_hostile_files_take_no_longer_than_their_length_asks_for(line: str) -> None:
    assert_grows_linearly(lambda size: outline.__wrapped__(line * (size // len(line))), 10_000)
