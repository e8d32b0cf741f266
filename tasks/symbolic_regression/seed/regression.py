# Fits a sum of terms to the data: of the terms on offer, those that help most, one after the other, with coefficients by
# least squares. All choices are the named numbers below: which terms are on offer, and how many are taken at most.
import math

DEGREE = 1
PRODUCTS = 0
WAVES = 0
WAVE_STEP = 1.0
LOGS = 0
LOG_SHIFT = 1.0
DECAYS = 0
DECAY_STEP = 1.0
INVERSES = 0
TERMS = 4
RIDGE = 1e-12
ENOUGH = 1e-9


# An expression in x0, x1, ... that has about these values in these rows.
def regress(rows, values):
    offer = dict(offered(rows))
    chosen = {}
    coefficients = []
    rest = values
    while offer and len(chosen) < TERMS and math.hypot(*rest) > ENOUGH:
        text = max(offer, key=lambda text: use(offer[text], rest))
        chosen[text] = offer.pop(text)
        coefficients = fit(list(chosen.values()), values)
        rest = left(list(chosen.values()), coefficients, values)
    return " + ".join("%r * %s" % pair for pair in zip(coefficients, chosen)) or "0"


# Every term that may be taken: its text, and its value in each row.
def offered(rows):
    yield "1", [1.0] * len(rows)
    alone = [list(of_one("x%d" % i, [row[i] for row in rows])) for i in range(len(rows[0]))]
    for i, terms in enumerate(alone):
        yield from terms
        for others in alone[: i * PRODUCTS]:
            for a, xs in terms:
                for b, ys in others:
                    yield "%s * %s" % (a, b), [x * y for x, y in zip(xs, ys)]


# The terms of one variable.
def of_one(name, xs):
    for power in range(1, DEGREE + 1):
        yield "%s ** %d" % (name, power), [x**power for x in xs]
    for k in range(1, WAVES + 1):
        yield "sin(%r * %s)" % (k * WAVE_STEP, name), [math.sin(k * WAVE_STEP * x) for x in xs]
        yield "cos(%r * %s)" % (k * WAVE_STEP, name), [math.cos(k * WAVE_STEP * x) for x in xs]
    for k in range(1, LOGS + 1):
        yield "log(%r + abs(%s))" % (k * LOG_SHIFT, name), [math.log(k * LOG_SHIFT + abs(x)) for x in xs]
    for k in range(1, DECAYS + 1):
        yield "exp(%r * %s)" % (-k * DECAY_STEP, name), [math.exp(-k * DECAY_STEP * x) for x in xs]
    for k in range(1, INVERSES + 1):
        yield "1 / (%d + %s ** 2)" % (k, name), [1 / (k + x * x) for x in xs]


# How much of the rest a column explains.
def use(column, rest):
    return abs(dot(column, rest)) / (math.hypot(*column) + RIDGE)


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


# Coefficients by least squares: the normal equations, solved by elimination.
def fit(columns, values):
    rows = [[dot(a, b) for b in columns] + [dot(a, values)] for a in columns]
    for i, row in enumerate(rows):
        row[i] += RIDGE * row[i] + RIDGE
        for other in rows:
            if other is not row:
                factor = other[i] / row[i]
                other[:] = [x - factor * y for x, y in zip(other, row)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def left(columns, coefficients, values):
    return [value - dot(coefficients, row) for value, row in zip(values, zip(*columns))]
