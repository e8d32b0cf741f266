"""A rule by which things are packed: the score changes only where the order of two things does."""

import random

BAGS = {"light": (9.0, 30.0), "small": (30.0, 9.0), "both": (14.0, 14.0)}
INVOLVED = {
    "light": ("VALUE", "WEIGHT", "AGE", "PAIRED"),
    "small": ("VALUE", "VOLUME", "AGE", "PAIRED"),
    "both": ("VALUE", "WEIGHT", "VOLUME", "PAIRED"),
}
AMOUNT = 60


def things(name):
    """Value, weight, volume and age of each; neighbours are partners."""
    rng = random.Random(f"bag {name}")
    return [(rng.uniform(1, 10), rng.uniform(0.2, 4), rng.uniform(0.2, 4), rng.random()) for _ in range(AMOUNT)]


def parts(names):
    """The value packed, as a share of the bound that fractions of things give."""
    return {name: share(names["rank"], things(name), *limits) for name, limits in BAGS.items()}


def share(rank, found, *limits):
    """Of one kind of bag."""
    return packed(rank, found, *limits) / bound(found, *limits)


def worth(value, age):
    """What a thing alone is worth."""
    return value * (1 - 0.6 * age)


def packed(rank, found, most_weight, most_volume):
    """The value in the bag."""
    order = sorted(range(AMOUNT), key=lambda at: -rank(*found[at], worth(*found[at ^ 1][::3])))
    inside, weight, volume = set(), 0.0, 0.0
    for at in order:
        if weight + found[at][1] <= most_weight and volume + found[at][2] <= most_volume:
            inside.add(at)
            weight += found[at][1]
            volume += found[at][2]
    return sum(worth(*found[at][::3]) * (1.3 if at ^ 1 in inside else 1) for at in inside)


def bound(found, most_weight, most_volume):
    """At most so much: all are paired, the bag has one limit, and the last thing may be cut."""
    return min(filled(found, 1, most_weight), filled(found, 2, most_volume))


def filled(found, size, most):
    """The best by worth and one of its sizes."""
    total = 0.0
    for thing in sorted(found, key=lambda each: -worth(*each[::3]) / each[size]):
        share = min(1.0, most / thing[size])
        total += 1.3 * share * worth(*thing[::3])
        most -= share * thing[size]
    return total
