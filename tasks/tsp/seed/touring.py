# Nearest neighbour from the first city, then passes that turn a stretch of the tour round where that makes it shorter.
# All choices are the named numbers below: how much a city that is far from the middle is worth an early visit, what a
# turn costs, and how many passes there are and how far they look, as a share of the cities.
import math

OUTWARD = 0.0
TURN = 0.0
NARROW = 0.0
PASSES = 0
REACH = 0.05
SLACK = 1e-9


# The numbers of the cities in the order of a visit. `cities` are pairs of coordinates.
def tour(cities):
    order = build(cities)
    for _ in range(PASSES):
        improve(order, cities, max(2, int(REACH * len(cities))))
    return order


def build(cities):
    middle = [sum(values) / len(cities) for values in zip(*cities)]
    waiting = set(range(1, len(cities)))
    order = [0]
    while waiting:
        order.append(min(waiting, key=lambda city: cost(order, city, cities, middle)))
        waiting.remove(order[-1])
    return order


# What it costs to go on to this city: the less, the sooner it is visited.
def cost(order, city, cities, middle):
    here, there = cities[order[-1]], cities[city]
    value = math.dist(here, there)
    value -= OUTWARD * math.dist(there, middle)
    value += NARROW * math.dist(there, cities[order[0]])
    if len(order) > 1:
        value += TURN * bend(cities[order[-2]], here, there)
    return value


# How much longer the way over b is than straight from a to c.
def bend(a, b, c):
    return math.dist(a, b) + math.dist(b, c) - math.dist(a, c)


# Turns round the stretch from i to j wherever the two new edges are shorter.
def improve(order, cities, reach):
    for i in range(1, len(order) - 1):
        for j in range(i + 1, min(i + reach, len(order))):
            if gain(order, cities, i, j) > SLACK:
                order[i : j + 1] = order[i : j + 1][::-1]


def gain(order, cities, i, j):
    a, b, c, d = (cities[order[k]] for k in (i - 1, i, j, j + 1 - len(order)))
    return math.dist(a, b) + math.dist(c, d) - math.dist(a, c) - math.dist(b, d)
