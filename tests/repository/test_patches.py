"""What two trees differ in, without a look into what would take long."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from evogit.repository import Repository
from evogit.repository.diff_limits import LARGEST, MOST_FILES, MOST_LINES

SMALL = {"b.py": b"a line of its own\n"}


def digits(count: int, seed: int) -> bytes:
    """What a comparison takes longest for: lines of which most are in many places."""
    lines = bytearray(b"\n" * (2 * count))
    lines[::2] = random.Random(seed).randbytes(count).translate(b"0123456789abcdef" * 16)
    return bytes(lines)


TOO_MUCH: dict[str, Callable[[int], dict[str, bytes | None]]] = {
    "bytes": lambda seed: {"a.txt": b"%d" % seed * (LARGEST + 1)},
    "lines": lambda seed: {"a.txt": digits(MOST_LINES // 2 + 1, seed)},
    "8 MiB": lambda seed: {"a.txt": digits(4 << 20, seed)},
    "together": lambda seed: {f"a{number}.txt": digits(MOST_LINES // 7, seed + number) for number in range(8)},
}


@pytest.mark.slow
@pytest.mark.parametrize("how", TOO_MUCH)
def test_large_files_are_told_and_not_compared(repository: Repository, how: str) -> None:
    old = repository.trees.write(None, TOO_MUCH[how](1))
    new = repository.trees.write(None, {**TOO_MUCH[how](2), **SMALL})
    patch = repository.diff(old, new)
    assert "bytes before and after, too much to show\n" in patch
    assert "+a line of its own\n" in patch
    changes = dict((path, stats) for path, *stats in repository.line_changes(old, new))
    assert [0, 0] in changes.values()
    assert changes["b.py"] == [1, 0]
    assert repository.lines(old, new, lambda path: True).added["b.py", b"a line of its own"] == 1


def test_no_more_than_so_many_files_are_compared(repository: Repository) -> None:
    old, new = (
        repository.trees.write(None, {f"f{number}": b"%d %d\n" % (seed, number) for number in range(MOST_FILES + 7)})
        for seed in (1, 2)
    )
    assert repository.diff(old, new).count("too much to show") == 7
    assert len(repository.line_changes(old, new)) == MOST_FILES + 7


def test_odd_names_of_large_files_bring_no_lines_of_their_own(repository: Repository) -> None:
    old = repository.trees.write(None, {"a": b"1"})
    new = repository.trees.with_entries(old, {"x\u2028y": (0o100644, repository.trees.write_blob(b"x" * 2 * LARGEST))})
    assert "\u2028" not in repository.diff(old, new)


def test_large_files_changed_at_one_place_or_not_wanted_leave_room(repository: Repository) -> None:
    lines = digits(MOST_LINES, 1)
    old, new = (repository.trees.write(None, {"a": lines + middle + lines}) for middle in (b"old\n", b"new\n"))
    assert repository.line_changes(old, new) == [("a", 1, 1)]
    old, new = (repository.trees.write(None, TOO_MUCH["lines"](seed)) for seed in (1, 2))
    assert repository.diff(old, new, lambda path: path != "a.txt") == ""
