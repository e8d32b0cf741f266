# First-fit decreasing, one bin at a time: the largest item that fits goes in, until none does.
# All choices are the named weights below: the size aimed at as a share of the room, what a gap too small for any
# waiting item costs, what a gap of exactly a waiting item's size is worth, and what a size that waits often is worth.
AIM = 1.0
WASTE = 0.0
MATCH = 0.0
COMMON = 0.0


# The bin of each item, counted from 0.
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
        answer[take(waiting, size)] = b
        room -= size
    return answer


def take(waiting, size):
    i = waiting[size].pop()
    if not waiting[size]:
        del waiting[size]
    return i


# The best size that fits into the room, or None.
def choose(waiting, room):
    smallest = min(waiting)
    fitting = [size for size in waiting if size <= room]
    return max(fitting, key=lambda size: score(size, room, waiting, smallest), default=None)


# How good it is to put an item of this size into this room.
def score(size, room, waiting, smallest):
    gap = room - size
    value = -abs(AIM * room - size)
    if gap < smallest:
        value -= WASTE * gap
    if gap in waiting:
        value += MATCH * room
    return value + COMMON * smallest * len(waiting[size])
