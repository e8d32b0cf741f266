# How many others lie near each point: all pairs of points in the same and in adjacent cells of a grid are compared.
# All choices are the named numbers below: how wide a cell is, as a share of the square, and how often everything is done.
# With a cell as wide as the square, all points are compared with all; one narrower than the radius would miss some.
WIDTH = 1.0
ROUNDS = 2
SIZE = 1000000


# For each point the number of other points at a distance of `radius` at most. Coordinates are 0 to SIZE - 1.
def neighbours(points, radius):
    counts = []
    for _ in range(ROUNDS):
        grid = cells(points)
        counts = [near(points, i, grid, radius) for i in range(len(points))]
    return counts


# The numbers of the points in each cell.
def cells(points):
    grid = {}
    for i in range(len(points)):
        grid.setdefault(cell(points[i]), []).append(i)
    return grid


def cell(point):
    return int(point[0] / (WIDTH * SIZE)), int(point[1] / (WIDTH * SIZE))


def near(points, i, grid, radius):
    column, row = cell(points[i])
    count = 0
    for x in range(column - 1, column + 2):
        for y in range(row - 1, row + 2):
            for j in grid.get((x, y), []):
                if j != i and squared(points[i], points[j]) <= radius**2:
                    count += 1
    return count


def squared(a, b):
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2
