# Best fit: each item goes into the bin where it leaves the smallest gap; an unused bin is always among the choices.
# All choices are the named weights below. Sizes, rooms and gaps are shares of a bin, so 0.5 is half a bin.
WELCOME = [1.0, 0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.93, 0.92, 0.91, 0.9]
EVEN = 0.0
OPEN = 0.0

bins = {}


# A new instance begins. Bins are kept by the room they have; the largest room is that of the next unused bin.
def start(capacity):
    bins.clear()
    bins[capacity] = [0]


# The bin of the next item: one in use, or the next number for a new one.
def place(size):
    capacity = max(bins)
    room = choose(size, capacity)
    b = bins[room].pop()
    if room == capacity:
        bins[room].append(b + 1)
    if not bins[room]:
        del bins[room]
    bins.setdefault(room - size, []).append(b)
    return b


def choose(size, capacity):
    fitting = [room for room in bins if room >= size]
    return max(fitting, key=lambda room: score(size / capacity, room / capacity))


# How good it is to put an item of this size into this room.
def score(size, room):
    gap = room - size
    value = welcome(gap)
    value -= EVEN * abs(gap - size)
    if room == 1:
        value -= OPEN
    return value


# How welcome a gap is: WELCOME has the values at 0, a tenth, two tenths, ... of a bin, with straight lines in between.
def welcome(gap):
    step = min(int(gap * 10), 9)
    part = gap * 10 - step
    return WELCOME[step] * (1 - part) + WELCOME[step + 1] * part
