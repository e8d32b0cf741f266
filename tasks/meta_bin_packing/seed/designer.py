# Designs a solver for bin packing by random search: first-fit decreasing with weights, drawn anew for each try.
# All choices are the named numbers below: for each weight of a solver where its values lie and how far they spread, and
# how often a try starts from the best one so far, and how far it goes from there.
import json
import random

AIM = [1.0, 0.05]
WASTE = [0.0, 0.02]
MATCH = [0.0, 0.02]
COMMON = [0.0, 0.02]
AGAIN = 0.0
STEP = 0.5

SOLVER = """
AIM, WASTE, MATCH, COMMON = %s


def pack(items, capacity):
    waiting = {}
    for i, size in enumerate(items):
        waiting.setdefault(size, []).append(i)
    answer = [0] * len(items)
    b, room = 0, capacity
    for _ in items:
        size = choose(waiting, room)
        if size is None:
            b, room = b + 1, capacity
            size = choose(waiting, room)
        answer[waiting[size].pop()] = b
        if not waiting[size]:
            del waiting[size]
        room -= size
    return answer


def choose(waiting, room):
    smallest = min(waiting)
    fitting = [size for size in waiting if size <= room]
    return max(fitting, key=lambda size: score(size, room, waiting, smallest), default=None)


def score(size, room, waiting, smallest):
    gap = room - size
    value = -abs(AIM * room - size)
    if gap < smallest:
        value -= WASTE * gap
    if gap in waiting:
        value += MATCH * room
    return value + COMMON * smallest * len(waiting[size])
"""


# The source of the next solver to try. `tried` are pairs of a source and its score, None if it failed.
def propose(tried, left, seed):
    rng = random.Random("%d %d" % (seed, left))
    if tried and rng.random() < AGAIN:
        return SOLVER % json.dumps([around(value, rng) for value in weights(choose(tried))])
    return SOLVER % json.dumps([rng.gauss(mean, spread) for mean, spread in (AIM, WASTE, MATCH, COMMON)])


def weights(source):
    return json.loads(source.split("= ", 1)[1].split("\n", 1)[0])


def around(value, rng):
    return value + STEP * abs(value) * rng.gauss(0, 1)


# The source that packs in the end: the best of those that were tried.
def choose(tried):
    return min(tried, key=lambda pair: 1000 if pair[1] is None else pair[1])[0]
