from math import sin

AMPLITUDE = 1.0
FREQUENCY = 1.0
PHASE = 0.0
SLOPE = 0.0
OFFSET = 0.0


def curve(x):
    wave = AMPLITUDE * sin(FREQUENCY * x + PHASE)
    trend = SLOPE * x + OFFSET
    return wave + trend


def values(xs):
    return [curve(x) for x in xs]
