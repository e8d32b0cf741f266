# Nearest centroid, with terms beside the distance that are worth nothing at first.
# All choices are the named numbers below: what the distance to the middle of a class counts, what the rows of the class
# nearby count, how far they reach, how much each number is brought to the same scale, and what a frequent class is worth.
import math

MIDDLE = 1.0
NEARBY = 0.0
REACH = 1.0
SPREAD = 0.0
SCALE = 0.0
FREQUENT = 0.0


# A label for each row that is asked for.
def classify(rows, labels, asked):
    units = [deviation(column) ** SCALE for column in zip(*rows)]
    rows = [scaled(row, units) for row in rows]
    groups = {}
    for row, label in zip(rows, labels):
        groups.setdefault(label, []).append(row)
    classes = [(label, *summary(group)) for label, group in groups.items()]
    return [best(scaled(row, units), classes, len(rows)) for row in asked]


def scaled(row, units):
    return [x / unit for x, unit in zip(row, units)]


def deviation(values):
    mean = sum(values) / len(values)
    return math.sqrt(sum([(x - mean) ** 2 for x in values]) / len(values)) + 1e-9


# The rows of a class, their middle, and how far they lie from it on average.
def summary(group):
    middle = [sum(column) / len(group) for column in zip(*group)]
    return group, middle, sum([math.dist(row, middle) for row in group]) / len(group) + 1e-9


def best(row, classes, count):
    return max(classes, key=lambda each: score(row, each[1], each[2], each[3], count))[0]


# How well a row fits a class.
def score(row, group, middle, width, count):
    distance = math.dist(row, middle)
    value = -MIDDLE * distance / width**SPREAD
    value += FREQUENT * math.log(len(group) / count)
    if NEARBY:
        value += NEARBY * math.log(density(row, group) + 1e-9)
    return value


# How many rows of a class lie nearby, those further away counting less.
def density(row, group):
    return sum([math.exp(-((math.dist(row, other) / REACH) ** 2)) for other in group])
