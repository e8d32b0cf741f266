"""Judges cap sets: every pair of vectors is looked at, in whole numbers."""

from collections.abc import Iterator

from evogit import Case, Invalid

Vector = tuple[int, ...]

DIMENSIONS = {"smoke": [1, 2, 3], "lite": [4, 5], "train": [4, 5, 6, 7], "holdout": [8, 9]}

KNOWN = {1: 2, 2: 4, 3: 9, 4: 20, 5: 45, 6: 112, 7: 236, 8: 512, 9: 1024}
"""The largest sets known; up to 6 none is larger."""


def evaluate(program, split: str) -> Iterator[Case]:
    for n in DIMENSIONS[split]:
        yield judge(n, program.call("capset:build", kwargs={"n": n}, returns=list[tuple[int, ...]]).value)


def judge(n: int, vectors: list[Vector]) -> Case:
    check_vectors(n, vectors)
    check_lines(vectors)
    size = len(vectors)
    return Case(f"n={n}", feedback=f"{size} vectors; {KNOWN[n]} are known", size=size, growth=size ** (1 / n))


def check_vectors(n: int, vectors: list[Vector]) -> None:
    seen = set[Vector]()
    for i, vector in enumerate(vectors):
        if len(vector) != n or not set(vector) <= {0, 1, 2}:
            raise Invalid(f"expected {n} digits that are 0, 1 or 2; vector {i} is {vector}")
        if vector in seen:
            raise Invalid(f"vector {i}, {vector}, is there already")
        seen.add(vector)


def check_lines(vectors: list[Vector]) -> None:
    """No vector lies on a line with two earlier ones.

    The earlier ones are a cap set, so there are few of them when the first line is found, however long the answer is.
    """
    blocked = dict[Vector, tuple[Vector, Vector]]()
    for i, vector in enumerate(vectors):
        if vector in blocked:
            raise Invalid(f"{', '.join(map(str, blocked[vector]))} and {vector} lie on a line")
        for other in vectors[:i]:
            blocked[tuple([(-x - y) % 3 for x, y in zip(vector, other, strict=True)])] = (other, vector)
