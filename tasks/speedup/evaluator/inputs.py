"""Points that are new in each measurement, and how many neighbours each has."""

import random
from collections import defaultdict

Point = tuple[int, int]

SIZE = 1_000_000


def uniform(n: int, rng: random.Random) -> list[Point]:
    """n points anywhere."""
    return [(rng.randrange(SIZE), rng.randrange(SIZE)) for _ in range(n)]


def clustered(n: int, rng: random.Random) -> list[Point]:
    """n points around five centres, some of them at one place."""
    centres = uniform(5, rng)
    points = [around(rng.choice(centres), rng) for _ in range(n - n // 10)]
    return points + rng.choices(points, k=n // 10)


def around(centre: Point, rng: random.Random) -> Point:
    x, y = (min(max(round(rng.gauss(value, SIZE / 30)), 0), SIZE - 1) for value in centre)
    return x, y


def line(n: int, rng: random.Random) -> list[Point]:
    """n points that lie one above the other, at the border: in one column of any grid."""
    return [(0, rng.randrange(SIZE)) for _ in range(n)]


def counted(points: list[Point], radius: int) -> list[int]:
    """The right answer, in whole numbers."""
    grid = defaultdict(list)
    for point in points:
        grid[point[0] // radius, point[1] // radius].append(point)
    counts = []
    for x, y in points:
        column, row = x // radius, y // radius
        nearby = [p for a in (-1, 0, 1) for b in (-1, 0, 1) for p in grid.get((column + a, row + b), ())]
        counts.append(sum((x - u) ** 2 + (y - v) ** 2 <= radius**2 for u, v in nearby) - 1)
    return counts
