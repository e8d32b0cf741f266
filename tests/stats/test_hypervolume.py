"""The volume that a front dominates, against what can be counted by hand and on a grid."""

from __future__ import annotations

import itertools
import random

import pytest

from evogit.review.json_records import hypervolume


def test_known_volumes() -> None:
    assert hypervolume([], (0.0, 0.0)) == 0.0
    assert hypervolume([(2.0, 3.0)], (0.0, 1.0)) == 4.0
    assert hypervolume([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], (0.0, 0.0)) == 6.0
    assert hypervolume([(1.0, 1.0), (9.0, 0.0)], (0.0, 0.0)) == 1.0
    assert hypervolume([(float(each % 7), 1.0, 1.0, 1.0, 1.0, 1.0) for each in range(99)], (-1.0,) * 6) is None


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_it_counts_the_cells_of_a_grid_that_some_point_dominates(dimensions: int) -> None:
    rng = random.Random(dimensions)
    for _ in range(20):
        points = [[float(rng.randint(0, 4)) for _ in range(dimensions)] for _ in range(rng.randint(1, 8))]
        cells = itertools.product(range(4), repeat=dimensions)
        held = sum(any(all(p > c for p, c in zip(point, cell, strict=True)) for point in points) for cell in cells)
        assert hypervolume(points, (0.0,) * dimensions) == held
