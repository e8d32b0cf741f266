# Builds a cap set greedily: of the vectors in the order of their priority, each that makes no line with two before it.
# All choices are the named weights below. With all of them 0, every vector has the same priority, and the set that is
# built has the vectors without a 2.
import itertools

NONE = 0.0
TWO = 0.0
NEIGHBOURS = 0.0
SECOND_NEIGHBOURS = 0.0
MIRROR = 0.0
BY_ZEROS = [0.0, 0.0, 0.0]
BY_SUM = [0.0, 0.0, 0.0]
BY_PRODUCTS = [0.0, 0.0, 0.0]


def build(n):
    vectors = sorted(itertools.product(range(3), repeat=n), key=lambda vector: -priority(vector))
    chosen = []
    blocked = set()
    for vector in vectors:
        if vector not in blocked:
            blocked.update(third(vector, other) for other in chosen)
            chosen.append(vector)
    return chosen


# The vector that makes a line with these two.
def third(a, b):
    return tuple([(-x - y) % 3 for x, y in zip(a, b)])


# How early a vector has its turn.
def priority(vector):
    zeros = vector.count(0)
    value = NONE * zeros + TWO * vector.count(2)
    value += NEIGHBOURS * equal(vector, vector[1:] + vector[:1])
    value += SECOND_NEIGHBOURS * equal(vector, vector[2:] + vector[:2])
    value += MIRROR * equal(vector, vector[::-1])
    value += BY_ZEROS[zeros % 3] + BY_SUM[sum(vector) % 3]
    return value + BY_PRODUCTS[products(vector) % 3]


# In how many places these two are equal.
def equal(a, b):
    return sum([x == y for x, y in zip(a, b)])


# Each digit times the next one, in a ring.
def products(vector):
    return sum([x * y for x, y in zip(vector, vector[1:] + vector[:1])])
