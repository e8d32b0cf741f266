"""Three hidden formulas: numbers and operators both have to be found."""

HIDDEN = {
    "early": lambda n: 5 * n - 3,
    "middle": lambda n: 3 * n * n - 7 * n + 2,
    "late": lambda n: n * n * n - 4 * n * n + 6,
}
INVOLVED = {name: (name,) for name in HIDDEN}


def parts(names):
    """How near each sequence is."""
    return {name: sum(near(names[name](n), hidden(n)) for n in range(12)) / 12 for name, hidden in HIDDEN.items()}


def near(found, wanted):
    """1 if it is right; less, the farther it is off."""
    return 1 / (1 + abs(found - wanted) / (1 + abs(wanted) / 4))
