"""Two locks of four dials each, where each dial counts after those before it: plateaus, and an order."""

RIGHT = {"upper": (1.7, 0.2, 2.4, 1.1), "lower": (0.9, 2.8, 1.4, 2.1)}
STEPS = (1.2, 0.6, 0.25)
"""How near a dial has to be for one, two and three thirds of its worth."""
INVOLVED = {"upper": ("A", "B", "C", "D"), "lower": ("E", "F", "G", "H")}


def parts(names):
    """How far each lock is open."""
    dials = names["dials"]()
    return {"upper": opened(dials[:4], RIGHT["upper"]), "lower": opened(dials[4:], RIGHT["lower"])}


def opened(dials, right):
    """The share of a lock."""
    worth = 0.0
    for dial, wanted in zip(dials, right, strict=True):
        steps = sum(abs(dial - wanted) <= step for step in STEPS)
        worth += steps / len(STEPS) / len(right)
        if steps < len(STEPS):
            break
    return worth
