# Packs n circles into the unit square: a circle in the middle, two rings around it, the rest where it fits.
# All choices are the named numbers below; a bulge pushes a ring's circles towards the corners of the square.
import math
import sys
from itertools import combinations

MARGIN = 0.01
INNER_COUNT = 8
INNER_RADIUS = 0.3
INNER_TURN = 0.0
INNER_BULGE = 0.0
OUTER_COUNT = 16
OUTER_RADIUS = 0.7
OUTER_TURN = 0.0
OUTER_BULGE = 0.0
REST_RADIUS = 1.0
REST_TURN = 0.625
GROWTH = 0.0
ULPS = 16


def pack(n):
    points = centers(n)
    return [(x, y, r) for (x, y), r in zip(points, radii(points))]


def centers(n):
    points = [(0.5, 0.5)]
    points += ring(INNER_COUNT, INNER_RADIUS, INNER_TURN, INNER_BULGE)
    points += ring(OUTER_COUNT, OUTER_RADIUS, OUTER_TURN, OUTER_BULGE)
    points += ring(n - len(points), REST_RADIUS, REST_TURN, 0.0)
    return points[:n]


# `turn` is in turns: 0.25 is a quarter
def ring(count, radius, turn, bulge):
    return [spot(radius, 2 * math.pi * (turn + i / count), bulge) for i in range(count)]


def spot(radius, angle, bulge):
    radius *= 1 - bulge * math.cos(4 * angle)
    return clip(0.5 + radius * math.cos(angle)), clip(0.5 + radius * math.sin(angle))


def clip(value):
    return min(max(value, MARGIN), 1 - MARGIN)


# As large as the border allows, then each overlapping pair is scaled down, then GROWTH of the room left is taken.
def radii(points):
    sizes = [border(point) for point in points]
    for i, j in combinations(range(len(points)), 2):
        shrink(sizes, i, j, math.dist(points[i], points[j]))
    for i in range(len(points)):
        sizes[i] += GROWTH * room(i, points, sizes)
    return [size * (1 - ULPS * sys.float_info.epsilon) for size in sizes]


def shrink(sizes, i, j, distance):
    total = sizes[i] + sizes[j]
    if total > distance:
        sizes[i] *= distance / total
        sizes[j] *= distance / total


def room(i, points, sizes):
    gaps = [math.dist(points[i], points[j]) - sizes[j] for j in range(len(points)) if j != i]
    return min([border(points[i]), *gaps]) - sizes[i]


def border(point):
    x, y = point
    return min(x, y, 1 - x, 1 - y)
